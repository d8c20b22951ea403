"""Rows of a table as vertices of a PLY file, binary, little endian."""

import re
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spatialq.export.atomic import whole
from spatialq.export.point_columns import AXES, Column, point_columns
from spatialq.io.crs import name

if TYPE_CHECKING:
    import pyarrow as pa

    from spatialq.runtime.arrays import DType

TYPES = {
    "i1": "char", "u1": "uchar", "i2": "short", "u2": "ushort", "i4": "int", "u4": "uint",
    "f4": "float", "f8": "double",
}  # fmt: skip
NARROWER = {"i8": "i4", "u8": "u4"}
"""Types that PLY does not have, and those as which their values are written if they fit."""
NAME = re.compile(r"[!-~]+")
DIGITS = 19
"""Of the highest count, for which the header has room."""


def write_ply(
    path: Path,
    columns: Mapping[str, str],
    batches: "Iterable[pa.RecordBatch]",
    *,
    crs: str | None = None,
) -> int:
    """Write rows as vertices.

    Coordinates are float64; other columns are properties under their names and of their types.
    BIGINT and UBIGINT become 32-bit numbers.

    Parameters
    ----------
    path : Path
    columns : mapping
        SQL types by name, `x`, `y` and `z` among them.
    batches : iterable of RecordBatch
        The rows, with these columns.
    crs : str, optional
        PROJJSON. PLY has no place for it: its name becomes a comment.

    Returns
    -------
    int
        Vertices written.

    Raises
    ------
    FileError
        If a column or a value cannot be held, or the file cannot be written.
    """
    xyz, others = point_columns(path, columns)
    fields: dict[str, tuple[Column, DType]] = {
        axis: (column, np.dtype("<f8")) for axis, column in zip(AXES, xyz, strict=True)
    }
    for column in others:
        _check(column)
        code = column.dtype.str[1:]
        fields[column.name] = (column, np.dtype(f"<{NARROWER.get(code, code)}"))
    dtype = np.dtype([(field, kind) for field, (_, kind) in fields.items()])
    rows = 0
    with whole(path) as partial, partial.open("wb") as file:
        file.write(_header(dtype, 0, crs))
        for batch in batches:
            vertices = np.empty(batch.num_rows, dtype)
            for field, (column, kind) in fields.items():
                array = batch.column(column.name)
                is_axis = field in AXES
                values = column.coordinates(array) if is_axis else column.values(array)
                vertices[field] = column.as_type(values, kind)
            file.write(vertices.view(np.uint8).data)
            rows += vertices.size
        file.seek(0)
        file.write(_header(dtype, rows, crs))
    return rows


def _check(column: Column) -> None:
    """Reject what no property can be."""
    if column.count > 1:
        column.refuse(f"has {column.count} values a row, but a property has one",
                      f"{column.quoted}[1]")  # fmt: skip
    if not NAME.fullmatch(column.name):
        another = re.sub(r"[^!-~]+", "_", column.name)
        column.refuse(f"has a name that PLY cannot have: write {column.quoted} AS {another}")


def _header(dtype: "np.dtype[np.void]", rows: int, crs: str | None) -> bytes:
    """Make the header, which is as long with any count."""
    assert dtype.names is not None
    count = str(rows)
    system = () if crs is None else (f"comment crs {name(crs)}",)
    lines = (
        "ply",
        "format binary_little_endian 1.0",
        f"comment spatialq {version('spatialq')}{' ' * (DIGITS - len(count))}",
        *system,
        f"element vertex {count}",
        *(f"property {TYPES[dtype[field].str[1:]]} {field}" for field in dtype.names),
        "end_header",
    )
    return "\n".join((*lines, "")).encode("ascii", "replace")
