"""`classify_ground` on the GPU: parity with the CPU, time by stage; one JSON file.

python benchmarks/classify_ground_gpu.py --commit HASH [--out FOLDER] [kinds ...]

The tiles are those of benchmarks/classify_ground.py: 10 points a square metre and the sparse cloud.
"""

import argparse

import cupy as cp
import measure
import numpy as np
from clouds import make_cloud
from spatialq.udfs.classify_ground import Options, cpu, gpu

from spatialq.runtime import cuda

CLOUDS = {"arzua": 10_000_000, "dense": 48_024_480, "sparse": 20_380_212, "tiny": 2_000}
STAGES = {
    name: (gpu._Kernels, name)
    for name in (
        "lay_grid", "lowest", "pits", "fill", "objects", "base", "grow", "extend", "join_cliffs",
        "densify", "points",
    )
}  # fmt: skip
"""`fill` is also part of others, `points` of the first two."""


def figures(kind, n, repeat):
    x, y, z = make_cloud(kind, strips=True, n=n)
    n, ids, options = x.size, np.arange(x.size), Options()
    cpu_first, cpu_ms, expected = measure.first_and_next(lambda: cpu.run(x, y, z, ids, options))
    there = [cp.asarray(values) for values in (x, y, z, ids)]
    measure.assert_same(gpu.run(*there, options), expected)
    cloud = gpu._Whole(cuda.device(), there, options)
    grid = gpu._Kernels(cuda.device()).lay_grid(cloud)
    device_ms = measure.wall_ms(lambda: gpu.run(*there, options), repeat)
    host_ms = measure.wall_ms(lambda: gpu.run(x, y, z, ids, options), min(repeat, 3))
    report = {
        "cloud": kind,
        "points": n,
        "cells": grid.shape[0] * grid.shape[1],
        "same_as_cpu": True,
        "bytes": 33 * n,
        "cpu_first_s": cpu_first,
        "cpu_ms": cpu_ms,
        "device_ms": device_ms,
        "M_points_per_s": n / device_ms / 1e3,
        "host_to_host_ms": host_ms,
        "stages_ms": measure.by_stage(STAGES, lambda: gpu.run(*there, options)),
    }
    return measure.show(report)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    measure.add_arguments(parser)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("kinds", nargs="*", default=["arzua", "dense", "sparse"])
    arguments = parser.parse_args()
    small = np.random.default_rng(1).random((3, 100)) * 20
    small_call_ms = measure.wall_ms(
        lambda: gpu.run(*small, np.arange(100), Options()), arguments.repeat
    )
    clouds = [figures(kind, CLOUDS[kind], arguments.repeat) for kind in arguments.kinds]
    report = measure.header(
        "classify_ground", arguments.commit, small_call_ms=small_call_ms, clouds=clouds
    )
    measure.write(arguments.out, report["function"], report)


if __name__ == "__main__":
    main()
