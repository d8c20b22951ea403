"""`point_features` and `classify_noise` on the GPU: parity with the CPU and points per second.

    python benchmarks/neighbours_gpu.py [--points 10000000] [--check 1000000] [--repeat 5]
        [--commit HASH] [--out FOLDER]

Clouds as of `neighbours.py`; the radius is one that has some ten points at any size of the cloud.
"tree_ms" makes the order of points that are on the device, "device_ms" is the whole call with
points and rows there, "host_to_host_ms" that with arrays of NumPy, transfers included, and
"transfer_ms" the copy of the points there and back. The CPU makes the rows of `--check` points,
which must be those of the GPU bit by bit; "cpu_points_per_s" is what it does per second of
processor time of all threads, and "ratio" how many such cores the GPU is worth, with the points on
the device.
"""

import argparse
import time

import cupy as cp
import measure
import numpy as np
from neighbours import scan, survey

from spatialq.geometry.neighbours_gpu import NeighboursOnGpu
from spatialq.runtime import cuda

CLOUDS = {"survey": (survey, lambda n: 0.7), "scan": (scan, lambda n: 30 / n**0.5)}
"""With radii."""


def calls_of(name, n):
    """Name the calls of a cloud of n points: functions with their options."""
    radius = CLOUDS[name][1](n)
    return {
        "10 neighbours": ("point_features", {}),
        "radius": ("point_features", {"radius": radius}),
        "statistical": ("classify_noise", {}),
        "isolated": ("classify_noise", {"method": "isolated", "voxel_size": radius}),
    }


def cloud_of(name, n):
    """Make n points as three arrays."""
    points = CLOUDS[name][0](n, np.random.default_rng(1))
    return [np.ascontiguousarray(points[:, axis]) for axis in range(3)]


def processor_seconds(work):
    """Give the least processor time of two calls after one that compiles, and the result."""
    found, taken = work(), []
    for _ in range(2):
        start = time.process_time()
        found = work()
        taken.append(time.process_time() - start)
    return min(taken), found


def compared(function, options, some):
    """Compare the devices; give the points per second of the CPU, and how many neighbours."""
    seconds, expected = processor_seconds(
        lambda: measure.kernel(function, "cpu")(*some, None, options)
    )
    measure.assert_same(measure.kernel(function, "gpu")(*some, None, options), expected)
    found = {"same_as_cpu": True, "cpu_points_per_s": len(some[0]) / seconds}
    if "neighbours" in expected:
        found["neighbours"] = float(expected["neighbours"].mean())
    return found


def figures(name, n, check, repeat):
    some, here = cloud_of(name, check), cloud_of(name, n)
    device = cuda.device()
    with device.use():
        there = [cp.asarray(each) for each in here]
        tree_ms = measure.device_ms(lambda: NeighboursOnGpu(device, *there), repeat)
        transfer_ms = measure.wall_ms(
            lambda: [cp.asnumpy(cp.asarray(each)) for each in here], repeat
        )
        for call, (function, chosen) in calls_of(name, n).items():
            checked = compared(
                function, measure.options_of(function, **calls_of(name, check)[call][1]), some
            )
            options, on_gpu = (
                measure.options_of(function, **chosen),
                measure.kernel(function, "gpu"),
            )

            def run(cloud, on_gpu=on_gpu, options=options):
                return on_gpu(*cloud, None, options)

            device_ms = measure.device_ms(lambda run=run: run(there), repeat)
            yield measure.show(
                {
                    "cloud": name,
                    "function": function,
                    "call": call,
                    "points": n,
                    "tree_ms": tree_ms,
                    "device_ms": device_ms,
                    "host_to_host_ms": measure.wall_ms(lambda run=run: run(here), repeat),
                    "transfer_ms": transfer_ms,
                    "points_per_s": 1000 * n / device_ms,
                    **checked,
                    "ratio": 1000 * n / device_ms / checked["cpu_points_per_s"],
                    "kernels_ms": measure.by_kernel(lambda run=run: run(there)),
                }
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--points", type=int, default=10_000_000)
    parser.add_argument("--check", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    measure.add_arguments(parser)
    arguments = parser.parse_args()
    calls = [
        each
        for name in CLOUDS
        for each in figures(name, arguments.points, arguments.check, arguments.repeat)
    ]
    report = measure.header("neighbours", arguments.commit, calls=calls)
    measure.write(arguments.out, "neighbours_gpu", report)


if __name__ == "__main__":
    main()
