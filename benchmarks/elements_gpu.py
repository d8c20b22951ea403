"""`intersects_with` and `distance` on the GPU: parity with the CPU, time by kernel; JSON files.

    python benchmarks/elements_gpu.py MESHES --commit HASH [--copies 1 10 50 200] [--json FOLDER]

MESHES are those of a model: an IFC file, or what benchmarks/buildings.py wrote. They are copied on
a grid; pairs are all pairs with a common interior, all pairs that touch as well, and all pairs
within 50 mm. `--cpu-copies` says up to how many copies the CPU computes them, too, in
SPATIALQ_THREADS threads.
"""

import argparse
import json
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path

import cupy as cp
import numpy as np
from buildings import copies, elements
from spatialq.udfs import distance, intersects_with
from spatialq.udfs.distance import cpu as distance_cpu
from spatialq.udfs.distance import gpu as distance_gpu
from spatialq.udfs.intersects_with import cpu, gpu

from spatialq.data.meshes import Meshes
from spatialq.runtime import cuda
from spatialq.runtime.threads import n_threads

FUNCTIONS = {
    "intersects_with": (cpu, gpu, {
        "common interior": intersects_with.Options(),
        "touching, too": intersects_with.Options(relations=True),
    }),
    "distance": (distance_cpu, distance_gpu, {
        "within 50 mm": distance.Options(max_distance=0.05),
    }),
}  # fmt: skip


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


def kernels_ms(work):
    """Milliseconds in each kernel, in a run that waits after every one."""
    spent = {}
    launch = cuda.Device.launch

    def timed(device, source, name, *arguments):
        events = [cp.cuda.Event() for _ in range(2)]
        events[0].record()
        launch(device, source, name, *arguments)
        events[1].record()
        events[1].synchronize()
        spent[name] = spent.get(name, 0.0) + cp.cuda.get_elapsed_time(*events)

    cuda.Device.launch = timed
    work()
    cuda.Device.launch = launch
    return spent


def measure(kernels, name, meshes, options, repeat, with_cpu):
    on_cpu, on_gpu = kernels
    arrays = meshes.vertices, meshes.faces, meshes.vertex_starts, meshes.face_starts
    there = Meshes(*map(cp.asarray, arrays))

    def resident():
        return on_gpu.run(there, options=options)

    result = resident()
    device = wall(resident, repeat)
    host = wall(lambda: on_gpu.run(meshes, options=options), min(repeat, 3))
    report = {
        "cloud": name,
        "points": len(meshes.faces),
        "elements": len(meshes),
        "pairs": len(result["a"]),
        "bytes": sum(array.nbytes for array in arrays),
        "device_ms": 1e3 * device,
        "host_to_host_ms": 1e3 * host,
        "kernels_ms": kernels_ms(resident),
    }
    if with_cpu:
        on_cpu.run(meshes, options=options)
        clock = time.perf_counter()
        expected = on_cpu.run(meshes, options=options)
        seconds = time.perf_counter() - clock
        for column, values in expected.items():
            np.testing.assert_array_equal(cp.asnumpy(result[column]), values, err_msg=column)
        report |= {
            "same_as_cpu": True,
            "cpu_ms": 1e3 * seconds,
            "cpu_over_device": seconds / device,
            "cpu_over_host_to_host": seconds / host,
        }
    print(json.dumps(report, indent=1), flush=True)
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("meshes", type=Path)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--copies", type=int, nargs="+", default=[1, 10, 50, 200])
    parser.add_argument("--cpu-copies", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    building = elements(arguments.meshes)
    for function, (on_cpu, on_gpu, questions) in FUNCTIONS.items():
        small = Meshes.of([(building.vertices[:3], [[0, 1, 2]])] * 2)
        options = next(iter(questions.values()))
        report = {
            "function": function,
            "device": cp.cuda.runtime.getDeviceProperties(0)["name"].decode(),
            "cupy": cp.__version__,
            "commit": arguments.commit,
            "date": datetime.now(UTC).date().isoformat(),
            "cpu_threads": n_threads(),
            "small_call_ms": 1e3
            * wall(lambda: on_gpu.run(small, options=options), arguments.repeat),  # noqa: B023
            "clouds": [
                measure(
                    (on_cpu, on_gpu), f"{arguments.meshes.stem} x {n}, {question}",
                    copies(building, n), options, arguments.repeat, n <= arguments.cpu_copies,
                )
                for n in arguments.copies
                for question, options in questions.items()
            ],
        }  # fmt: skip
        if arguments.json:
            path = arguments.json / f"{function}.json"
            path.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
