"""`deviation` on the GPU: parity with the CPU, time by kernel, throughput; a JSON file.

    python benchmarks/deviation_gpu.py MESHES --commit HASH [--copies 1 150]
        [--points 10000000 100000000] [--out FOLDER]

MESHES are those of a model: an IFC file, or what benchmarks/buildings.py wrote. They are copied on
a grid; points lie round their faces, in the order of cubes of 0.25 m. "index_ms" is the
preparation of the faces on the host, which every call has; "search_ms" the search alone, of points
that are on the device, with the faces there; "points_per_s" follows from it. `--check` points are
compared with the CPU, bit by bit.
"""

import argparse
from pathlib import Path

import cupy as cp
import measure
import numpy as np
from buildings import copies, elements
from deviation import LIMIT, in_scan_order, points_on
from spatialq.udfs.deviation import Options, cpu, gpu

from spatialq.geometry.nearest_faces import NearestFaces
from spatialq.runtime import cuda

BLOCK = 10_000_000
"""Points that are made and sorted at once."""


def cloud_of(meshes, n):
    """Make n points in the order of a scan, as three arrays."""
    parts = [
        in_scan_order(points_on(meshes, min(BLOCK, n - first), seed=first))
        for first in range(0, n, BLOCK)
    ]
    return [np.concatenate([part[:, axis] for part in parts]) for axis in range(3)]


def figures(name, meshes, n, repeat, check):
    options = Options(LIMIT)
    here = cloud_of(meshes, n)
    there = [cp.asarray(each) for each in here]
    device = cuda.device()
    with device.use():
        searched = gpu._Search(device, meshes, options)
        search_ms = measure.device_ms(lambda: searched.rows(there, ()), repeat)
    some = [each[:check] for each in here]
    measure.assert_same(
        gpu.run(*some, None, meshes, options), cpu.run(*some, None, meshes, options)
    )
    return measure.show(
        {
            "cloud": name,
            "points": n,
            "elements": len(meshes),
            "triangles": len(meshes.faces),
            "same_as_cpu": True,
            "index_ms": measure.wall_ms(lambda: NearestFaces(meshes, LIMIT), min(repeat, 3)),
            "search_ms": search_ms,
            "points_per_s": 1000 * n / search_ms,
            "device_ms": measure.wall_ms(
                lambda: gpu.run(*there, None, meshes, options), min(repeat, 3)
            ),
            "host_to_host_ms": measure.wall_ms(
                lambda: gpu.run(*here, None, meshes, options), min(repeat, 3)
            ),
            "transfer_ms": measure.wall_ms(
                lambda: [cp.asnumpy(cp.asarray(each)) for each in here], min(repeat, 3)
            ),
        }
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("meshes", type=Path)
    parser.add_argument("--copies", type=int, nargs="+", default=[1, 150])
    parser.add_argument("--points", type=int, nargs="+", default=[10_000_000, 100_000_000])
    parser.add_argument("--check", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    measure.add_arguments(parser)
    arguments = parser.parse_args()
    building = elements(arguments.meshes)
    clouds = [
        figures(
            f"{arguments.meshes.stem} x {n}", copies(building, n), points, arguments.repeat,
            arguments.check,
        )
        for n in arguments.copies
        for points in arguments.points
    ]  # fmt: skip
    report = measure.header("deviation", arguments.commit, clouds=clouds)
    measure.write(arguments.out, "deviation", report)


if __name__ == "__main__":
    main()
