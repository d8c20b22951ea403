"""How long the polygons of points take, against shapely's tree of boxes with prepared polygons.

    python benchmarks/points_within.py [--points 20000000] [--polygons 10000] [--repeat N]

Polygons of 50 corners on a regular grid, and points anywhere: in the order of scan lines, as in
files, and in none. Both answer the same points, shapely the first 500,000 of them; ours is the
whole call, which looks up the index that was made before. Times are of processors, so that other
work counts less. "points/s" are those of one core.
"""

import argparse
import time

import numpy as np
import shapely
from spatialq.udfs.points_within import Options, cpu

from spatialq.data.polygons import Polygons
from spatialq.geometry.polygon_index import PolygonIndex

FEW = 500_000
SIDE = 10.0
"""Of the square around a polygon."""
CORNER = 652_000.0, 5_606_000.0
LINE = 10_000
"""Points of a scan line."""


def in_scan_lines(n, side, rng):
    """Make points that are sorted by x in lines from south to north, as in files."""
    place = np.arange(n)
    x = (place % LINE + rng.uniform(size=n)) / LINE
    y = (place // LINE + rng.uniform(size=n)) / -(-n // LINE)
    return [start + side * share for start, share in zip(CORNER, (x, y), strict=True)]


def in_no_order(n, side, rng):
    return [start + rng.uniform(0, side, n) for start in CORNER]


ORDERS = {"scan lines": in_scan_lines, "no order": in_no_order}


def polygons(count, rng):
    columns = int(np.ceil(np.sqrt(count)))
    angle = np.sort(rng.uniform(0, 2 * np.pi, (count, 50)), axis=1)
    radius = rng.uniform(0.35, 0.49, (count, 50)) * SIDE
    k = np.arange(count)[:, None]
    x = CORNER[0] + (k % columns + 0.5) * SIDE + radius * np.cos(angle)
    y = CORNER[1] + (k // columns + 0.5) * SIDE + radius * np.sin(angle)
    return shapely.polygons(np.stack([x, y], axis=-1)), columns * SIDE


def best(repeat, work):
    times = []
    for _ in range(repeat):
        start = time.process_time()
        found = work()
        times.append(time.process_time() - start)
    return min(times), found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=20_000_000)
    parser.add_argument("--polygons", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    rng = np.random.default_rng(1)
    shapes, side = polygons(given.polygons, rng)
    wkb = shapely.to_wkb(shapes, byte_order=1, flavor="iso").tolist()
    plots = Polygons.of(wkb)
    PolygonIndex.of(wkb[:2])  # compiles
    seconds, _ = best(given.repeat, lambda: PolygonIndex.of(wkb))
    print(f"index of {given.polygons} polygons: {seconds:.2f} s")
    for order, points in ORDERS.items():
        px, py = points(given.points, side, rng)

        def call(px=px, py=py):
            return cpu.run(px, py, None, plots, Options())

        call()  # compiles, and makes the index
        ours, found = best(given.repeat, call)
        few = shapely.points(px[:FEW], py[:FEW])

        def rival(few=few):
            return shapely.STRtree(shapes).query(few, predicate="covered_by")

        theirs, expected = best(given.repeat, rival)
        row, place = found["point_id"], found["polygon_id"]
        known = row < FEW
        assert set(zip(*expected.tolist(), strict=True)) == set(
            zip(row[known].tolist(), place[known].tolist(), strict=True)
        )
        speeds = given.points / ours, min(FEW, given.points) / theirs
        print(
            f"{order}: {speeds[0]:,.0f} points/s, shapely {speeds[1]:,.0f}; "
            f"{speeds[0] / speeds[1]:.1f} times as many"
        )


if __name__ == "__main__":
    main()
