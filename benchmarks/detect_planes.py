"""How fast `detect_planes` is, against a pass that reads x, y and z once, in one run.

python benchmarks/detect_planes.py [--points N] [--up-to N] [--repeat N] [--open3d PYTHON]

The pass is Numba code on as many threads that finds the bounds of x, y and z. Kernel and pass take
turns; the ratio is of the best of each. Clouds are generated rooms (rooms.py), in random order.
With --open3d, Open3D's detect_planar_patches on a million points in the same run, normals
included (open3d_rival.py).
"""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numba import njit

from spatialq.parallel import n_threads, spans

SIZES = [100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, 50_000_000]
RIVAL = Path(__file__).with_name("open3d_rival.py")
RIVAL_POINTS = 1_000_000


@njit(nogil=True)
def _bounds(x, y, z, first, last):
    low_x = low_y = low_z = np.inf
    high_x = high_y = high_z = -np.inf
    for i in range(first, last):
        low_x, high_x = min(low_x, x[i]), max(high_x, x[i])
        low_y, high_y = min(low_y, y[i]), max(high_y, y[i])
        low_z, high_z = min(low_z, z[i]), max(high_z, z[i])
    return low_x, high_x, low_y, high_y, low_z, high_z


def bounds(x, y, z):
    threads = n_threads()
    with ThreadPoolExecutor(threads) as pool:
        parts = list(pool.map(lambda span: _bounds(x, y, z, *span), spans(x.size, threads)))
    return np.min(parts, axis=0), np.max(parts, axis=0)


def best_of(repeat, *calls):
    """Best wall time of each, in turns; the first round compiles."""
    times = np.empty((repeat + 1, len(calls)))
    for row in times:
        for k, call in enumerate(calls):
            start = time.perf_counter()
            call()
            row[k] = time.perf_counter() - start
    return times[1:].min(axis=0)
