"""How fast the kernel of `build_lod` is, against the same tree in NumPy and a copy, in one run.

python benchmarks/build_lod.py [CLOUD] [--points N] [--repeat N] [--max-points N]
    [--processor]

CLOUD is a LAS or LAZ file with colours; without one the cloud of lod_cloud.py is taken, in flight
strips. The points are in memory; the time is that of the tree, its voxels and the order of the
points, not of the table. The copy is one of all columns (40 bytes a point) on as many threads. In
NumPy the tree is that of 'average', from one sort by Morton codes of 63 bits. With --processor all
times are those of the processors, all threads together, which other processes disturb less.
"""

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from typing import get_args

import numpy as np
from lod_cloud import cloud
from measure import in_turns
from spatialq.udfs.build_lod import CHANNELS, Options, Strategy, cpu
from spatialq.udfs.build_lod.tree import Cube, Points

from spatialq.runtime.threads import n_threads, spans

BITS = 21  # of an axis in a Morton code


def of_file(path):
    import laspy

    las = laspy.read(path)
    places = [np.ascontiguousarray(las[axis], np.float64) for axis in "xyz"]
    colour = np.column_stack([np.asarray(las[name], np.uint16) for name in CHANNELS])
    return Points(*places, colour, np.arange(len(colour)))


def generated(n):
    records = cloud(n)
    places = [records[:, axis].view(np.float32).astype(np.float64) for axis in range(3)]
    colour = np.zeros((n, 4), np.uint16)
    colour[:, :3] = np.ascontiguousarray(records[:, 3]).view(np.uint8).reshape(n, 4)[:, :3]
    return Points(*places, colour, np.arange(n))


def spread(values):
    """Put two zeros before each of 21 bits."""
    for shift, mask in (
        (32, 0x1F00000000FFFF), (16, 0x1F0000FF0000FF), (8, 0x100F00F00F00F00F),
        (4, 0x10C30C30C30C30C3), (2, 0x1249249249249249),
    ):  # fmt: skip
        values = (values | values << np.uint64(shift)) & np.uint64(mask)
    return values


def in_numpy(points, cube, options):
    """Tree and voxels of 'average': how many nodes and voxels there are."""
    code = np.zeros(len(points.x), np.uint64)
    for axis, low in zip("xyz", (cube.x0, cube.y0, cube.z0), strict=True):
        place = (getattr(points, axis) - low) / cube.size * 2.0**BITS
        place = np.minimum(place, 2.0**BITS - 1).astype(np.uint64)
        code = code << np.uint64(1) | spread(place)
    order = np.argsort(code)
    code = code[order]
    sums = points.colour[order].astype(np.uint64)
    cells, nodes, voxels = np.array([0, len(code)]), 1, 0
    for level in range(BITS):
        starts, counts = cells[:-1], np.diff(cells)
        large = counts > options.max_points
        if not large.any():
            break
        shift = np.uint64(3 * max(BITS - level - (options.grid_size.bit_length() - 1), 0))
        inside = np.repeat(large, counts)
        at = np.flatnonzero(inside)
        fine = code[at] >> shift
        heads = np.flatnonzero(np.append(True, fine[1:] != fine[:-1]))
        mass = np.diff(np.append(heads, len(at)))
        colour = np.add.reduceat(sums[at], heads) // mass[:, None].astype(np.uint64)
        voxels += len(colour)
        child = code >> np.uint64(3 * (BITS - level - 1))
        is_start = np.append(True, child[1:] != child[:-1]) & inside
        is_start[starts] = True
        cells = np.append(np.flatnonzero(is_start), len(code))
        nodes += int((is_start & inside).sum())
    return nodes, voxels


def copy(points, threads):
    columns = [points.x, points.y, points.z, points.colour, points.point_id]
    targets = [np.empty_like(each) for each in columns]

    def run():
        def part(span):
            for source, target in zip(columns, targets, strict=True):
                np.copyto(target[slice(*span)], source[slice(*span)])

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(part, spans(len(points.x), threads)))

    return run


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cloud", nargs="?", help="a LAS or LAZ file with colours")
    parser.add_argument("--points", type=int, default=3_000_000, help="of the generated cloud")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--max-points", type=int, default=Options.max_points)
    parser.add_argument("--processor", action="store_true", help="times of the processors")
    arguments = parser.parse_args()
    clock = time.process_time if arguments.processor else time.perf_counter
    points = of_file(arguments.cloud) if arguments.cloud else generated(arguments.points)
    places = [points.x, points.y, points.z]
    cube = Cube.around([each.min() for each in places], [each.max() for each in places])
    options = {
        strategy: Options(strategy=strategy, max_points=arguments.max_points)
        for strategy in get_args(Strategy)
    }
    calls = {
        strategy: lambda chosen=chosen: cpu.build(points, cube, chosen)
        for strategy, chosen in options.items()
    }
    calls["NumPy"] = lambda: in_numpy(points, cube, options["average"])
    calls["copy"] = copy(points, n_threads())
    timed = in_turns(calls, arguments.repeat)
    best = {name: min(each.seconds(clock)) for name, each in timed.items()}
    n = len(points.x)
    tree = cpu.build(points, cube, options["average"])
    found = in_numpy(points, cube, options["average"])
    assert found == (len(tree.level), len(tree.code)), "NumPy has another tree"
    inner = int((tree.first_child >= 0).sum())
    print(
        f"{n} points, {n_threads()} threads: {len(tree.level)} nodes ({inner} inner), levels to "
        f"{tree.level[-1]}, {len(tree.code) / n:.2f} voxels a point; of all columns' copy "
        f"{40e-9 * n / best['copy']:.1f} GB/s"
    )
    for name, seconds in best.items():
        print(
            f"{name:9} {1e3 * seconds:8.1f} ms {n / seconds / 1e6:7.2f} M points/s "
            f"{seconds / best['copy']:7.1f} copies, NumPy / it {best['NumPy'] / seconds:6.2f}"
        )


if __name__ == "__main__":
    main()
