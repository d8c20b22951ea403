"""`direction` and `plane_elements` on the CPU and the GPU of one machine; JSON files.

    python benchmarks/rates_gpu.py --out FOLDER [--commit HASH] [--repeat N]
        [--elements N ...] [--points N ...]

Writes direction.json and plane_elements.json, of which benchmarks/rates.py makes the rates of the
planner. CPU and GPU take turns, and give the same. Both kernels of `direction` start from meshes on
the host, those of `plane_elements` match the planes there: with arrays that are on the device, the
GPU's would first copy them to the host, so that the calls from host to host are the faster ones.
"""

import argparse

import cupy as cp
import measure
import numpy as np
from direction import building
from plane_elements import scan, walls

from spatialq.data.meshes import Meshes

KINDS = {"relaxed": {}, "strict": {"strict": True}}


def figures(name, size, work, on_cpu, on_gpu, on_device, repeat):
    """Figures of one input, as rates.py wants them.

    Parameters
    ----------
    name : str
    size : int
        Rows: points, or triangles where there are no points.
    work : Work
        Of the function, for so many rows.
    on_cpu, on_gpu, on_device : callable
        The call on the CPU, on the GPU with arrays of the host, and with arrays of the GPU.
    repeat : int
    """
    measure.assert_same(on_gpu(), on_cpu())
    tasks = {"cpu": on_cpu, "host to host": on_gpu, "device": on_device}
    timed = {name: 1e3 * each.median for name, each in measure.in_turns(tasks, repeat).items()}
    return measure.show({
        "cloud": name,
        "points": size,
        "bytes": work.bytes_in + work.bytes_out,
        "steps": work.steps,
        "same_as_cpu": True,
        "cpu_ms": timed["cpu"],
        "device_ms": timed["device"],
        "host_to_host_ms": timed["host to host"],
        "cpu_over_host_to_host": timed["cpu"] / timed["host to host"],
        "kernels_ms": measure.by_kernel(on_gpu),
    })  # fmt: skip


def of_direction(elements, repeat):
    """Figures of `direction` for made-up buildings of several sizes."""
    on_cpu, on_gpu = (measure.kernel("direction", device) for device in ("cpu", "gpu"))
    clouds = []
    for n in elements:
        meshes = Meshes.of(building(n))
        arrays = meshes.vertices, meshes.faces, meshes.vertex_starts, meshes.face_starts
        there = Meshes(*map(cp.asarray, arrays))
        for kind, chosen in KINDS.items():
            options = measure.options_of("direction", **chosen)
            found = figures(
                f"{n} elements, {kind}", len(meshes.faces),
                measure.work_of("direction", len(meshes.faces), options),
                lambda: on_cpu(meshes, options=options),  # noqa: B023
                lambda: on_gpu(meshes, options=options),  # noqa: B023
                lambda: on_gpu(there, options=options),  # noqa: B023
                repeat,
            )  # fmt: skip
            clouds.append(found)
    small = Meshes.of(building(2))
    call = measure.wall_ms(lambda: on_gpu(small, options=measure.options_of("direction")))
    return {"small_call_ms": call, "clouds": clouds}


def of_plane_elements(sizes, repeat):
    """Figures of `plane_elements` for scans of a building of several sizes."""
    on_cpu, on_gpu = (measure.kernel("plane_elements", device) for device in ("cpu", "gpu"))
    options, elements = measure.options_of("plane_elements"), walls(4, 3, 2)

    def columns(n):
        (x, y, z), _ = scan(elements, n, np.random.default_rng(1))
        return {"x": x, "y": y, "z": z, "point_id": np.arange(n)}

    clouds = []
    for n in sizes:
        here = columns(n)
        there = {name: cp.asarray(values) for name, values in here.items()}
        found = figures(
            f"scan of {len(elements)} walls and slabs", n,
            measure.work_of("plane_elements", n, options),
            lambda: on_cpu(**here, elements=elements, options=options),  # noqa: B023
            lambda: on_gpu(**here, elements=elements, options=options),  # noqa: B023
            lambda: on_gpu(**there, elements=elements, options=options),  # noqa: B023
            repeat,
        )  # fmt: skip
        clouds.append(found)
    small = columns(100)
    call = measure.wall_ms(lambda: on_gpu(**small, elements=elements, options=options))
    return {"small_call_ms": call, "clouds": clouds}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    measure.add_arguments(parser)
    parser.add_argument("--elements", type=int, nargs="+", default=[200, 2000, 10_000])
    parser.add_argument("--points", type=int, nargs="+", default=[100_000, 1_000_000, 20_000_000])
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    reports = {
        "direction": lambda: of_direction(arguments.elements, arguments.repeat),
        "plane_elements": lambda: of_plane_elements(arguments.points, arguments.repeat),
    }
    for function, report in reports.items():
        measure.write(
            arguments.out, function, measure.header(function, arguments.commit, **report())
        )


if __name__ == "__main__":
    main()
