"""Point clouds in another coordinate reference system than that of their file."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa

from spatialq.errors import CrsError, CrsWarning, FileWarning
from spatialq.io import crs as crs_text
from spatialq.io.reproject import MARGIN, Area, Reprojection, area_of, joined, reprojection
from spatialq.io.source import Box, PointSource, SequentialSource, Source, Stamp
from spatialq.runtime.arrays import Floats

AXES = ("x", "y", "z")


class ReprojectedCloud(SequentialSource):
    """A point cloud whose x, y and z are transformed while it is read.

    Points at which the operation is not defined are left out, and a warning counts them.

    Parameters
    ----------
    reader : str
        Whose warnings they are.
    source : PointSource
    operation : Reprojection
    """

    def __init__(self, reader: str, source: PointSource, operation: Reprojection) -> None:
        self._reader, self._source, self.operation = reader, source, operation
        self.path, self.rows, self.schema = source.path, source.rows, source.schema
        self.warnings, self.about = source.warnings, source.about
        self.crs = operation.target
        box = source.box
        is_finite = box is not None and bool(np.isfinite(box).all())
        self.box = operation.extent(box) if box is not None and is_finite else None

    @property
    def stamp(self) -> Stamp:
        """Time of the last change and size."""
        return self._source.stamp

    def batches(self, columns: Sequence[str], hint: Box | None = None) -> Iterator[pa.RecordBatch]:
        """Read the columns, in this order, batch by batch."""
        lost = 0
        for batch in self._source.batches(self._needed(columns), self._hint(hint)):
            moved = self._moved(batch, columns)
            lost += batch.num_rows - moved.num_rows
            yield moved
        self._warn_of(lost)

    def spans(self, hint: Box | None = None) -> Sequence[Any]:
        """Divide the file into parts that `read_span` reads, without those outside the hint."""
        return self._source.spans(self._hint(hint))

    def read_span(self, span: Any, columns: Sequence[str]) -> pa.RecordBatch:
        """Read one part of the file, from any thread."""
        batch = self._source.read_span(span, self._needed(columns))
        moved = self._moved(batch, columns)
        self._warn_of(batch.num_rows - moved.num_rows)
        return moved

    def _needed(self, columns: Sequence[str]) -> list[str]:
        return list(dict.fromkeys([*columns, *AXES]))

    def _moved(self, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
        moved = self.operation(*(_numbers(batch, axis) for axis in AXES))
        arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
        arrays |= {axis: pa.array(v) for axis, v in zip(AXES, moved, strict=True)}
        fields = [self.schema.field(name) for name in columns]
        whole = pa.RecordBatch.from_arrays(
            [arrays[f.name] for f in fields], schema=pa.schema(fields)
        )
        there = ~np.isnan(moved[0])
        return whole if there.all() else whole.filter(pa.array(there))

    def _hint(self, hint: Box | None) -> Box | None:
        """Give a box in the system of the file that holds all points of one in the target's."""
        if hint is None or self.box is None:
            return None
        low = [max(hint[k], self.box[k]) for k in range(3)]
        high = [min(hint[k + 3], self.box[k + 3]) for k in range(3)]
        found = self.operation.extent((*low, *high), inverse=True, margin=MARGIN)  # type: ignore[arg-type]
        if found is None:
            return None
        # the header's heights may be wrong, or the operation ask for none
        return (found[0], found[1], -np.inf, found[3], found[4], np.inf)

    def _warn_of(self, lost: int) -> None:
        if lost:
            left_out = "point is left out, as it lies"
            if lost > 1:
                left_out = "points are left out, as they lie"
            message = (
                f"{self._reader}: '{self.path}': {lost} {left_out} outside the domain of "
                f"'{self.operation.operation}' to {crs_text.name(self.crs)}"
            )
            warnings.warn(message, FileWarning, stacklevel=4)


def _numbers(batch: pa.RecordBatch, axis: str) -> Floats:
    values: Floats = batch.column(axis).to_numpy(zero_copy_only=False)
    return values


def operations(
    reader: str, sources: Sequence[Source], to_crs: object, systems: Sequence[str | None]
) -> list[Reprojection]:
    """Choose the operation for each of several files that become one table.

    Files of one CRS have one operation, chosen for what they cover together.

    Parameters
    ----------
    reader : str
    sources : sequence of Source
    to_crs : str
        As `spatialq.io.crs.from_argument` takes it.
    systems : sequence of PROJJSON or None
        What the sources are in.

    Raises
    ------
    CrsError
        If a file has no CRS, or there is no operation.
    ValueError
        If `to_crs` is no text.
    """
    target = crs_text.from_argument(reader, to_crs, "to_crs")
    areas: dict[str, Area | None] = {}
    for source, own in zip(sources, systems, strict=True):
        if own is None:
            message = (
                f"{reader}: to_crs: '{source.path}' has no CRS to reproject from: load it with "
                "crs, which says what it is, such as EPSG:25832"
            )
            raise CrsError(message)
        areas[own] = joined(
            areas.get(own), None if source.box is None else area_of(own, source.box)
        )
    found = {own: reprojection(reader, own, target, area) for own, area in areas.items()}
    return [found[own] for own in systems if own is not None]


def warn_of_missing_grids(reader: str, chosen: Sequence[Reprojection]) -> None:
    """Warn, once each, of operations instead of which there are better ones."""
    for note in dict.fromkeys(each.note for each in chosen if each.note):
        warnings.warn(f"{reader}: {note}", CrsWarning, stacklevel=3)


def reprojected(reader: str, clouds: Sequence[PointSource], to_crs: object) -> list[PointSource]:
    """Give point clouds in another CRS; those that are in it already come back as they are.

    Raises
    ------
    CrsError, ValueError
        As `operations`.

    Warns
    -----
    CrsWarning
        If a better operation needs grids that are not installed.
    """
    chosen = operations(reader, clouds, to_crs, [cloud.crs for cloud in clouds])
    warn_of_missing_grids(reader, chosen)
    return [moved(reader, cloud, each) for cloud, each in zip(clouds, chosen, strict=True)]


def moved(reader: str, cloud: PointSource, operation: Reprojection) -> PointSource:
    """Give a point cloud as an operation transforms it."""
    if crs_text.same(operation.source, operation.target):
        return cloud
    found: Any = ReprojectedCloud(reader, cloud, operation)  # a PointSource that cannot be changed
    return cast("PointSource", found)
