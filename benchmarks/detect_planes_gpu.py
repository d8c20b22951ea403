"""`detect_planes` and `plane_points` on the GPU: parity with the CPU, time by stage; JSON files.

python benchmarks/detect_planes_gpu.py --commit HASH [--json FOLDER] [--sizes N ...]

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
from spatialq.udfs.detect_planes import detection, gpu

from spatialq.runtime import cuda
from spatialq.runtime.threads import n_threads

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


def measure(function, name, points):
    """Figures of a function: as the planner wants them, and more."""
    n = points.shape[1]
    there = [*points, cp.arange(n)]
    here = [cp.asnumpy(values) for values in there]
    on_cpu, on_gpu = (function.UDF.kernel(device) for device in ("cpu", "gpu"))
    options = function.Options()
    clock = time.perf_counter()
    expected = on_cpu(*here, options)
    cpu_first = time.perf_counter() - clock
    clock = time.perf_counter()
    on_cpu(*here, options)
    cpu_seconds = time.perf_counter() - clock
    result = on_gpu(*there, options)
    for column, values in expected.items():
        np.testing.assert_array_equal(values, cp.asnumpy(result[column]), err_msg=column)
    del result
    seconds = wall(lambda: on_gpu(*there, options))
    host = wall(lambda: on_gpu(*here, options), 3)
    report = {
        "cloud": name,
        "points": n,
        "rows": len(expected["plane_id"]),
        "same_as_cpu": True,
        "bytes": (24 if function is detect_planes else 48) * n,
        "cpu_first_s": cpu_first,
        "cpu_ms": 1e3 * cpu_seconds,
        "device_ms": 1e3 * seconds,
        "M_points_per_s": n / seconds / 1e6,
        "host_to_host_ms": 1e3 * host,
        "stages_ms": stages(lambda: on_gpu(*there, options)),
        "kernels_ms": kernels(lambda: on_gpu(*there, options)),
    }
    print(json.dumps(report, indent=1), flush=True)
    return report


def kernels(work):
    """Milliseconds in the CUDA kernels, by name."""
    device, spent = cuda.device(), {}
    launch = device.launch

    def timed(source, kernel, *arguments):
        start, end = cp.cuda.Event(), cp.cuda.Event()
        start.record()
        launch(source, kernel, *arguments)
        end.record()
        end.synchronize()
        spent[kernel] = spent.get(kernel, 0.0) + cp.cuda.get_elapsed_time(start, end)

    device.launch = timed
    work()
    device.launch = launch
    return dict(sorted(spent.items(), key=lambda item: -item[1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--json", type=Path, help="folder for a file of each function")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    arguments = parser.parse_args()
    name = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    small = [*(np.random.default_rng(1).random((3, 100)) * 20), np.arange(100)]
    functions = detect_planes, plane_points
    clouds = {function.UDF.name: [] for function in functions}
    for n in arguments.sizes:
        points = cloud_of(n)
        for kind, order in (("random order", cp.asarray), ("scanner order", as_scanned)):
            points = order(points)
            for function in functions:
                figures = measure(function, f"room, {kind}", points)
                clouds[function.UDF.name].append(figures)
        del points
    for function in functions:
        call, options = function.UDF.kernel("gpu"), function.Options()
        report = {
            "function": function.UDF.name,
            "device": name,
            "cupy": cp.__version__,
            "commit": arguments.commit,
            "date": datetime.now(UTC).date().isoformat(),
            "cpu_threads": n_threads(),
            "small_call_ms": 1e3 * wall(lambda: call(*small, options)),  # noqa: B023
            "clouds": clouds[function.UDF.name],
        }
        if arguments.json:
            target = arguments.json / f"{function.UDF.name}.json"
            target.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
