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
from plane_elements import scan
from spatialq.udfs import direction, plane_elements

from spatialq.data.meshes import Meshes

KINDS = {"relaxed": {}, "strict": {"strict": True}}
CORNERS = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)], np.float64)
FACES = np.array([
    (0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1),
    (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3),
])  # fmt: skip
BAY, HEIGHT, THICKNESS = (6.0, 5.0), 3.0, 0.2
"""Metres: of a room along x and y, of a storey, of a wall or slab."""


def rooms(columns, rows, storeys):
    """A building of walls and slabs, each a box, as meshes."""
    made = []

    def add(low, high):
        low, high = np.array(low), np.array(high)
        made.append((low + CORNERS * (high - low), FACES))

    (a, b), t = BAY, THICKNESS
    for storey in range(storeys):
        bottom = storey * HEIGHT
        top = bottom + HEIGHT - t
        for i in range(columns):
            for j in range(rows):
                add((i * a, j * b, top), ((i + 1) * a, (j + 1) * b, top + t))
        for i in range(columns + 1):
            for j in range(rows):
                add((i * a, j * b + t, bottom), (i * a + t, (j + 1) * b, top))
        for i in range(columns):
            for j in range(rows + 1):
                add((i * a + t, j * b, bottom), ((i + 1) * a, j * b + t, top))
    return Meshes.of(made)


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
    on_cpu, on_gpu = (direction.UDF.kernel(device) for device in ("cpu", "gpu"))
    clouds = []
    for n in elements:
        meshes = Meshes.of(building(n))
        arrays = meshes.vertices, meshes.faces, meshes.vertex_starts, meshes.face_starts
        there = Meshes(*map(cp.asarray, arrays))
        for kind, chosen in KINDS.items():
            options = direction.Options(**chosen)
            found = figures(
                f"{n} elements, {kind}", len(meshes.faces),
                direction.UDF.work(len(meshes.faces), options),
                lambda: on_cpu(meshes, options=options),  # noqa: B023
                lambda: on_gpu(meshes, options=options),  # noqa: B023
                lambda: on_gpu(there, options=options),  # noqa: B023
                repeat,
            )  # fmt: skip
            clouds.append(found)
    small = Meshes.of(building(2))
    call = measure.wall_ms(lambda: on_gpu(small, options=direction.Options()))
    return {"small_call_ms": call, "clouds": clouds}


def of_plane_elements(sizes, repeat):
    """Figures of `plane_elements` for scans of a building of several sizes."""
    on_cpu, on_gpu = (plane_elements.UDF.kernel(device) for device in ("cpu", "gpu"))
    options, elements = plane_elements.Options(), rooms(4, 3, 2)

    def columns(n):
        (x, y, z), _ = scan(elements, n, np.random.default_rng(1))
        return {"x": x, "y": y, "z": z, "point_id": np.arange(n)}

    clouds = []
    for n in sizes:
        here = columns(n)
        there = {name: cp.asarray(values) for name, values in here.items()}
        found = figures(
            f"scan of {len(elements)} walls and slabs", n, plane_elements.UDF.work(n, options),
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
        measure.write(arguments.out, measure.header(function, arguments.commit, **report()))


if __name__ == "__main__":
    main()
