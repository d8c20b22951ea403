"""The point records of LAS files in the order of an octree, in one layout of LAS 1.4.

The points of several files become one cloud: of the point format 6, 7 or 8 that has the fields of
all, with one scale and offset. All O(n) memory is one array of `spatialq.runtime.buffers`.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.octree import Octree
from spatialq.errors import FileError, FileWarning
from spatialq.export.atomic import WRITER
from spatialq.export.las_scale import MAX_STEPS
from spatialq.io.las.columns import EXTRA_BYTES, SCAN_ANGLE_STEP
from spatialq.io.las.header import RECORD_SIZES, Header
from spatialq.io.las.source import LasSource
from spatialq.io.source import Layout, Progress
from spatialq.runtime import buffers
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.progress import check

if TYPE_CHECKING:
    from numpy.typing import NDArray

COLOURED, WITH_NIR = (2, 3, 5, 7, 8, 10), (8, 10)
"""Point formats with red, green and blue, and those with near infrared besides."""
WITH_WAVEFORMS = (4, 5, 9, 10)
STANDARD_TIME = 1
NEARLY = 1e-6
"""Part of a step by which scales and offsets may differ from multiples of each other."""


@dataclass(frozen=True)
class CloudLayout:
    """The layout of the records of one cloud."""

    point_format: int
    """6, 7 or 8."""
    n_extra: int
    """Extra bytes of a record."""
    extra_bytes: bytes
    """Data of the record that describes them; empty if nothing does."""
    steps: Layout
    standard_time: bool

    @property
    def record_length(self) -> int:
        """Bytes of a record."""
        return RECORD_SIZES[self.point_format] + self.n_extra

    @property
    def dtype(self) -> np.dtype[np.void]:
        """The fields of a record, as laspy names them."""
        from laspy.point import dims

        base = dims.POINT_FORMATS_DTYPE[self.point_format]
        fields = [(name, base[name]) for name in base.names]
        if self.n_extra:
            fields.append(("extra bytes", np.dtype((np.uint8, (self.n_extra,)))))
        return np.dtype(fields)


@dataclass(frozen=True)
class AdditivePoints:
    """Points in the order of an octree.

    Parameters
    ----------
    clouds : sequence of LasSource
        Where they came from.
    octree : Octree
    layout : CloudLayout
    records : uint8[n, record_length]
        The point of each slot of the octree.
    """

    clouds: Sequence[LasSource]
    octree: Octree
    layout: CloudLayout
    records: Any

    def of_nodes(self, first: int, stop: int) -> "NDArray[np.void]":
        """Give the records of the nodes first to stop - 1."""
        begin, end = self.octree.first[first], self.octree.first[stop]
        fields: NDArray[np.void] = self.records[begin:end].reshape(-1).view(self.layout.dtype)
        return fields

    def groups(self, rows: int) -> "list[tuple[int, int]]":
        """Divide the nodes into runs of about so many points."""
        found, first = [], 0
        ends, n = self.octree.first, len(self.octree.names)
        while first < n:
            stop = int(np.searchsorted(ends, ends[first] + rows, "right")) - 1
            found.append((first, min(max(first + 1, stop), n)))
            first = found[-1][1]
        return found


def layout_of(target: Path, clouds: Sequence[LasSource]) -> CloudLayout:
    """Find the layout that holds the points of files.

    Parameters
    ----------
    target : Path
        What is written, for errors.
    clouds : sequence of LasSource

    Raises
    ------
    FileError
        If there is no point, the extra bytes or the kind of GPS time differ between the files, or
        the points reach too far for one scale and offset.

    Warns
    -----
    FileWarning
        If waveforms are left out, or coordinates are rounded.
    """
    if not any(cloud.rows for cloud in clouds):
        raise FileError.of(WRITER, target, "must have a point, the source has none")
    formats = {cloud.header.point_format for cloud in clouds}
    if formats & set(WITH_WAVEFORMS):
        message = f"{WRITER}: '{target}': waveforms are left out: point formats 6 to 8 have none"
        warnings.warn(message, FileWarning, stacklevel=2)
    point_format = 8 if formats & set(WITH_NIR) else 7 if formats & set(COLOURED) else 6
    return CloudLayout(
        point_format,
        *_one_extra_bytes(target, clouds),
        _one_scale(target, clouds),
        _is_standard_time(target, clouds),
    )


def gather(
    target: Path,
    clouds: Sequence[LasSource],
    octree: Octree,
    layout: CloudLayout,
    tick: Progress | None = None,
) -> AdditivePoints:
    """Read the records of all points into the order of an octree.

    Parameters
    ----------
    target : Path
        What is written, for errors.
    clouds : sequence of LasSource
        Their points have the numbers 0, 1, 2 ... from file to file.
    octree : Octree
    layout : CloudLayout
    tick : callable, optional
        Called with a file, its points so far and those in all.

    Raises
    ------
    FileError
        If points are damaged, or a coordinate does not fit.
    """
    n = len(octree.slot)
    records = buffers.empty((n, layout.record_length), np.uint8)
    begin = 0
    for cloud in clouds:
        done = 0
        for part in cloud.records():
            check()
            promoted = _in_layout(target, cloud, part, layout)
            raw = promoted.view(np.uint8).reshape(promoted.size, -1)
            slots = octree.slot[begin : begin + promoted.size]
            scatter(raw, slots, records)
            begin, done = begin + promoted.size, done + promoted.size
            if tick is not None:
                tick(cloud.path, done, cloud.rows)
    return AdditivePoints(clouds, octree, layout, records)


@njit(cache=True, nogil=True, error_model="numpy")
def scatter(raw: Any, slots: Any, records: Any) -> None:
    """Copy each record to its slot."""
    for i in range(len(slots)):
        slot = slots[i]
        for k in range(raw.shape[1]):
            records[slot, k] = raw[i, k]


def _one_extra_bytes(target: Path, clouds: Sequence[LasSource]) -> tuple[int, bytes]:
    found: dict[tuple[int, bytes], Path] = {}
    for cloud in clouds:
        header = cloud.header
        n_extra = header.record_length - RECORD_SIZES[header.point_format]
        described = (header.find(*EXTRA_BYTES) or b"") if n_extra else b""
        found.setdefault((n_extra, described), cloud.path)
    if len(found) > 1:
        one, other = list(found.values())[:2]
        reason = f"needs files with the same extra bytes, those of '{one}' and '{other}' differ"
        raise FileError.of(WRITER, target, reason)
    return next(iter(found))


def _is_standard_time(target: Path, clouds: Sequence[LasSource]) -> bool:
    found: dict[bool, Path] = {}
    for cloud in clouds:
        found.setdefault(bool(cloud.header.raw[6] & STANDARD_TIME), cloud.path)
    if len(found) > 1:
        reason = (
            f"needs GPS times of one kind, those of '{found[True]}' are standard time and those of "
            f"'{found[False]}' seconds of the week"
        )
        raise FileError.of(WRITER, target, reason)
    return next(iter(found))


def _one_scale(target: Path, clouds: Sequence[LasSource]) -> Layout:
    """Find scale and offset: those of the files if all have the same, else the finest scale."""
    headers = [cloud.header for cloud in clouds if cloud.rows]
    places = [_of_axis(headers, axis) for axis in range(3)]
    rounded = {
        axis: scale
        for axis, (scale, offset) in zip("xyz", places, strict=True)
        if not all(
            _is_whole(header.scales["xyz".index(axis)] / scale)
            and _is_whole((header.offsets["xyz".index(axis)] - offset) / scale)
            for header in headers
        )
    }
    if rounded:
        message = (
            f"{WRITER}: '{target}': coordinates are rounded to steps of "
            f"{', '.join(f'{scale:g} ({axis})' for axis, scale in rounded.items())}, the finest of "
            "the files, since the scales and offsets of others are no multiples of it"
        )
        warnings.warn(message, FileWarning, stacklevel=2)
    (xs, xo), (ys, yo), (zs, zo) = places
    return Layout((xs, ys, zs), (xo, yo, zo))


def _of_axis(headers: Sequence[Header], axis: int) -> tuple[float, float]:
    given = {(header.scales[axis], header.offsets[axis]) for header in headers}
    if len(given) == 1:
        return given.pop()
    scale = min(abs(scale) for scale, _ in given)
    offset = headers[0].offsets[axis]
    boxes = [header.box for header in headers if header.box is not None]
    low = min((box[axis] for box in boxes), default=offset)
    high = max((box[axis + 3] for box in boxes), default=offset)
    if max(abs(low - offset), abs(high - offset)) / scale > MAX_STEPS:
        offset += round(((low + high) / 2 - offset) / scale) * scale
    return scale, offset


def _is_whole(number: float) -> bool:
    return math.isclose(number, round(number), rel_tol=0, abs_tol=NEARLY)


def _in_layout(
    target: Path, cloud: LasSource, records: "NDArray[np.void]", layout: CloudLayout
) -> "NDArray[np.void]":
    """Give records in a layout: the same ones where nothing is to be changed."""
    header = cloud.header
    out = _promoted(records, header.point_format, layout)
    for k, axis in enumerate("XYZ"):
        own = header.scales[k], header.offsets[k]
        scale, offset = layout.steps.scales[k], layout.steps.offsets[k]
        if own == (scale, offset):
            continue
        factor, shift = own[0] / scale, (own[1] - offset) / scale
        steps = np.rint(records[axis] * factor + shift)
        if np.abs(steps).max(initial=0) > MAX_STEPS:
            reason = f"{axis.lower()} reaches too far for steps of {scale:g}; write fewer files"
            raise FileError.of(WRITER, target, reason)
        out[axis] = steps
    return out


def _promoted(
    records: "NDArray[np.void]", point_format: int, layout: CloudLayout
) -> "NDArray[np.void]":
    """Give records in another point format, as LAS 1.4 says; fields that it lacks are 0."""
    if point_format == layout.point_format:
        raw = records.view(np.uint8)
        return raw.copy().view(layout.dtype)
    out = np.zeros(records.size, layout.dtype)
    for name in layout.dtype.names or ():
        if name in (records.dtype.names or ()) and name != "bit_fields":
            out[name] = records[name]
    bits = records["bit_fields"]
    if point_format > 5:
        out["bit_fields"] = bits
    else:
        out["bit_fields"] = bits & 7 | (bits & 0x38) << 1
        classes = records["raw_classification"]
        out["classification"] = classes & 31
        out["classification_flags"] = classes >> 5 | bits & 0xC0
        out["scan_angle"] = np.rint(records["scan_angle_rank"] / SCAN_ANGLE_STEP)
    if layout.n_extra:
        raw = records.view(np.uint8).reshape(records.size, -1)
        out["extra bytes"] = raw[:, -layout.n_extra :]
    return out
