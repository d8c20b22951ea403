"""How fast `detect_planes` is, against a pass that reads x, y and z once, in one run.

python benchmarks/detect_planes.py [--sizes N ...] [--repeat N] [--open3d PYTHON]

The pass is Numba code on as many threads that finds the bounds of x, y and z. Kernel and pass take
turns; the ratio is of the best of each. Clouds are generated rooms (rooms.py), in random order.
With --open3d, Open3D's detect_planar_patches on a million points in the same run, normals
included (open3d_rival.py).
"""

import argparse
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numba import njit
from rooms import room
from spatialq.udfs import detect_planes, plane_points

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


def report(n, repeat):
    scene = room(n)
    cloud = scene.x, scene.y, scene.z
    del scene
    ids = np.arange(n)
    kernels = [(each.UDF.kernel("cpu"), each.Options()) for each in (detect_planes, plane_points)]
    found = []
    whole, points, read = best_of(
        repeat,
        lambda: found.append(kernels[0][0](*cloud, ids, kernels[0][1])["plane_id"].size),
        lambda: kernels[1][0](*cloud, ids, kernels[1][1]),
        lambda: bounds(*cloud),
    )
    print(
        f"{n:>10} points  pass {1000 * read:8.1f} ms  detect_planes {1000 * whole:8.1f} ms "
        f"= {whole / read:5.1f} passes, {1e9 * whole / n:6.1f} ns a point, {found[-1]} planes  "
        f"plane_points {1000 * points:8.1f} ms = {points / read:5.1f} passes",
        flush=True,
    )
    return whole


def against_open3d(python, repeat):
    scene = room(RIVAL_POINTS)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in.npz"), Path(folder, "out.npz")
        np.savez(source, x=scene.x, y=scene.y, z=scene.z, distance=0.015, limit=0)
        subprocess.run([python, RIVAL, "patches", source, target], check=True)
        with np.load(target) as out:
            seconds, planes = float(out["seconds"]), len(out["planes"])
    ours = report(RIVAL_POINTS, repeat)
    print(f"Open3D: {seconds:.2f} s for {planes} of 12 planes, {seconds / ours:.0f} times ours")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--open3d", help="a Python that has Open3D")
    arguments = parser.parse_args()
    print(f"{n_threads()} threads")
    for n in arguments.sizes:
        report(n, arguments.repeat)
    if arguments.open3d:
        against_open3d(arguments.open3d, arguments.repeat)


if __name__ == "__main__":
    main()
