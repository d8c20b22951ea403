"""`detect_planes` and `plane_points` on the GPU: parity with the CPU, time by stage; JSON files.

python benchmarks/detect_planes_gpu.py --commit HASH [--out FOLDER] [--sizes N ...]
    [--clouds NAME ...]

Clouds are generated rooms (rooms.py), in random order and as a scanner in the middle sees them,
line by line, and airborne ones (clouds.py) in random order. Times are medians of seven with the
points on the device.
"""

import argparse
from concurrent.futures import ThreadPoolExecutor

import cupy as cp
import measure
import numpy as np
from clouds import KINDS, make_cloud
from rooms import room
from spatialq.udfs.detect_planes import detection, gpu, search

SIZES = [1_000_000, 20_000_000, 100_000_000]
PART = 10_000_000  # points of a room that are made at once
LINE = 0.001  # radians between the lines of the scanner
STAGES = {
    "bounds": (gpu, "_cube"),
    "search": (detection, "search"),
    "octree": (search, "planar_nodes"),
    "layers": (search, "two_layers"),
    "votes and peaks": (gpu.GpuCloud, "peaks"),
    "known planes": (search.groups, "join"),
    "refit": (search.groups, "group"),
    "one surface": (search.groups, "unite"),
    "points of no plane": (gpu.GpuCloud, "rest"),
    "cells near planes": (search, "near_planes"),
    "rasters": (detection, "lay_rasters"),
    "cover": (gpu.GpuCloud, "cover"),
    "surfaces": (detection, "lay_surfaces"),
    "assignment": (gpu.GpuCloud, "settle"),
    "columns": (detection, "_columns"),
}


def cloud_of(n):
    """Points of rooms of the same shape, float64[3, n] on the device."""
    sizes = [PART] * (n // PART) or [n]
    with ThreadPoolExecutor(8) as pool:
        scenes = pool.map(lambda part: room(part[1], seed=part[0]), enumerate(sizes))
        parts = [cp.asarray(np.stack([each.x, each.y, each.z])) for each in scenes]
    return cp.concatenate(parts, axis=1)


def as_scanned(points):
    """Order points by the lines of a scanner in the middle."""
    x, y, z = points - cp.array([[5.0], [4.0], [1.5]])
    line = cp.floor(cp.arctan2(y, x) / LINE)
    height = cp.arctan2(z, cp.hypot(x, y))
    return cp.ascontiguousarray(points[:, cp.lexsort(cp.stack([height, line]))])


def in_orders(cloud, n):
    """Give a cloud in one order after the other, with the names of these."""
    if cloud != "room":
        yield "random order", cp.asarray(np.stack(make_cloud(cloud, n=n)))
        return
    points = cloud_of(n)
    yield "random order", points
    yield "scanner order", as_scanned(points)


def figures(function, cloud, points, repeat):
    """Figures of a function: as the planner wants them, and more."""
    n = points.shape[1]
    there = [*points, cp.arange(n)]
    here = [cp.asnumpy(values) for values in there]
    on_cpu, on_gpu = (measure.kernel(function, device) for device in ("cpu", "gpu"))
    options = measure.options_of(function)
    work = measure.work_of(function, n, options)
    cpu_first, cpu_ms, expected = measure.first_and_next(lambda: on_cpu(*here, options))
    measure.assert_same(on_gpu(*there, options), expected)
    device_ms = measure.wall_ms(lambda: on_gpu(*there, options), repeat)
    host_ms = measure.wall_ms(lambda: on_gpu(*here, options), min(repeat, 3))
    report = {
        "cloud": cloud,
        "points": n,
        "rows": len(expected["plane_id"]),
        "same_as_cpu": True,
        "bytes": work.bytes_in + work.bytes_out,
        "cpu_first_s": cpu_first,
        "cpu_ms": cpu_ms,
        "device_ms": device_ms,
        "M_points_per_s": n / device_ms / 1e3,
        "host_to_host_ms": host_ms,
        "stages_ms": measure.by_stage(STAGES, lambda: on_gpu(*there, options)),
        "kernels_ms": measure.by_kernel(lambda: on_gpu(*there, options)),
    }
    return measure.show(report)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    measure.add_arguments(parser)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--clouds", nargs="+", default=["room"], choices=["room", *KINDS])
    arguments = parser.parse_args()
    small = [*(np.random.default_rng(1).random((3, 100)) * 20), np.arange(100)]
    functions = "detect_planes", "plane_points"
    clouds = {function: [] for function in functions}
    for n in arguments.sizes:
        for cloud in arguments.clouds:
            for kind, points in in_orders(cloud, n):
                for function in functions:
                    found = figures(function, f"{cloud}, {kind}", points, arguments.repeat)
                    clouds[function].append(found)
                del points
    for function in functions:
        call, options = measure.kernel(function, "gpu"), measure.options_of(function)
        small_call_ms = measure.wall_ms(lambda: call(*small, options), arguments.repeat)  # noqa: B023
        report = measure.header(
            function, arguments.commit, small_call_ms=small_call_ms, clouds=clouds[function]
        )
        measure.write(arguments.out, function, report)


if __name__ == "__main__":
    main()
