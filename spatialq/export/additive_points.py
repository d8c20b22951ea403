"""The point records of LAS files in the order of an octree, in a point format of LAS 1.4.

The records are copied to a file first, uncompressed, which is mapped into memory; what is resident
of it follows the budget. All other memory that grows with the cloud is that of the octree.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.data.boxes import in_box
from spatialq.data.octree import Octree
from spatialq.errors import FileError, FileWarning
from spatialq.export.atomic import WRITER
from spatialq.export.las_file import as_bytes, selected
from spatialq.export.las_join import WITH_WAVEFORMS, Joined
from spatialq.io.las.columns import SCAN_ANGLE_STEP, record_dtype
from spatialq.io.las.header import RECORD_SIZES
from spatialq.io.source import Progress
from spatialq.runtime import file_memory
from spatialq.runtime.arrays import Bytes, Floats, Records
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.progress import check
from spatialq.runtime.threads import in_threads

COLOURED, WITH_NIR = (2, 3, 5, 7), (8, 10)
"""Point formats with red, green and blue, and those with near infrared besides."""
EXTRA = "extra bytes"
BLOCK = 1 << 18
"""Records that are read at a time."""
COLOURS = ("red", "green", "blue")


@dataclass(frozen=True)
class CopiedRecords:
    """The records of points of LAS files in a file of their own, in a point format of LAS 1.4.

    Parameters
    ----------
    source : Joined
        The files that they came from.
    path : Path
    counts : sequence of int
        Records of each part of the source.
    brightest : int
        Greatest red, green or blue, or intensity where there are no colours.
    """

    source: Joined
    path: Path
    counts: Sequence[int]
    brightest: int

    @property
    def rows(self) -> int:
        """Records of all parts."""
        return sum(self.counts)

    @property
    def point_format(self) -> int:
        """6, 7 or 8."""
        given = self.source.header.point_format
        return 8 if given in WITH_NIR else 7 if given in COLOURED else 6

    @property
    def dtype(self) -> "np.dtype[np.void]":
        """Of a record; its coordinates are in the steps of the source."""
        given = self.source.header
        n_extra = given.record_length - RECORD_SIZES[given.point_format]
        return _fields(self.point_format, n_extra)

    def coordinates(self) -> Iterator[tuple[int, list[Floats]]]:
        """Read x, y and z, some at a time, each with the number of the first."""
        first = 0
        for part, count in zip(self.source.parts, self.counts, strict=True):
            for begin in range(0, count, BLOCK):
                n = min(BLOCK, count - begin)
                offset = (first + begin) * self.dtype.itemsize
                records = np.fromfile(self.path, self.dtype, n, offset=offset)
                yield first + begin, part.coordinates(records)
            first += count

    @contextmanager
    def in_order(self, octree: Octree) -> "Iterator[AdditivePoints]":
        """Give the points in the order of an octree, within the block."""
        with file_memory.mapped(self.path, np.dtype(np.uint8)) as raw:
            points = AdditivePoints(
                self.source, octree, self.point_format, raw.reshape(self.rows, -1)
            )
            del raw
            try:
                yield points
            finally:
                points.records = np.empty((0, 0), np.uint8)  # a view would keep the mapping open


@dataclass
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
        Of each point of the octree; its coordinates are in the steps of the source.
    """

    source: Joined
    octree: Octree
    point_format: int
    records: Bytes

    @property
    def n_extra(self) -> int:
        """Extra bytes of a record."""
        return int(self.records.shape[1]) - RECORD_SIZES[self.point_format]

    def of_nodes(self, first: int, stop: int) -> Records:
        """Give the records of the nodes first to stop - 1."""
        begin, end = self.octree.first[first], self.octree.first[stop]
        order = self.octree.order[begin:end]
        found = np.empty((len(order), self.records.shape[1]), np.uint8)
        in_threads(lambda span: take(self.records, order, *span, found), len(order))
        fields: Records = found.reshape(-1).view(_fields(self.point_format, self.n_extra))
        return fields

    def groups(self, rows: int, first: int = 0) -> "list[tuple[int, int]]":
        """Divide the nodes from the first one on into runs of about so many points."""
        found = []
        ends, n = self.octree.first, len(self.octree.names)
        while first < n:
            stop = int(np.searchsorted(ends, ends[first] + rows, "right")) - 1
            found.append((first, min(max(first + 1, stop), n)))
            first = found[-1][1]
        return found


def copy_records(
    target: Path,
    source: Joined,
    path: Path,
    bounds: Sequence[float] | None = None,
    tick: Progress | None = None,
) -> CopiedRecords:
    """Copy the records of all points to a file.

    Point formats 0 to 5 become 6 or 7, and 9 and 10 6 or 8: with all fields but waveforms, and scan
    angles in steps of 0.006 degrees.

    Parameters
    ----------
    target : Path
        What is written of them, for errors.
    source : Joined
    path : Path
        The file.
    bounds : sequence of float, optional
        xmin, ymin, xmax, ymax: only the points inside or on the border.
    tick : callable, optional
        Called with the target, points so far and twice those in all: the other half of the work is
        to write them.

    Raises
    ------
    FileError
        If there is no point, points are damaged, or the file cannot be written.

    Warns
    -----
    FileWarning
        If waveforms are left out.
    """
    given = source.header.point_format
    if given in WITH_WAVEFORMS:
        message = f"{WRITER}: '{target}': waveforms are left out: point formats 6 to 8 have none"
        warnings.warn(message, FileWarning, stacklevel=2)
    copied = CopiedRecords(source, path, [], 0)
    counts: list[int] = []
    brightest = done = 0
    try:
        with path.open("wb") as file:
            for part in source.parts:
                counts.append(0)
                for records in part.records():
                    check()
                    kept = records
                    if bounds is not None:
                        x, y, _ = part.coordinates(records)
                        kept = selected(records, in_box(x, y, bounds))
                    brightest = max(brightest, _brightest(kept))
                    is_same = given == copied.point_format
                    same = kept if is_same else _promoted(kept, given, copied.dtype)
                    file.write(same.view(np.uint8).data)
                    counts[-1] += kept.size
                    done += records.size
                    if tick is not None:
                        tick(target, done, 2 * source.rows)
    except OSError as error:  # for example a full disk
        if isinstance(error, FileError):
            raise
        raise FileError.of(WRITER, target, f"cannot be written: {error.strerror}") from error
    if not sum(counts):
        raise FileError.of(WRITER, target, "must have a point, there is none")
    return CopiedRecords(source, path, counts, brightest)


@njit(cache=True, nogil=True, error_model="numpy")
def take(records: Any, order: Any, first: int, stop: int, out: Any) -> None:
    """Copy the records that are wanted, one after the other."""
    for i in range(first, stop):
        record = order[i]
        for k in range(records.shape[1]):
            out[i, k] = records[record, k]


def _brightest(records: Records) -> int:
    names = COLOURS if "red" in (records.dtype.names or ()) else ("intensity",)
    return max(int(records[name].max(initial=0)) for name in names)


def _fields(point_format: int, n_extra: int) -> np.dtype[np.void]:
    return record_dtype(point_format, [(EXTRA, np.uint8, (n_extra,))] if n_extra else [])


def _promoted(records: Records, point_format: int, dtype: np.dtype[np.void]) -> Records:
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
        out[EXTRA] = as_bytes(records)[:, -out[EXTRA].shape[1] :]
    return out
