"""Boundaries of planes: outlines or convex polygons, as WKB (ISO 13249-3)."""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.polygons import wkb_of

from .assign import PLACES, SIDES
from .outlines import TOLERANCES, UNIT, simplify, trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

MASK = (1 << PLACES) - 1


def sides() -> Any:
    """Directions in a plane for which the farthest point is kept: float64[SIDES, 2]."""
    # pairs are exactly opposite, and some are exactly along the axes
    angles = np.arange(SIDES) * (2 * np.pi / SIDES)
    return np.round(np.column_stack([np.cos(angles), np.sin(angles)]), 15)


@dataclass(frozen=True)
class Rings:
    """The rings of surfaces: around their connected parts, and around holes in these."""

    vertices: "NDArray[np.float64]"
    """float64[n, 2]: positions in rasters, in pixels."""
    starts: "NDArray[np.int64]"
    """int64[rings + 1]: first vertex of each ring."""
    part: "NDArray[np.int64]"
    """int64[rings]: part to which a ring belongs; its outer ring comes before its holes."""
    surface: "NDArray[np.int64]"
    """int64[rings]"""

    @classmethod
    def traced(cls, covered: "NDArray[np.uint8]", extents: Any, surface: Any) -> "Rings":
        """Make the outlines of surfaces: outer rings are anticlockwise, holes clockwise.

        Parameters
        ----------
        covered : uint8[pixels]
            1 for the pixels of surfaces, 0 for others.
        extents : int64[rasters, 3]
            First pixel, rows and columns of each raster.
        surface : int64[parts]
            Surface of each connected part, in the order of the parts' first pixels.
        """
        n = covered.size
        # rings touch few of the pixels, so that little of this memory is ever used
        at, edges = np.zeros(2 * n, np.int32), np.empty(2 * n, np.int32)
        xy, rings = np.empty((2 * n, 2), np.int32), np.empty((n + 1, 3), np.int64)
        areas = np.empty(n, np.int64)
        n_rings = trace(covered, extents, at, xy, edges, rings, areas)
        rings, areas = rings[: n_rings + 1], areas[:n_rings]
        kept = np.empty(rings[-1, 0], np.bool_)
        simplify(extents, np.array(TOLERANCES), at, xy, edges, rings, areas, kept)
        starts = np.concatenate([[0], np.cumsum(kept)])[rings[:, 0]]
        left = np.diff(starts) > 0  # of small holes nothing is
        part = (np.cumsum(rings[:-1, 2] == np.arange(n_rings)) - 1)[rings[:-1, 2]][left]
        vertices = xy[: kept.size][kept] / UNIT
        return cls(vertices, np.append(starts[:-1][left], starts[-1]), part, surface[part])

    @classmethod
    def convex(cls, farthest: Any, longer: Any) -> "Rings":
        """Make a polygon of the farthest points of each surface.

        Parameters
        ----------
        farthest : int64[surfaces, SIDES]
            See `assign.keep_farthest`; -1 if there is no point.
        longer : int64[surfaces]
            Pixels along the longer side of the raster.
        """
        rings = [_corners(keys) * size for keys, size in zip(farthest, longer, strict=True)]
        starts = np.cumsum([0, *(len(ring) for ring in rings)])
        surface = np.arange(len(rings))
        return cls(np.concatenate([np.empty((0, 2)), *rings]), starts, surface, surface)

    def areas(self, n_surfaces: int) -> "NDArray[np.float64]":
        """Give the area of each surface in pixels."""
        x, y = self.vertices.T
        following = np.arange(1, x.size + 1)
        following[self.starts[1:] - 1] = self.starts[:-1]
        twice = x * y[following] - x[following] * y
        ring = np.repeat(np.arange(self.part.size), np.diff(self.starts))
        return np.bincount(self.surface[ring], twice, n_surfaces) / 2

    def written(self, places: Any) -> "dict[int, bytes]":
        """Write the polygon of each surface that has one; `places`, float64[n, 3]: its vertices."""
        surfaces: dict[int, dict[int, list[Any]]] = {}
        of_rings = zip(self.surface.tolist(), self.part.tolist(), strict=True)
        for (surface, part), (start, end) in zip(
            of_rings, pairwise(self.starts.tolist()), strict=True
        ):
            surfaces.setdefault(surface, {}).setdefault(part, []).append(places[start:end])
        return {surface: wkb_of(parts.values()) for surface, parts in surfaces.items()}


def _corners(keys: Any) -> Any:
    """Positions of the distinct farthest points: float64[corners, 2], as parts of the longer side.

    Parameters
    ----------
    keys : int64[SIDES]
    """
    keys = keys[keys >= 0]
    places = np.column_stack([keys >> PLACES & MASK, keys & MASK])
    new = np.any(places != np.roll(places, 1, axis=0), axis=1)
    return (places[new] if new.any() else places[:1]) / MASK
