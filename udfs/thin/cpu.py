"""`thin` on the CPU."""

from itertools import pairwise
from typing import Any

import numpy as np

from spatialq.data.points import all_finite, ids_of, not_finite, read_only
from spatialq.geometry.neighbours import Neighbours
from spatialq.runtime import buffers, progress
from spatialq.runtime.arrays import Floats, Ints
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.threads import chunks, steps, workers

from . import Options

SAMPLE = 10_000
"""Values of x that say where points are divided for sorting."""
SORTED = 1 << 18
"""Points that are sorted at once, about."""


def run(x: Floats, y: Floats, z: Floats, point_id: Ints | None, options: Options) -> dict[str, Any]:
    """Choose points of a cloud.

    Parameters
    ----------
    x, y, z : float64[n]
    point_id : int64[n] or None
        Unique; None for 0, 1, 2 ...
    options : Options
        `distance` in the unit of the coordinates.

    Returns
    -------
    dict of arrays
        `point_id` of the points that are kept, in the order of the input.

    Raises
    ------
    ValueError
        If coordinates are not finite.

    Notes
    -----
    Which points are kept depends on coordinates and ids alone, not on the order of the rows.
    """
    if not all_finite(x, y, z):
        raise ValueError(not_finite(options.function, x, y, z, point_id))
    ids = ids_of(point_id, x.size)
    if options.method == "poisson":
        progress.stage("order", 0.4)
        near = Neighbours(x, y, z)
        turns = np.argsort(_mixed(ids), kind="stable")
        progress.stage("points", 1.0)
        keep = near.apart(turns, options.distance)
    else:
        progress.stage("voxels", 1.0)
        keep = buffers.zeros(x.size, np.bool_)
        to_mean = options.method == "nearest_to_mean"
        xyz = read_only(x), read_only(y), read_only(z)

        def choose(rows: Any) -> None:
            """Choose among some of the points, all of some voxels."""
            voxels = [np.floor(values[rows] / options.distance) for values in (z, y, x)]
            order = np.lexsort((ids[rows], *voxels))
            _choose(*(each[order] for each in voxels), rows[order], *xyz, options.distance,
                    to_mean, keep)  # fmt: skip

        with workers() as pool:
            pool.map(choose, _slabs(x, options.distance))
    kept = buffers.empty(np.count_nonzero(keep), ids.dtype)
    done = 0
    for first, stop in chunks(x.size):
        some = ids[first:stop][keep[first:stop]]
        kept[done : done + some.size] = some
        done += some.size
    return {"point_id": kept}


def _slabs(x: Any, edge: float) -> list[Any]:
    """Divide points into parts that share no voxel, each small enough to be sorted at once."""
    sample = np.sort(x[:: max(1, x.size // SAMPLE)])
    inner = sample[:: max(1, sample.size * SORTED // max(x.size, 1))][1:]
    borders = np.unique(np.floor(inner / edge))
    part, order = buffers.empty(x.size, np.int32), buffers.empty(x.size, np.int64)
    counts = np.zeros(borders.size + 1, np.int64)
    for first, stop in steps(0, x.size):
        found = np.searchsorted(borders, np.floor(x[first:stop] / edge), side="right")
        part[first:stop] = found
        counts += np.bincount(found, minlength=counts.size)
    starts = np.concatenate([[0], np.cumsum(counts)])
    places = starts[:-1].copy()
    for first, stop in steps(0, x.size):
        _in_parts(part, first, stop, places, order)
    return [order[first:stop] for first, stop in pairwise(starts.tolist())]


@njit(cache=True, nogil=True)
def _in_parts(part, first, stop, places, order):  # type: ignore[no-untyped-def]
    """Put some rows at the next places of their parts, which go on."""
    for row in range(first, stop):
        order[places[part[row]]] = row
        places[part[row]] += 1


def _mixed(ids: Any) -> Any:
    """Give each id another number, in no order (SplitMix64; Steele, Lea, Flood 2014)."""
    mixed = ids.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@njit(cache=True, nogil=True)
def _choose(vz, vy, vx, rows, x, y, z, edge, to_mean, keep):  # type: ignore[no-untyped-def]
    """Keep one point of each voxel; of those as near to its centre or mean, the one of least id."""
    first = 0
    while first < rows.size:
        stop = first + 1
        while (
            stop < rows.size
            and vx[stop] == vx[first]
            and vy[stop] == vy[first]
            and vz[stop] == vz[first]
        ):
            stop += 1
        # relative to the corner of the voxel
        west, south, bottom = vx[first] * edge, vy[first] * edge, vz[first] * edge
        cx = cy = cz = edge / 2.0
        if to_mean:
            cx = cy = cz = 0.0
            for i in range(first, stop):
                row = rows[i]
                cx, cy, cz = cx + (x[row] - west), cy + (y[row] - south), cz + (z[row] - bottom)
            n = stop - first
            cx, cy, cz = cx / n, cy / n, cz / n
        best, least = rows[first], np.inf
        for i in range(first, stop):
            row = rows[i]
            dx, dy, dz = x[row] - west - cx, y[row] - south - cy, z[row] - bottom - cz
            d = dx * dx + dy * dy + dz * dz
            if d < least:
                best, least = row, d
        keep[best] = True
        first = stop
