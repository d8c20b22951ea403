"""How long the polygons of points take, against shapely's tree of boxes with prepared polygons.

    python benchmarks/points_within.py [--points 20000000] [--polygons 10000] [--repeat N]

Polygons of 50 corners on a regular grid, and points anywhere: in the order of scan lines, as in
files, and in none. Both answer the same points, shapely the first 500,000 of them; times are of
processors, so that other work counts less. "points/s" are those of one core.
"""

import argparse
import time

import numpy as np
import shapely

from spatialq.geometry.polygon_index import PolygonIndex

FEW = 500_000
SIDE = 10.0
"""Of the square around a polygon."""


def polygons(count, rng):
    columns = int(np.ceil(np.sqrt(count)))
    angle = np.sort(rng.uniform(0, 2 * np.pi, (count, 50)), axis=1)
    radius = rng.uniform(0.35, 0.49, (count, 50)) * SIDE
    k = np.arange(count)[:, None]
    x = 652_000 + (k % columns + 0.5) * SIDE + radius * np.cos(angle)
    y = 5_606_000 + (k // columns + 0.5) * SIDE + radius * np.sin(angle)
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
    x, y = (start + rng.uniform(0, side, given.points) for start in (652_000.0, 5_606_000.0))
    wkb = shapely.to_wkb(shapes, byte_order=1, flavor="iso").tolist()
    PolygonIndex.of(wkb[:2]).find(x[:9], y[:9])  # compiles
    seconds, index = best(given.repeat, lambda: PolygonIndex.of(wkb))
    print(f"index of {given.polygons} polygons: {seconds:.2f} s")
    lines = np.lexsort((x, np.floor(y)))
    for order, rows in (("scan lines", lines), ("no order", np.arange(given.points))):
        px, py = x[rows], y[rows]
        ours, (row, place) = best(given.repeat, lambda px=px, py=py: index.find(px, py))
        few = shapely.points(px[:FEW], py[:FEW])

        def rival(few=few):
            return shapely.STRtree(shapes).query(few, predicate="covered_by")

        theirs, expected = best(given.repeat, rival)
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
