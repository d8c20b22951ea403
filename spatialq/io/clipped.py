"""Point clouds of which only the points in polygons are read, or only those outside."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from spatialq.io.source import Box, PointSource, SequentialSource, Stamp

if TYPE_CHECKING:
    from spatialq.geometry.polygon_index import PolygonIndex

XY = ("x", "y")


class ClippedCloud(SequentialSource):
    """A point cloud without the points outside of polygons, or without those in them.

    Others keep their `point_id`.

    Parameters
    ----------
    source : PointSource
    polygons : PolygonIndex
        In the coordinate reference system of the source.
    outside : bool
        Whether the points in the polygons are left out instead.
    """

    def __init__(self, source: PointSource, polygons: "PolygonIndex", *, outside: bool) -> None:
        self.source, self._polygons, self._outside = source, polygons, outside
        self.path, self.rows, self.schema = source.path, source.rows, source.schema
        self.warnings, self.about, self.crs = source.warnings, source.about, source.crs
        self.box, self.layout = source.box, source.layout

    @property
    def stamp(self) -> Stamp:
        """Time of the last change and size."""
        return self.source.stamp

    def batches(self, columns: Sequence[str], hint: Box | None = None) -> Iterator[pa.RecordBatch]:
        """Read the columns, in this order, batch by batch."""
        needed = list(dict.fromkeys([*columns, *XY]))
        for batch in self.source.batches(needed, hint or self._hint):
            x, y = (batch.column(name).to_numpy(zero_copy_only=False) for name in XY)
            rows, _ = self._polygons.find(np.ascontiguousarray(x), np.ascontiguousarray(y))
            keep = np.full(batch.num_rows, self._outside)
            keep[rows] = not self._outside
            fields = [self.schema.field(name) for name in columns]
            arrays = [batch.column(name) for name in columns]
            chosen = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
            yield chosen if keep.all() else chosen.filter(pa.array(keep))

    @property
    def _hint(self) -> Box | None:
        """The box of the polygons."""
        if self._outside:
            return None
        xmin, ymin, xmax, ymax = self._polygons.box
        return xmin, ymin, -np.inf, xmax, ymax, np.inf

    @property
    def is_touched(self) -> bool:
        """Whether a point may be left, as the header of the file tells its extent."""
        box: Any = self.source.box
        if box is None or self._outside or not np.isfinite(box).all():
            return True
        xmin, ymin, xmax, ymax = self._polygons.boxes.T
        with np.errstate(invalid="ignore"):  # boxes of empty polygons are NaN
            meets = (xmin <= box[3]) & (xmax >= box[0]) & (ymin <= box[4]) & (ymax >= box[1])
        return bool(meets.any())
