"""The columns of a table as those of a point cloud file: what it cannot hold is refused.

NumPy converts silently: 70,000 becomes 4,464 as a 16-bit number, and NaN any number. Here every
value is checked before it is converted.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from spatialq.errors import FileError
from spatialq.export.atomic import WRITER
from spatialq.runtime.arrays import Array, DType, Floats

if TYPE_CHECKING:
    import pyarrow as pa

AXES = ("x", "y", "z")
LEFT_OUT = ("point_id", "file_name")
"""The position of a point and where it came from, which a file says by itself."""
NUMBERS = {
    "BOOLEAN": "u1", "TINYINT": "i1", "SMALLINT": "i2", "INTEGER": "i4", "BIGINT": "i8",
    "UTINYINT": "u1", "USMALLINT": "u2", "UINTEGER": "u4", "UBIGINT": "u8",
    "FLOAT": "f4", "DOUBLE": "f8",
    "DECIMAL": "f8", "HUGEINT": "f8", "UHUGEINT": "f8",
}  # fmt: skip
"""NumPy types of SQL types: the same values, but of DECIMAL those of DOUBLE next to them."""
TYPE = re.compile(r"(?P<kind>\w+)(?:\(\d+,\s*\d+\))?(?:\[(?P<count>\d+)\])?")
EXPRESSIONS = (
    (re.compile(r"DATE|TIME|INTERVAL"), "epoch({0})"),
    (re.compile(r"ENUM"), "enum_code({0})"),
    (re.compile(r".*\[\]$"), "{0}[1]"),
)
"""What makes a number of values of other types."""
EXACT = 1 << 53
"""Below it DOUBLE has all whole numbers; it may be one above it that was rounded."""


@dataclass(frozen=True)
class Column:
    """A column of numbers."""

    path: Path
    """The file to be written, for errors."""
    name: str
    """As the table has it."""
    dtype: "DType"
    """Of its values in memory."""
    count: int = 1
    """Values of a row."""
    kind: str = ""
    """SQL type of a value."""

    def refuse(self, reason: str, expression: str = "") -> NoReturn:
        """Raise the error of this column, with what could be written in its place."""
        hints = [f"write {expression} AS {self.quoted}"] if expression else []
        if self.name.lower() not in AXES:
            hints.append(f"leave it out: * EXCLUDE ({self.quoted})")
        reason = f"column '{self.name}' {reason}; {', or '.join(hints)}".removesuffix("; ")
        raise FileError.of(WRITER, self.path, reason)

    @property
    def quoted(self) -> str:
        """The name as SQL has it."""
        is_plain = re.fullmatch(r"[A-Za-z_]\w*", self.name, re.ASCII)
        return self.name if is_plain else '"' + self.name.replace('"', '""') + '"'

    def values(self, array: "pa.Array[Any]") -> Array:
        """Give the values of some rows: of the type `dtype`, one or `count` a row.

        Raises
        ------
        FileError
            If one is NULL, or a whole number that DOUBLE does not have.
        """
        import pyarrow as pa

        n_null = array.null_count
        if self.count > 1 or pa.types.is_fixed_size_list(array.type):
            array = array.flatten()
            n_null += array.null_count
        if n_null:
            if self.name.lower() in AXES:
                self.refuse(f"is NULL in some rows; add WHERE {self.quoted} IS NOT NULL")
            expression = f"coalesce({self.quoted}, 0)" if self.count == 1 else ""
            self.refuse("is NULL in some rows", expression)
        if pa.types.is_decimal(array.type):
            array = array.cast(pa.float64())
        elif pa.types.is_boolean(array.type):
            array = array.cast(pa.uint8())
        numbers: Array = array.to_numpy(zero_copy_only=False)
        if self.kind.endswith("HUGEINT") and np.abs(numbers).max(initial=0) >= EXACT:
            value = numbers[np.abs(numbers) >= EXACT][0]
            self.refuse(f"has the value {value:.0f}, which is rounded", f"{self.quoted}::BIGINT")
        return numbers if self.count == 1 else numbers.reshape(-1, self.count)

    def whole(self, values: Array, low: int, high: int) -> Array:
        """Give values that are whole numbers from `low` to `high`, of whatever type.

        Raises
        ------
        FileError
            If one is not.
        """
        if values.dtype.kind == "f" and values.size:
            with np.errstate(invalid="ignore"):
                broken = values != np.rint(values)
            if broken.any():
                value = values[broken][0]
                reason = f"has the value {value}, but only whole numbers can be held"
                self.refuse(reason, f"round({self.quoted})" if np.isfinite(value) else "")
        elif self.kind == "BOOLEAN" and low <= 0 and high >= 1:
            return values
        elif values.dtype.kind in "iu":
            limits = np.iinfo(values.dtype)
            if low <= limits.min and limits.max <= high:
                return values
        self._require_range(values, low, high)
        return values

    def _require_range(self, values: Array, low: int, high: int) -> None:
        if not values.size:
            return
        lowest, highest = values.min().item(), values.max().item()
        if lowest < low:
            reason = f"has the value {lowest}, but only {low} to {high} can be held"
            self.refuse(reason, f"greatest({self.quoted}, {low})")
        if highest > high:
            reason = f"has the value {highest}, but only {low} to {high} can be held"
            self.refuse(reason, f"least({self.quoted}, {high})")

    def as_type(self, values: Array, dtype: "DType") -> Array:
        """Give the same values as another type.

        Raises
        ------
        FileError
            If it does not have one of them.
        """
        if values.dtype == dtype:
            return values
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            return self.whole(values, int(limits.min), int(limits.max)).astype(dtype)
        with np.errstate(over="ignore"):
            converted: Array = values.astype(dtype)
        differs = (converted != values) & ~np.isnan(converted)
        if values.dtype.kind in "iu":  # NumPy compares them as DOUBLE, too
            differs |= np.abs(converted) >= EXACT
        if differs.any():
            reason = f"has the value {values[differs][0]}, which {dtype.name} numbers do not have"
            self.refuse(reason, f"{self.quoted}::{'FLOAT' if dtype.itemsize == 4 else 'DOUBLE'}")
        return converted

    def coordinates(self, array: "pa.Array[Any]") -> Floats:
        """Give the values of some rows, which are coordinates.

        Raises
        ------
        FileError
            If one is NULL, NaN or infinite.
        """
        values = self.as_type(self.values(array), np.dtype("f8"))
        if not np.isfinite(values).all():
            value = values[~np.isfinite(values)][0]
            self.refuse(f"has the value {value}; add WHERE isfinite({self.quoted})")
        return values


def point_columns(
    path: Path, columns: Mapping[str, str]
) -> tuple[tuple[Column, ...], tuple[Column, ...]]:
    """Give the columns x, y, z of a table and the others that a point cloud file can have.

    Parameters
    ----------
    path : Path
        The file to be written, for errors.
    columns : mapping
        SQL types by name.

    Returns
    -------
    tuple of Column, tuple of Column
        Without `point_id` and `file_name`.

    Raises
    ------
    FileError
        If there is no x, y or z, or a column is none of numbers.
    """
    of_axis: dict[str, Column] = {}
    others = []
    for name, kind in columns.items():
        if name.lower() in LEFT_OUT:
            continue
        column = _column(path, name, kind)
        if name.lower() in AXES and column.count == 1:
            of_axis[name.lower()] = column
        else:
            others.append(column)
    if missing := [axis for axis in AXES if axis not in of_axis]:
        reason = (
            f"points need columns x, y and z of numbers; there is no {' and no '.join(missing)} "
            f"among {', '.join(columns)}"
        )
        raise FileError.of(WRITER, path, reason)
    return tuple(of_axis[axis] for axis in AXES), tuple(others)


def _column(path: Path, name: str, kind: str) -> Column:
    found = TYPE.fullmatch(kind)
    if found is None or found["kind"] not in NUMBERS:
        column = Column(path, name, np.dtype("V"))
        expressions = [text for pattern, text in EXPRESSIONS if pattern.match(kind)]
        quoted = column.quoted
        column.refuse(
            f"is of type {kind[:40]}, but only numbers can be held",
            expressions[0].format(quoted) if expressions else "",
        )
    dtype = np.dtype(NUMBERS[found["kind"]])
    return Column(path, name, dtype, int(found["count"] or 1), found["kind"])


def sql_types(schema: "Iterable[pa.Field[Any]]") -> dict[str, str]:
    """Name the SQL types of Arrow fields, as `point_columns` takes them."""
    import pyarrow as pa

    from spatialq.data.arrow import SQL_TYPES

    kinds = {}
    for field in schema:
        kind, count = field.type, ""
        if pa.types.is_fixed_size_list(kind):
            kind, count = kind.value_type, f"[{kind.list_size}]"
        kinds[field.name] = SQL_TYPES.get(kind, str(kind)) + count
    return kinds
