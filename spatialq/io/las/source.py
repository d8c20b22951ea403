"""LAS, LAZ and COPC files as tables."""

import os
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from io import BufferedReader
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa

from spatialq.errors import FileError, FileWarning
from spatialq.io import access
from spatialq.io.files import open_once
from spatialq.io.las.columns import record_columns
from spatialq.io.las.copc import about_octree, octree_boxes
from spatialq.io.las.crs import read_crs
from spatialq.io.las.header import READER, read_header, reject
from spatialq.io.las.laz import Chunk, Laszip, read_chunks, read_laszip
from spatialq.io.source import ROW_GROUP, Box, Layout, Progress, in_row_groups, touch
from spatialq.io.storage import as_path
from spatialq.runtime.arrays import Array, Ints, Records
from spatialq.runtime.threads import n_threads, workers

THREADS = min(os.cpu_count() or 1, 16)
GROUP_ROWS = ROW_GROUP * max(3, THREADS)
"""Rows that `batches` decodes in one call: chunks for every core, short enough for Ctrl-C."""
SPAN_ROWS = 98_304
"""Rows at which a span is full: two chunks of the usual 50,000."""
SHRUNK = "became shorter while it was read"


class LasSource:
    """A LAS, LAZ or COPC file, a `spatialq.io.source.Source`.

    Opening it reads and checks the header, the records behind it and the chunk table. Points
    are decoded by `batches` or, in any order and from any thread, by `read_span`.

    Parameters
    ----------
    path : path-like

    Raises
    ------
    FileError
        If the file cannot be read whole: missing, cut off, damaged or of an unknown kind.
    """

    kind = "points"
    is_whole: bool = True
    rows_of_part: int | None = None

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = as_path(path)
        header = read_header(self.path)
        self.stamp = header.stamp
        """Time of the last change and size: what tells one state of the file from another."""
        self.header = header
        self._laszip: Laszip | None = None
        if header.compressed:
            self._laszip = read_laszip(header)
            self._chunks = octree_boxes(header, read_chunks(self._laszip))
        else:
            self._chunks = _record_ranges(header.data_offset, header.record_length, header.rows)
        if len(self._chunks) > 1 and self._chunks[0].box is None:  # else a hint chooses
            self.rows_of_part = self._chunks[0].rows
        self._dtype, columns = record_columns(header)
        self._columns = {column.name: column for column in columns}
        self.schema = pa.schema(
            [("point_id", pa.int64()), *((column.name, column.type) for column in columns)]
        )
        self.rows = header.rows
        self.box: Box | None = header.box
        self.crs, self.crs_text = read_crs(header)
        self.warnings: Sequence[str] = header.warnings
        self.layout: Layout | None = Layout(header.scales, header.offsets)
        major, minor = header.version
        self.about: Mapping[str, Any] = {
            "version": f"{major}.{minor}",
            "point format": header.point_format,
            "compressed": header.compressed,
            "scale": list(header.scales),
            **about_octree(header, self._chunks),
        }

    def at_resolution(self, reader: str, resolution: float) -> "LasSource":
        """Give the file without the nodes of its octree that are finer than needed.

        The descent stops where the points of a node are as dense as that. Rows keep their
        `point_id`, and fewer come than are promised.

        Parameters
        ----------
        reader : str
            Whose errors they are.
        resolution : float
            Above 0, in the unit of x and y.

        Raises
        ------
        FileError
            If the file has no octree, or a damaged one.
        """
        kept = [c for c in self._chunks if c.coarser is not None and c.coarser > resolution]
        if any(chunk.coarser is None for chunk in self._chunks):
            damage = self.header.octree_damage
            reason = (
                "has no octree (COPC), which resolution needs"
                if damage is None
                else f"cannot be read by resolution: {damage}"
            )
            raise FileError.of(reader, self.path, reason)
        return self._only(kept)

    def of_rows(self, ranges: Sequence[tuple[int, int]]) -> "LasSource":
        """Give the file without the parts that have no rows in ranges; rows keep their `point_id`.

        Parameters
        ----------
        ranges : sequence of (int, int)
            First row of each, and the one behind its last, in ascending order, without overlaps.
        """
        stops = [stop for _, stop in ranges]
        kept = [
            chunk
            for chunk in self._chunks
            if (k := bisect_right(stops, chunk.first)) < len(ranges)
            and ranges[k][0] < chunk.first + chunk.rows
        ]
        return self._only(kept)

    def _only(self, chunks: list[Chunk]) -> "LasSource":
        found = copy(self)
        found._chunks, found.is_whole = chunks, len(chunks) == len(self._chunks)
        return found

    @property
    def laz(self) -> tuple[Laszip, Sequence[Chunk]] | None:
        """How the points are compressed, and all chunks; None where not, or not all are read."""
        return (self._laszip, self._chunks) if self._laszip and self.is_whole else None

    def check_extent(self, ranges: Mapping[str, tuple[float, float]]) -> None:
        """Warn if coordinates that were read, from so low to so high, leave the header's box."""
        extent = _Extent()
        extent.ranges.update(ranges)
        self._warn_outside(extent)

    def spans(self, hint: Box | None = None) -> list[tuple[Chunk, ...]]:
        """Divide the file into parts that `read_span` can read, without those outside the hint."""
        return list(_groups(self._inside(hint), SPAN_ROWS))

    def read_span(self, span: Sequence[Chunk], columns: Sequence[str]) -> pa.RecordBatch:
        """Read one part of the file.

        Raises
        ------
        FileError
            If its points are damaged.
        """
        return self._batch(self._records_of(span, columns), _point_ids(span), columns)

    def batches(self, columns: Sequence[str], hint: Box | None = None) -> Iterator[pa.RecordBatch]:
        """Read the columns in batches of a multiple of `ROW_GROUP` rows, the last one shorter.

        Raises
        ------
        FileError
            If the points are damaged.
        """
        extent = _Extent()
        for batch in in_row_groups(self._pieces(self._inside(hint), columns)):
            extent.add(batch)
            yield batch
        self._warn_outside(extent)

    def read_into(
        self,
        arrays: Mapping[str, Array],
        tick: Progress | None = None,
    ) -> int:
        """Read columns of all points into arrays of `rows` values, in several threads.

        Return how many there are.

        `tick` is called with the path, the rows so far and those in all, by one thread at a time.

        Raises
        ------
        FileError
            If the points are damaged.
        """
        extent, done, lock = _Extent(), 0, Lock()

        def read(span: Sequence[Chunk], first: int) -> None:
            nonlocal done
            batch = self.read_span(span, list(arrays))
            for values, array in zip(batch.columns, arrays.values(), strict=True):
                rows = slice(first, first + batch.num_rows)
                array[rows] = values.to_numpy(zero_copy_only=False)
            with lock:
                extent.add(batch)
                done += batch.num_rows
                if tick is not None:
                    tick(self.path, done, self.rows)

        # lazrs has all cores for a span, and no other thread runs meanwhile: two are enough
        rows = SPAN_ROWS if self._laszip is None else SPAN_ROWS * max(1, THREADS // 2)
        with workers(None if self._laszip is None else min(2, n_threads())) as pool:
            spans = list(_groups(self._chunks, rows))
            counts = [sum(chunk.rows for chunk in span) for span in spans]
            firsts = np.cumsum([0, *counts]).tolist()
            pool.map(read, spans, firsts[:-1])
        self._warn_outside(extent)
        return int(firsts[-1])

    def records(self) -> Iterator[Records]:
        """Read whole point records as they are stored, in the order of the file.

        Raises
        ------
        FileError
            If the points are damaged.
        """
        for group in _groups(self._chunks, GROUP_ROWS):
            yield self._records_of(group, self.schema.names)

    def _pieces(self, chunks: Sequence[Chunk], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        # the first group is small: a LIMIT then decodes no more than it needs
        for group in _groups(chunks, GROUP_ROWS, first=ROW_GROUP):
            records, ids = self._records_of(group, columns), _point_ids(group)
            # one row group at a time: larger arrays leave the processor's cache
            for begin in range(0, ids.size, ROW_GROUP):
                rows = slice(begin, begin + ROW_GROUP)
                yield self._batch(records[rows], ids[rows], columns)
            del records, ids  # before there is memory for the next

    def _records_of(self, chunks: Sequence[Chunk], columns: Sequence[str]) -> Records:
        """Decode the records of chunks, but for fields that are not in the columns."""
        records = np.empty(sum(chunk.rows for chunk in chunks) * self._dtype.itemsize, np.uint8)
        selection = self._selection(columns)
        if selection is None:
            return records.view(self._dtype)
        compressed = bytearray(0 if self._laszip is None else sum(chunk.size for chunk in chunks))
        raw, done = records.data if self._laszip is None else memoryview(compressed), 0
        with self._open() as file:
            for begin, size in _byte_ranges(chunks):
                file.seek(begin)
                if file.readinto(raw[done : done + size]) != size:
                    self.header.reject(SHRUNK)
                done += size
        if self._laszip is not None:
            self._laszip.decode(compressed, chunks, selection, records)
        return records.view(self._dtype)

    def _batch(self, records: Records, ids: Ints, columns: Sequence[str]) -> pa.RecordBatch:
        arrays = [
            pa.array(ids) if name == "point_id" else self._columns[name].convert(records)
            for name in columns
        ]
        schema = pa.schema([self.schema.field(name) for name in columns])
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _selection(self, columns: Sequence[str]) -> int | None:
        """Give lazrs' flags of the layers that hold the columns; None: nothing to decode."""
        import lazrs

        layers = {self._columns[name].layer for name in columns if name != "point_id"}
        if not layers:
            return None
        flags = {"XY_RETURNS_CHANNEL", *layers}
        return sum(int(getattr(lazrs, f"SELECTIVE_DECOMPRESS_{layer}")) for layer in flags)

    def _inside(self, hint: Box | None) -> list[Chunk]:
        if hint is None:
            return self._chunks
        return [chunk for chunk in self._chunks if chunk.box is None or touch(chunk.box, hint)]

    def _warn_outside(self, extent: "_Extent") -> None:
        if self.box and (outside := extent.outside(self.box, self.header.scales)):
            warnings.warn(f"{READER}: '{self.path}': {outside}", FileWarning, stacklevel=3)

    def _open(self) -> BufferedReader:
        try:
            return self.path.open("rb")
        except OSError as error:
            reject(self.path, f"cannot be opened: {error.strerror or error}", error)


def open_las(path: str | os.PathLike[str]) -> LasSource:
    """Open a file, or give it as it was opened before if it has not changed since.

    Raises
    ------
    FileError
        If the file cannot be read whole.
    """
    access.require(READER, path)
    return open_once(LasSource, path)


class _Extent:
    """The running minimum and maximum of the coordinates that were read."""

    def __init__(self) -> None:
        self.ranges: dict[str, tuple[float, float]] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        for axis in "xyz":
            if axis in batch.schema.names and batch.num_rows:
                values = batch.column(axis).to_numpy()
                low, high = self.ranges.get(axis, (np.inf, -np.inf))
                self.ranges[axis] = min(low, float(values.min())), max(high, float(values.max()))

    def outside(self, box: Box, scales: tuple[float, float, float]) -> str | None:
        """Say where the points leave the box by more than one step of the grid."""
        for i, axis in enumerate("xyz"):
            if axis not in self.ranges:
                continue
            lowest, highest = self.ranges[axis]
            if lowest < box[i] - abs(scales[i]) or highest > box[i + 3] + abs(scales[i]):
                return (
                    f"its points reach from {axis} = {lowest} to {highest}, outside the header's "
                    f"{box[i]} to {box[i + 3]}"
                )
        return None


def _record_ranges(offset: int, record_length: int, rows: int) -> list[Chunk]:
    return [
        Chunk(offset + first * record_length, n * record_length, first, n)
        for first in range(0, rows, ROW_GROUP)
        for n in [min(ROW_GROUP, rows - first)]
    ]


def _groups(
    chunks: Sequence[Chunk], rows: int, first: int | None = None
) -> Iterator[tuple[Chunk, ...]]:
    """Join neighbours until a group has `rows` rows, the first one `first`."""
    group: list[Chunk] = []
    n, full = 0, first or rows
    for chunk in chunks:
        group.append(chunk)
        n += chunk.rows
        if n >= full:
            yield tuple(group)
            group, n, full = [], 0, rows
    if group:
        yield tuple(group)


def _byte_ranges(chunks: Sequence[Chunk]) -> Iterator[tuple[int, int]]:
    """Join chunks that are neighbours in the file: one read for all of them."""
    begin = end = chunks[0].offset
    for chunk in chunks:
        if chunk.offset != end:
            yield begin, end - begin
            begin = chunk.offset
        end = chunk.offset + chunk.size
    yield begin, end - begin


def _point_ids(chunks: Sequence[Chunk]) -> Ints:
    return np.concatenate([np.arange(c.first, c.first + c.rows) for c in chunks])
