"""Tiles on 1, 2 and 4 GPUs, and jobs of 1 to 32 workers; one JSON file.

python benchmarks/gpus.py --commit HASH [--out FOLDER] [--points N] [--elements N] [--rounds N]
                          [--parts call tiles gpu-jobs cpu-jobs] [--gpus K ...] [--workers W ...]
                          [--methods F ...] [--job-points N] [--cells N]

`call` is one call that several GPUs share: tiles of pairs of elements, strips of a sparse cloud.
`tiles` are 8 calls of one function, on clouds, grids or elements in main memory, which the GPUs of
one process take in turn; `pops_features`, of which a single call keeps to one GPU, shows there what
sharing its bands would give at most. With one GPU, both are also measured as if it were two
('twice'). `gpu-jobs` run the functions that are methods of jobs on 16 tiles in
files, with the local executor: as many workers as GPUs, and twice as many. `cpu-jobs` do the same
on the CPU, with one thread for each worker. Times are medians in seconds, of jobs with the start of
their workers; all results are compared with those of one GPU or worker. It needs neither a network
nor Ray.
"""

import argparse
import os
import tempfile
import time
from itertools import pairwise
from math import isqrt
from pathlib import Path
from statistics import median

import laspy
import measure
import numpy as np
from clouds import make_cloud
from pops_features import terrain

import spatialq
from spatialq import cluster
from spatialq.cluster.methods import methods
from spatialq.data.columns import Text
from spatialq.data.meshes import Meshes
from spatialq.planner import devices
from spatialq.runtime import cuda, gpus

TILES = 8
FILES = 16
PARTS = "call", "tiles", "gpu-jobs", "cpu-jobs"
OF_POINTS = "owm_ground", "classify_ground", "ground_surface", "detect_planes"
OF_ELEMENTS = "intersects_with", "distance"
OF_GRIDS = ("pops_features",)
AROUND, UP = 32, 16  # corners of a sphere


def spheres(n, seed):
    """Spheres in a cube, of which each meets some others."""
    rng = np.random.default_rng(seed)
    longitude, latitude = np.meshgrid(
        np.arange(AROUND) * 2 * np.pi / AROUND, (np.arange(UP) + 0.5) * np.pi / UP
    )
    ring = np.sin(latitude)
    sphere = np.stack([ring * np.cos(longitude), ring * np.sin(longitude), np.cos(latitude)], -1)
    at = np.arange(AROUND * UP).reshape(UP, AROUND)
    low, high = at[:-1], at[1:]
    faces = [
        np.stack([low, high, np.roll(low, -1, 1)], -1),
        np.stack([np.roll(low, -1, 1), high, np.roll(high, -1, 1)], -1),
    ]
    caps = [[(at[k, 0], *pair) for pair in _fan(at[k], k)] for k in (0, -1)]
    faces = np.concatenate([*(each.reshape(-1, 3) for each in faces), *caps]).astype(np.int32)
    centres = rng.uniform(0, 1.2 * n ** (1 / 3), (n, 3))
    return Meshes.of([(sphere.reshape(-1, 3) * 0.6 + centre, faces) for centre in centres])


def _fan(ring, k):
    pairs = list(pairwise(ring[1:]))
    return pairs if k == 0 else [pair[::-1] for pair in pairs]


def numbers_of(count):
    """So many GPUs; 'twice' is the first one, used by two threads."""
    return (0, 0) if count == "twice" else tuple(range(count))


def in_turns(name, what, work, wanted, rounds, **figures):
    """Time work on each number of GPUs, and compare what it gives with that of one."""

    def on(count):
        with cuda.on(*numbers_of(count)):
            return work()

    expected = on(wanted[0])
    for count in wanted[1:]:
        for found, one in zip(on(count), expected, strict=True):
            measure.assert_same(found, one)
    times = measure.in_turns({k: lambda k=k: on(k) for k in wanted}, rounds, warm_up=False)
    rows = [
        {
            "gpus": k,
            "seconds": times[k].median,
            "times_as_fast": times[wanted[0]].median / times[k].median,
        }
        for k in wanted
    ]
    return measure.show(
        {"what": what, "function": name, **figures, "same_rows": True, "runs": rows}
    )


def one_call(arguments, wanted):
    """One call in so many tiles that each of 4 GPUs has two."""
    found = []
    meshes = spheres(arguments.elements, 1)
    for name in OF_ELEMENTS:
        options = options_for(name)
        kernel = measure.kernel(name, "gpu")

        def call(kernel=kernel, options=options):
            return [kernel(a=meshes, b=None, options=options, tiles=TILES)]

        whole = measure.in_turns(
            {"whole": lambda k=kernel, o=options: k(a=meshes, b=None, options=o)}, arguments.rounds
        )
        found.append(
            in_turns(
                name, "call", call, wanted, arguments.rounds, tiles=TILES,
                triangles=len(meshes.faces), whole_seconds=whole["whole"].median,
            )
        )  # fmt: skip
    from spatialq.udfs.owm_ground import gpu, tiled

    cloud = (*make_cloud("sparse", n=arguments.points), None)
    options = measure.options_of("owm_ground")
    found.append(
        in_turns(
            "owm_ground", "call", lambda: [tiled.in_tiles(gpu.run, cloud, options, TILES)], wanted,
            arguments.rounds, tiles=TILES, points=arguments.points,
        )
    )  # fmt: skip
    return found


def options_for(name):
    return measure.options_of(name, **({"max_distance": 0.2} if name == "distance" else {}))


def inputs_of(name, arguments):
    """Make the inputs of 8 calls of a function."""
    if name in OF_ELEMENTS:
        count = max(64, arguments.elements // TILES)
        return [{"a": spheres(count, k), "b": None} for k in range(TILES)]
    if name in OF_GRIDS:
        side = isqrt(arguments.cells // TILES)
        return [{"grid": terrain(side, side, seed=k)} for k in range(TILES)]
    clouds = (make_cloud("dense", n=arguments.points // TILES, seed=k) for k in range(TILES))
    return [{**dict(zip("xyz", cloud, strict=True)), "point_id": None} for cloud in clouds]


def rows_of_input(x=(), a=None, grid=None, **_):
    """Count points, triangles or cells."""
    if grid is not None:
        return grid.z.size
    return len(x) if a is None else len(a.faces)


def codes_of(column):
    """Give the codes of a column of texts; of each function, the names are the same."""
    return column.codes if isinstance(column, Text) else column


def tiles(arguments, wanted):
    """8 calls of each function, on the GPUs of this process."""
    found = []
    for name in (*OF_POINTS, *OF_ELEMENTS, *OF_GRIDS):
        kernel, options = measure.kernel(name, "gpu"), options_for(name)
        inputs = inputs_of(name, arguments)

        def work(kernel=kernel, options=options, inputs=inputs):
            tables = gpus.each(lambda given: kernel(**given, options=options), inputs)
            return [{column: codes_of(each) for column, each in one.items()} for one in tables]

        rows = rows_of_input(**inputs[0])
        found.append(in_turns(name, "tiles", work, wanted, arguments.rounds, rows_of_tile=rows))
    return found


def write_survey(folder, points):
    """Write a cloud as 4 by 4 LAZ files."""
    x, y, z = make_cloud("dense", n=points)
    columns, rows = (np.minimum(4 * (v - v.min()) / np.ptp(v), 3).astype(int) for v in (x, y))
    for k in range(FILES):
        chosen = (columns == k % 4) & (rows == k // 4)
        header = laspy.LasHeader(version="1.4", point_format=6)
        header.scales, header.offsets = [0.001] * 3, [x.min(), y.min(), 0]
        file = laspy.LasData(header)
        file.x, file.y, file.z = x[chosen], y[chosen], z[chosen]
        file.classification = np.full(np.count_nonzero(chosen), 2, np.uint8)
        file.write(folder / f"tile_{k:02}.laz")


def rows_of(folder):
    with spatialq.connect() as con:
        cluster.table(con, folder, "found")
        return con.sql("SELECT count(*), bit_xor(hash(found)) FROM found").fetchall()[0]


def jobs(arguments, device, workers, methods):
    """Jobs of each method of points, with so many workers."""
    found = []
    with tempfile.TemporaryDirectory() as base:
        tiles = Path(base) / "tiles"
        tiles.mkdir()
        write_survey(tiles, arguments.job_points)
        for name in arguments.methods or methods:
            expected, runs = None, []
            for count in workers:
                seconds = []
                for k in range(arguments.job_rounds):
                    folder, clock = Path(base) / f"{name}_{count}_{k}", time.perf_counter()
                    cluster.run(name, tiles, folder, device=device, workers=count, unit=1.0)
                    seconds.append(time.perf_counter() - clock)
                    rows = rows_of(folder)
                    assert expected in (None, rows), (name, count)
                    expected = rows
                runs.append({"workers": count, "seconds": median(seconds)})
            for run in runs:
                run["times_as_fast"] = runs[0]["seconds"] / run["seconds"]
            found.append(
                measure.show(
                    {
                        "what": f"{device}-jobs", "function": name, "points": arguments.job_points,
                        "files": FILES, "rows": expected[0], "same_rows": True, "runs": runs,
                    }
                )
            )  # fmt: skip
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    measure.add_arguments(parser)
    parser.add_argument("--points", type=int, default=16_000_000)
    parser.add_argument("--cells", type=int, default=64_000_000)
    parser.add_argument("--elements", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--job-rounds", type=int, default=1)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--gpus", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2, 4, 8, 16, 32])
    parser.add_argument("--job-points", type=int, default=8_000_000)
    parser.add_argument("--methods", nargs="+", choices=sorted(methods()), help="for jobs")
    arguments = parser.parse_args()
    there = [each for each in devices.gpus() if not each.problem]
    counts = [k for k in arguments.gpus if k <= len(there)]
    wanted = [*counts, "twice"] if counts == [1] else counts
    found = []
    if counts and "call" in arguments.parts:
        found += one_call(arguments, wanted)
    if counts and "tiles" in arguments.parts:
        found += tiles(arguments, wanted)
    if counts and "gpu-jobs" in arguments.parts:
        workers = sorted({*counts, *(2 * k for k in counts), 4})
        found += jobs(arguments, "gpu", workers, ["owm_ground", "classify_ground"])
    if "cpu-jobs" in arguments.parts:
        os.environ["SPATIALQ_THREADS"] = "1"
        most = len(os.sched_getaffinity(0))
        workers = [k for k in arguments.workers if k <= most]
        found += jobs(arguments, "cpu", workers, ["owm_ground"])
    if not found:
        parser.exit(1, f"gpus: {' '.join(arguments.parts)} need a GPU, and there is none\n")
    figures = {"gpus": [each.name for each in there], "cores": os.cpu_count(), "runs": found}
    header = measure.header if there else (lambda name, commit, **more: {"function": name, **more})
    measure.write(arguments.out, "gpus", header("gpus", arguments.commit, **figures))


if __name__ == "__main__":
    main()
