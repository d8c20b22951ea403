"""The dimensions of LAS points: which point format has those of a table, and in which bits."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.errors import FileError
from spatialq.export.atomic import WRITER
from spatialq.export.las_extra import MAX_BYTES, SIZES, UNDOCUMENTED
from spatialq.io.las.columns import EXTRA_BYTES_RECORD, EXTRA_TYPES, dimensions

if TYPE_CHECKING:
    from spatialq.export.point_columns import Column

OLD, NEW = range(6), range(6, 11)
"""Point formats with `scan_angle_rank`, in whole degrees, and with `scan_angle`."""
RANK = "scan_angle_rank"
MAX_NAME = 32
BYTES = "ExtraBytes"
"""How `read_las` calls bytes that nothing describes."""


def dimensions_of(names: Collection[str]) -> dict[str, str]:
    """Find the dimensions that names of columns mean.

    A name means a dimension if it is laspy's, of now or of before, or that of the specification:
    scan_angle, ScanAngle and "Scan Angle". Where two mean the same, it is the one that is spelled
    as laspy does.

    Returns
    -------
    dict
        The column of each dimension.
    """
    from laspy.point import dims

    known = {name: name for point_format in (5, 10) for name in dimensions(point_format)}
    spelled = {name.lower(): name for name in names}
    found = {name: spelled[name] for name in known if name in spelled}
    loosely = {_plain(name): name for name in known}
    loosely |= {_plain(old): new for old, new in dims.OLD_LASPY_NAMES.items() if new in known}
    for name in names:
        meant = loosely.get(_plain(name))
        if meant is not None and name not in found.values():
            found.setdefault(meant, name)
    return found


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def choose_format(names: Collection[str]) -> int:
    """Choose the first point format that has all dimensions.

    Formats 0 to 5 are for points with `scan_angle_rank`, unless a dimension is there that only the
    others have.
    """
    wanted = set(names)
    is_old = RANK in wanted and wanted <= set(dimensions(OLD[-1]))
    formats = OLD if is_old else NEW
    return next(k for k in formats if wanted - {RANK} <= set(dimensions(k)))


def extra_entry(column: "Column") -> bytes:
    """Describe extra bytes, as the record of them does; b'' for bytes that stay undescribed.

    Raises
    ------
    FileError
        If a name is too long, or there are more values of a point than can be described.
    """
    raw = column.name.encode()
    if len(raw) > MAX_NAME or column.name != column.name.strip() or "\0" in column.name:
        reason = (
            f"column '{column.name}' cannot be extra bytes of that name, which may have "
            f"{MAX_NAME} bytes and no spaces around it; write {column.quoted} AS another"
        )
        raise FileError.of(WRITER, column.path, reason)
    if column.kind == "UTINYINT" and column.count > 1 and column.name == BYTES:
        return b""
    if column.kind == "UTINYINT" and column.count > 3 and column.count in SIZES:
        return bytes([0, 0, UNDOCUMENTED, column.count]) + raw.ljust(188, b"\0")
    if column.count > 3:
        column.refuse(
            f"has {column.count} values a row, but extra bytes have 3 at most",
            f"({column.quoted}[1:3])::{column.kind}[3]",
        )
    kind = EXTRA_TYPES.index(column.dtype.str[1:]) + 1 + (column.count - 1) * len(EXTRA_TYPES)
    return bytes([0, 0, kind, 0]) + raw.ljust(188, b"\0")


def require_room(path: Path, record_length: int, description: bytes) -> None:
    """Reject more columns than a point record can have.

    Raises
    ------
    FileError
        If the record, or the description of its extra bytes, gets too long.
    """
    if max(record_length, len(description)) > MAX_BYTES:
        n = len(description) // EXTRA_BYTES_RECORD
        reason = (
            f"{n} extra dimensions in points of {record_length} bytes are too many for a LAS file; "
            "leave columns out: * EXCLUDE (...)"
        )
        raise FileError.of(WRITER, path, reason)
