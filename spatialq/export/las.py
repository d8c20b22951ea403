"""Copies of LAS and LAZ files with other classes or additional fields.

Everything else is copied byte for byte, without being parsed and written by a library, so that
unknown data are kept; only another CRS that is given takes the place of that of the file. Layout:
ASPRS LAS specification 1.4 R15.
"""

import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.export.las_extra import Field, Layout, lay_out, widened
from spatialq.export.las_file import (
    LASZIP,
    LAZ,
    WKT_BIT,
    as_bytes,
    crs_record,
    las_file,
    record,
    require_uncompressed,
    selected,
    write_las,
)
from spatialq.export.las_join import Joined, join
from spatialq.io.crs import same
from spatialq.io.las.columns import EXTRA_BYTES
from spatialq.io.las.crs import PROJECTION
from spatialq.io.las.header import HEADER_SIZES, Identity, Vlr
from spatialq.io.las.source import open_las

if TYPE_CHECKING:
    from spatialq.runtime.arrays import Bools, Bytes, Records

LEFT_OUT = (LASZIP, ("copc", 1), ("copc", 1000), ("LAStools", 30))
"""Records about the storage of points (compression, octree, index), which differs in a copy."""


def write_copy(
    source: Path | Sequence[Path],
    target: Path,
    *,
    classes: "Bytes | None" = None,
    fields: Sequence[Field] = (),
    keep: "Bools | None" = None,
    progress: Callable[[int, int], None] | None = None,
    crs: str | None = None,
) -> int:
    """Copy a point cloud with the class of every point replaced, or with additional fields.

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
    classes : uint8[n], optional
        ASPRS classes; point formats 0 to 5 have room for 0 to 31.
    fields : sequence of Field
        With n values each, which become extra bytes; an existing field with the same name and type
        is overwritten.
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
    ValueError
        If a class does not fit the point format, or there is not one class per point.
    """
    cloud = _joined(source, target)
    header = cloud.header
    if classes is not None:
        _check_classes(cloud, classes, keep)
    layout = lay_out(header, fields) if fields else None
    require_uncompressed(target, header.point_format)
    wkt = None if crs is None or same(crs, cloud.crs) else crs_record(target, crs)
    minor = max(header.version[1], 4)
    public = bytearray(header.raw.ljust(HEADER_SIZES[minor], b"\0"))
    public[24:26] = 1, minor
    record_length = header.record_length if layout is None else layout.record_length
    struct.pack_into("<BH", public, 104, header.point_format, record_length)
    description = cloud.described if layout is None else layout.description
    points = _changed(cloud, layout, classes, fields, keep, progress)
    with las_file(target) as file:
        records, extended = records_of(cloud, description, keeps_crs=wkt is None)
        if wkt is not None:
            records.append(wkt)
            public[6] |= WKT_BIT
        is_laz = target.suffix.lower() == LAZ
        return write_las(file, public, records, points, compressed=is_laz, extended=extended)


def records_of(
    cloud: Joined,
    description: bytes | None,
    *,
    keeps_crs: bool,
    without: Collection[Identity] = (),
) -> tuple[list[bytes], list[Vlr]]:
    """Give the variable length records of a copy, and the extended ones.

    Parameters
    ----------
    cloud : Joined
    description : bytes, optional
        Of its extra bytes, where it is another than that of the source.
    keeps_crs : bool
    without : collection of Identity
        What else is left out, but for `LEFT_OUT`.
    """
    left_out = {*LEFT_OUT, *without} | ({EXTRA_BYTES} if description is not None else set())
    kept = [
        vlr
        for vlr in cloud.vlrs
        if vlr.identity not in left_out and (keeps_crs or vlr.user_id != PROJECTION)
    ]
    records = [b"".join(vlr.parts()) for vlr in kept if not vlr.extended]
    if description:
        records.append(record(EXTRA_BYTES, description))
    return records, [vlr for vlr in kept if vlr.extended]


def _joined(source: Path | Sequence[Path], target: Path) -> Joined:
    paths = [source] if isinstance(source, Path) else source
    return join([open_las(path) for path in paths], target)


def require_format(sources: Sequence[Path], target: Path) -> None:
    """Reject a target that cannot hold the points of the sources, before work is done for it.

    Raises
    ------
    FileError
        If it is a .laz file and a source is of point format 9 or 10, or the points of several
        cannot stand in one file without loss.
    """
    require_uncompressed(target, _joined(sources, target).header.point_format)


def _check_classes(cloud: Joined, classes: "Bytes", keep: "Bools | None") -> None:
    if classes.shape != (cloud.rows,) or (keep is not None and keep.shape != (cloud.rows,)):
        message = (
            f"write_copy: classes and keep must have a value for each of the {cloud.rows} "
            f"points, got {classes.shape} and {None if keep is None else keep.shape}"
        )
        raise ValueError(message)
    highest = classes.max(initial=0, where=True if keep is None else keep)
    if cloud.header.point_format <= 5 and highest > 31:
        message = (
            f"write_copy: class {highest} does not fit point format "
            f"{cloud.header.point_format} of '{cloud.header.path}', which has classes 0 to 31; "
            "convert it to point format 6 or above first"
        )
        raise ValueError(message)


def _changed(
    cloud: Joined,
    layout: Layout | None,
    classes: "Bytes | None",
    fields: Sequence[Field],
    keep: "Bools | None",
    progress: Callable[[int, int], None] | None,
) -> "Iterator[Records]":
    # formats 0 to 5 have three flags in the byte of the class
    place, flags = (15, 0xE0) if cloud.header.point_format <= 5 else (16, 0)
    first = 0
    for records in cloud.records():
        rows, changed = slice(first, first + records.size), records
        if classes is not None:
            raw = as_bytes(records)
            raw[:, place] = raw[:, place] & flags | classes[rows]
        if layout is not None:
            changed = widened(records, layout, fields, first)
        yield changed if keep is None else selected(changed, keep[rows])
        first = rows.stop
        if progress is not None:
            progress(first, cloud.rows)
