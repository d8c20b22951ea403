"""The outputs of `write_lod` that have the nodes of the tree: 3D Tiles."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.export.atomic import has_ending
from spatialq.export.lod_cloud import Cloud
from spatialq.export.lod_writers import NODE_WRITERS, TILESET
from spatialq.export.tiles.options import TileOptions
from spatialq.export.tiles.tileset import replaced_by
from spatialq.runtime.arrays import Ints

if TYPE_CHECKING:
    from spatialq.export.kept import Kept

COLOURS = ("red", "green", "blue")
MOST_OF_8_BITS = 255
GREYS = 1 << 16
BRIGHT_SHARE = 0.99
"""The share of points of a grey cloud that are no brighter than what is drawn as white."""


@dataclass
class CloudStatistics:
    """What writers are told before the first node: gathered from all points of a cloud.

    Parameters
    ----------
    function : str
        The function that was called, for messages.
    crs : str, optional
        PROJJSON.
    metres : float, optional
        In a unit of the cloud, where that was given.
    greys : int64[65536], optional
        How many points have each grey; None once a point has another colour.
    """

    function: str
    crs: str | None
    metres: float | None
    points: int = 0
    brightest: int = 0
    greys: Ints | None = field(default_factory=lambda: np.zeros(GREYS, np.int64))
    low: Any = field(default_factory=lambda: np.full(3, np.inf))
    high: Any = field(default_factory=lambda: np.full(3, -np.inf))

    def state(self) -> dict[str, Any]:
        """Give what was gathered, as JSON has it."""
        box = {"low": self.low.tolist(), "high": self.high.tolist()}
        greys = None if self.greys is None else self.greys.tolist()
        return {"points": self.points, "brightest": self.brightest, "greys": greys, **box}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take what was gathered before."""
        self.points, self.brightest = state["points"], state["brightest"]
        self.greys = None if state["greys"] is None else np.array(state["greys"])
        self.low, self.high = np.array(state["low"]), np.array(state["high"])

    def add(self, batch: Mapping[str, Any]) -> None:
        """Take note of points as they are read."""
        from spatialq.udfs.build_lod.colours import colours

        self._add_points(batch)
        if self.brightest <= MOST_OF_8_BITS or self.greys is not None:
            channels = (batch[name] for name in (*COLOURS, "intensity"))
            self._add_colours(*colours(*channels, len(batch["x"]))[:, :3].T)

    def add_leaves(self, tree: Mapping[str, Any]) -> None:
        """Take note of the points of a tree."""
        if not tree["count"].size:
            return
        offsets, samples = tree["samples"].offsets, tree["samples"].columns
        for k in np.flatnonzero(tree["is_leaf"]):
            leaf = {name: each[offsets[k] : offsets[k + 1]] for name, each in samples.items()}
            self._add_points(leaf)
            self._add_colours(*(leaf[name] for name in COLOURS))

    def _add_colours(self, red: Any, green: Any, blue: Any) -> None:
        most = (int(channel.max(initial=0)) for channel in (red, green, blue))
        self.brightest = max(self.brightest, *most)
        if self.greys is not None:
            is_grey = np.array_equal(red, green) and np.array_equal(red, blue)
            self.greys = self.greys + np.bincount(red, minlength=GREYS) if is_grey else None

    @property
    def full(self) -> int:
        """Give the value of a channel that is drawn as full light.

        Intensities have no range of their own: of a cloud of several greys, which are intensities
        where points have no colours, it is what nearly all do not exceed.
        """
        if self.greys is not None and np.count_nonzero(self.greys) > 1:
            bright = np.searchsorted(np.cumsum(self.greys), BRIGHT_SHARE * self.greys.sum())
            return int(bright) or self.brightest
        return MOST_OF_8_BITS if self.brightest <= MOST_OF_8_BITS else GREYS - 1

    def _add_points(self, points: Mapping[str, Any]) -> None:
        self.points += len(points["x"])
        for k, axis in enumerate("xyz"):
            self.low[k] = min(self.low[k], points[axis].min(initial=np.inf))
            self.high[k] = max(self.high[k], points[axis].max(initial=-np.inf))

    def cloud(self) -> Cloud:
        """Say it as writers want it."""
        box = (*self.low.tolist(), *self.high.tolist())
        known = self.function, self.points, box, self.crs, self.metres
        return Cloud(*known, self.brightest, self.full)


def require_targets(targets: Sequence[Path]) -> None:
    """Reject outputs in the place of other files, before work is done for them.

    Raises
    ------
    FileError
        If a file is there that is no tileset of spatialq.
    """
    for target in targets:
        if has_ending(target, TILESET):
            replaced_by(target)


def open_writers(
    targets: Sequence[Path],
    cloud: Cloud,
    stack: ExitStack,
    options: TileOptions | None,
    kept: "Kept | None" = None,
) -> list[Callable[[Mapping[str, Any]], None]]:
    """Open the files, each whole when the stack is closed without an error."""
    return [
        stack.enter_context(
            write(target, cloud, options, None if kept is None else kept.output(target))
        )
        for target in targets
        for end, write in NODE_WRITERS.items()
        if has_ending(target, end)
    ]
