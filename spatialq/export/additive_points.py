"""The point records of LAS files in the order of an octree, in a point format of LAS 1.4.

All memory that grows with the cloud is one array of `spatialq.runtime.buffers`.
"""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.octree import Octree
from spatialq.errors import FileError, FileWarning
from spatialq.export.atomic import WRITER
from spatialq.export.las_join import WITH_WAVEFORMS, Joined
from spatialq.io.las.columns import SCAN_ANGLE_STEP
from spatialq.io.las.header import RECORD_SIZES
from spatialq.io.source import Progress
from spatialq.runtime import buffers
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.progress import check

if TYPE_CHECKING:
    from numpy.typing import NDArray

COLOURED, WITH_NIR = (2, 3, 5, 7), (8, 10)
"""Point formats with red, green and blue, and those with near infrared besides."""
EXTRA = "extra bytes"


@dataclass(frozen=True)
class AdditivePoints:
    """Points in the order of an octree.

    Parameters
    ----------
    source : Joined
        The files that they came from.
    octree : Octree
    point_format : int
        6, 7 or 8.
    records : uint8[n, record length]
        The point of each slot of the octree; its coordinates are in the steps of the source.
    """

    source: Joined
    octree: Octree
    point_format: int
    records: Any

    @property
    def n_extra(self) -> int:
        """Extra bytes of a record."""
        return int(self.records.shape[1]) - RECORD_SIZES[self.point_format]

    def of_nodes(self, first: int, stop: int) -> "NDArray[np.void]":
        """Give the records of the nodes first to stop - 1."""
        begin, end = self.octree.first[first], self.octree.first[stop]
        records = self.records[begin:end].reshape(-1)
        fields: NDArray[np.void] = records.view(_fields(self.point_format, self.n_extra))
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


def gather(
    target: Path,
    source: Joined,
    octree: Octree,
    inside: "NDArray[np.bool_] | None" = None,
    tick: Progress | None = None,
) -> AdditivePoints:
    """Read the records of all points into the order of an octree.

    Point formats 0 to 5 become 6 or 7, and 9 and 10 6 or 8: with all fields but waveforms, and scan
    angles in steps of 0.006 degrees.

    Parameters
    ----------
    target : Path
        What is written, for errors.
    source : Joined
        Its points, or those inside, have the numbers 0, 1, 2 ...
    octree : Octree
    inside : bool[n], optional
        Which points of the source are copied; by default all.
    tick : callable, optional
        Called with the target, points so far and points in all.

    Raises
    ------
    FileError
        If there is no point, or points are damaged.

    Warns
    -----
    FileWarning
        If waveforms are left out.
    """
    given = source.header.point_format
    if not len(octree.slot):
        raise FileError.of(WRITER, target, "must have a point, there is none")
    if given in WITH_WAVEFORMS:
        message = f"{WRITER}: '{target}': waveforms are left out: point formats 6 to 8 have none"
        warnings.warn(message, FileWarning, stacklevel=2)
    point_format = 8 if given in WITH_NIR else 7 if given in COLOURED else 6
    n_extra = source.header.record_length - RECORD_SIZES[given]
    dtype = _fields(point_format, n_extra)
    n = len(octree.slot)
    records = buffers.empty((n, dtype.itemsize), np.uint8)
    read = done = 0
    for part in source.records():
        check()
        same = part if given == point_format else _promoted(part, given, dtype)
        raw = same.view(np.uint8).reshape(same.size, -1)
        if inside is not None:
            raw = raw[inside[read : read + same.size]]
        scatter(raw, octree.slot[done : done + len(raw)], records)
        read, done = read + same.size, done + len(raw)
        if tick is not None:
            tick(target, done, 2 * n)  # the other half of the work is to write them
    return AdditivePoints(source, octree, point_format, records)


@njit(cache=True, nogil=True, error_model="numpy")
def scatter(raw: Any, slots: Any, records: Any) -> None:
    """Copy each record to its slot."""
    for i in range(len(slots)):
        slot = slots[i]
        for k in range(raw.shape[1]):
            records[slot, k] = raw[i, k]


def _fields(point_format: int, n_extra: int) -> np.dtype[np.void]:
    from laspy.point import dims

    base = dims.POINT_FORMATS_DTYPE[point_format]
    fields = [(name, base[name]) for name in base.names]
    if n_extra:
        fields.append((EXTRA, np.dtype((np.uint8, (n_extra,)))))
    return np.dtype(fields)


def _promoted(
    records: "NDArray[np.void]", point_format: int, dtype: np.dtype[np.void]
) -> "NDArray[np.void]":
    """Give records of a point format in a newer one, as LAS 1.4 says; fields it lacks are 0."""
    out = np.zeros(records.size, dtype)
    of_source, of_copy = records.dtype.names or (), dtype.names or ()
    for name in of_copy:
        if name in of_source:
            out[name] = records[name]
    if point_format <= 5:
        bits, classes = records["bit_fields"], records["raw_classification"]
        out["bit_fields"] = bits & 7 | (bits & 0x38) << 1
        out["classification"] = classes & 31
        out["classification_flags"] = classes >> 5 | bits & 0xC0
        out["scan_angle"] = np.rint(records["scan_angle_rank"] / SCAN_ANGLE_STEP)
    if EXTRA in of_copy:
        raw = records.view(np.uint8).reshape(records.size, -1)
        out[EXTRA] = raw[:, -out[EXTRA].shape[1] :]
    return out
