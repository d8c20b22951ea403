"""What every reader of rows gives: a file as a lazily read table."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa

LAS = (".las", ".laz")
"""Endings of point cloud files."""

Box = tuple[float, float, float, float, float, float]
"""xmin, ymin, zmin, xmax, ymax, zmax; infinite where a side is open."""

Progress = Callable[[Path, int, int], None]
"""Called with a file, its rows so far and its rows in all (0: unknown)."""

ROW_GROUP = 122_880
"""Rows of a DuckDB row group: batches of a multiple of it give the smallest tables."""


class Source(Protocol):
    """One file as a table. Opening it checks the header; nothing is decoded until `batches`."""

    path: Path
    kind: str
    """The reader's short name: las, grid."""
    schema: pa.Schema
    """All columns. The first is cheap to make: `count(*)` asks for it alone."""
    rows: int
    """Rows promised by the header."""
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


class SequentialSource:
    """A stand-in for the base that the registry brings."""

    kind = "points"
    path: Path
    schema: pa.Schema
    rows: int
    box: Box | None
    crs: str | None
    warnings: Sequence[str]

    def batches(self, columns: Sequence[str], hint: Box | None = None) -> Iterator[pa.RecordBatch]:
        """Read the columns."""
        raise NotImplementedError
