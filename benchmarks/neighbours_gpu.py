"""`point_features` and `classify_noise` on the GPU: parity with the CPU and points per second.

    python benchmarks/neighbours_gpu.py [--points 10000000] [--check 1000000] [--repeat 5]
        [--commit HASH] [--out FOLDER]

Clouds as of `neighbours.py`. "tree_ms" makes the order of points that are on the device,
"device_ms" is the whole call with points and rows there, "host_to_host_ms" that with arrays of
NumPy, transfers included. The CPU makes the rows of `--check` points, which must be those of the
GPU bit by bit; "cpu_points_per_s" is what it does per second of processor time of all threads, and
"ratio" how many such cores the GPU is worth, with the points on the device.
"""

import argparse
import time

import cupy as cp
import measure
import numpy as np
from neighbours import scan, survey

from spatialq.geometry.neighbours_gpu import NeighboursOnGpu
from spatialq.runtime import cuda

CLOUDS = {"survey": survey, "scan": scan}
CALLS = {
    "point_features, 10 neighbours": ("point_features", {}),
    "point_features, 0.5 m": ("point_features", {"radius": 0.5}),
    "classify_noise, statistical": ("classify_noise", {}),
    "classify_noise, isolated": ("classify_noise", {"method": "isolated"}),
}
"""Functions with their options."""


def processor_seconds(work):
    """Give the least processor time of two calls after one that compiles, and the result."""
    found, taken = work(), []
    for _ in range(2):
        start = time.process_time()
        found = work()
        taken.append(time.process_time() - start)
    return min(taken), found


def cloud_of(make, n):
    """Make n points as three arrays."""
    points = make(n, np.random.default_rng(1))
    return [np.ascontiguousarray(points[:, axis]) for axis in range(3)]


def figures(name, call, n, check, repeat):
    function, chosen = CALLS[call]
    options = measure.options_of(function, **chosen)
    on_gpu, on_cpu = (measure.kernel(function, kind) for kind in ("gpu", "cpu"))
    some = cloud_of(CLOUDS[name], check)
    seconds, expected = processor_seconds(lambda: on_cpu(*some, None, options))
    measure.assert_same(on_gpu(*some, None, options), expected)
    here = cloud_of(CLOUDS[name], n)
    device = cuda.device()
    with device.use():
        there = [cp.asarray(each) for each in here]
        tree_ms = measure.device_ms(lambda: NeighboursOnGpu(device, *there), repeat)
        device_ms = measure.device_ms(lambda: on_gpu(*there, None, options), repeat)
        spent = measure.by_kernel(lambda: on_gpu(*there, None, options))
    return measure.show(
        {
            "cloud": name,
            "call": call,
            "points": n,
            "same_as_cpu": True,
            "tree_ms": tree_ms,
            "device_ms": device_ms,
            "host_to_host_ms": measure.wall_ms(lambda: on_gpu(*here, None, options), repeat),
            "points_per_s": 1000 * n / device_ms,
            "cpu_points_per_s": check / seconds,
            "ratio": 1000 * n / device_ms * seconds / check,
            "kernels_ms": spent,
        }
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--points", type=int, default=10_000_000)
    parser.add_argument("--check", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    measure.add_arguments(parser)
    arguments = parser.parse_args()
    cases = [
        figures(name, call, arguments.points, arguments.check, arguments.repeat)
        for name in CLOUDS
        for call in CALLS
    ]
    report = measure.header("neighbours", arguments.commit, calls=cases)
    measure.write(arguments.out, "neighbours_gpu", report)


if __name__ == "__main__":
    main()
