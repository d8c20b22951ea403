"""A LAS or LAZ file while it is written: header, records, points, counts.

Layout: ASPRS LAS specification 1.4 R15.
"""

import struct
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import SEEK_END
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from spatialq.errors import CrsWarning, FileError
from spatialq.export.atomic import WRITER, whole
from spatialq.io.crs import name, to_wkt, to_wkt1
from spatialq.io.las.crs import PROJECTION, WKT_RECORD
from spatialq.io.las.header import RECORD_SIZES, Identity, Vlr
from spatialq.runtime.arrays import Bools, Bytes, Records
from spatialq.runtime.forks import may_use_threads

LAZ = ".laz"
COMPRESSED = 0x80
LASZIP = ("laszip encoded", 22204)
WAVEFORMS = ("LASF_Spec", 65535)
WKT_BIT = 16
"""Of the first byte of the global encoding: the CRS is WKT."""
NOT_AS_LAZ = (9, 10)
"""Point formats whose wave packets lazrs 0.8.2 cannot decompress after it compressed them."""


def require_uncompressed(target: Path, point_format: int) -> None:
    """Reject a .laz file for points that cannot be compressed without loss.

    Raises
    ------
    FileError
        If the point format is 9 or 10.
    """
    if target.suffix.lower() == LAZ and point_format in NOT_AS_LAZ:
        reason = f"point format {point_format} cannot be compressed without loss; write a .las file"
        raise FileError.of(WRITER, target, reason)


@contextmanager
def las_file(target: Path, kept: Path | None = None) -> Iterator[BinaryIO]:
    """Open a file that appears whole or not at all.

    Parameters
    ----------
    target : Path
    kept : Path, optional
        As of `whole`. What is there already stays.

    Raises
    ------
    FileError
        If it cannot be written.
    """
    import lazrs

    with whole(target, kept) as partial, partial.open(mode_of(partial)) as raw:
        file = _Told(cast("BinaryIO", raw))
        try:
            yield cast("BinaryIO", file)
        except lazrs.LazrsError as error:
            if isinstance(file.stop, OSError):  # for example a full disk
                reason = f"cannot be written: {file.stop.strerror}"
                raise FileError.of(WRITER, target, reason) from file.stop
            if file.stop is not None:
                raise file.stop from None
            raise FileError.of(WRITER, target, f"cannot be written: {error}") from error
        finally:
            file.stop = None  # its frames hold the file, and the connection of the query


def mode_of(path: Path) -> str:
    """Give the mode to write a file, which keeps what is in it already."""
    return "r+b" if path.exists() else "w+b"


class _Told:
    """A file that keeps what stopped its writing, of which lazrs makes an error of its own."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.stop: BaseException | None = None

    def write(self, data: Any) -> int:
        """Write bytes."""
        try:
            return self._file.write(data)
        except BaseException as stop:
            self.stop = stop
            raise

    def __getattr__(self, name: str) -> Any:
        """Give all else of the file."""
        return getattr(self._file, name)


def write_las(
    file: BinaryIO,
    public: bytearray,
    records: Sequence[bytes],
    points: Iterable[Records],
    *,
    compressed: bool,
    extended: Sequence[Vlr] = (),
) -> int:
    """Write all parts of a file, and its counts and extent, which are those of the points.

    Parameters
    ----------
    file : binary file
    public : bytearray
        The public header block: version, point format, record length, scales and offsets are
        taken from it, sizes, counts and extent are put into it.
    records : sequence of bytes
        The variable length records, their own headers included.
    points : iterable of arrays
        Point records, with the fields that laspy names.
    compressed : bool
    extended : sequence of Vlr
        The extended variable length records, which are copied.

    Returns
    -------
    int
        Points written.
    """
    point_format, record_length = struct.unpack_from("<BH", public, 104)
    tally, waveforms = Tally(), 0
    file.write(public)  # a placeholder
    for record in records:
        file.write(record)
    compressor = _compressor(file, point_format, record_length) if compressed else None
    data_offset = file.tell()
    for part in points:
        tally.add(part, point_format)
        if compressor is None:
            file.write(part.view(np.uint8).data)
        else:
            compressor.compress_many(part.view(np.uint8))
    if compressor is not None:
        compressor.done()
    end_of_points = file.seek(0, SEEK_END)
    for vlr in extended:
        if vlr.identity == WAVEFORMS:
            waveforms = file.tell()
        file.writelines(vlr.parts())
    struct.pack_into("<HII", public, 94, len(public), data_offset, len(records) + compressed)
    public[104] = point_format | (COMPRESSED if compressed else 0)
    tally.pack_into(public, point_format)
    first_extended = end_of_points if extended else 0
    struct.pack_into("<QQI", public, 227, waveforms, first_extended, len(extended))
    file.seek(0)
    file.write(public)
    return tally.rows


class Tally:
    """Counts and extent of the points written, for the header."""

    def __init__(self) -> None:
        self.rows = 0
        self._by_return = np.zeros(15, np.int64)
        self._ranges: dict[str, tuple[int, int]] = {}

    def add(self, records: Records, point_format: int) -> None:
        """Count points."""
        if not records.size:
            return
        self.rows += records.size
        number = records["bit_fields"] & (7 if point_format <= 5 else 15)
        self._by_return += np.bincount(number, minlength=16)[1:]
        for axis in "XYZ":
            low, high = int(records[axis].min()), int(records[axis].max())
            lowest, highest = self._ranges.get(axis, (low, high))
            self._ranges[axis] = (min(lowest, low), max(highest, high))

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> "Tally":
        """Give the tally whose state that is."""
        found = cls()
        found.rows, found._ranges = state["rows"], state["ranges"]
        found._by_return += state["by_return"]
        return found

    def state(self) -> dict[str, Any]:
        """Give all that it counted, as JSON has it."""
        by_return = self._by_return.tolist()
        return {"rows": self.rows, "by_return": by_return, "ranges": self._ranges}

    def pack_into(self, public: bytearray, point_format: int) -> None:
        """Put counts and extent into a public header block with scales and offsets."""
        scales, offsets = (struct.unpack_from("<3d", public, place) for place in (131, 155))
        box = []
        for axis, scale, offset in zip("XYZ", scales, offsets, strict=True):
            ends = [end * scale + offset for end in self._ranges.get(axis, ())] or [0.0]
            box += [max(ends), min(ends)]
        struct.pack_into("<6d", public, 179, *box)
        struct.pack_into("<16Q", public, 247, self.rows, *self._by_return)
        # 32-bit counts are for formats 0 to 5, if the counts fit
        counts = [self.rows, *self._by_return[:5]]
        if point_format > 5 or self.rows >= 1 << 32:
            counts = [0] * 6
        struct.pack_into("<6I", public, 107, *counts)


def as_bytes(records: Records) -> Bytes:
    """See records as rows of bytes, since NumPy copies and selects them field by field."""
    return records.view(np.uint8).reshape(records.size, records.dtype.itemsize)


def selected(records: Records, keep: Bools) -> Records:
    """Select records."""
    return as_bytes(records)[keep].reshape(-1).view(records.dtype)


def record(identity: Identity, data: bytes) -> bytes:
    """Make a variable length record."""
    user_id, record_id = identity
    return struct.pack("<2x16sHH32x", user_id.encode(), record_id, len(data)) + data


def crs_record(target: Path, crs: str) -> bytes:
    """Write a CRS as LAS files have it; WKT2 only where WKT1, which they should have, cannot."""
    text = to_wkt1(crs)
    if text is None:
        message = (
            f"{WRITER}: '{target}': the CRS {name(crs)} is written as WKT2, which LAS 1.4 does not "
            "know and some programs cannot read: WKT1 cannot describe it"
        )
        warnings.warn(message, CrsWarning, stacklevel=4)
        text = to_wkt(crs)
    return record((PROJECTION, WKT_RECORD), text.encode() + b"\0")


def _compressor(file: BinaryIO, point_format: int, record_length: int) -> Any:
    """Start the compressed points and write the record that describes the compression."""
    import lazrs

    n_extra = record_length - RECORD_SIZES[point_format]
    vlr = lazrs.LazVlr.new_for_compression(point_format, n_extra)
    file.write(record(LASZIP, bytes(vlr.record_data())))
    return laz_compressor()(file, vlr)


def laz_compressor() -> Any:
    """Give the class that compresses: on all cores, but on one where a fork has lost the threads.

    Both write the same bytes.
    """
    import lazrs

    return lazrs.ParLasZipCompressor if may_use_threads("lazrs") else lazrs.LasZipCompressor
