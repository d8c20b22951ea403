"""`ground_surface` on the GPU: parity with the CPU, time by step; one JSON file.

python benchmarks/ground_surface_gpu.py --commit HASH [--json FILE]

Terrain from the seeds of a cloud (`clouds`, for the planner), and by all methods from the ground
points of benchmarks/ground_surface.py over cells of 1 m (`grounds`). Sorting and triangulating
are on the host with either kernel: `host_steps_ms` says how much of the whole they are.
"""

import argparse
import json
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path

import cupy as cp
import numpy as np
from clouds import make_cloud
from ground_surface import make_ground
from spatialq.udfs.ground_surface import Options, cpu, gpu

from spatialq.runtime.threads import n_threads

HOST = ("arrange", "triangulate", "hull", "sort_into_buckets")
DEVICE = ("interpolate", "weigh")
METHODS = {
    "tin": {},
    "tin, extrapolated": {"extrapolate": True},
    "tin, thinned": {"thin": True},
    "idw": {"method": "idw"},
    "idw, 1 neighbour": {"method": "idw", "neighbours": 1},
    "idw, 100 neighbours": {"method": "idw", "neighbours": 100},
}


def wall(work, repeat):
    work()
    times = []
    for _ in range(repeat):
        cp.cuda.Device().synchronize()
        clock = time.perf_counter()
        work()
        cp.cuda.Device().synchronize()
        times.append(time.perf_counter() - clock)
    return statistics.median(times)


def steps(owner, names, work):
    """Milliseconds in each step; `sort_into_buckets` is a part of `weigh`."""
    spent = {}
    kept = {name: getattr(owner, name) for name in names}

    def timed(name):
        def call(*arguments, **named):
            cp.cuda.Device().synchronize()
            clock = time.perf_counter()
            result = kept[name](*arguments, **named)
            cp.cuda.Device().synchronize()
            spent[name] = 1e3 * (time.perf_counter() - clock)
            return result

        return call

    for name in names:
        setattr(owner, name, timed(name))
    work()
    for name, function in kept.items():
        setattr(owner, name, function)
    return spent


def measure(name, columns, options, repeat):
    x, y, z = columns
    n, ids = x.size, np.arange(x.size)
    cpu.run(x, y, z, ids, options)  # compiles
    clock = time.perf_counter()
    expected = cpu.run(x, y, z, ids, options)
    cpu_seconds = time.perf_counter() - clock
    there = [cp.asarray(values) for values in (x, y, z, ids)]

    def resident():
        return gpu.run(*there, options)

    result = resident()
    for column, values in expected.items():
        got = cp.asnumpy(result[column])
        np.testing.assert_array_equal(got.view(np.int64), values.view(np.int64), err_msg=column)
    device = wall(resident, repeat)
    host = wall(lambda: gpu.run(x, y, z, ids, options), repeat)
    report = {
        "cloud": name,
        "points": n,
        "cells": expected["z"].size,
        "cells_with_height": int(np.count_nonzero(~np.isnan(expected["z"]))),
        "same_as_cpu": True,
        "bytes": 24 * n + 8 * expected["z"].size,
        "cpu_ms": 1e3 * cpu_seconds,
        "device_ms": 1e3 * device,
        "host_to_host_ms": 1e3 * host,
        "cpu_over_device": cpu_seconds / device,
        "cpu_over_host_to_host": cpu_seconds / host,
        "host_steps_ms": steps(gpu, HOST, resident),
        "device_steps_ms": steps(gpu._Kernels, DEVICE, resident),
    }
    print(json.dumps(report, indent=1), flush=True)
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--cloud", type=int, default=10_000_000, help="points of a cloud")
    parser.add_argument("--points", type=int, default=50_000, help="ground points")
    parser.add_argument("--side", type=float, default=2000.0, help="metres")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    repeat = arguments.repeat
    small = np.random.default_rng(1).random((3, 100)) * 20
    ground = make_ground(arguments.points, arguments.side)
    report = {
        "function": "ground_surface",
        "device": cp.cuda.runtime.getDeviceProperties(0)["name"].decode(),
        "cupy": cp.__version__,
        "commit": arguments.commit,
        "date": datetime.now(UTC).date().isoformat(),
        "cpu_threads": n_threads(),
        "small_call_ms": 1e3 * wall(lambda: gpu.run(*small, np.arange(100), Options()), repeat),
        "clouds": [
            measure(kind, make_cloud(kind, strips=True, n=arguments.cloud), Options(), repeat)
            for kind in ("arzua", "sparse")
        ],
        "grounds": [
            measure(method, ground, Options(source="points", **chosen), repeat)
            for method, chosen in METHODS.items()
        ],
    }
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
