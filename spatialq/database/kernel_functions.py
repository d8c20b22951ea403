"""The SQL functions that run kernels, as the declarations say: names, types, and who answers them.

Users call the macros of `sql/*.sql`, which call these. `spatialq.database.transport` answers.
"""

from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import (
    ElementsInput,
    GridInput,
    PointsAndElementsInput,
    PointsInput,
)
from spatialq.functions.sql_function import SqlFunction, parameters_type, struct_type

MESH = "STRUCT(vertices DOUBLE[], faces INTEGER[])"
ELEMENT = f"STRUCT(global_id VARCHAR, identity UBIGINT, mesh {MESH})"
SETS = "STRUCT(within BOOLEAN, a BIGINT, b BIGINT)"
"""Whether there is no second set, and the pins of the two."""
TRANSPORT = "spatialq.database.transport"


def kernel_functions(function: Function) -> tuple[SqlFunction, ...]:
    """Give the SQL functions of a spatial function.

    `<name>_udf` gets a list for each column and a struct of the parameters and the device, and
    gives a list of structs. One row is one call of the kernel, so that it serves a whole table (one
    row) and GROUP BY (one row per group). Functions that take files, too, have `<name>_sql`, which
    writes the query while it is bound, and one more that works on files.
    """
    match function.inputs:
        case PointsInput(attributes=attributes):
            return _of_points(function, dict(attributes))
        case GridInput():
            return _of_grid(function)
        case ElementsInput():
            return _of_elements(function)
        case PointsAndElementsInput():
            return (
                SqlFunction(
                    f"{function.name}_udf",
                    (*_point_lists(function), f"{ELEMENT}[]", parameters_type(function.parameters)),
                    _rows(function),
                    f"{TRANSPORT}.points_and_elements:of_lists",
                    (function,),
                ),
            )


def _rows(function: Function) -> str:
    return f"{struct_type(function.output.columns)}[]"


def _point_lists(function: Function) -> tuple[str, ...]:
    return ("BIGINT[]", *("DOUBLE[]" for _ in function.inputs.columns))


def _of_points(function: Function, attributes: dict[str, str]) -> tuple[SqlFunction, ...]:
    lists = (f"{kind}[]" for kind in attributes.values())
    of_lists = SqlFunction(
        f"{function.name}_udf",
        (*_point_lists(function), *lists, parameters_type(function.parameters)),
        _rows(function),
        f"{TRANSPORT}.points:of_lists",
        (function,),
    )
    of_pin = SqlFunction(
        f"{function.name}_pinned",
        ("BIGINT", parameters_type(function.parameters)),
        _rows(function),
        f"{TRANSPORT}.points:of_pin",
        (function,),
    )
    query = SqlFunction(
        f"{function.name}_sql",
        ("VARCHAR", "VARCHAR"),
        "VARCHAR",
        f"{TRANSPORT}.{'clouds' if attributes else 'points'}:query",
        (function,),
        volatile=False,
    )
    if not attributes:
        return (of_lists, of_pin, query)
    return (
        of_lists,
        of_pin,
        query,
        SqlFunction(
            f"{function.name}_files",
            ("VARCHAR",),
            _rows(function),
            f"{TRANSPORT}.clouds:of_files",
            (function,),
        ),
    )


def _of_grid(function: Function) -> tuple[SqlFunction, ...]:
    lists = tuple("DOUBLE[]" for _ in function.inputs.columns)
    return (
        SqlFunction(
            f"{function.name}_sql",
            ("VARCHAR", "DOUBLE", "BIGINT", "VARCHAR"),
            "VARCHAR",
            f"{TRANSPORT}.grid:query",
            (function,),
            volatile=False,
        ),
        SqlFunction(
            f"{function.name}_udf",
            (*lists, "VARCHAR"),
            _rows(function),
            f"{TRANSPORT}.grid:of_lists",
            (function,),
        ),
        SqlFunction(
            f"{function.name}_band",
            ("VARCHAR", "BIGINT", "BIGINT"),
            struct_type({"rows": _rows(function), "valued": "BIGINT"}),
            f"{TRANSPORT}.grid:of_band",
            (function,),
        ),
    )


def _of_elements(function: Function) -> tuple[SqlFunction, ...]:
    columns, options = function.output.columns, parameters_type(function.parameters)
    pair = {name: kind for name, kind in columns.items() if name not in ("a", "b")}
    return (
        SqlFunction(
            f"{function.name}_udf",
            (f"{ELEMENT}[]", f"{ELEMENT}[]", SETS, options),
            f"{struct_type({**columns, 'flags': 'VARCHAR[]'})}[]",
            f"{TRANSPORT}.elements:of_sets",
            (function,),
        ),
        SqlFunction(
            f"{function.name}_of_meshes",
            (MESH, MESH, options),
            struct_type({"found": "BOOLEAN", **pair}),
            f"{TRANSPORT}.elements:of_meshes",
            (function,),
            volatile=False,  # so that a query may name a result, and it is not computed twice
        ),
    )
