"""The SQL functions that run kernels, as the declarations say: names, types, and who answers them.

Users call the macros of `sql/*.sql`, which call these. `spatialq.database.transport` answers.
"""

from spatialq.data.arrow import MESH
from spatialq.database.transport.columns import ELEMENT, given_by, points_of, row_of
from spatialq.database.transport.request import Transport
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import (
    ElementsInput,
    GridInput,
    PointsAndOtherInput,
    PointsInput,
)
from spatialq.functions.sql_function import SqlFunction, struct_type

TRANSPORT = "spatialq.database.transport"


def kernel_functions(function: Function, transport: Transport) -> tuple[SqlFunction, ...]:
    """Give the SQL functions of a spatial function.

    `spatialq_<name>_sql` writes the query of a call while it is bound. Where rows go as lists, that
    query calls `spatialq_<name>_udf`, which gets a list for each column and the request as JSON,
    and gives a list of structs: one row is one call of the kernel, so that it serves a whole table
    (one row) and GROUP BY (one row per group). Files have a function of their own there.
    """
    rows = f"{struct_type(given_by(function))}[]"

    def writes_query(module: str, *parameters: str) -> SqlFunction:
        return SqlFunction(
            f"spatialq_{function.name}_sql", (*parameters, "VARCHAR"), "VARCHAR",
            f"{TRANSPORT}.{module}:query", (function, transport), volatile=False, by_rows=True,
        )  # fmt: skip

    def runs(name: str, implementation: str, *parameters: str, returns: str = rows) -> SqlFunction:
        # What gets only constants would run while DuckDB plans, and in EXPLAIN. What gets lists is
        # not volatile: in a correlated subquery DuckDB would run it for each outer row.
        return SqlFunction(
            f"spatialq_{function.name}_{name}", parameters, returns,
            f"{TRANSPORT}.{implementation}", (function,), volatile=name != "udf",
        )  # fmt: skip

    match function.inputs:
        case PointsInput():
            lists = (f"{kind}[]" for kind in points_of(function).values())
            of_files = runs("files", "points:of_files", "VARCHAR")
            return (
                writes_query("points", "VARCHAR"),
                runs("udf", "groups:of_lists", *lists, "VARCHAR"),
                of_files,
            )
        case GridInput():
            band = struct_type({"rows": rows, "valued": "BIGINT"})
            return (
                writes_query("grid", "VARCHAR", "DOUBLE", "BIGINT", "VARCHAR", "DOUBLE"),
                runs("udf", "grid:of_lists", *["DOUBLE[]"] * 3, "VARCHAR"),
                runs("band", "grid:of_band", "VARCHAR", "BIGINT", "BIGINT", returns=band),
            )
        case ElementsInput():
            columns = function.output.columns.items()
            pair = {name: kind for name, kind in columns if name not in ("a", "b")}
            return (
                writes_query("elements", "VARCHAR", "VARCHAR", "VARCHAR"),
                runs("udf", "elements:of_sets", f"{ELEMENT}[]", f"{ELEMENT}[]", "VARCHAR"),
                SqlFunction(
                    f"spatialq_{function.name}_of_meshes",
                    ("VARCHAR", MESH, MESH, "VARCHAR"),
                    struct_type({"found": "BOOLEAN", **pair}),
                    f"{TRANSPORT}.elements:of_meshes",
                    (function,),
                    volatile=False,  # so that a result that a query names is not computed twice
                ),
            )
        case PointsAndOtherInput() as inputs:
            other = f"{row_of(inputs)}[]"
            lists = (f"{kind}[]" for kind in points_of(function).values())
            return (
                writes_query("points_and_other", "VARCHAR", "VARCHAR"),
                runs("udf", "points_and_other:of_lists", *lists, other, "VARCHAR"),
                runs("files", "points_and_other:of_files", other, "VARCHAR"),
            )
