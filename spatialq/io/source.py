"""What every reader of rows gives: a file as a lazily read table."""

import atexit
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from spatialq.errors import FileError
from spatialq.io import access
from spatialq.runtime import forks, progress

if TYPE_CHECKING:
    from spatialq.runtime.arrays import Array, DType

READER = "read_points"
LAS = (".las", ".laz")
"""Endings of the point clouds that are copied record by record."""
COPC = ".copc.laz"

Box = tuple[float, float, float, float, float, float]
"""xmin, ymin, zmin, xmax, ymax, zmax; infinite where a side is open."""

Progress = Callable[[Path, int, int], None]
"""Called with a file, its rows so far and its rows in all (0: unknown)."""

Stamp = tuple[int, int]
"""Time of the last change and size: what tells one state of a file from another."""

ROW_GROUP = 122_880
"""Rows of a DuckDB row group: batches of a multiple of it give the smallest tables."""
MAX_SCANS = 8
"""Scans that may be left open in the middle, where a query has asked for some rows only."""


@dataclass(frozen=True)
class Layout:
    """How a LAS file keeps coordinates: as whole numbers, times a scale, plus an offset."""

    scales: tuple[float, float, float]
    """Of x, y and z."""
    offsets: tuple[float, float, float]


class Source(Protocol):
    """One file as a table. Opening it checks the header; nothing is decoded until `batches`."""

    path: Path
    kind: str
    """points or grid."""
    schema: pa.Schema
    """All columns. The first is cheap to make: `count(*)` asks for it alone."""
    rows: int
    """Rows promised by the header; of a point cloud, those that are no valid points are left out
    when it is read, after they were numbered."""
    box: Box | None
    """The extent that the header claims; files lie, so never cut by it."""
    crs: str | None
    """PROJJSON, or None when the file does not say (see `spatialq.io.crs`)."""
    warnings: Sequence[str]
    """What is odd about the file, a sentence each."""

    def batches(self, columns: Sequence[str], hint: Box | None = None) -> Iterator[pa.RecordBatch]:
        """Read the columns, in this order, batch by batch.

        `hint` is a box that the caller will cut to: a reader that can skip parts of the file
        outside it should, and need not be exact. `point_id` (the row's position in the file)
        is the same with and without a hint.
        """


class PointSource(Source, Protocol):
    """A point cloud, which can also be read part by part."""

    stamp: Stamp
    layout: Layout | None
    """Of coordinates that the file keeps as whole numbers."""
    about: Mapping[str, Any]
    """What else `spatialq info` says of a file of this format."""
    is_whole: bool
    """Whether each of its `rows` is a point, so that the ids are the positions."""
    rows_of_part: int | None
    """Rows of each part but the last that its `of_rows` can leave out; None where it has none."""

    def spans(self, hint: Box | None = None) -> Sequence[Any]:
        """Divide the file into parts that `read_span` reads, without those outside the hint."""

    def read_span(self, span: Any, columns: Sequence[str]) -> pa.RecordBatch:
        """Read one part of the file, from any thread."""

    def read_into(self, arrays: "Mapping[str, Array]", tick: Progress | None = None) -> int:
        """Read columns of all points into arrays of `rows` values, and return how many came."""


class SequentialSource:
    """A point cloud in a format that is read from its beginning to its end.

    A format derives from it, sets the attributes of a `Source` and defines `batches`. A part is a
    number of rows: a scan that has come to its beginning goes on from there, so that parts that
    are read in turn read the file once.
    """

    kind = "points"
    path: Path
    schema: pa.Schema
    rows: int
    box: Box | None = None
    crs: str | None = None
    warnings: Sequence[str] = ()
    layout: Layout | None = None
    about: Mapping[str, Any] = MappingProxyType({})
    is_whole: bool = False
    rows_of_part: int | None = None

    def batches(self, columns: Sequence[str], hint: Box | None = None) -> Iterator[pa.RecordBatch]:
        """Read the columns, in this order, batch by batch."""
        raise NotImplementedError

    @property
    def stamp(self) -> Stamp:
        """Time of the last change and size."""
        status = self.path.stat()
        return status.st_mtime_ns, status.st_size

    def spans(self, hint: Box | None = None) -> Sequence[Any]:
        """Count off parts of a row group each, of which the last ones may be empty."""
        del hint
        return range(-(-self.rows // ROW_GROUP))

    def read_span(self, span: Any, columns: Sequence[str]) -> pa.RecordBatch:
        """Read one part of the file.

        Raises
        ------
        FileError
            If its points are damaged.
        """
        key = (access.calling_instance(), self.path, self.stamp, tuple(columns))
        scan = _scans.take((*key, span))
        if scan is None:
            scan = in_row_groups(self.batches(columns))
            for _ in range(span):
                next(scan, None)
        batch = next(scan, None)
        if batch is None:
            fields = [self.schema.field(name) for name in columns]
            return pa.RecordBatch.from_pylist([], pa.schema(fields))
        _scans.keep((*key, span + 1), scan)
        return batch

    def read_into(self, arrays: "Mapping[str, Array]", tick: Progress | None = None) -> int:
        """Read columns of all points into arrays of `rows` values, and return how many came.

        Raises
        ------
        FileError
            If the points are damaged.
        """
        done = 0
        for batch in self.batches(list(arrays)):
            progress.check()
            rows = slice(done, done + batch.num_rows)
            for (name, array), values in zip(arrays.items(), batch.columns, strict=True):
                array[rows] = numbers_of(self.path, name, values, array.dtype)
            done = rows.stop
            if tick is not None:
                tick(self.path, done, self.rows)
        return done


def touch(a: Box, b: Box) -> bool:
    """Whether two boxes have a point in common."""
    return all(a[i] <= b[i + 3] and b[i] <= a[i + 3] for i in range(3))


def numbers_of(path: Path, name: str, values: pa.Array, dtype: "DType") -> "Array":
    """Give the values of a column as numbers of a type; NULL is 0.

    Raises
    ------
    FileError
        If a value is none of the type.
    """
    if values.null_count:
        values = values.fill_null(pa.scalar(0).cast(values.type))
    try:
        numbers = values.cast(pa.from_numpy_dtype(dtype))
    except pa.ArrowInvalid as error:
        reason = f"the values of column '{name}' must be {dtype}: {error}"
        raise FileError.of(READER, path, reason) from None
    array: Array = numbers.to_numpy(zero_copy_only=False)
    return array


def in_row_groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Cut and join batches so that each but the last has `ROW_GROUP` rows."""
    kept: list[pa.RecordBatch] = []
    n = 0
    for batch in batches:
        kept.append(batch)
        n += batch.num_rows
        if n >= ROW_GROUP:
            joined = pa.concat_batches(kept)
            whole = n - n % ROW_GROUP
            for begin in range(0, whole, ROW_GROUP):
                yield joined.slice(begin, ROW_GROUP)
            kept, n = [joined.slice(whole)], n - whole
    if n:
        yield pa.concat_batches(kept)


class _Scans:
    """Scans that are under way: by the instance that asks, file, columns and the next part."""

    def __init__(self) -> None:
        self._scans: OrderedDict[int, tuple[Any, Iterator[pa.RecordBatch]]] = OrderedDict()
        self._numbers = count()
        self._lock = forks.lock()

    def take(self, key: object) -> Iterator[pa.RecordBatch] | None:
        """Give a scan to nobody else."""
        with self._lock:
            for number, (own, scan) in self._scans.items():
                if own == key:
                    del self._scans[number]
                    return scan
            return None

    def keep(self, key: object, scan: Iterator[pa.RecordBatch]) -> None:
        """Keep a scan for whoever asks for its next part; the oldest ones are closed."""
        with self._lock:
            self._scans[next(self._numbers)] = key, scan
            while len(self._scans) > MAX_SCANS:
                self._scans.popitem(last=False)

    def close(self, instance: int | None = None) -> None:
        """Close all scans, or those of a database instance."""
        with self._lock:
            for number, (key, _) in list(self._scans.items()):
                if instance in (None, key[0]):
                    del self._scans[number]


_scans = _Scans()
close_scans = _scans.close
# when the interpreter ends, what a scan needs to close may be gone before it is
atexit.register(_scans.close)
if hasattr(os, "register_at_fork"):  # a scan has an open file, whose position a fork shares
    os.register_at_fork(after_in_child=_scans.close)
