"""`intersects_with` and `distance` on the GPU: parity with the CPU, time by kernel; JSON files.

    python benchmarks/elements_gpu.py MESHES --commit HASH [--copies 1 10 50 200] [--out FOLDER]

MESHES are those of a model: an IFC file, or what benchmarks/buildings.py wrote. They are copied on
a grid; pairs are all pairs with a common interior, all pairs that touch as well, and all pairs
within 50 mm. `--cpu-copies` says up to how many copies the CPU computes them, too, in
SPATIALQ_THREADS threads.
"""

import argparse
from pathlib import Path

import cupy as cp
import measure
from buildings import copies, elements
from spatialq.udfs import distance, intersects_with
from spatialq.udfs.distance import cpu as distance_cpu
from spatialq.udfs.distance import gpu as distance_gpu
from spatialq.udfs.intersects_with import cpu, gpu

from spatialq.data.meshes import Meshes

FUNCTIONS = {
    "intersects_with": (cpu, gpu, {
        "common interior": intersects_with.Options(),
        "touching, too": intersects_with.Options(relations=True),
    }),
    "distance": (distance_cpu, distance_gpu, {
        "within 50 mm": distance.Options(max_distance=0.05),
    }),
}  # fmt: skip


def figures(kernels, name, meshes, options, repeat, with_cpu):
    on_cpu, on_gpu = kernels
    arrays = meshes.vertices, meshes.faces, meshes.vertex_starts, meshes.face_starts
    there = Meshes(*map(cp.asarray, arrays))

    def resident():
        return on_gpu.run(there, options=options)

    result = resident()
    device_ms = measure.wall_ms(resident, repeat)
    host_ms = measure.wall_ms(lambda: on_gpu.run(meshes, options=options), min(repeat, 3))
    report = {
        "cloud": name,
        "points": len(meshes.faces),
        "elements": len(meshes),
        "pairs": len(result["a"]),
        "bytes": sum(array.nbytes for array in arrays),
        "device_ms": device_ms,
        "host_to_host_ms": host_ms,
        "kernels_ms": measure.by_kernel(resident),
    }
    if with_cpu:
        _, cpu_ms, expected = measure.first_and_next(lambda: on_cpu.run(meshes, options=options))
        measure.assert_same(result, expected)
        report |= {
            "same_as_cpu": True,
            "cpu_ms": cpu_ms,
            "cpu_over_device": cpu_ms / device_ms,
            "cpu_over_host_to_host": cpu_ms / host_ms,
        }
    return measure.show(report)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("meshes", type=Path)
    parser.add_argument("--copies", type=int, nargs="+", default=[1, 10, 50, 200])
    parser.add_argument("--cpu-copies", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=5)
    measure.add_arguments(parser)
    arguments = parser.parse_args()
    building = elements(arguments.meshes)
    for function, (on_cpu, on_gpu, questions) in FUNCTIONS.items():
        small = Meshes.of([(building.vertices[:3], [[0, 1, 2]])] * 2)
        options = next(iter(questions.values()))
        small_call_ms = measure.wall_ms(
            lambda: on_gpu.run(small, options=options),  # noqa: B023
            arguments.repeat,
        )
        clouds = [
            figures(
                (on_cpu, on_gpu), f"{arguments.meshes.stem} x {n}, {question}",
                copies(building, n), options, arguments.repeat, n <= arguments.cpu_copies,
            )
            for n in arguments.copies
            for question, options in questions.items()
        ]  # fmt: skip
        report = measure.header(
            function, arguments.commit, small_call_ms=small_call_ms, clouds=clouds
        )
        measure.write(arguments.out, report["function"], report)


if __name__ == "__main__":
    main()
