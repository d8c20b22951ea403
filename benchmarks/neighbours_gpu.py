"""What finds neighbours on the GPU: parity with the CPU and points per second.

    python benchmarks/neighbours_gpu.py [--points 10000000] [--check 1000000] [--repeat 5]
        [--commit HASH] [--out FOLDER]

Clouds as of `neighbours.py`; the radius is one that has some ten points at any size of the cloud.
The reference of `cloud_distance` is another draw of as many points, which each call takes from the
memory of the host; cylinders of M3C2 are 1.5 radii wide and two long to either side, and normals
those of the points within two.
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

from spatialq.data.cloud import Cloud
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
        "nearest point": ("cloud_distance", {}),
        "M3C2": (
            "cloud_distance",
            {
                "method": "m3c2",
                "radius": 1.5 * radius,
                "normal_radius": 2 * radius,
                "max_distance": 2 * radius,
            },
        ),
    }


def cloud_of(name, n, seed=1):
    """Make n points as three arrays."""
    points = CLOUDS[name][0](n, np.random.default_rng(seed))
    return [np.ascontiguousarray(points[:, axis]) for axis in range(3)]


def beside(function, reference):
    """Give what a function takes beside the points."""
    return (reference,) if function == "cloud_distance" else ()


def processor_seconds(work):
    """Give the least processor time of two calls after one that compiles, and the result."""
    found, taken = work(), []
    for _ in range(2):
        start = time.process_time()
        found = work()
        taken.append(time.process_time() - start)
    return min(taken), found


def compared(function, options, some, reference):
    """Compare the devices; give the points per second of the CPU, and how many neighbours."""
    given = (*some, None, *beside(function, reference), options)
    seconds, expected = processor_seconds(lambda: measure.kernel(function, "cpu")(*given))
    measure.assert_same(measure.kernel(function, "gpu")(*given), expected)
    found = {"same_as_cpu": True, "cpu_points_per_s": len(some[0]) / seconds}
    if "neighbours" in expected:
        found["neighbours"] = float(expected["neighbours"].mean())
    return found


def figures(name, n, check, repeat):
    some, here = cloud_of(name, check), cloud_of(name, n)
    some_others, others = (Cloud(*cloud_of(name, size, 2)) for size in (check, n))
    device = cuda.device()
    with device.use():
        there = [cp.asarray(each) for each in here]
        tree_ms = measure.device_ms(lambda: NeighboursOnGpu(device, *there), repeat)
        transfer_ms = measure.wall_ms(
            lambda: [cp.asnumpy(cp.asarray(each)) for each in here], repeat
        )
        for call, (function, chosen) in calls_of(name, n).items():
            of_some = measure.options_of(function, **calls_of(name, check)[call][1])
            checked = compared(function, of_some, some, some_others)
            on_gpu = measure.kernel(function, "gpu")
            more = (*beside(function, others), measure.options_of(function, **chosen))

            def run(cloud, on_gpu=on_gpu, more=more):
                return on_gpu(*cloud, None, *more)

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
