"""Elements seen along a direction: rotated so that the direction is up, and flattened."""

from dataclasses import dataclass
from math import cos, radians, sin
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.runtime.arrays import Floats, Ints

from . import Options

MIN_TOLERANCE = 1e-6
"""Metres. A triangle whose projection is narrower is a line."""

CLUSTER = 16
"""Consecutive triangles that share a box."""

COLUMNS = 13
"""Of a facet: its corners x0 y0 x1 y1 x2 y2, counter-clockwise; its height z0 at the first and
the slopes along x and y; minimum and maximum height; half its perimeter; its width."""


@dataclass(frozen=True)
class View:
    """The elements of a model, seen from above.

    Parameters
    ----------
    boxes : float64[k, 6]
        Lower corner, upper corner; infinity to minus infinity for an element without triangles.
    facets : float64[m, COLUMNS]
        The triangles that are more than a line, sorted so that near ones follow one another.
    starts : int64[k + 1]
        Where the facets of each element begin.
    clusters : float64[c, 6]
        Boxes of `CLUSTER` facets each.
    cluster_starts : int64[k + 1]
    """

    boxes: Floats
    facets: Floats
    starts: Ints
    clusters: Floats
    cluster_starts: Ints


def axes(options: Options) -> Any:
    """Find the matrix whose rows are two directions across, and the direction."""
    quarters, rest = divmod(options.true_north or 0.0, 90.0)
    c, s = cos(radians(rest)), sin(radians(rest))
    for _ in range(int(quarters) % 4):  # exact
        c, s = -s, c
    north, east, up = np.array([s, c, 0.0]), np.array([c, -s, 0.0]), np.array([0.0, 0.0, 1.0])
    return np.array(
        {
            "above": (east, north, up),
            "below": (east, north, -up),
            "north": (east, up, north),
            "south": (east, up, -north),
            "east": (north, up, east),
            "west": (north, up, -east),
        }[options.direction]
    )


def corners(meshes: Meshes, name: str) -> Any:
    """Look up the corners of all triangles, float64[m, 3, 3].

    Raises
    ------
    ValueError
        If a corner is not finite.
    """
    shift = np.repeat(meshes.vertex_starts[:-1], np.diff(meshes.face_starts))
    found = meshes.vertices[meshes.faces + shift[:, None]]
    bad = ~np.isfinite(found).all(axis=(1, 2))
    if bad.any():
        row = np.searchsorted(meshes.face_starts, np.argmax(bad), side="right") - 1
        message = (
            f"direction: vertices must be finite, got {np.count_nonzero(bad)} triangles with NaN "
            f"or infinity, the first in row {row} of {name}"
        )
        raise ValueError(message)
    return found


def look(triangles: Floats, face_starts: Ints) -> View:
    """View elements from above.

    Parameters
    ----------
    triangles : float64[m, 3, 3], metres
        Rotated, and near the origin.
    face_starts : int64[k + 1]
    """
    k = len(face_starts) - 1
    owner = np.repeat(np.arange(k), np.diff(face_starts))
    low, high = triangles.min(axis=1), triangles.max(axis=1)
    boxes = _boxes(low, high, owner, k)
    order = np.lexsort((_morton(low[:, :2] + high[:, :2], boxes[owner]), owner))
    facets = _facets(triangles[order])
    wide = facets[:, 12] > MIN_TOLERANCE
    facets, order = np.ascontiguousarray(facets[wide]), order[wide]
    starts = _sums(np.bincount(owner[order], minlength=k))
    cluster_starts = _sums(-(-np.diff(starts) // CLUSTER))
    position = np.arange(len(facets)) - starts[owner[order]]
    cluster = cluster_starts[owner[order]] + position // CLUSTER
    clusters = _boxes(low[order], high[order], cluster, cluster_starts[-1])
    return View(boxes, facets, starts, clusters, cluster_starts)


def _sums(sizes: Any) -> Any:
    return np.concatenate([[0], np.cumsum(sizes)])


def _boxes(low: Any, high: Any, owner: Any, k: int) -> Any:
    """Join boxes by their owners, which ascend."""
    boxes = np.tile([np.inf] * 3 + [-np.inf] * 3, (k, 1))
    if len(owner):
        first = np.flatnonzero(np.diff(owner, prepend=-1))
        boxes[owner[first], :3] = np.minimum.reduceat(low, first)
        boxes[owner[first], 3:] = np.maximum.reduceat(high, first)
    return boxes


def _morton(centres: Any, boxes: Any) -> Any:
    """Give positions in a box their Morton numbers; the centres are given doubled."""
    across = boxes[:, 3:5] - boxes[:, :2]
    share = (centres / 2 - boxes[:, :2]) / np.where(across > 0, across, 1.0)
    cells = np.minimum(share * 256, 255).astype(np.int64)
    for shift, mask in ((4, 0x0F0F), (2, 0x3333), (1, 0x5555)):
        cells = (cells | cells << shift) & mask
    return cells[:, 0] << 1 | cells[:, 1]


def _facets(triangles: Any) -> Any:
    facets = np.zeros((len(triangles), COLUMNS))
    x, y, z = (triangles[:, :, axis] for axis in range(3))
    double_area = (x[:, 1] - x[:, 0]) * (y[:, 2] - y[:, 0]) - (x[:, 2] - x[:, 0]) * (
        y[:, 1] - y[:, 0]
    )
    swap = double_area < 0
    for values in (x, y, z):
        values[swap, 1], values[swap, 2] = values[swap, 2], values[swap, 1]
    double_area = np.abs(double_area)
    facets[:, 0:6:2], facets[:, 1:6:2] = x, y
    dx, dy, dz = (values[:, 1:] - values[:, :1] for values in (x, y, z))
    safe = np.where(double_area > 0, double_area, 1.0)
    facets[:, 6] = z[:, 0]
    facets[:, 7] = (dz[:, 0] * dy[:, 1] - dz[:, 1] * dy[:, 0]) / safe
    facets[:, 8] = (dz[:, 1] * dx[:, 0] - dz[:, 0] * dx[:, 1]) / safe
    facets[:, 9], facets[:, 10] = z.min(axis=1), z.max(axis=1)
    ex, ey = x - np.roll(x, 1, axis=1), y - np.roll(y, 1, axis=1)
    lengths = np.sqrt(ex * ex + ey * ey)
    facets[:, 11] = lengths.sum(axis=1) / 2
    longest = lengths.max(axis=1)
    facets[:, 12] = double_area / np.where(longest > 0, longest, 1.0)
    return facets
