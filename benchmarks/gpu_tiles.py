"""Calls on the GPU as a whole, and in 4 and 16 tiles: time, memory, parity; one JSON file.

python benchmarks/gpu_tiles.py --commit HASH [--out FOLDER] [--points N] [--functions F ...]

Clouds are in main memory: terrain with buildings and trees (clouds.py) for ground, dense, and
sparse for tiles that are strips; rooms (rooms.py) for planes. Times are medians of three from
arrays to arrays, taken in turns. The memory is the most that arrays take and that CuPy's pool
holds, without the context of the GPU; beside it is what the planner counts with.
"""

import argparse
import gc

import cupy as cp
import measure
import numpy as np
from clouds import make_cloud
from rooms import room

from spatialq.functions.catalogue import catalogue
from spatialq.planner.statistics import size_of

TILES = 1, 4, 16
CLOUDS = {
    "owm_ground": ("dense", "sparse"),
    "classify_ground": ("dense",),
    "ground_surface": ("dense",),
    "plane_points": ("room",),
}


def cloud_of(kind, n):
    """Points in main memory, by name."""
    if kind == "room":
        scene = room(n)
        coordinates = scene.x, scene.y, scene.z
    else:
        coordinates = make_cloud(kind, n=n)
    return dict(zip("xyz", map(np.ascontiguousarray, coordinates), strict=True))


def memory(work):
    """Most bytes of arrays on the GPU during some work, and of the pool that they are in."""
    used, held = [0], [0]
    pool = cp.get_default_memory_pool()

    class Watch(cp.cuda.MemoryHook):
        """Looks at the pool after each allocation: only these make it grow."""

        name = "watch"

        def malloc_postprocess(self, **_):
            used.append(pool.used_bytes())
            held.append(pool.total_bytes())

    gc.collect()
    pool.free_all_blocks()
    with Watch():
        work()
    return {"bytes": int(max(used)), "pool_bytes": int(max(held))}


def counted(function, cloud, options, tiles):
    """Count the work of a call in so many tiles, as the planner does."""
    size, output = size_of(function.inputs, cloud), function.output
    return output.work(size, options) if tiles == 1 else output.work_in_tiles(size, options, tiles)


def figures(name, kind, n, repeat):
    """Figures of a function on n points, by the number of tiles."""
    cloud = cloud_of(kind, n)
    function, options = catalogue()[name], measure.options_of(name)
    kernel, arguments = function.kernel("gpu"), {**cloud, "point_id": None, "options": options}

    def call(tiles):
        return kernel(**arguments, **({"tiles": tiles} if tiles > 1 else {}))

    whole = call(1)
    for tiles in TILES[1:]:
        measure.assert_same(call(tiles), whole)
    times = measure.in_turns({tiles: lambda k=tiles: call(k) for tiles in TILES}, repeat)
    rows = [
        {
            "tiles": tiles,
            "ms": 1e3 * times[tiles].median,
            "of_whole": times[tiles].median / times[1].median,
            **memory(lambda k=tiles: call(k)),
            "counted_bytes": counted(function, cloud, options, tiles).bytes_kernel,
        }
        for tiles in TILES
    ]
    points = len(cloud["x"])
    return measure.show(
        {"function": name, "cloud": kind, "points": points, "same_rows": True, "tiles": rows}
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    measure.add_arguments(parser)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", help="of clouds, instead of those of the function")
    parser.add_argument("--points", type=int, default=20_000_000)
    parser.add_argument("--functions", nargs="+", choices=CLOUDS, default=list(CLOUDS))
    arguments = parser.parse_args()
    calls = [
        figures(f, kind, arguments.points, arguments.repeat)
        for f in arguments.functions
        for kind in arguments.kinds or CLOUDS[f]
    ]
    measure.write(
        arguments.out, "gpu_tiles", measure.header("gpu_tiles", arguments.commit, calls=calls)
    )


if __name__ == "__main__":
    main()
