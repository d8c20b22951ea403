"""`ground_surface` on the GPU: parity with the CPU, time by step; one JSON file.

python benchmarks/ground_surface_gpu.py --commit HASH [--out FOLDER]

Terrain from the seeds of a cloud (`clouds`, for the planner), and by all methods from the ground
points of benchmarks/ground_surface.py over cells of 1 m (`grounds`). Sorting and triangulating
are on the host with either kernel: `host_steps_ms` says how much of the whole they are.
"""

import argparse
from typing import Any

import cupy as cp
import measure
import numpy as np
from clouds import make_cloud
from ground_surface import make_ground
from spatialq.udfs.ground_surface import Options, cpu, gpu

HOST = {name: (gpu, name) for name in ("arrange", "triangulate", "hull", "sort_into_buckets")}
DEVICE = {name: (gpu._Kernels, name) for name in ("interpolate", "weigh")}
"""`sort_into_buckets` is a part of `weigh`."""
METHODS: dict[str, dict[str, Any]] = {
    "tin": {},
    "tin, extrapolated": {"extrapolate": True},
    "tin, thinned": {"thin": True},
    "idw": {"method": "idw"},
    "idw, 1 neighbour": {"method": "idw", "neighbours": 1},
    "idw, 100 neighbours": {"method": "idw", "neighbours": 100},
}


def figures(name, columns, options, repeat):
    x, y, z = columns
    n, ids = x.size, np.arange(x.size)
    _, cpu_ms, expected = measure.first_and_next(lambda: cpu.run(x, y, z, ids, options))
    there = [cp.asarray(values) for values in (x, y, z, ids)]

    def resident():
        return gpu.run(*there, options)

    result = resident()
    for column, values in expected.items():
        got = cp.asnumpy(result[column])
        np.testing.assert_array_equal(got.view(np.int64), values.view(np.int64), err_msg=column)
    device_ms = measure.wall_ms(resident, repeat)
    host_ms = measure.wall_ms(lambda: gpu.run(x, y, z, ids, options), repeat)
    report = {
        "cloud": name,
        "points": n,
        "cells": expected["z"].size,
        "cells_with_height": int(np.count_nonzero(~np.isnan(expected["z"]))),
        "same_as_cpu": True,
        "bytes": 24 * n + 8 * expected["z"].size,
        "cpu_ms": cpu_ms,
        "device_ms": device_ms,
        "host_to_host_ms": host_ms,
        "cpu_over_device": cpu_ms / device_ms,
        "cpu_over_host_to_host": cpu_ms / host_ms,
        "host_steps_ms": measure.by_stage(HOST, resident),
        "device_steps_ms": measure.by_stage(DEVICE, resident),
    }
    return measure.show(report)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    measure.add_arguments(parser)
    parser.add_argument("--cloud", type=int, default=10_000_000, help="points of a cloud")
    parser.add_argument("--kinds", nargs="+", default=["arzua", "sparse"], help="of clouds")
    parser.add_argument("--points", type=int, default=50_000, help="ground points")
    parser.add_argument("--side", type=float, default=2000.0, help="metres")
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    repeat = arguments.repeat
    small = np.random.default_rng(1).random((3, 100)) * 20
    ground = make_ground(arguments.points, arguments.side)
    small_call_ms = measure.wall_ms(lambda: gpu.run(*small, np.arange(100), Options()), repeat)
    clouds = [
        figures(kind, make_cloud(kind, strips=True, n=arguments.cloud), Options(), repeat)
        for kind in arguments.kinds
    ]
    grounds = [
        figures(method, ground, Options(source="points", **chosen), repeat)
        for method, chosen in METHODS.items()
    ]
    report = measure.header(
        "ground_surface", arguments.commit,
        small_call_ms=small_call_ms, clouds=clouds, grounds=grounds,
    )  # fmt: skip
    measure.write(arguments.out, report["function"], report)


if __name__ == "__main__":
    main()
