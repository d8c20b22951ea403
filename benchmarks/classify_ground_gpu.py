"""`classify_ground` on the GPU: parity with the CPU, time by stage; one JSON file.

python benchmarks/classify_ground_gpu.py --commit HASH [--json FILE]

The tiles are those of benchmarks/classify_ground.py: 10 points a square metre and the sparse cloud.
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
from spatialq.udfs.classify_ground import Options, cpu, gpu

from spatialq.runtime import cuda
from spatialq.runtime.threads import n_threads

STAGES = (
    "lay_grid", "lowest", "pits", "fill", "objects", "base", "grow", "extend", "join_cliffs",
    "densify", "points",
)  # fmt: skip


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
    """Milliseconds in each stage; `fill` is also part of others, `points` of the first two."""
    spent = dict.fromkeys(STAGES, 0.0)
    kept = {name: getattr(gpu._Kernels, name) for name in STAGES}

    def timed(name):
        def call(*arguments, **named):
            cp.cuda.Device().synchronize()
            clock = time.perf_counter()
            result = kept[name](*arguments, **named)
            cp.cuda.Device().synchronize()
            spent[name] += 1e3 * (time.perf_counter() - clock)
            return result

        return call

    for name in STAGES:
        setattr(gpu._Kernels, name, timed(name))
    work()
    for name, method in kept.items():
        setattr(gpu._Kernels, name, method)
    return spent


def measure(kind, n):
    x, y, z = make_cloud(kind, strips=True, n=n)
    n, ids, options = x.size, np.arange(x.size), Options()
    clock = time.perf_counter()
    expected = cpu.run(x, y, z, ids, options)
    cpu_first = time.perf_counter() - clock
    clock = time.perf_counter()
    cpu.run(x, y, z, ids, options)
    cpu_seconds = time.perf_counter() - clock
    there = [cp.asarray(values) for values in (x, y, z, ids)]
    result = gpu.run(*there, options)
    for name, values in expected.items():
        np.testing.assert_array_equal(values, cp.asnumpy(result[name]), err_msg=name)
    grid = gpu._Kernels(cuda.device()).lay_grid((*there[:3], None))
    seconds = wall(lambda: gpu.run(*there, options))
    host = wall(lambda: gpu.run(x, y, z, ids, options), 3)
    report = {
        "cloud": kind,
        "points": n,
        "cells": grid.shape[0] * grid.shape[1],
        "same_as_cpu": True,
        "bytes": 33 * n,
        "cpu_first_s": cpu_first,
        "cpu_ms": 1e3 * cpu_seconds,
        "device_ms": 1e3 * seconds,
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
    arguments = parser.parse_args()
    name = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    small = np.random.default_rng(1).random((3, 100)) * 20
    report = {
        "function": "classify_ground",
        "device": name,
        "cupy": cp.__version__,
        "commit": arguments.commit,
        "date": datetime.now(UTC).date().isoformat(),
        "cpu_threads": n_threads(),
        "small_call_ms": 1e3 * wall(lambda: gpu.run(*small, np.arange(100), Options())),
        "clouds": [measure("arzua", 10_000_000), measure("dense", 48_024_480),
                   measure("sparse", 20_380_212)],
    }  # fmt: skip
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
