"""Sorting and triangulating points of a terrain against SciPy's Qhull, in seconds of processors.

    python benchmarks/triangulation.py [points ...]

`serial` is the part of `seconds_per_point` that one thread has for itself however many there are.
The ratio is that of both programs on the same points, one after the other, so that the planner's
rate of `vertices` may be scaled by it where no machine is idle. JSON, one line a size.
"""

import json
import os
import sys
import time

import numpy as np
from scipy.spatial import Delaunay
from spatialq.udfs.ground_surface import triangles
from spatialq.udfs.ground_surface.grid import SurfaceRaster

SIZES = [10_000, 100_000, 1_000_000]
DENSITY = 8.0
ROUNDS = 2


def by_qhull(x, y, z):
    order = np.lexsort((z, y, x))
    x, y = x[order], y[order]
    first = np.ones(x.size, np.bool_)
    first[1:] = (x[1:] != x[:-1]) | (y[1:] != y[:-1])
    return Delaunay(np.column_stack([x[first], y[first]])).simplices


def by_ours(x, y, z):
    cells = int(np.ceil(max(x.max(), y.max()))) + 1
    grid = SurfaceRaster(1.0, 0, 0, cells, cells)
    return triangles.triangulate(*triangles.arrange(x, y, z, grid, thin=False)[:2])


def seconds(work, *points):
    """Seconds of all threads, those of this one, and the number of triangles."""
    everyone, own = time.process_time(), time.thread_time()
    found = work(*points)
    return time.process_time() - everyone, time.thread_time() - own, len(found)


def main():
    os.environ["SPATIALQ_THREADS"] = "2"
    rng = np.random.default_rng(1)
    for n in map(int, sys.argv[1:] or SIZES):
        x, y = np.round(np.sqrt(n / DENSITY) * rng.random((2, n)), 3)
        points = x, y, rng.random(n)
        by_ours(*(each[:5000] for each in points))
        rounds = [(seconds(by_qhull, *points), seconds(by_ours, *points)) for _ in range(ROUNDS)]
        qhull, ours = (min(each) for each in zip(*rounds, strict=True))
        assert qhull[2] == ours[2]
        line = {
            "points": n, "qhull_per_point": qhull[0] / n, "seconds_per_point": ours[0] / n,
            "serial": ours[1] / n, "ratio": ours[0] / qhull[0],
        }  # fmt: skip
        print(json.dumps({k: float(f"{v:.3g}") for k, v in line.items()}), flush=True)


if __name__ == "__main__":
    main()
