"""Copies of LAS and LAZ files with other classes or additional fields.

Everything else is copied byte for byte, without being parsed and written by a library, so that
unknown data are kept; only another CRS that is given takes the place of that of the file. Layout:
ASPRS LAS specification 1.4 R15.
"""

import struct
import warnings
from collections.abc import Callable, Iterator, Sequence
from os import SEEK_END
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from spatialq.errors import CrsWarning, FileError
from spatialq.export.atomic import WRITER, whole
from spatialq.export.las_extra import Field, Layout, lay_out, widened
from spatialq.io.crs import name, same, to_wkt, to_wkt1
from spatialq.io.las.columns import EXTRA_BYTES
from spatialq.io.las.crs import PROJECTION, WKT_RECORD
from spatialq.io.las.header import HEADER_SIZES, RECORD_SIZES, Header, Vlr
from spatialq.io.las.source import LasSource, open_las

if TYPE_CHECKING:
    from numpy.typing import NDArray

LAZ = ".laz"
COMPRESSED = 0x80
WAVEFORMS = ("LASF_Spec", 65535)
LASZIP = ("laszip encoded", 22204)
LEFT_OUT = (LASZIP, ("copc", 1), ("copc", 1000), ("LAStools", 30))
"""Records about the storage of points (compression, octree, index), which differs in a copy."""
WKT_BIT = 16
"""Of the first byte of the global encoding: the CRS is WKT."""
COPY_BYTES = 1 << 20


def write_classified(
    source: Path,
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
    source : path
        A LAS, LAZ or COPC file of n points.
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
        If the source cannot be read whole or the target cannot be written.
    ValueError
        If a class does not fit the point format, or there is not one class per point.
    """
    cloud = open_las(source)
    _check_classes(cloud, classes, keep)
    return _write(cloud, target, _classified(cloud, classes, keep, progress), crs)


def write_with_fields(
    source: Path,
    target: Path,
    fields: Sequence[Field],
    progress: Callable[[int, int], None] | None = None,
    *,
    crs: str | None = None,
) -> int:
    """Copy a point cloud with additional fields for every point, as extra bytes.

    Everything else is copied, as by `write_classified`. An existing field with the same name and
    type is overwritten.

    Parameters
    ----------
    source : path
        A LAS, LAZ or COPC file of n points.
    target : path
        The ending, .las or .laz, determines whether it is compressed.
    fields : sequence of Field
        With n values each.
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
        If the source cannot be read whole, has a field of that name and another type or no room
        for more, or the target cannot be written.
    """
    cloud = open_las(source)
    layout = lay_out(cloud.header, fields)
    return _write(cloud, target, _widened(cloud, layout, fields, progress), crs, layout)


def _write(
    cloud: LasSource,
    target: Path,
    points: "Iterator[NDArray[np.void]]",
    crs: str | None,
    layout: Layout | None = None,
) -> int:
    import lazrs

    require_format(cloud.path, target)
    wkt = None if crs is None or same(crs, cloud.crs) else _wkt(target, crs)
    try:
        with whole(target) as partial, partial.open("wb") as file:
            is_laz = target.suffix.lower() == LAZ
            return _copy(cloud.header, file, points, layout, wkt, compressed=is_laz)
    except lazrs.LazrsError as error:  # for example a full disk
        raise FileError.of(WRITER, target, f"cannot be written: {error}") from error


def require_format(source: Path, target: Path) -> None:
    """Reject a target that cannot hold the points of the source, before work is done for it.

    Raises
    ------
    FileError
        If it is a .laz file and the source is of point format 9 or 10.
    """
    point_format = open_las(source).header.point_format
    if target.suffix.lower() == LAZ and point_format in (9, 10):
        # lazrs 0.8.2 cannot decompress the wave packets that it compressed
        reason = f"point format {point_format} cannot be compressed without loss; write a .las file"
        raise FileError.of(WRITER, target, reason)


def _check_classes(
    cloud: LasSource, classes: "NDArray[np.uint8]", keep: "NDArray[np.bool_] | None"
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
            f"{cloud.header.point_format} of '{cloud.path}', which has classes 0 to 31; convert "
            "it to point format 6 or above first"
        )
        raise ValueError(message)


def _copy(
    header: Header,
    file: BinaryIO,
    points: "Iterator[NDArray[np.void]]",
    layout: Layout | None,
    wkt: bytes | None,
    *,
    compressed: bool,
) -> int:
    left_out = LEFT_OUT if layout is None else (*LEFT_OUT, EXTRA_BYTES)
    kept = [
        vlr
        for vlr in header.vlrs
        if (vlr.user_id, vlr.record_id) not in left_out
        and (wkt is None or vlr.user_id != PROJECTION)
    ]
    plain = [vlr for vlr in kept if not vlr.extended]
    extended = [vlr for vlr in kept if vlr.extended]
    n_records = len(plain) + compressed + (layout is not None) + (wkt is not None)
    record_length = header.record_length if layout is None else layout.record_length
    minor = max(header.version[1], 4)
    public = bytearray(header.raw.ljust(HEADER_SIZES[minor], b"\0"))
    tally, waveforms = _Tally(), 0
    with header.path.open("rb") as original:
        file.write(public)  # placeholder; the counts are known at the end
        for vlr in plain:
            _copy_record(original, file, vlr)
        if layout is not None:
            _write_record(file, EXTRA_BYTES, layout.description)
        if wkt is not None:
            _write_record(file, (PROJECTION, WKT_RECORD), wkt)
            public[6] |= WKT_BIT
        compressor = _compressor(file, header.point_format, record_length) if compressed else None
        data_offset = file.tell()
        for records in points:
            tally.add(records, header.point_format)
            if compressor is None:
                file.write(records.view(np.uint8).data)
            else:
                compressor.compress_many(records.view(np.uint8))
        if compressor is not None:
            compressor.done()
        end_of_points = file.seek(0, SEEK_END)
        for vlr in extended:
            if (vlr.user_id, vlr.record_id) == WAVEFORMS:
                waveforms = file.tell()
            _copy_record(original, file, vlr)
    public[24:26] = 1, minor
    struct.pack_into("<HII", public, 94, len(public), data_offset, n_records)
    public[104] = header.point_format | (COMPRESSED if compressed else 0)
    struct.pack_into("<H", public, 105, record_length)
    tally.pack_into(public, header)
    first_extended = end_of_points if extended else 0
    struct.pack_into("<QQI", public, 227, waveforms, first_extended, len(extended))
    file.seek(0)
    file.write(public)
    return tally.rows


def _widened(
    cloud: LasSource,
    layout: Layout,
    fields: Sequence[Field],
    progress: Callable[[int, int], None] | None,
) -> "Iterator[NDArray[np.void]]":
    first = 0
    for records in cloud.records():
        yield widened(records, layout, fields, first)
        first += records.size
        if progress is not None:
            progress(first, cloud.rows)


def _classified(
    cloud: LasSource,
    classes: "NDArray[np.uint8]",
    keep: "NDArray[np.bool_] | None",
    progress: Callable[[int, int], None] | None,
) -> "Iterator[NDArray[np.void]]":
    # formats 0 to 5 have three flags in the byte of the class
    place, flags = (15, 0xE0) if cloud.header.point_format <= 5 else (16, 0)
    first = 0
    for records in cloud.records():
        rows = slice(first, first + records.size)
        # as rows of bytes, since NumPy copies and selects records field by field
        raw = records.view(np.uint8).reshape(records.size, -1)
        raw[:, place] = raw[:, place] & flags | classes[rows]
        yield records if keep is None else raw[keep[rows]].reshape(-1).view(records.dtype)
        first = rows.stop
        if progress is not None:
            progress(first, cloud.rows)


class _Tally:
    """Counts and extent of the points written, for the header."""

    def __init__(self) -> None:
        self.rows = 0
        self._by_return = np.zeros(15, np.int64)
        self._ranges: dict[str, tuple[int, int]] = {}

    def add(self, records: "NDArray[np.void]", point_format: int) -> None:
        if not records.size:
            return
        self.rows += records.size
        number = records["bit_fields"] & (7 if point_format <= 5 else 15)
        self._by_return += np.bincount(number, minlength=16)[1:]
        for axis in "XYZ":
            low, high = int(records[axis].min()), int(records[axis].max())
            lowest, highest = self._ranges.get(axis, (low, high))
            self._ranges[axis] = (min(lowest, low), max(highest, high))

    def pack_into(self, public: bytearray, header: Header) -> None:
        box = []
        for axis, scale, offset in zip("XYZ", header.scales, header.offsets, strict=True):
            ends = [end * scale + offset for end in self._ranges.get(axis, ())] or [0.0]
            box += [max(ends), min(ends)]
        struct.pack_into("<6d", public, 179, *box)
        struct.pack_into("<16Q", public, 247, self.rows, *self._by_return)
        # 32-bit counts are for formats 0 to 5, if the counts fit
        counts = [self.rows, *self._by_return[:5]]
        if header.point_format > 5 or self.rows >= 1 << 32:
            counts = [0] * 6
        struct.pack_into("<6I", public, 107, *counts)


def _wkt(target: Path, crs: str) -> bytes:
    """Write a CRS as LAS files have it; WKT2 only where WKT1, which they should have, cannot."""
    text = to_wkt1(crs)
    if text is None:
        message = (
            f"{WRITER}: '{target}': the CRS {name(crs)} is written as WKT2, which LAS 1.4 does not "
            "know and some programs cannot read: WKT1 cannot describe it"
        )
        warnings.warn(message, CrsWarning, stacklevel=4)
        text = to_wkt(crs)
    return text.encode() + b"\0"


def _compressor(file: BinaryIO, point_format: int, record_length: int) -> Any:
    """Start the compressed points and write the record that describes the compression."""
    import lazrs

    n_extra = record_length - RECORD_SIZES[point_format]
    vlr = lazrs.LazVlr.new_for_compression(point_format, n_extra)
    _write_record(file, LASZIP, bytes(vlr.record_data()))
    return lazrs.ParLasZipCompressor(file, vlr)


def _write_record(file: BinaryIO, identity: tuple[str, int], data: bytes) -> None:
    user_id, record_id = identity
    file.write(struct.pack("<2x16sHH32x", user_id.encode(), record_id, len(data)) + data)


def _copy_record(source: BinaryIO, target: BinaryIO, vlr: Vlr) -> None:
    source.seek(vlr.begin)
    for begin in range(0, vlr.size, COPY_BYTES):
        target.write(source.read(min(COPY_BYTES, vlr.size - begin)))
