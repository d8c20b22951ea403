"""The outputs of levels of detail that have the points themselves, by the ends of their names."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.io.source import COPC, Progress

if TYPE_CHECKING:
    from spatialq.export.additive_points import AdditivePoints

PointWriter = Callable[[Path, "AdditivePoints", str | None, Progress | None], None]
"""Writes points in the order of an octree, with a CRS (PROJJSON), and tells how far it is."""


def _write_copc(
    target: Path, points: "AdditivePoints", crs: str | None, tick: Progress | None
) -> None:
    from spatialq.export.copc import write_copc

    write_copc(target, points, crs, tick)


def _write_potree(
    target: Path, points: "AdditivePoints", crs: str | None, tick: Progress | None
) -> None:
    from spatialq.export.potree import write_potree

    write_potree(target, points, crs, tick)


POINT_WRITERS: Mapping[str, PointWriter] = {COPC: _write_copc, "metadata.json": _write_potree}
"""By the ending of a name, or the whole name of a file in a folder of its own."""
