"""`point_features` on the CPU."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from spatialq.data.points import ids_of
from spatialq.geometry.eigen import eigen
from spatialq.geometry.elementary import cube_root, logarithm
from spatialq.geometry.neighbours import NeighbourLists, Neighbours
from spatialq.runtime import buffers, progress
from spatialq.runtime.arrays import Floats, Ints
from spatialq.runtime.compile_cache import njit

from . import FEATURES, MODES, Options

FLAT = 1e-12
"""Share of the largest eigenvalue below which the next one is rounding: the points are a line."""
BITS = 60
"""A sum of products that are at most 1 is below 2^BITS of the whole numbers that are added up."""
NO_REACH = 1e-100
"""A ball of this radius has no volume: points divided by its third power would be infinite."""


def run(x: Floats, y: Floats, z: Floats, point_id: Ints | None, options: Options) -> dict[str, Any]:
    """Compute features of the neighbourhood of each point.

    Parameters
    ----------
    x, y, z : float64[n]
    point_id : int64[n] or None
        None for 0, 1, 2 ...
    options : Options
        `radius` in the unit of the coordinates.

    Returns
    -------
    dict of arrays
        `point_id`; `neighbours` (int32): points of the neighbourhood, itself included; and
        `FEATURES` (float64), NaN where there are too few. In the order of the points.

    Raises
    ------
    ValueError
        If coordinates are not finite.

    References
    ----------
    Demantke, Mallet, David, Vallet 2011, Dimensionality based scale selection in 3D lidar point
    clouds, ISPRS Archives XXXVIII-5/W12; Weinmann, Jutzi, Mallet 2013, Feature relevance assessment
    for the semantic interpretation of 3D point cloud data, ISPRS Annals II-5/W2; Guinard, Landrieu
    2017, Weakly supervised segmentation-aided classification of urban scenes from 3D lidar point
    clouds, ISPRS Archives XLII-1/W1; named and with the modes of PDAL's
    `filters.covariancefeatures`.
    """
    progress.stage("order", 0.2)
    near = Neighbours.of(options.function, x, y, z, point_id)
    count, features = room_for(x.size)
    describe = describes(options, near.xyz, near.points, near.order, count, features)
    progress.stage("features", 1.0)
    if options.radius is None:
        near.nearest(near.points, options.k + 1, describe)
    else:
        near.within(near.points, options.radius, describe)
    return {"point_id": ids_of(point_id, x.size), **named(count, features)}


def room_for(n: int) -> tuple[Any, Any]:
    """Make the arrays of n points that `describes` fills in."""
    return buffers.empty(n, np.int32), buffers.empty((len(FEATURES), n))


def named(count: Any, features: Any) -> dict[str, Any]:
    """Give what `describes` has filled in by the names of columns."""
    return {"neighbours": count, **dict(zip(FEATURES, features, strict=True))}


def describes(
    options: Options, xyz: Any, queries: Any, places: Any, count: Any, features: Any
) -> Callable[[NeighbourLists], None]:
    """Make what fills in the features of some queries, of which neighbours were found.

    Parameters
    ----------
    options : Options
    xyz : three of float64[n]
        The points among which neighbours are, read-only.
    queries : float64[m, 3]
    places : int64[m]
        Where in count and features those of each query are.
    count : int32[l]
    features : float64[len(FEATURES), l]
    """
    radius = 0.0 if options.radius is None else options.radius
    mode = MODES.index(options.mode)

    def describe(found: NeighbourLists) -> None:
        _describe(
            found.starts, found.rows, found.squared, found.first, queries, places, *xyz,
            radius, options.min_k, mode, count, features,
        )  # fmt: skip

    return describe


@njit(cache=True, nogil=True, error_model="numpy")
def _describe(  # type: ignore[no-untyped-def]
    starts, rows, squared, first, points, order, x, y, z, radius, min_k, mode, count, features
):
    """Fill in the features of some queries.

    Sums are relative to the query, and so accurate; they are those of whole numbers, shares of the
    distance of the farthest neighbour, and so the same in any order of the neighbours.
    """
    values, vectors = np.empty(3), np.empty((3, 3))
    for q in range(starts.size - 1):
        begin, end = starts[q], starts[q + 1]
        at = order[first + q]
        n = end - begin
        count[at] = n
        for feature in range(features.shape[0]):
            features[feature, at] = np.nan
        if n < min_k:
            continue
        farthest = 0.0
        for i in range(begin, end):
            farthest = max(farthest, squared[i])
        if farthest == np.inf:  # coordinates whose squares are beyond float64
            continue
        reach = np.sqrt(farthest)
        unit = math.ldexp(1.0, -math.frexp(reach)[1])
        whole = math.ldexp(1.0, BITS - math.frexp(float(n))[1])
        px, py, pz = points[first + q, 0], points[first + q, 1], points[first + q, 2]
        sx = sy = sz = xx = xy = xz = yy = yz = zz = np.int64(0)
        for i in range(begin, end):
            dx, dy, dz = (
                (x[rows[i]] - px) * unit,
                (y[rows[i]] - py) * unit,
                (z[rows[i]] - pz) * unit,
            )
            ux, uy, uz = dx * whole, dy * whole, dz * whole
            sx, sy, sz = sx + _near(ux), sy + _near(uy), sz + _near(uz)
            xx, xy, xz = xx + _near(dx * ux), xy + _near(dx * uy), xz + _near(dx * uz)
            yy, yz, zz = yy + _near(dy * uy), yz + _near(dy * uz), zz + _near(dz * uz)
        mx, my, mz = sx / whole, sy / whole, sz / whole
        m = (n - 1.0) * unit
        eigen(
            (xx / whole - mx * mx / n) / m / unit, (xy / whole - mx * my / n) / m / unit,
            (xz / whole - mx * mz / n) / m / unit, (yy / whole - my * my / n) / m / unit,
            (yz / whole - my * mz / n) / m / unit, (zz / whole - mz * mz / n) / m / unit,
            values, vectors,
        )  # fmt: skip
        if radius > 0.0:
            reach = radius
        if reach > NO_REACH:
            features[13, at] = n / (4.0 / 3.0 * np.pi * reach * reach * reach)
        least, middle, most = values[0], values[1], values[2]
        if most == 0.0:
            continue
        total = least + middle + most
        entropy = 0.0
        for k in range(3):
            share = values[k] / total
            if share > 0.0:
                entropy -= share * logarithm(share)
        if middle > FLAT * most:
            nx, ny, nz = vectors[0, 0], vectors[0, 1], vectors[0, 2]
            if nz < 0.0 or (nz == 0.0 and (ny < 0.0 or (ny == 0.0 and nx < 0.0))):
                nx, ny, nz = -nx, -ny, -nz
            features[0, at], features[1, at], features[2, at] = nx, ny, nz
            features[7, at] = 1.0 - nz
        if mode == 0:
            a, b, c = np.sqrt(most), np.sqrt(middle), np.sqrt(least)
        elif mode == 1:
            a, b, c = most, middle, least
        else:
            a, b, c = most / total, middle / total, least / total
        features[3, at] = (a - b) / a
        features[4, at] = (b - c) / a
        features[5, at] = c / a
        ux = a * abs(vectors[2, 0]) + b * abs(vectors[1, 0]) + c * abs(vectors[0, 0])
        uy = a * abs(vectors[2, 1]) + b * abs(vectors[1, 1]) + c * abs(vectors[0, 1])
        uz = a * abs(vectors[2, 2]) + b * abs(vectors[1, 2]) + c * abs(vectors[0, 2])
        features[6, at] = uz / np.sqrt(ux * ux + uy * uy + uz * uz)
        features[8, at] = cube_root(a * b * c)
        features[9, at] = (a - c) / a
        features[10, at] = entropy
        features[11, at] = total
        features[12, at] = least / total


@njit(cache=True, nogil=True, inline="always")
def _near(value):  # type: ignore[no-untyped-def]
    return np.int64(np.rint(value))
