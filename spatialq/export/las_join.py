"""Several LAS files whose point records go into one file.

The header is that of the first one. Records stay as they are but for X, Y and Z, which become whole
numbers of the steps of the one file: exactly the same coordinates, or the files are refused.
"""

import math
import struct
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import numpy as np

from spatialq.errors import FileError, FileWarning
from spatialq.export.atomic import WRITER
from spatialq.io.las.columns import EXTRA_BYTES, EXTRA_BYTES_RECORD, extra_bytes
from spatialq.io.las.crs import PROJECTION
from spatialq.io.las.header import HEADER_SIZES, Header, Vlr
from spatialq.io.las.source import LasSource
from spatialq.runtime.arrays import Floats, Records

REMEDY = "write each into a file of its own (an output that is a folder, such as out/)"
WITH_WAVEFORMS = (4, 5, 9, 10)
"""Point formats whose records point into the waveforms of their own file."""
STANDARD_TIME = 1
"""Of the first byte of the global encoding: times are GPS seconds since 1980 minus a billion."""
STORAGE = ("laszip encoded", "copc", "LAStools")
"""Whose records are about the storage of the points of one file."""
MIN_MAX, MIN_MAX_BITS = slice(64, 112), 0b110
"""Of an extra bytes entry: the least and greatest value in the file, and whether it has them."""
ULPS = 4
"""Rounding errors of offsets, up to which the difference of two is whole steps."""
LOWEST, HIGHEST = -(1 << 31), (1 << 31) - 1


@dataclass(frozen=True)
class Part:
    """One of the files, and how its whole numbers become those of the one file."""

    cloud: LasSource
    factors: tuple[int, int, int] = (1, 1, 1)
    shifts: tuple[int, int, int] = (0, 0, 0)

    def records(self) -> Iterator[Records]:
        """Read its point records, with the steps of the one file.

        Raises
        ------
        FileError
            If the points are damaged, or too far away for 32 bits.
        """
        for records in self.cloud.records():
            for axis, factor, shift in zip("XYZ", self.factors, self.shifts, strict=True):
                if (factor, shift) != (1, 0):
                    numbers = records[axis].astype(np.int64) * factor + shift
                    if numbers.min() < LOWEST or numbers.max() > HIGHEST:
                        reason = "its points are too far away for the scale of the other files"
                        raise FileError.of(WRITER, self.cloud.path, f"{reason}; {REMEDY}")
                    records[axis] = numbers
            yield records

    def coordinates(self, records: Records) -> list[Floats]:
        """Give x, y and z of records with the steps of the one file, as its own file has them."""
        found = []
        own = self.cloud.header
        for k, (factor, shift) in enumerate(zip(self.factors, self.shifts, strict=True)):
            numbers = records["XYZ"[k]]
            if (factor, shift) != (1, 0):
                numbers = (numbers.astype(np.int64) - shift) // factor
            values = numbers * own.scales[k]
            values += own.offsets[k]
            found.append(values)
        return found


@dataclass(frozen=True)
class Joined:
    """Files as one: the header of the first, and the variable length records of all."""

    header: Header
    vlrs: Sequence[Vlr]
    parts: Sequence[Part]
    described: bytes | None
    """The description of extra bytes, where it is that of no file."""

    @property
    def rows(self) -> int:
        """Points of all files."""
        return sum(part.cloud.rows for part in self.parts)

    @property
    def crs(self) -> str | None:
        """PROJJSON."""
        return self.parts[0].cloud.crs

    def records(self) -> Iterator[Records]:
        """Read the point records of all files, one file after the other."""
        for part in self.parts:
            yield from part.records()


def join(clouds: Sequence[LasSource], target: Path) -> Joined:
    """See several files as one.

    Parameters
    ----------
    clouds : sequence of LasSource
        In one CRS.
    target : Path
        The file to be written, for errors.

    Raises
    ------
    FileError
        If the points of one cannot stand in one file with those of the first without loss.
    """
    first, *others = clouds
    for other in others:
        _require_alike(target, first, other)
    header = first.header
    if not others:
        return Joined(header, header.vlrs, [Part(first)], None)
    x, y, z = (min(each.header.scales[k] for each in clouds) for k in range(3))
    scales = x, y, z
    public = bytearray(header.raw)
    struct.pack_into("<3d", public, 131, *scales)
    header = replace(header, scales=scales, raw=bytes(public))
    parts = [_part(target, header, cloud) for cloud in clouds]
    described = _described(clouds)
    return Joined(header, _records_of(clouds), parts, described)


def _require_alike(target: Path, first: LasSource, other: LasSource) -> None:
    one, two = first.header, other.header
    if one.point_format != two.point_format:
        _refuse(
            target, first, other, f"have point formats {one.point_format} and {two.point_format}"
        )
    if one.point_format in WITH_WAVEFORMS:
        _refuse(target, first, other, "have waveforms, to which each file has places of its own")
    kinds = [
        [(each.name, each.dtype, each.count, each.scales, each.offsets) for each in extra_bytes(h)]
        for h in (one, two)
    ]
    if kinds[0] != kinds[1]:
        names = [", ".join(kind[0] for kind in each) or "none" for each in kinds]
        what = (
            f"({names[0]}) and ({names[1]})"
            if names[0] != names[1]
            else f"of other types ({names[0]})"
        )
        _refuse(target, first, other, f"have different extra bytes, {what}")
    if (one.raw[6] ^ two.raw[6]) & STANDARD_TIME:
        _refuse(target, first, other, "have GPS times of two kinds")
    tail = HEADER_SIZES[4]
    if one.raw[tail:] != two.raw[tail:]:
        _refuse(target, first, other, "are of LAS 1.5 with different time offsets, or not both")


def _part(target: Path, header: Header, cloud: LasSource) -> Part:
    factors, shifts = [], []
    own = cloud.header
    for k, axis in enumerate("xyz"):
        scale, offset = header.scales[k], header.offsets[k]
        ratio = own.scales[k] / scale
        apart = (own.offsets[k] - offset) / scale
        rounding = ULPS * math.ulp(max(abs(own.offsets[k]), abs(offset))) / abs(scale)
        is_whole = math.isclose(ratio, round(ratio), rel_tol=1e-12)
        if not is_whole or abs(apart - round(apart)) > max(rounding, 1e-9) or rounding > 0.1:
            reason = (
                f"'{cloud.path}' has {axis} in steps of {own.scales[k]:g} from {own.offsets[k]!r}, "
                f"others in steps of {scale:g} from {offset!r}: one file cannot have both exactly"
            )
            raise FileError.of(WRITER, target, f"{reason}; {REMEDY}")
        factors.append(round(ratio))
        shifts.append(round(apart))
    return Part(cloud, (factors[0], factors[1], factors[2]), (shifts[0], shifts[1], shifts[2]))


def _described(clouds: Sequence[LasSource]) -> bytes | None:
    """Describe extra bytes without the ranges of values, if those differ."""
    texts = [cloud.header.find(*EXTRA_BYTES) for cloud in clouds]
    if texts[0] is None or all(text == texts[0] for text in texts):
        return None
    raw = bytearray(texts[0])
    for begin in range(0, len(raw) - EXTRA_BYTES_RECORD + 1, EXTRA_BYTES_RECORD):
        if raw[begin + 2]:  # of bytes without a type the options are their number
            raw[begin + 3] &= ~MIN_MAX_BITS
            raw[begin + MIN_MAX.start : begin + MIN_MAX.stop] = bytes(MIN_MAX.stop - MIN_MAX.start)
    return bytes(raw)


def _records_of(clouds: Sequence[LasSource]) -> list[Vlr]:
    """Give the variable length records of all files; of one kind with other content the first.

    Warns
    -----
    FileWarning
        About those that are left out.
    """
    first, *others = clouds
    found = [*first.header.vlrs]
    there = {vlr.identity: vlr for vlr in reversed(found)}
    for cloud in others:
        for vlr in cloud.header.vlrs:
            if vlr.user_id in (*STORAGE, PROJECTION) or vlr.identity == EXTRA_BYTES:
                continue
            known = there.setdefault(vlr.identity, vlr)
            if known is vlr:
                found.append(vlr)
            elif b"".join(known.parts()) != b"".join(vlr.parts()):
                message = (
                    f"{WRITER}: '{cloud.path}': its record {vlr.user_id} {vlr.record_id} differs "
                    f"from that of '{known.path}', which the one file has"
                )
                warnings.warn(message, FileWarning, stacklevel=4)
    return found


def _refuse(target: Path, first: LasSource, other: LasSource, reason: str) -> NoReturn:
    raise FileError.of(WRITER, target, f"'{first.path}' and '{other.path}' {reason}; {REMEDY}")
