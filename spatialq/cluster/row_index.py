"""An index of a file of points: boxes of runs of rows, so that tasks read only those they need.

Plain LAS and LAZ files have no such index, so that the task that looks at all points of a file
makes one. It takes few bytes, since the driver keeps those of all files: a side of a box is one of
256 steps of the extent.
"""

from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np

from spatialq.io.source import PointSource
from spatialq.runtime.arrays import Floats, Ints

MAX_RUNS = 32
"""Runs of a file."""
STEPS = 255


def rows_of_run(cloud: PointSource) -> int | None:
    """Give the rows of each run of a file; None if it cannot be read in parts, or needs no runs."""
    rows = cloud.rows_of_part
    return None if rows is None else rows * -(-cloud.rows // (rows * MAX_RUNS))


class Boxes:
    """The boxes of the runs of a file, of which points come in parts, by ascending rows.

    Parameters
    ----------
    rows : int
        Of each run.
    n : int
        Rows of the file.
    """

    def __init__(self, rows: int, n: int) -> None:
        self._rows = rows
        self._low = np.full((-(-n // rows), 2), np.inf)
        self._high = np.full((-(-n // rows), 2), -np.inf)

    def add(self, ids: Ints, x: Floats, y: Floats) -> None:
        """Add points; `ids` are their rows in the file."""
        numbers = ids // self._rows
        firsts = np.flatnonzero(np.diff(numbers, prepend=-1))
        if firsts.size == 0:
            return
        runs = numbers[firsts]
        for axis, values in enumerate((x, y)):
            lowest = np.minimum.reduceat(values, firsts)
            highest = np.maximum.reduceat(values, firsts)
            self._low[runs, axis] = np.minimum(self._low[runs, axis], lowest)
            self._high[runs, axis] = np.maximum(self._high[runs, axis], highest)

    def text(self) -> str:
        """Write all boxes, rounded outwards to steps of the extent of all points.

        They are uint8[k, 4] in Base64: xmin, ymin, xmax, ymax of each run.
        """
        some = self._low[:, 0] <= self._high[:, 0]
        found = np.tile(np.array([STEPS, STEPS, 0, 0], np.uint8), (some.size, 1))  # no points
        for axis in (0, 1):
            lowest, highest = self._low[some, axis], self._high[some, axis]
            low, high = lowest.min(), highest.max()
            size = high - low or 1.0
            down = np.floor((lowest - low) / size * STEPS).astype(np.int64)
            up = np.ceil((highest - low) / size * STEPS).astype(np.int64)
            ends = _ends(np.stack([down, up]), low, high)
            found[some, axis] = np.clip(down - (ends[0] > lowest), 0, STEPS)
            found[some, axis + 2] = np.clip(up + (ends[1] < highest), 0, STEPS)
        return b64encode(found.tobytes()).decode()


def _ends(steps: Ints, low: float, high: float) -> tuple[Floats, Floats]:
    """Give the sides that steps stand for, so that the first and the last are those of all."""
    step = (high - low) / STEPS
    return low + steps[0] * step, high - (STEPS - steps[1]) * step


def ranges_in(runs: dict[str, Any], box: Sequence[float]) -> list[tuple[int, int]]:
    """Give the rows of a file that may be in a box.

    Parameters
    ----------
    runs : dict
        `rows` of each run; `boxes` as text; `extent` of all points: xmin, ymin, xmax, ymax.
    box : xmin, ymin, xmax, ymax

    Returns
    -------
    list of (int, int)
        The first row of each range, and the one behind its last, in ascending order.
    """
    boxes = np.frombuffer(b64decode(runs["boxes"]), np.uint8).reshape(-1, 4).astype(np.int64)
    touching = np.ones(len(boxes), np.bool_)
    for axis in (0, 1):
        low, high = _ends(boxes[:, [axis, axis + 2]].T, *runs["extent"][axis::2])
        touching &= (low <= box[axis + 2]) & (high >= box[axis])
    rows = runs["rows"]
    return [(k * rows, (k + 1) * rows) for k in np.flatnonzero(touching).tolist()]
