"""The header and the variable length records of a LAS file, checked before they are believed.

Layout: ASPRS LAS specification 1.4 R15, with the differences of 1.0 to 1.3 and 1.5. Only
numbers that were checked against the size of the file ever become a length, a loop count or
an allocation.
"""

import errno
import math
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NoReturn

from spatialq.errors import FileError
from spatialq.io.files import require_file
from spatialq.io.source import Box
from spatialq.io.storage import is_url

READER = "read_las"

HEADER_SIZES = {0: 227, 1: 227, 2: 227, 3: 235, 4: 375, 5: 393}
"""Smallest header by minor version."""

RECORD_SIZES = (20, 28, 26, 34, 57, 63, 30, 36, 38, 59, 67)
"""Bytes of a point record by point format, without extra bytes."""

INTERNAL_WAVEFORMS = 2
"""The bit of the global encoding for waveforms in an extended record of the same file."""

LONG_HOLE = 1 << 20
"""Bytes that a hole in a file has, at least, to count."""

VLR, EVLR = struct.Struct("<2x16sHH32x"), struct.Struct("<2x16sHQ32x")
"""The headers of variable length records: user, number and bytes of the data."""
MAX_EVLRS = 10_000
MAX_RECORD_DATA = 16 << 20  # the longest useful record, a CRS in WKT, has a few kB
COPY_BYTES = 1 << 20

Identity = tuple[str, int]
"""User and number of a variable length record."""


@dataclass(frozen=True)
class Vlr:
    """One variable length record, extended or not."""

    path: Path
    """The file that has it."""
    user_id: str
    record_id: int
    data: bytes
    """Empty where it is too long to be of use here: waveforms stay in the file."""
    begin: int
    size: int
    """Its bytes in the file, the record's own header included."""
    extended: bool

    @property
    def identity(self) -> Identity:
        """Give what says of which kind it is."""
        return self.user_id, self.record_id

    def parts(self) -> Iterator[bytes]:
        """Read it piece by piece, its own header included."""
        with self.path.open("rb") as file:
            file.seek(self.begin)
            for begin in range(0, self.size, COPY_BYTES):
                yield file.read(min(COPY_BYTES, self.size - begin))


@dataclass
class Header:
    """What the header of a LAS file says, after the checks."""

    path: Path
    stamp: tuple[int, int]
    """Time of the last change in ns, and size: what tells one state of a file from another."""
    version: tuple[int, int]
    point_format: int
    compressed: bool
    record_length: int
    rows: int
    data_offset: int
    scales: tuple[float, float, float]
    offsets: tuple[float, float, float]
    box: Box | None
    raw: bytes
    """The public header as it is stored, as long as its version has it."""
    vlrs: list[Vlr] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    octree_damage: str | None = None
    """Why the octree of a COPC file is not used, in a sentence that is a warning, too."""

    @property
    def file_size(self) -> int:
        """Bytes of the file."""
        return self.stamp[1]

    def find(self, user_id: str, record_id: int) -> bytes | None:
        """Give the data of the first such record, or None."""
        for vlr in self.vlrs:
            if vlr.identity == (user_id, record_id):
                return vlr.data
        return None

    def reject(self, reason: str) -> NoReturn:
        """Raise the error of this file."""
        reject(self.path, reason)


def reject(path: Path, reason: str, cause: BaseException | None = None) -> NoReturn:
    """Raise the error of a file."""
    raise FileError.of(READER, path, reason) from cause


def read_header(path: Path) -> Header:
    """Read and check the header and all VLRs of a file; no point is touched.

    Raises
    ------
    FileError
        If the file is missing, no LAS file, of an unknown version or point format, or holds
        fewer bytes than its header promises.
    """
    require_file(READER, path)
    try:
        status = path.stat()
        stamp = (status.st_mtime_ns, status.st_size)
        with path.open("rb") as file:
            header, legacy_header_size = _public_header(path, stamp, file.read(512))
            header.vlrs += _vlrs(file, header, legacy_header_size)
            header.vlrs += _evlrs(file, header)
            hole = None if is_url(path) else _hole(file, header)
    except OSError as error:
        reject(path, f"cannot be opened: {error.strerror or error}", error)
    _check_points(header)
    if hole is not None:
        header.reject(
            f"its bytes {hole[0]} to {hole[1]}, where points should be, were never written: a copy "
            "or download of it was not completed"
        )
    return header


def _public_header(path: Path, stamp: tuple[int, int], raw: bytes) -> tuple[Header, int]:
    if stamp[1] == 0:
        reject(path, "the file is empty")
    if raw[:4] != b"LASF":
        reject(path, "not a LAS file: it does not begin with 'LASF'")
    if len(raw) < HEADER_SIZES[0]:
        reject(
            path,
            f"cut off inside the header: {len(raw)} bytes, a LAS header has at least "
            f"{HEADER_SIZES[0]}",
        )
    major, minor = raw[24], raw[25]
    if major != 1 or minor not in HEADER_SIZES:
        reject(path, f"LAS version {major}.{minor} is unknown; 1.0 to 1.5 can be read")
    header_size, data_offset = struct.unpack_from("<HI", raw, 94)
    min_size = HEADER_SIZES[minor]
    if header_size < min_size:
        reject(
            path,
            f"the header says that it has {header_size} bytes; a LAS {major}.{minor} header has "
            f"at least {min_size}",
        )
    if len(raw) < min_size:
        reject(path, f"cut off inside the header: {len(raw)} bytes, the header has {min_size}")

    format_byte, record_length, rows = struct.unpack_from("<BHI", raw, 104)
    point_format = format_byte & 0x3F
    # bit 7 marks LASzip; bit 6 as well was an early variant that nobody reads
    compressed = bool(format_byte & 0x80)
    if point_format >= len(RECORD_SIZES) or (format_byte & 0x40):
        reject(path, f"point format {format_byte & 0x7F} is unknown; 0 to 10 can be read")
    if record_length < RECORD_SIZES[point_format]:
        reject(
            path,
            f"the header gives a point {record_length} bytes; point format {point_format} needs "
            f"{RECORD_SIZES[point_format]}",
        )
    scales = struct.unpack_from("<3d", raw, 131)
    offsets = struct.unpack_from("<3d", raw, 155)
    for axis, scale, offset in zip("xyz", scales, offsets, strict=True):
        if not math.isfinite(scale) or scale == 0.0:
            reject(path, f"the scale of {axis} is {scale}: coordinates cannot be computed")
        if not math.isfinite(offset):
            reject(path, f"the offset of {axis} is {offset}: coordinates cannot be computed")
    if data_offset < header_size:
        reject(path, f"the points begin at byte {data_offset}, inside the header")

    header = Header(
        path=path,
        stamp=stamp,
        version=(major, minor),
        point_format=point_format,
        compressed=compressed,
        record_length=record_length,
        rows=rows,
        data_offset=data_offset,
        scales=scales,
        offsets=offsets,
        box=None,
        raw=raw[:min_size],
    )
    header.box = _claimed_box(header, struct.unpack_from("<6d", raw, 179))
    if minor >= 4:
        header.rows = _long_count(header, rows, struct.unpack_from("<Q", raw, 247)[0])
    return header, header_size


def _claimed_box(header: Header, values: tuple[float, ...]) -> Box | None:
    xmax, xmin, ymax, ymin, zmax, zmin = values
    if not all(map(math.isfinite, values)) or xmin > xmax or ymin > ymax or zmin > zmax:
        if header.rows:
            header.warnings.append("the bounding box in the header is not a box")
        return None
    return (xmin, ymin, zmin, xmax, ymax, zmax)


def _long_count(header: Header, legacy: int, count: int) -> int:
    """Choose between the 32-bit and the 64-bit count that LAS 1.4 both has."""
    if count == 0 and legacy:
        header.warnings.append(
            f"the 64-bit point count is 0; the 32-bit count, {legacy}, is taken instead"
        )
        return legacy
    if legacy not in (0, count) and count < 1 << 32:
        header.warnings.append(
            f"the header counts {count} points in 64 bits but {legacy} in 32 bits; the former "
            "is taken"
        )
    return count


def _vlrs(file: BinaryIO, header: Header, position: int) -> Iterator[Vlr]:
    file.seek(100)
    (promised,) = struct.unpack("<I", file.read(4))
    end = min(header.data_offset, header.file_size)
    for i in range(promised):
        if position + VLR.size > end:
            header.warnings.append(
                f"the header promises {promised} variable length records; only {i} fit before "
                "the points and were read"
            )
            return
        vlr = _vlr(file, header, position, VLR, end)
        if vlr is None:
            header.warnings.append(
                f"variable length record {i + 1} of {promised} runs into the points; it and "
                "those after it were not read"
            )
            return
        yield vlr
        position += vlr.size


def _evlrs(file: BinaryIO, header: Header) -> Iterator[Vlr]:
    position, promised = _evlrs_place(header)
    for i in range(promised):
        unread = f"the header promises {promised} extended records; only {i} were read, the next "
        if i == MAX_EVLRS:
            header.warnings.append(f"{unread}are too many")
            return
        if position < header.data_offset or position + EVLR.size > header.file_size:
            header.warnings.append(f"{unread}begins outside the file")
            return
        vlr = _vlr(file, header, position, EVLR, header.file_size)
        if vlr is None:
            header.warnings.append(f"{unread}runs past the end of the file")
            return
        yield vlr
        position += vlr.size


def _vlr(
    file: BinaryIO, header: Header, position: int, head: struct.Struct, end: int
) -> Vlr | None:
    """Read the record at a byte, unless it runs past the end."""
    file.seek(position)
    user_id, record_id, length = head.unpack(file.read(head.size))
    size = head.size + length
    if position + size > end:
        return None
    data = file.read(length) if length <= MAX_RECORD_DATA else b""
    user = user_id.split(b"\0", 1)[0].decode("utf-8", "replace")
    return Vlr(header.path, user, record_id, data, position, size, extended=head is EVLR)


def _evlrs_place(header: Header) -> tuple[int, int]:
    """Give the first byte and the number of extended records; LAS 1.3 may have one, waveforms."""
    if header.version[1] >= 4:
        position, promised = struct.unpack_from("<QI", header.raw, 235)
        return position, promised
    if header.version[1] == 3 and header.raw[6] & INTERNAL_WAVEFORMS:
        (position,) = struct.unpack_from("<Q", header.raw, 227)
        return position, int(position > 0)
    return 0, 0


def chunk_table_offset(file: BinaryIO, header: Header) -> int:
    """Give the byte at which the chunk table of a LAZ file should be, behind its points."""
    file.seek(header.data_offset)
    offset = _signed(file.read(8))
    if offset == -1:  # a writer that could not seek back put it at the end
        file.seek(max(0, header.file_size - 8))
        offset = _signed(file.read(8))
    return offset


def _signed(raw: bytes) -> int:
    return int.from_bytes(raw, "little", signed=True) if len(raw) == 8 else -1


def _hole(file: BinaryIO, header: Header) -> tuple[int, int] | None:
    """Find a long hole of a sparse file among its points: no record has zeros alone.

    Its bytes would be read as points at one place, and a file of terabytes takes no room on a disk.
    What is behind the points may have holes: programs allocate room before they write.
    """
    if not hasattr(os, "SEEK_HOLE"):
        return None
    at, end = header.data_offset, header.file_size
    if not header.compressed or not header.rows:
        end = min(end, at + header.rows * header.record_length)
    elif at < (table := chunk_table_offset(file, header)) < end:
        end = table
    while at < end:
        try:
            begin = os.lseek(file.fileno(), at, os.SEEK_HOLE)
            at = os.lseek(file.fileno(), begin, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:  # the file system does not tell
                return None
            at = end  # there is no more data
        if min(at, end) - begin >= LONG_HOLE:
            return begin, min(at, end)
    return None


def _check_points(header: Header) -> None:
    if header.rows == 0:
        return
    if header.data_offset >= header.file_size:
        header.reject(
            f"the header promises {header.rows} points from byte {header.data_offset} on, but "
            f"the file ends at byte {header.file_size}"
        )
    if header.compressed:
        return
    there = (header.file_size - header.data_offset) // header.record_length
    if there < header.rows:
        header.reject(f"cut off: the header promises {header.rows} points, the file holds {there}")
