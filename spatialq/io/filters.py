"""What a query asks of files, checked: columns, a box, and the conditions that say the same."""

import re
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from spatialq.errors import FileError
from spatialq.io.source import Box, Source

INFINITY = float("inf")
EVERYWHERE: Box = (-INFINITY,) * 3 + (INFINITY,) * 3
AXES = ("x", "y", "z")
# The texts of expressions are parsed because pyarrow (26) has no interface to the fields and
# arguments of an expression: https://github.com/apache/arrow/issues/50031. Substrait, the other
# way out, needs a decoder of its protocol buffers.
COMPARISON = re.compile(r"\(([xyz]) (<|<=|==|>|>=) (-?[0-9.]+(?:[eE][-+]?[0-9]+)?)\)")


def unified_schema(reader: str, sources: Sequence[Source]) -> pa.Schema:
    """Join the columns of all sources, those of the first one first.

    Raises
    ------
    FileError
        If a column has types that do not go together, or its name other capital letters.
    """
    schema = sources[0].schema
    if len(sources) == 1:
        return schema
    spelling: dict[str, str] = {}
    for source in sources:
        for name in source.schema.names:
            if spelling.setdefault(name.lower(), name) != name:
                reason = (
                    f"its column '{name}' is called '{spelling[name.lower()]}' in another of the "
                    "files, which SQL does not tell apart; join them by UNION ALL BY NAME"
                )
                raise FileError.of(reader, source.path, reason)
    for source in sources[1:]:
        try:
            schema = pa.unify_schemas([schema, source.schema], promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            reason = f"its columns do not go together with those of the other files: {error}"
            raise FileError.of(reader, source.path, reason) from error
    return schema if "file_name" in schema.names else schema.append(pa.field("file_name", "string"))


def check_columns(reader: str, columns: Sequence[str] | None, schema: pa.Schema) -> list[str]:
    """Give the names of the columns that were asked for, as the schema spells them.

    Raises
    ------
    ValueError
        If there is no such column, or none at all is asked for.
    """
    if columns is None:
        return list(schema.names)
    spelling = {name.lower(): name for name in schema.names}
    for name in columns:
        if name is None or name.lower() not in spelling:
            message = (
                f"{reader}: columns: there is no column '{name}'; there are "
                f"{', '.join(schema.names)}"
            )
            raise ValueError(message)
    if not columns:
        message = f"{reader}: columns must name at least one of {', '.join(schema.names)}"
        raise ValueError(message)
    return list(dict.fromkeys(spelling[name.lower()] for name in columns))


def check_bounds(reader: str, bounds: Sequence[float] | None) -> Box | None:
    """Turn xmin, ymin, xmax, ymax into a box.

    Raises
    ------
    ValueError
        If these are not four numbers, or a minimum is above its maximum.
    """
    if bounds is None:
        return None
    if len(bounds) != 4 or not all(isinstance(value, int | float) for value in bounds):
        message = f"{reader}: bounds must be [xmin, ymin, xmax, ymax], got {list(bounds)}"
        raise ValueError(message)
    xmin, ymin, xmax, ymax = (float(value) for value in bounds)
    if not (xmin <= xmax and ymin <= ymax):  # NaN fails too
        message = (
            f"{reader}: bounds must be [xmin, ymin, xmax, ymax] with the minima first, got "
            f"{list(bounds)}"
        )
        raise ValueError(message)
    return (xmin, ymin, -INFINITY, xmax, ymax, INFINITY)


def inside(bounds: Box | None) -> pc.Expression | None:
    """Build the condition that a point lies in the bounds or on their border."""
    if bounds is None:
        return None
    x, y = pc.field("x"), pc.field("y")
    return (x >= bounds[0]) & (x <= bounds[3]) & (y >= bounds[1]) & (y <= bounds[4])


def box_of(condition: pc.Expression | None, schema: pa.Schema) -> Box | None:
    """Find a box that holds every row that passes, from comparisons of x, y, z with numbers.

    pyarrow shows the inside of an expression as text only. So this reads no more than it is
    sure of: comparisons joined by `and`, in a text without strings or strange column names.
    """
    text = "" if condition is None else str(condition)
    strange = [name for name in schema.names if not name.isidentifier()]
    if not text or '"' in text or any(name in text for name in strange):
        return None
    low, high = list(EVERYWHERE[:3]), list(EVERYWHERE[3:])
    for part in _conjuncts(text):
        if found := COMPARISON.fullmatch(part):
            axis, operator, value = AXES.index(found[1]), found[2], float(found[3])
            if operator in ("<", "<=", "=="):
                high[axis] = min(high[axis], value)
            if operator in (">", ">=", "=="):
                low[axis] = max(low[axis], value)
    box = (low[0], low[1], low[2], high[0], high[1], high[2])
    return None if box == EVERYWHERE else box


def _conjuncts(text: str) -> Iterator[str]:
    """Split `((a) and (b))` into its parts, down to what is no `and`."""
    if not (text.startswith("(") and text.endswith(")")):
        yield text
        return
    depth = 0
    for i, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 1 and text.startswith(" and ", i):
            yield from _conjuncts(text[1:i])
            yield from _conjuncts(text[i + 5 : -1])
            return
    yield text
