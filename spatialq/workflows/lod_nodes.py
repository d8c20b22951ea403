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

if TYPE_CHECKING:
    from spatialq.export.kept import Kept

COLOURS = ("red", "green", "blue")
MOST_OF_8_BITS = 255


@dataclass
class Seen:
    """What writers are told before the first node: gathered from all points of a cloud.

    Parameters
    ----------
    function : str
        The function that was called, for messages.
    crs : str, optional
        PROJJSON.
    metres : float, optional
        In a unit of the cloud, where that was given.
    """

    function: str
    crs: str | None
    metres: float | None
    points: int = 0
    brightest: int = 0
    low: Any = field(default_factory=lambda: np.full(3, np.inf))
    high: Any = field(default_factory=lambda: np.full(3, -np.inf))

    def state(self) -> dict[str, Any]:
        """Give what was gathered, as JSON has it."""
        box = {"low": self.low.tolist(), "high": self.high.tolist()}
        return {"points": self.points, "brightest": self.brightest, **box}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take what was gathered before."""
        self.points, self.brightest = state["points"], state["brightest"]
        self.low, self.high = np.array(state["low"]), np.array(state["high"])

    def add(self, batch: Mapping[str, Any]) -> None:
        """Take note of points as they are read."""
        from spatialq.udfs.build_lod.colours import colours

        self._add_points(batch)
        if self.brightest <= MOST_OF_8_BITS:
            channels = (batch[name] for name in (*COLOURS, "intensity"))
            colour = colours(*channels, len(batch["x"]))
            self.brightest = max(self.brightest, int(colour[:, :3].max(initial=0)))

    def add_leaves(self, tree: Mapping[str, Any]) -> None:
        """Take note of the points of a tree."""
        if not tree["count"].size:
            return
        offsets, samples = tree["samples"].offsets, tree["samples"].columns
        for k in np.flatnonzero(tree["is_leaf"]):
            leaf = {name: each[offsets[k] : offsets[k + 1]] for name, each in samples.items()}
            self._add_points(leaf)
            self.brightest = max(self.brightest, *(int(leaf[name].max()) for name in COLOURS))

    def _add_points(self, points: Mapping[str, Any]) -> None:
        self.points += len(points["x"])
        for k, axis in enumerate("xyz"):
            self.low[k] = min(self.low[k], points[axis].min(initial=np.inf))
            self.high[k] = max(self.high[k], points[axis].max(initial=-np.inf))

    def cloud(self) -> Cloud:
        """Say it as writers want it."""
        box = (*self.low.tolist(), *self.high.tolist())
        return Cloud(self.function, self.points, box, self.crs, self.metres, self.brightest)


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
