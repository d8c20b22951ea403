"""Copies of LAS and LAZ files with other classes or additional fields.

Everything else is copied byte for byte, without being parsed and written by a library, so that
unknown data are kept; only another CRS that is given takes the place of that of the file. Layout:
ASPRS LAS specification 1.4 R15.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spatialq.export.las_extra import Field, Layout, lay_out, widened
from spatialq.export.las_file import (
    LASZIP,
    LAZ,
    WKT_BIT,
    crs_record,
    las_file,
    record,
    require_uncompressed,
    write_las,
)
from spatialq.export.las_join import Joined, join
from spatialq.io.crs import same
from spatialq.io.las.columns import EXTRA_BYTES
from spatialq.io.las.crs import PROJECTION
from spatialq.io.las.header import HEADER_SIZES, Vlr
from spatialq.io.las.source import open_las

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEFT_OUT = (LASZIP, ("copc", 1), ("copc", 1000), ("LAStools", 30))
"""Records about the storage of points (compression, octree, index), which differs in a copy."""
COPY_BYTES = 1 << 20


def write_classified(
    source: Path | Sequence[Path],
    target: Path,
    classes: "NDArray[np.uint8]",
    keep: "NDArray[np.bool_] | None" = None,
    progress: Callable[[int, int], None] | None = None,
    *,
    crs: str | None = None,
) -> int:
    """Copy a point cloud with the class of every point replaced.

    All other bytes of a point record stay: integer coordinates, flags, extra bytes, waveform
    fields. So do point format, scale, offset, GUID, date, global encoding and the variable
    length records, extended ones too; only an octree (COPC) or an index of the source is left
    out. The version becomes 1.4 (1.5 stays 1.5); counts and extent are those of the points
    written. Memory does not grow with the file.

    Parameters
    ----------
    source : path or paths
        LAS, LAZ or COPC files of n points: together one cloud, with the header of the first.
    target : path
        The ending, .las or .laz, determines whether it is compressed.
    classes : uint8[n]
        ASPRS classes; point formats 0 to 5 have room for 0 to 31.
    keep : bool[n], optional
        The points to write; by default all.
    progress : callable, optional
        Called with points read so far and points in all.
    crs : str, optional
        PROJJSON. Where it is not the CRS of the source, it takes the place of its records, as WKT.

    Returns
    -------
    int
        Points written.

    Raises
    ------
    FileError
        If a source cannot be read whole, or the target cannot be written or not have the points of
        all sources without loss.
    ValueError
        If a class does not fit the point format, or there is not one class per point.
    """
    cloud = _joined(source, target)
    _check_classes(cloud, classes, keep)
    return _write(cloud, target, _classified(cloud, classes, keep, progress), crs)


def write_with_fields(
    source: Path | Sequence[Path],
    target: Path,
    fields: Sequence[Field],
    keep: "NDArray[np.bool_] | None" = None,
    progress: Callable[[int, int], None] | None = None,
    *,
    crs: str | None = None,
) -> int:
    """Copy a point cloud with additional fields for every point, as extra bytes.

    Everything else is copied, as by `write_classified`. An existing field with the same name and
    type is overwritten.

    Parameters
    ----------
    source : path or paths
        LAS, LAZ or COPC files of n points: together one cloud, with the header of the first.
    target : path
        The ending, .las or .laz, determines whether it is compressed.
    fields : sequence of Field
        With n values each.
    keep : bool[n], optional
        The points to write; by default all.
    progress : callable, optional
        Called with points read so far and points in all.
    crs : str, optional
        PROJJSON. Where it is not the CRS of the source, it takes the place of its records, as WKT.

    Returns
    -------
    int
        Points written.

    Raises
    ------
    FileError
        If a source cannot be read whole, has a field of that name and another type or no room
        for more, or the target cannot be written or not have the points of all sources without
        loss.
    """
    cloud = _joined(source, target)
    layout = lay_out(cloud.header, fields)
    return _write(cloud, target, _widened(cloud, layout, fields, keep, progress), crs, layout)


def _joined(source: Path | Sequence[Path], target: Path) -> Joined:
    paths = [source] if isinstance(source, Path) else source
    return join([open_las(path) for path in paths], target)


def _write(
    cloud: Joined,
    target: Path,
    points: "Iterator[NDArray[np.void]]",
    crs: str | None,
    layout: Layout | None = None,
) -> int:
    header = cloud.header
    require_uncompressed(target, header.point_format)
    wkt = None if crs is None or same(crs, cloud.crs) else crs_record(target, crs)
    is_described = layout is not None or cloud.described is not None
    left_out = (*LEFT_OUT, EXTRA_BYTES) if is_described else LEFT_OUT
    kept = [
        (path, vlr)
        for path, vlr in cloud.vlrs
        if (vlr.user_id, vlr.record_id) not in left_out
        and (wkt is None or vlr.user_id != PROJECTION)
    ]
    minor = max(header.version[1], 4)
    public = bytearray(header.raw.ljust(HEADER_SIZES[minor], b"\0"))
    public[24:26] = 1, minor
    record_length = header.record_length if layout is None else layout.record_length
    struct.pack_into("<BH", public, 104, header.point_format, record_length)
    with las_file(target) as file:
        records = [b"".join(parts(path, vlr)) for path, vlr in kept if not vlr.extended]
        if described := cloud.described if layout is None else layout.description:
            records.append(record(EXTRA_BYTES, described))
        if wkt is not None:
            records.append(wkt)
            public[6] |= WKT_BIT
        is_laz = target.suffix.lower() == LAZ
        extended = [
            ((vlr.user_id, vlr.record_id), parts(path, vlr)) for path, vlr in kept if vlr.extended
        ]
        return write_las(file, public, records, points, compressed=is_laz, extended=extended)


def parts(path: Path, vlr: Vlr) -> Iterator[bytes]:
    """Read a record piece by piece."""
    with path.open("rb") as original:
        original.seek(vlr.begin)
        for begin in range(0, vlr.size, COPY_BYTES):
            yield original.read(min(COPY_BYTES, vlr.size - begin))


def require_format(sources: Sequence[Path], target: Path) -> None:
    """Reject a target that cannot hold the points of the sources, before work is done for it.

    Raises
    ------
    FileError
        If it is a .laz file and a source is of point format 9 or 10, or the points of several
        cannot stand in one file without loss.
    """
    require_uncompressed(target, _joined(sources, target).header.point_format)


def _check_classes(
    cloud: Joined, classes: "NDArray[np.uint8]", keep: "NDArray[np.bool_] | None"
) -> None:
    if classes.shape != (cloud.rows,) or (keep is not None and keep.shape != (cloud.rows,)):
        message = (
            f"write_classified: classes and keep must have a value for each of the {cloud.rows} "
            f"points, got {classes.shape} and {None if keep is None else keep.shape}"
        )
        raise ValueError(message)
    highest = classes.max(initial=0, where=True if keep is None else keep)
    if cloud.header.point_format <= 5 and highest > 31:
        message = (
            f"write_classified: class {highest} does not fit point format "
            f"{cloud.header.point_format} of '{cloud.header.path}', which has classes 0 to 31; "
            "convert it to point format 6 or above first"
        )
        raise ValueError(message)


def _widened(
    cloud: Joined,
    layout: Layout,
    fields: Sequence[Field],
    keep: "NDArray[np.bool_] | None",
    progress: Callable[[int, int], None] | None,
) -> "Iterator[NDArray[np.void]]":
    first = 0
    for records in cloud.records():
        wide = widened(records, layout, fields, first)
        yield wide if keep is None else _selected(wide, keep[first : first + records.size])
        first += records.size
        if progress is not None:
            progress(first, cloud.rows)


def _classified(
    cloud: Joined,
    classes: "NDArray[np.uint8]",
    keep: "NDArray[np.bool_] | None",
    progress: Callable[[int, int], None] | None,
) -> "Iterator[NDArray[np.void]]":
    # formats 0 to 5 have three flags in the byte of the class
    place, flags = (15, 0xE0) if cloud.header.point_format <= 5 else (16, 0)
    first = 0
    for records in cloud.records():
        rows = slice(first, first + records.size)
        # as rows of bytes, since NumPy copies records field by field
        raw = records.view(np.uint8).reshape(records.size, -1)
        raw[:, place] = raw[:, place] & flags | classes[rows]
        yield records if keep is None else _selected(records, keep[rows])
        first = rows.stop
        if progress is not None:
            progress(first, cloud.rows)


def _selected(records: "NDArray[np.void]", keep: "NDArray[np.bool_]") -> "NDArray[np.void]":
    """Select records as rows of bytes, since NumPy selects them field by field."""
    raw = records.view(np.uint8).reshape(records.size, -1)
    return raw[keep].reshape(-1).view(records.dtype)
