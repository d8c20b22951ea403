"""Sample points of a plane, spread over it evenly whatever the density of the scan."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from spatialq.runtime import buffers
from spatialq.runtime.arrays import Floats, Ints
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.threads import n_threads, steps, workers

CELLS = 4096
"""Approximate number of cells of a plane's raster; at most one per point of the plane."""


@dataclass(frozen=True)
class Rasters:
    """The raster of each plane, in the unit of the points.

    Parameters
    ----------
    axes : float64[k, 3, 3]
        Of each plane the directions of the raster's columns and rows, and the normal.
    corner : float64[k, 2]
        Along the first two axes: where the raster begins.
    size : float64[k]
        The edge of a cell.
    shape : int64[k, 2]
        Columns and rows.
    starts : int64[k + 1]
        Where the cells of each plane begin.
    """

    axes: Floats
    corner: Floats
    size: Floats
    shape: Ints
    starts: Ints

    @classmethod
    def over(cls, axes: Any, limits: Any, counts: Any) -> "Rasters":
        """Lay rasters over the extents of planes with so many points, see `extents_of`."""
        limits = np.where(limits[:, :1] > limits[:, 1:2], 0.0, limits)
        corner = np.ascontiguousarray(limits[:, ::2])
        extent = limits[:, 1::2] - corner
        requested = np.clip(counts, 1, CELLS)
        # the requested number of square cells; where the plane is a line, in a row along it
        size = np.maximum(np.sqrt(extent.prod(axis=1) / requested), extent.max(axis=1) / requested)
        size[size == 0.0] = 1.0
        shape = (extent / size[:, None]).astype(np.int64) + 1
        return cls(axes, corner, size, shape, _starts_of(shape))

    def take(self, planes: Any) -> "Rasters":
        """Take those of some planes, int64[n]."""
        axes, corner, size, shape = (
            each[planes] for each in (self.axes, self.corner, self.size, self.shape)
        )
        return Rasters(axes, corner, size, shape, _starts_of(shape))

    def choose(self, x: Any, y: Any, z: Any, labels: Any, counts: Any) -> tuple[Any, Any]:
        """Choose the point of each cell: the nearest to its centre.

        Parameters
        ----------
        x, y, z, labels, counts
            As of `extents_of`.

        Returns
        -------
        gaps : float64[n]
            How far each is from the centre, squared, in cells; infinite where there is none.
        points : float64[n, 3]
            NaN where there is none.

        Notes
        -----
        The order of the points does not matter: of two that are equally near to the centre of a
        cell the one with the lower x is chosen, then y, then z.
        """
        points = buffers.full((self.starts[-1], 3), np.nan)
        gaps = buffers.full(self.starts[-1], np.inf)
        raster = np.ascontiguousarray(self.axes[:, :2] / self.size[:, None, None])
        begin = self.corner / self.size[:, None]
        cloud = _read_only(x, y, z)

        def choose(span: tuple[int, int]) -> None:
            for part in steps(0, labels.size):
                _choose(
                    *cloud, labels, *part, *span, raster, begin, self.shape, self.starts, gaps,
                    points,
                )  # fmt: skip

        _by_planes(choose, counts)
        return gaps, points


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

    axes: Floats
    corner: Floats
    size: Floats
    columns: Ints
    starts: Ints
    points: Floats

    @classmethod
    def of(
        cls, x: Floats, y: Floats, z: Floats, labels: Any, planes: dict[str, Any], unit: float
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
        """
        axes, counts = axes_of(planes), planes["point_count"]
        rasters = Rasters.over(axes, extents_of(x, y, z, labels, axes, counts), counts)
        _, points = rasters.choose(x, y, z, labels, counts)
        return cls.on(rasters, points, unit)

    @classmethod
    def on(cls, rasters: Rasters, points: Any, unit: float) -> "Sample":
        """Make the sample of the points that were chosen, which become metres in place."""
        columns = np.ascontiguousarray(rasters.shape[:, 0])
        points *= unit
        corner, size = rasters.corner * unit, rasters.size * unit
        return cls(rasters.axes, corner, size, columns, rasters.starts, points)


def extents_of(x: Floats, y: Floats, z: Floats, labels: Any, axes: Floats, counts: Any) -> Floats:
    """Find how far planes reach along their first two axes.

    Parameters
    ----------
    x, y, z : float64[n]
    labels : int[n]
        1 for a point of the first plane, and so on; 0 for one of no plane.
    axes : float64[k, 3, 3]
        See `axes_of`.
    counts : int[k]
        How many points each plane has, at least about.

    Returns
    -------
    float64[k, 4]
        Minimum and maximum along the first axis, and along the second; inf and -inf of a plane
        without a point.
    """
    limits = np.tile([np.inf, -np.inf, np.inf, -np.inf], (len(axes), 1))
    cloud = _read_only(x, y, z)

    def extend(span: tuple[int, int]) -> None:
        for part in steps(0, labels.size):
            _extend(*cloud, labels, *part, *span, axes, limits)

    _by_planes(extend, counts)
    return limits


def _starts_of(shape: Any) -> Any:
    return np.concatenate([[0], np.cumsum(shape.prod(axis=1))])


def _read_only(*columns: Any) -> list[Any]:
    """View arrays as one Numba type, wherever they came from."""
    cloud = [np.ascontiguousarray(values).view() for values in columns]
    for values in cloud:
        values.flags.writeable = False
    return cloud


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


def axes_of(planes: Mapping[str, Any]) -> Floats:
    """Two directions in each plane, the first along the axis that is nearest to it, and its normal.

    Parameters
    ----------
    planes : mapping
        `nx ny nz` of k planes.

    Returns
    -------
    float64[k, 3, 3]
    """
    normals = np.stack([planes["nx"], planes["ny"], planes["nz"]], axis=1)
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
