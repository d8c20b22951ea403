"""`points_within` on the GPU: parity with the CPU, time by kernel, throughput; a JSON file.

    python benchmarks/points_within_gpu.py --commit HASH [--points 100000000] [--polygons 10000]
        [--check 10000000] [--out FOLDER]

The polygons of `points_within.py`, and points in the order of scan lines and in none. "index_ms" is
the index of the polygons, which the host makes once for calls with equal ones; "search_ms" the
search alone, of points that are on the device, with the index there; "points_per_s" follows from
it. "device_ms" is a call with points on the device whose result stays there, "host_to_host_ms" one
with points and result on the host; both look up the index and copy it there. The pairs of `--check`
points are compared with the CPU's, bit by bit, and the CPU is timed on these.
"""

import argparse

import cupy as cp
import measure
import numpy as np
import shapely
from points_within import ORDERS, polygons
from spatialq.udfs.points_within import Options, cpu, gpu

from spatialq.data.polygons import Polygons
from spatialq.geometry.polygon_index import PolygonIndex
from spatialq.runtime import cuda


def figures(order, here, given, repeat, check):
    options = Options()
    n, there = len(here[0]), [cp.asarray(each) for each in here]
    some = [each[:check] for each in here]
    measure.assert_same(gpu.run(*some, None, given, options), cpu.run(*some, None, given, options))
    device = cuda.device()
    with device.use():
        search = gpu._Search(device, PolygonIndex.kept(given, options.function))
        search_ms = measure.device_ms(lambda: search.pairs(*there, None, 0), repeat)
        by_kernel = measure.by_kernel(lambda: search.pairs(*there, None, 0))
        pairs = len(search.pairs(*there, None, 0)[0])
    cpu_ms = measure.wall_ms(lambda: cpu.run(*some, None, given, options), min(repeat, 3))

    def wall_ms(cloud):
        return measure.wall_ms(lambda: gpu.run(*cloud, None, given, options), min(repeat, 3))

    device_ms, host_to_host_ms = wall_ms(there), wall_ms(here)
    return measure.show(
        {
            "order": order,
            "points": n,
            "polygons": len(given),
            "pairs": pairs,
            "same_as_cpu": True,
            "search_ms": search_ms,
            "points_per_s": 1000 * n / search_ms,
            "kernels_ms": by_kernel,
            "device_ms": device_ms,
            "device_points_per_s": 1000 * n / device_ms,
            "host_to_host_ms": host_to_host_ms,
            "host_to_host_points_per_s": 1000 * n / host_to_host_ms,
            "cpu_points_per_s": 1000 * len(some[0]) / cpu_ms,
        }
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--points", type=int, default=100_000_000)
    parser.add_argument("--polygons", type=int, default=10_000)
    parser.add_argument("--check", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    measure.add_arguments(parser)
    arguments = parser.parse_args()
    rng = np.random.default_rng(1)
    shapes, side = polygons(arguments.polygons, rng)
    wkb = shapely.to_wkb(shapes, byte_order=1, flavor="iso").tolist()
    index_ms = measure.wall_ms(lambda: PolygonIndex.of(wkb), min(arguments.repeat, 3))
    given = Polygons.of(wkb)
    clouds = []
    for order, points in ORDERS.items():
        here = points(arguments.points, side, rng)
        clouds.append(figures(order, here, given, arguments.repeat, arguments.check))
    report = measure.header("points_within", arguments.commit, index_ms=index_ms, clouds=clouds)
    measure.write(arguments.out, "points_within", report)


if __name__ == "__main__":
    main()
