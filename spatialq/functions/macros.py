"""Table macros and scalar macros in SQL, written from parameters."""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spatialq.functions.declaration import (
    Declaration,
    Inputs,
    Parameter,
    PointsAndOtherInput,
    PointsAndTableInput,
    parameters_of,
)
from spatialq.functions.sql_text import literal

WIDTH = 100


@dataclass(frozen=True)
class Argument:
    """One argument of a macro."""

    name: str
    doc: str
    default: str | None = None
    """In SQL; without one the argument must be given."""
    kind: str = "text"
    choices: tuple[str, ...] = ()
    parameter: Parameter | None = None
    """What it is made of, if it is a parameter of a function."""
    rows: str = ""
    """If it names a table: of what its rows are, as classes of `spatialq.query` are called."""
    is_optional: bool = False
    """Whether it may be NULL though it must be given."""


@dataclass(frozen=True)
class Macro:
    """One macro, with what the catalogue says about it."""

    name: str
    summary: str
    arguments: tuple[Argument, ...]
    body: str
    """Of a table macro a query, of a scalar macro an expression."""
    examples: tuple[str, ...]
    gives: str = ""
    """The columns of the result and what they are."""
    is_table: bool = True
    kind: str = ""
    """Of the rows of the result, as `Argument.rows`; empty where it follows from the arguments."""


AGGREGATE = "_aggregate"
"""Ends the names of macros that stand in for aggregates of the extension."""

POINTS = Argument(
    "points",
    "Name of a table or view with point_id, x, y and z; point_id must be unique.",
    rows="Points",
)
CLOUD = Argument(
    "points",
    "Name of a table or view with point_id (unique), x, y and z{attributes}; or what read_points "
    "reads: a file such as 'forest.laz', a pattern such as 'tiles/*.laz', a folder such as "
    "'tiles/', or a list of these, whose files are one cloud with the point_ids of read_points.",
    rows="Points",
)


def cloud_with(inputs: Inputs) -> Argument:
    """Make the argument for a cloud that may have the attributes of the inputs of a function."""
    *most, last = inputs.columns
    needed = f"{', '.join(most) if most[1:] else most[0]} and {last}"
    names = " ".join(getattr(inputs, "attributes", ()))
    more = f", and {names} where it has them" if names else ""
    return replace(CLOUD, doc=CLOUD.doc.replace("x, y and z{attributes}", needed + more))


ELEMENTS = Argument(
    "elements",
    "Name of a table or view with global_id and mesh; spatial_elements says which elements are "
    "considered.",
    rows="Elements",
)
"""The second argument of functions of points and elements."""
TABLES = {
    "polygons": Argument(
        "polygons",
        "Name of a table or view with polygon_id, of any type, and geometry, a GEOMETRY of type "
        "POLYGON or MULTIPOLYGON, as read_vector gives it. NULL and empty ones have no points.",
        rows="Query",
    ),
    "cloud": Argument(
        "reference",
        "Name of a table or view with point_id, x, y and z in the same CRS, or a file or a pattern "
        "that read_points reads.",
        rows="Points",
    ),
}
"""That of functions of points and another table, by its kind."""
DEVICE = Argument("device", "'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1'.", "'auto'", "text")
MEMORY = Argument(
    "memory",
    "Main memory that the call may take, such as '2GB', or a number of GiB; NULL takes "
    "SPATIALQ_MEMORY, or half of what is free.",
    "NULL",
    "text or number",
)
CALL = (DEVICE, MEMORY)
"""What every function with a kernel has as its last arguments."""


def arguments_of(parameters: Iterable[Parameter], *names: str) -> tuple[Argument, ...]:
    """Make arguments of parameters: of all, or of those named, in the order of the names."""
    known = {each.name: each for each in parameters}
    return tuple(
        Argument(each.name, description(each), literal(each.default), each.kind, parameter=each)
        for each in (known[name] for name in names or known)
    )


def description(each: Parameter) -> str:
    """Say what a parameter is, with its unit and what a value must be."""
    facts = [each.unit, each.must if each.choices or each.must_be else _range(each)]
    known = "; ".join(fact for fact in facts if fact)
    return f"{each.doc} ({known})" if known else each.doc


def _range(each: Parameter) -> str:
    limited = any(map(each.must.startswith, "<>"))
    if not limited:
        return ""
    return each.must.replace(f" {each.unit}", "") if each.unit else each.must


def struct(parameters: Iterable[Parameter], own: Sequence[str] | None = None, **fixed: Any) -> str:
    """Write the struct of parameters, device and memory that a kernel's function gets.

    Parameters
    ----------
    parameters : iterable of Parameter
    own : sequence of str, optional
        Those that the macro has as arguments, by default all; the others have their defaults.
    **fixed
        Values, or expressions in SQL as `Sql`, for some of them or for `device`; without `device`
        as an argument there is no `memory`, either.
    """
    fields = {}
    for each in parameters:
        is_argument = own is None or each.name in own
        fields[each.name] = each.name if is_argument else literal(each.default)
    fields |= {} if "device" in fixed else {each.name: each.name for each in CALL}
    fields |= {name: v.text if isinstance(v, Sql) else literal(v) for name, v in fixed.items()}
    inner = ",\n".join(f"    {name}: {value}" for name, value in fields.items())
    return f"{{\n{inner}\n}}"


TABLE = "the name of a table"
TABLE_OR_FILES = "the name of a table or a file, or a list of files"
TABLE_OR_FILE = "the name of a table or a file"
NUMBER = "a number"
CRS = "text such as EPSG:25832"
TRUTH = "true or false"
MESH = "a mesh, STRUCT(vertices DOUBLE[], faces INTEGER[])"


def checked(kind: str, function: str, argument: str, must: str, *limits: int) -> str:
    """Write an argument of a macro as a value of a type, or the error about one of another type.

    Parameters
    ----------
    kind : str
        Of the macros ``spatialq_<kind>`` of `sql/spatialq_arguments.sql`: "text", "name",
        "tables", "number", "whole", "truth", "numbers", "texts" or "mesh".
    function, argument : str
        As the user writes them.
    must : str
        What a value must be.
    *limits : int
        Of a whole number: the least and the largest.
    """
    sentence = literal(f"{function}: {argument} must be {must}, got ")
    return f"spatialq_{kind}({', '.join([sentence, argument, *map(str, limits)])})"


def rows_of(function: str, argument: str, *columns: str) -> str:
    """Write the rows of the table that an argument names, which must have columns.

    It is no macro: DuckDB refuses one within itself, where a view is made by another that has it.
    """
    place, names = literal(f"{function}: {argument}"), literal(columns)
    return (
        f"query(spatialq_rows_sql({place}, {checked('name', function, argument, TABLE)}, {names}))"
    )


@dataclass(frozen=True)
class Sql:
    """An expression, not a value."""

    text: str


def indent(text: str, levels: int = 1) -> str:
    """Move lines to the right, but the first."""
    return text.replace("\n", "\n" + "    " * levels)


def of_points_and_other(
    declaration: Declaration,
    gives: str = "",
    query: str = "FROM {rows}",
    first: Sequence[str] = (),
) -> Macro:
    """Write the macro of a function of points and another table, of elements or of what it says.

    Parameters
    ----------
    declaration : Declaration
    gives : str, optional
        The columns of the result and what they are; by default their names.
    query : str
        The query of the macro, where `{rows}` is the table that the kernel gives.
    first : sequence of str
        Parameters that stand before the others.
    """
    output, parameters = declaration.outputs[0], parameters_of(declaration.parameters)
    names = [*first, *(each.name for each in parameters if each.name not in first)]
    inputs = declaration.inputs
    assert isinstance(inputs, PointsAndOtherInput)
    table = inputs if isinstance(inputs, PointsAndTableInput) else None
    are_pairs = table is not None and table.kind == "polygons"
    rows = f"""query(
    spatialq_{output.name}_sql(
        {checked("tables", output.name, "points", TABLE_OR_FILES)},
        {checked("text", output.name, inputs.other, TABLE)},
        to_json({indent(struct(parameters), 2)})
    )
)"""
    return Macro(
        output.name,
        output.summary,
        (
            cloud_with(inputs),
            ELEMENTS if table is None else TABLES[table.kind],
            *arguments_of(parameters, *names),
            *CALL,
        ),
        query.format(rows=rows),
        tuple(output.examples),
        gives or " ".join(output.columns),
        kind="Query" if are_pairs else "",
    )


def render(macro: Macro) -> str:
    """Write the statement that creates a macro, under comment lines that become its comment."""
    comment = [*_wrapped("", macro.summary)]
    for each in (each for each in macro.arguments if each.doc):
        comment += _wrapped(f"{each.name}: ", each.doc)
    if macro.gives:
        comment += _wrapped("gives: ", macro.gives)
    comment += [f"-- example: {example}" for example in macro.examples]
    arguments = ",\n".join(
        f"    {each.name}" + ("" if each.default is None else f" := {each.default}")
        for each in macro.arguments
    )
    kind = "AS TABLE\n" if macro.is_table else "AS "
    head = f"CREATE OR REPLACE MACRO {macro.name}(\n{arguments}\n) {kind}"
    return "\n".join(comment) + f"\n{head}{macro.body};\n"


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(
        f"{head}{text}",
        WIDTH,
        initial_indent="-- ",
        subsequent_indent="--     " if head else "-- ",
        break_long_words=False,
        break_on_hyphens=False,
    )
