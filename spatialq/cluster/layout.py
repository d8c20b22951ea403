"""The division of a survey into cores. Each point is in one core; tasks also read around it."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import floor
from typing import Any

import numpy as np

from spatialq.cluster.survey import Survey
from spatialq.runtime.arrays import Ints

Box = tuple[float, float, float, float]
"""xmin, ymin, xmax, ymax."""
MOST_TILES = 10_000_000
"""In the box around a survey: finding those with points takes about 90 s for so many."""


@dataclass(frozen=True)
class Core:
    """The points that a task gives results of: those of a file, or those in a tile."""

    name: str
    box: Box
    """Around its points."""
    file: int | None = None
    """The number of the file; None for all points in the box, of which the sides xmin and ymin
    belong to it, and xmax and ymax to its neighbours."""


class Layout:
    """The division of a survey."""

    def __init__(self, survey: Survey, tile_size: float | None) -> None:
        self._survey = survey
        self._tile_size = tile_size
        there = np.flatnonzero(survey.points > 0)
        self._order = there[np.argsort(survey.low[there, 0], kind="stable")]
        self._west = survey.low[self._order, 0]
        widths = survey.high[self._order, 0] - self._west
        # the next larger number: a width that was rounded down would hide a file whose eastern
        # side is just the western one of a box
        self._widest = float(np.nextafter(widths.max(initial=0.0), np.inf))

    def require_few(self, caller: str) -> None:
        """Refuse tiles of which there would be too many.

        Raises
        ------
        ValueError
            If there would be more than `MOST_TILES` in the box around all points.
        """
        side = self._tile_size
        if side is None or self._survey.total == 0:
            return
        xmin, ymin, xmax, ymax = self._survey.box
        tiles = max((xmax - xmin) / side, 1.0) * max((ymax - ymin) / side, 1.0)
        if tiles > MOST_TILES:
            message = (
                f"{caller}: tile_size must give at most {MOST_TILES} tiles, got {side!r}, of which "
                f"there are {tiles:.3g} in the extent of the points"
            )
            raise ValueError(message)

    @cached_property
    def count(self) -> int:
        """How many cores there are."""
        return sum(1 for _ in self.cores())

    def cores(self) -> Iterator[Core]:
        """Give all cores with points, or that may have some."""
        if self._tile_size is not None:
            yield from self._tiles(self._tile_size)
            return
        for k in np.flatnonzero(self._survey.points > 0).tolist():
            yield self.core_of(k)

    def core_of(self, k: int) -> Core:
        """Give the core that is a file; its box is NaN where that has no points."""
        low, high = self._survey.low[k], self._survey.high[k]
        box = float(low[0]), float(low[1]), float(high[0]), float(high[1])
        return Core(f"{k:07}", box, k)

    def has(self, core: Core) -> bool:
        """Whether a core of any survey of these files, divided likewise, is a core of this one."""
        if core.file is None:
            return self.files(core.box).size > 0
        return bool(self._survey.points[core.file] > 0)

    def _tiles(self, side: float) -> Iterator[Core]:
        if self._survey.total == 0:
            return
        xmin, ymin, xmax, ymax = self._survey.box
        # one more on each side: the quotient may be rounded
        columns = range(floor(xmin / side) - 1, floor(xmax / side) + 2)
        for row in range(floor(ymin / side) - 1, floor(ymax / side) + 2):
            for column in columns:
                west, south = column * side, row * side
                box = west, south, (column + 1) * side, (row + 1) * side
                if self.files(box).size:
                    yield Core(f"{column}_{row}", box)

    def files(self, box: Box) -> Ints:
        """Give the numbers of the files that may have points in a box or on its border."""
        survey = self._survey
        first = np.searchsorted(self._west, box[0] - self._widest)
        stop = np.searchsorted(self._west, box[2], side="right")
        near = self._order[first:stop]
        touching = (
            (survey.high[near, 0] >= box[0])
            & (survey.high[near, 1] >= box[1])
            & (survey.low[near, 1] <= box[3])
        )
        return np.sort(near[touching])

    def reading(self, core: Core, halo: float) -> dict[str, Any]:
        """Say, in values of JSON, which points a task reads and which of them are its own."""
        xmin, ymin, xmax, ymax = core.box
        box = xmin - halo, ymin - halo, xmax + halo, ymax + halo
        survey, files = self._survey, self.files(box).tolist()
        if core.file is not None and halo == 0:
            files = [core.file]
        sources = [
            [survey.paths[k], int(survey.first[k]), *survey.stamps[k].tolist()] for k in files
        ]
        runs = [None if k == core.file else survey.runs(k) for k in files]
        own: dict[str, Any] = {"box": core.box}
        if core.file is not None:
            first = int(survey.first[core.file])
            own = {"first": first, "stop": first + int(survey.rows[core.file])}
        return {"sources": sources, "runs": runs, "read": box, "own": own}
