"""Point clouds whose coordinates are rounded to the steps in which they will be written."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from spatialq.io.source import Box, Layout, PointSource, SequentialSource, Stamp
from spatialq.runtime.arrays import Floats

AXES = ("x", "y", "z")


class RoundedCloud(SequentialSource):
    """A point cloud whose x, y and z are whole numbers, times a scale, plus an offset.

    Parameters
    ----------
    source : PointSource
    layout : Layout
    """

    def __init__(self, source: PointSource, layout: Layout) -> None:
        self._source, self.layout = source, layout
        self.path, self.rows, self.schema = source.path, source.rows, source.schema
        self.warnings, self.about, self.crs = source.warnings, source.about, source.crs
        self.box = source.box

    @property
    def stamp(self) -> Stamp:
        """Time of the last change and size."""
        return self._source.stamp

    def batches(self, columns: Sequence[str], hint: Box | None = None) -> Iterator[pa.RecordBatch]:
        """Read the columns, in this order, batch by batch."""
        assert self.layout is not None
        steps = dict(
            zip(AXES, zip(self.layout.scales, self.layout.offsets, strict=True), strict=True)
        )
        for batch in self._source.batches(columns, self._wider(hint)):
            arrays = [
                pa.array(_rounded(values.to_numpy(zero_copy_only=False), *steps[name]))
                if name in steps else values
                for name, values in zip(columns, batch.columns, strict=True)
            ]  # fmt: skip
            yield pa.RecordBatch.from_arrays(arrays, schema=batch.schema)

    def _wider(self, hint: Box | None) -> Box | None:
        """Give the box in which the points lie before they are rounded."""
        if hint is None or self.layout is None:
            return hint
        low = [hint[k] - abs(self.layout.scales[k]) for k in range(3)]
        high = [hint[k + 3] + abs(self.layout.scales[k]) for k in range(3)]
        return (*low, *high)  # type: ignore[return-value]


def _rounded(values: Floats, scale: float, offset: float) -> Floats:
    """Give what a reader makes of the whole numbers that stand for values."""
    found: Floats = np.rint((values - offset) / scale) * scale + offset
    return found
