"""Large generated clouds for benchmarks: terrain, buildings, trees, outliers, a water hole.

As a program: ``python benchmarks/clouds.py {small,sparse,dense} OUT.npz [--strips] [--seed N]``.

The extents and numbers of points of all but `tiny` and `small` are those of published airborne
surveys on which ground filters have been timed; the content is generated. Density varies across the
flight direction as overlapping strips make it.
"""

import argparse
import math
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

PLOT = 25.0  # each square of this side has a building, a tree or nothing
BUILDINGS, TREES = 0.2, 0.4  # shares of the plots
CROWN_HITS = 0.75  # share of the pulses over a crown that the crown reflects
NOISE = 0.04
LOW_OUTLIERS = HIGH_OUTLIERS = 2e-5
SWATH = 180.0  # distance of the flight lines
STRIP = 100.0  # width of the strips by which --strips orders
JOBS = 256


class Kind(NamedTuple):
    """Number of points, extent in metres, south-west corner, resolution of the coordinates."""

    n: int
    width: float
    depth: float
    west: float
    south: float
    resolution: float


KINDS = {
    "tiny": Kind(2_000, 50.0, 50.0, 500_000.0, 4_700_000.0, 0.01),
    "small": Kind(2_000_000, 600.0, 400.0, 500_000.0, 4_700_000.0, 0.01),
    "sparse": Kind(20_380_212, 1413.08, 1904.30, 714_947.98, 4_286_501.93, 0.01),
    "arzua": Kind(40_706_503, 999.99, 999.99, 568_000.0, 4_752_320.0, 0.01),
    "forest": Kind(42_384_876, 700.55, 505.45, 526_964.093, 4_742_610.292, 0.001),
    "dense": Kind(48_024_480, 730.54, 538.35, 526_955.908, 4_742_586.025, 0.001),
}


def make_cloud(
    kind: str, *, strips: bool = False, seed: int = 1, n: int | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Generate a cloud; the same arguments give the same points on any number of threads.

    Parameters
    ----------
    kind
        A key of `KINDS`.
    strips
        Order the points by strips of 100 m along x, and by y within each, instead of at random.
    seed
        Of everything that is random.
    n
        Another number of points for the same extent.

    Returns
    -------
    x, y, z : float64[n], metres
    """
    spec = KINDS[kind]
    count = spec.n if n is None else n
    plots = _plots(spec, np.random.default_rng(seed))
    x, y, z = np.empty(count), np.empty(count), np.empty(count)
    _scatter(x, y, z, seed, plots, *spec[1:])
    if strips:
        order = _flight_order(x, y, spec.west, spec.south, math.ceil(spec.depth + 1.0))
        x, y, z = x[order], y[order], z[order]
    return x, y, z


def _plots(spec: Kind, rng: np.random.Generator) -> FloatArray:
    """For each plot its content (1 building, 2 tree, 0 nothing), two half sizes and a height."""
    shape = math.ceil(spec.width / PLOT), math.ceil(spec.depth / PLOT)
    draw = rng.random(shape)
    content = np.where(draw < BUILDINGS, 1, np.where(draw < BUILDINGS + TREES, 2, 0))
    built = content == 1
    half_x = np.where(built, rng.uniform(4.0, 11.0, shape), rng.uniform(4.0, 12.0, shape))
    half_y = np.where(built, rng.uniform(4.0, 11.0, shape), half_x)
    tall = np.where(built, rng.uniform(5.0, 25.0, shape), rng.uniform(6.0, 20.0, shape))
    return np.stack([content, half_x, half_y, tall], axis=-1).astype(np.float64)


@njit
def _terrain(u, v):
    """Mountains, hills and humps."""
    mountains = 40.0 * math.sin(u / 311.0) * math.cos(v / 270.0)
    hills = 6.0 * math.sin(u / 37.0 + 1.0) * math.sin(v / 29.0)
    return 600.0 + mountains + hills + 0.8 * math.sin(u / 5.3) * math.cos(v / 6.1)


@njit
def is_on_terrain(u, v, z, most):
    """Tell which points of a cloud are within a distance of the terrain below them."""
    found = np.empty(u.size, np.bool_)
    for i in range(u.size):
        found[i] = abs(z[i] - _terrain(u[i], v[i])) <= most
    return found


@njit
def _surface(u, v, plots):
    """Height of what a pulse meets."""
    ground = _terrain(u, v)
    i, j = int(u / PLOT), int(v / PLOT)
    content, half_x, half_y, tall = plots[i, j]
    du, dv = u - (i + 0.5) * PLOT, v - (j + 0.5) * PLOT
    if content == 1.0 and abs(du) < half_x and abs(dv) < half_y:
        # flat roofs: all of one building at the height over its middle
        return _terrain((i + 0.5) * PLOT, (j + 0.5) * PLOT) + tall
    if content == 2.0:
        rest = 1.0 - (du * du + dv * dv) / (half_x * half_x)
        if rest > 0.0 and np.random.random() < CROWN_HITS:  # noqa: NPY002
            return ground + tall * math.sqrt(rest) * np.random.uniform(0.4, 1.0)  # noqa: NPY002
    return ground


@njit(parallel=True)
def _scatter(x, y, z, seed, plots, width, depth, west, south, resolution):
    n = x.size
    lake_u, lake_v, lake_radius = 0.7 * width, 0.3 * depth, 0.06 * min(width, depth)
    units = round(1.0 / resolution)
    for job in prange(JOBS):
        np.random.seed(seed * JOBS + job)  # noqa: NPY002
        for i in range(job * n // JOBS, (job + 1) * n // JOBS):
            while True:
                u = np.random.random() * width  # noqa: NPY002
                v = np.random.random() * depth  # noqa: NPY002
                kept = 0.55 + 0.45 * math.sin(2.0 * math.pi * u / SWATH)
                dry = math.hypot(u - lake_u, v - lake_v) > lake_radius
                if dry and np.random.random() < kept:  # noqa: NPY002
                    break
            h = _surface(u, v, plots) + NOISE * np.random.standard_normal()  # noqa: NPY002
            chance = np.random.random()  # noqa: NPY002
            if chance < LOW_OUTLIERS:
                h -= np.random.uniform(5.0, 20.0)  # noqa: NPY002
            elif chance < LOW_OUTLIERS + HIGH_OUTLIERS:
                h += np.random.uniform(30.0, 70.0)  # noqa: NPY002
            x[i] = round((west + u) * units) / units
            y[i] = round((south + v) * units) / units
            z[i] = round(h * units) / units


@njit(parallel=True)
def _flight_order(x, y, west, south, rows):
    """Order by strip, then by y: counted into metres of a strip first, each sorted alone."""
    bucket = np.empty(x.size, np.int64)
    for i in prange(x.size):
        bucket[i] = int((x[i] - west) / STRIP) * rows + int(y[i] - south)
    starts = np.zeros(bucket.max() + 2, np.int64)
    for each in bucket:
        starts[each + 1] += 1
    starts = np.cumsum(starts)
    free = starts.copy()
    order = np.empty(bucket.size, np.int64)
    for i in range(bucket.size):
        order[free[bucket[i]]] = i
        free[bucket[i]] += 1
    for b in prange(starts.size - 1):
        part = order[starts[b] : starts[b + 1]]
        order[starts[b] : starts[b + 1]] = part[np.argsort(y[part], kind="mergesort")]
    return order


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a generated cloud as NPZ: x, y, z.")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("out", type=Path)
    parser.add_argument("--strips", action="store_true", help="order by flight strips")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    start = time.perf_counter()
    x, y, z = make_cloud(options.kind, strips=options.strips, seed=options.seed)
    print(f"{x.size:,} points in {time.perf_counter() - start:.1f} s")
    np.savez(options.out, x=x, y=y, z=z)


if __name__ == "__main__":
    main()
