"""Sample points of a plane, spread over it evenly whatever the density of the scan."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from spatialq.runtime import buffers
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.threads import n_threads, steps, workers

CELLS = 4096
"""Approximate number of cells of a plane's raster; at most one per point of the plane."""


@dataclass(frozen=True)
class Sample:
    """One point per cell of each plane's raster: the nearest to the centre of the cell.

    Parameters
    ----------
    axes : float64[k, 3, 3]
        Of each plane the directions of the raster's columns and rows, and the normal.
    corner : float64[k, 2]
        Metres along the first two axes: where the raster begins.
    size : float64[k]
        Metres: the edge of a cell.
    columns : int64[k]
        Cells in a row.
    starts : int64[k + 1]
        Where the cells of each plane begin.
    points : float64[starts[k], 3]
        Metres; NaN where a cell has no point.
    """

    axes: Any
    corner: Any
    size: Any
    columns: Any
    starts: Any
    points: Any

    @classmethod
    def of(
        cls, x: Any, y: Any, z: Any, labels: Any, planes: dict[str, Any], unit: float
    ) -> "Sample":
        """Choose the points.

        Parameters
        ----------
        x, y, z : float64[n]
        labels : int[n]
            1 for a point of the first plane, and so on; 0 for one of no plane.
        planes : dict
            `nx ny nz` and `point_count` of k planes.
        unit : float
            Metres in a unit of x, y and z.

        Notes
        -----
        The order of the points does not matter: of two that are equally near to the centre of a
        cell the one with the lower x is chosen, then y, then z.
        """
        cloud = [np.ascontiguousarray(values).view() for values in (x, y, z)]
        for values in cloud:
            values.flags.writeable = False  # one Numba type, wherever the arrays came from
        axes = _axes(np.stack([planes["nx"], planes["ny"], planes["nz"]], axis=1))
        k = len(axes)
        limits = np.tile([np.inf, -np.inf, np.inf, -np.inf], (k, 1))

        def extend(span: tuple[int, int]) -> None:
            for part in steps(0, labels.size):
                _extend(*cloud, labels, *part, *span, axes, limits)

        _by_planes(extend, planes["point_count"])
        limits[limits[:, 0] > limits[:, 1]] = 0.0
        corner = np.ascontiguousarray(limits[:, ::2])
        extent = limits[:, 1::2] - corner
        requested = np.clip(planes["point_count"], 1, CELLS)
        # the requested number of square cells; where the plane is a line, in a row along it
        size = np.maximum(np.sqrt(extent.prod(axis=1) / requested), extent.max(axis=1) / requested)
        size[size == 0.0] = 1.0
        shape = (extent / size[:, None]).astype(np.int64) + 1
        starts = np.concatenate([[0], np.cumsum(shape.prod(axis=1))])
        points = buffers.full((starts[-1], 3), np.nan)
        gaps = buffers.full(starts[-1], np.inf)
        raster = np.ascontiguousarray(axes[:, :2] / size[:, None, None])
        begin = corner / size[:, None]

        def choose(span: tuple[int, int]) -> None:
            for part in steps(0, labels.size):
                _choose(*cloud, labels, *part, *span, raster, begin, shape, starts, gaps, points)

        _by_planes(choose, planes["point_count"])
        columns = np.ascontiguousarray(shape[:, 0])
        points *= unit
        return cls(axes, corner * unit, size * unit, columns, starts, points)


def _by_planes(work: Callable[[tuple[int, int]], None], counts: Any) -> None:
    """Call work, in threads, with ranges of planes that have about equally many points.

    Each thread reads all labels, which is cheap, and works on its own planes: no two threads
    write the same place, and the result does not depend on the number of threads.
    """
    threads = n_threads()
    ends = np.concatenate([[0], np.cumsum(counts)])
    cuts = np.searchsorted(ends, ends[-1] * np.arange(threads + 1) / threads)
    cuts[-1] = len(counts)
    with workers(threads) as pool:
        pool.map(work, pairwise(cuts.tolist()))


def _axes(normals: Any) -> Any:
    """Two directions in each plane, the first along the axis that is nearest to the plane."""
    flat = np.argmin(np.abs(normals), axis=1)
    along = np.eye(3)[flat]
    along -= normals * np.sum(normals * along, axis=1, keepdims=True)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    return np.ascontiguousarray(np.stack([along, np.cross(normals, along), normals], axis=1))


@njit(cache=True, nogil=True)
def _extend(x, y, z, labels, start, end, first, stop, axes, limits):  # type: ignore[no-untyped-def]
    """Find the minimum and maximum coordinate along the first two axes of planes first to stop."""
    for i in range(start, end):
        plane = labels[i] - 1
        if plane < first or plane >= stop:
            continue
        u = axes[plane, 0, 0] * x[i] + axes[plane, 0, 1] * y[i] + axes[plane, 0, 2] * z[i]
        v = axes[plane, 1, 0] * x[i] + axes[plane, 1, 1] * y[i] + axes[plane, 1, 2] * z[i]
        limits[plane, 0], limits[plane, 1] = min(limits[plane, 0], u), max(limits[plane, 1], u)
        limits[plane, 2], limits[plane, 3] = min(limits[plane, 2], v), max(limits[plane, 3], v)


@njit(cache=True, nogil=True)
def _choose(  # type: ignore[no-untyped-def]
    x, y, z, labels, start, end, first, stop, raster, begin, shape, starts, gaps, points
):
    """Find the point of each cell of the planes first to stop."""
    for i in range(start, end):
        plane = labels[i] - 1
        if plane < first or plane >= stop:
            continue
        px, py, pz = x[i], y[i], z[i]
        u = raster[plane, 0, 0] * px + raster[plane, 0, 1] * py + raster[plane, 0, 2] * pz
        v = raster[plane, 1, 0] * px + raster[plane, 1, 1] * py + raster[plane, 1, 2] * pz
        u -= begin[plane, 0]
        v -= begin[plane, 1]
        # roundings may lead out of the raster
        column = min(max(int(u), 0), shape[plane, 0] - 1)
        row = min(max(int(v), 0), shape[plane, 1] - 1)
        cell = starts[plane] + row * shape[plane, 0] + column
        gap = (u - column - 0.5) ** 2 + (v - row - 0.5) ** 2
        if gap > gaps[cell]:
            continue
        if gap == gaps[cell]:
            qx, qy, qz = points[cell, 0], points[cell, 1], points[cell, 2]
            if px > qx or (px == qx and (py > qy or (py == qy and pz > qz))):
                continue
        gaps[cell] = gap
        points[cell, 0], points[cell, 1], points[cell, 2] = px, py, pz
