"""How fast `detect_planes` is, against a pass that reads x, y and z once, in one run.

python benchmarks/detect_planes.py [--clouds NAME ...] [--sizes N ...] [--repeat N] [--processor]
    [--open3d PYTHON] [--out FOLDER] [--commit HASH]

The pass is Numba code on as many threads that finds the bounds of x, y and z. Kernel and pass
alternate; the ratio is that of the best of each. Finding is all that comes before points are
assigned to planes: bounds, octree, votes, peaks and refit. A copy of x, y and z on one thread is
timed, too. Clouds are generated rooms (rooms.py), or airborne ones (clouds.py) of the same extent
with as many points, in random order. SPATIALQ_THREADS is the number of threads. With --processor
all times are those of the processors, all threads together, which other processes disturb less.
With --open3d, Open3D's detect_planar_patches on a million points in the same run, normals included
(open3d_rival.py).
"""

import argparse
import os
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import measure
import numpy as np
from clouds import KINDS, make_cloud
from measure import in_turns, kernel, stages
from numba import njit
from rooms import room
from spatialq.udfs import detect_planes
from spatialq.udfs.detect_planes import cpu, detection, search

from spatialq.planner.devices import cpu_name
from spatialq.runtime.threads import n_threads, spans

SIZES = [100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, 50_000_000]
RIVAL = Path(__file__).with_name("open3d_rival.py")
RIVAL_POINTS = 1_000_000
STAGES = {
    "bounds": (cpu, "_cube"),
    "octree": (search, "planar_nodes"),
    "layers": (search, "two_layers"),
    "votes and peaks": (cpu.CpuCloud, "peaks"),
    "known planes": (search.groups, "join"),
    "grouping": (search.groups, "group"),
    "one surface": (search.groups, "unite"),
    "points of no plane": (cpu.CpuCloud, "rest"),
    "rasters": (detection, "lay_rasters"),
    "cover": (cpu.CpuCloud, "cover"),
    "surfaces": (detection, "lay_surfaces"),
    "assignment": (cpu.CpuCloud, "settle"),
}
FINDING = [
    "bounds", "octree", "layers", "votes and peaks", "known planes", "grouping", "one surface",
    "points of no plane",
]  # fmt: skip


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


def cloud_of(kind, n):
    """Give x, y and z of a room, or of a cloud of clouds.py."""
    if kind != "room":
        return make_cloud(kind, n=n)
    scene = room(n)
    return scene.x, scene.y, scene.z


def report(kind, n, repeat, clock):
    cloud = cloud_of(kind, n)
    ids = np.arange(n)

    of_planes, of_points = (kernel(name, "cpu") for name in ("detect_planes", "plane_points"))
    options = detect_planes.Options()

    def planes():
        with stages(STAGES, clock) as spent:
            return spent, of_planes(*cloud, ids, options)["plane_id"].size

    tasks = {
        "planes": planes,
        "points": lambda: len(of_points(*cloud, ids, options)["plane_id"]),
        "bounds": lambda: bounds(*cloud),
        "copy": lambda: len([values.copy() for values in cloud]),
    }
    timed = in_turns(tasks, repeat, keep=True)
    seconds = {name: each.seconds(clock) for name, each in timed.items()}
    whole, points, read, copy = (min(each) for each in seconds.values())
    spent, found = timed["planes"].results[seconds["planes"].index(whole)]
    nodes_to_planes = sum(spent[name] for name in FINDING)
    print(
        f"{kind:>6} {n:>10} points: pass {1000 * read:.1f} ms ({24e-9 * n / read:.0f} GB/s); "
        f"finding {1000 * nodes_to_planes:.1f} ms = {nodes_to_planes / read:.1f} passes; "
        f"detect_planes {1000 * whole:.1f} ms = {whole / read:.1f} passes = "
        f"{whole / copy:.1f} copies, "
        f"{1e9 * whole / n:.1f} ns a point, {found} planes; "
        f"plane_points {1000 * points:.1f} ms = {points / read:.1f} passes\n"
        + " " * 12
        + ", ".join(f"{name} {1000 * seconds:.1f}" for name, seconds in spent.items())
        + f", rest {1000 * (whole - sum(spent.values())):.1f}",
        flush=True,
    )
    return {
        "cloud": kind, "points": n, "planes": found, "pass_ms": 1000 * read,
        "detect_planes_ms": 1000 * whole, "passes": whole / read, "plane_points_ms": 1000 * points,
        "stages_ms": {name: 1000 * seconds for name, seconds in spent.items()},
    }  # fmt: skip


def against_open3d(python, repeat):
    """In wall time, which Open3D is measured in."""
    scene = room(RIVAL_POINTS)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in.npz"), Path(folder, "out.npz")
        np.savez(source, x=scene.x, y=scene.y, z=scene.z, distance=0.015, limit=0)
        subprocess.run([python, RIVAL, "patches", source, target], check=True)
        with np.load(target) as out:
            seconds, planes = float(out["seconds"]), len(out["planes"])
    ours = report("room", RIVAL_POINTS, repeat, time.perf_counter)["detect_planes_ms"] / 1000
    print(f"Open3D: {seconds:.2f} s for {planes} of 12 planes, {seconds / ours:.0f} times ours")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clouds", nargs="+", default=["room"], choices=["room", *KINDS])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--processor", action="store_true", help="times of the processors")
    parser.add_argument("--open3d", help="a Python that has Open3D")
    measure.add_arguments(parser)
    arguments = parser.parse_args()
    clock = time.process_time if arguments.processor else time.perf_counter
    print(f"{n_threads()} threads")
    clouds = [
        report(kind, n, arguments.repeat, clock)
        for kind in arguments.clouds
        for n in arguments.sizes
    ]
    found = {
        "device": cpu_name(),
        "commit": arguments.commit,
        "date": datetime.now(UTC).date().isoformat(),
        "threads": n_threads(),
        "clock": "processor" if arguments.processor else "wall",
        "load": os.getloadavg()[0],
        "clouds": clouds,
    }
    measure.write(arguments.out, "detect_planes_cpu", found)
    if arguments.open3d:
        against_open3d(arguments.open3d, arguments.repeat)


if __name__ == "__main__":
    main()
