"""`detect_planes` on the GPU: parity with the CPU, time by stage; one JSON file.

python benchmarks/detect_planes_gpu.py --commit HASH [--json FILE] [--sizes N ...]

Clouds are generated rooms (rooms.py), in random order and as a scanner in the middle sees them,
line by line. Times are medians of seven with the points on the device.
"""

import argparse
import json
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import cupy as cp
import numpy as np
from rooms import room
from spatialq.udfs import detect_planes, plane_points
from spatialq.udfs.detect_planes import Options, cpu, detection, gpu

from spatialq.parallel import n_threads

SIZES = [1_000_000, 20_000_000, 100_000_000]
PART = 10_000_000  # points of a room that are made at once
LINE = 0.001  # radians between the lines of the scanner
STAGES = {
    "bounds": (gpu, "_cube"),
    "octree": (detection, "planar_nodes"),
    "votes and peaks": (gpu.GpuCloud, "peaks"),
    "refit": (detection, "group"),
    "points of no plane": (gpu.GpuCloud, "rest"),
    "cells near planes": (detection, "near_planes"),
    "rasters": (detection, "lay_rasters"),
    "cover": (gpu.GpuCloud, "cover"),
    "surfaces": (detection, "lay_surfaces"),
    "assignment": (gpu.GpuCloud, "settle"),
}


def wall(work, repeat=7):
    work()
    times = []
    for _ in range(repeat):
        cp.cuda.Device().synchronize()
        clock = time.perf_counter()
        work()
        cp.cuda.Device().synchronize()
        times.append(time.perf_counter() - clock)
    return statistics.median(times)


def stages(work):
    """Milliseconds in each stage, every one waited for."""
    spent = dict.fromkeys(STAGES, 0.0)
    kept = {name: getattr(*place) for name, place in STAGES.items()}

    def timed(name):
        def call(*arguments, **named):
            cp.cuda.Device().synchronize()
            clock = time.perf_counter()
            result = kept[name](*arguments, **named)
            cp.cuda.Device().synchronize()
            spent[name] += 1e3 * (time.perf_counter() - clock)
            return result

        return call

    for name, place in STAGES.items():
        setattr(*place, timed(name))
    work()
    for name, place in STAGES.items():
        setattr(*place, kept[name])
    return spent


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


def measure(name, points):
    n = points.shape[1]
    there = [*points, cp.arange(n)]
    here = [cp.asnumpy(values) for values in there]
    options = Options()
    clock = time.perf_counter()
    expected = cpu.run(*here, options)
    cpu_first = time.perf_counter() - clock
    clock = time.perf_counter()
    cpu.run(*here, options)
    cpu_seconds = time.perf_counter() - clock
    result = gpu.run(*there, options)
    for column, values in expected.items():
        np.testing.assert_array_equal(values, cp.asnumpy(result[column]), err_msg=column)
    run_points = plane_points.UDF.kernel("gpu")
    of_points = run_points(*there, plane_points.Options())
    in_memory = plane_points.UDF.kernel("cpu")(*here, plane_points.Options())
    for column, values in in_memory.items():
        np.testing.assert_array_equal(values, cp.asnumpy(of_points[column]), err_msg=column)
    del of_points, in_memory
    seconds = wall(lambda: gpu.run(*there, options))
    with_points = wall(lambda: run_points(*there, plane_points.Options()))
    host = wall(lambda: gpu.run(*here, options), 3)
    report = {
        "cloud": name,
        "points": n,
        "planes": int(expected["plane_id"].size),
        "same_as_cpu": True,
        "bytes": 24 * n,
        "cpu_first_s": cpu_first,
        "cpu_ms": 1e3 * cpu_seconds,
        "device_ms": 1e3 * seconds,
        "plane_points_device_ms": 1e3 * with_points,
        "M_points_per_s": n / seconds / 1e6,
        "host_to_host_ms": 1e3 * host,
        "stages_ms": stages(lambda: gpu.run(*there, options)),
    }
    print(json.dumps(report, indent=1), flush=True)
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    arguments = parser.parse_args()
    name = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    small = np.random.default_rng(1).random((3, 100)) * 20
    clouds = []
    for n in arguments.sizes:
        points = cloud_of(n)
        clouds.append(measure("room, random order", points))
        clouds.append(measure("room, scanner order", as_scanned(points)))
        del points
    report = {
        "function": detect_planes.UDF.name,
        "device": name,
        "cupy": cp.__version__,
        "commit": arguments.commit,
        "date": datetime.now(UTC).date().isoformat(),
        "cpu_threads": n_threads(),
        "small_call_ms": 1e3 * wall(lambda: gpu.run(*small, np.arange(100), Options())),
        "clouds": clouds,
    }
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
