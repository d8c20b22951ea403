"""Points and polygons; a case: x and y, polygons of shapely, options."""

import numpy as np
import shapely

from spatialq.data.polygons import Polygons

RNG = np.random.default_rng(11)
GRID = np.array([(x, y) for x in range(12) for y in range(12)], float)
ROUND = shapely.Point(5, 5).buffer(4)
RING = ROUND.difference(shapely.Point(5, 5).buffer(2))
PLOTS = [shapely.box(x, y, x + 2, y + 2) for x in range(0, 10, 2) for y in range(0, 10, 2)]
STAR = shapely.Polygon([
    ((3 + 2 * (k % 2)) * np.cos(k * np.pi / 7), (3 + 2 * (k % 2)) * np.sin(k * np.pi / 7))
    for k in range(14)
])  # fmt: skip
UTM = np.array([652_000.0, 5_606_000.0])
SLIVER = shapely.Polygon([(0, 0), (1000, 0), (500, 1e-20)])
NESTED = [shapely.box(-k, -k, k, k) for k in range(1, 9)]
NESTED += [shapely.box(-8, 8, -6, 10), shapely.box(8, 8, 9, 9), *NESTED[2:4]]
SLANTED = [shapely.Polygon(RNG.uniform(-1, 1, (3, 2))) for _ in range(20)]
ZIGZAG = shapely.Polygon(
    [(y % 2, y) for y in range(8)] + [(4 + y % 2, y) for y in range(7, -1, -1)]
)


def on_edges(shapes, step=0.37):
    """Points on edges as far as rounding lets them, the numbers next to those, and the corners."""
    found = []
    for ring in shapely.get_rings(shapely.get_parts(shapes)):
        corners = shapely.get_coordinates(ring)
        on = corners[:-1] + step * np.diff(corners, axis=0)
        found += [corners, on, np.nextafter(on, [0, 0]), np.nextafter(on, [0, 1e9])]
    return np.vstack(found)


CASES = {
    "corners and edges": (GRID, [shapely.box(2, 3, 7, 9)], {}),
    "plots that share edges": (GRID, PLOTS, {}),
    "a hole and a star": (RNG.uniform(-6, 11, (3000, 2)), [RING, STAR, ROUND], {}),
    "several parts, none, nothing": (
        GRID, [shapely.MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(5, 5, 9, 6)]), None,
               shapely.Polygon()], {},
    ),
    "far from the origin": (UTM + RNG.uniform(0, 12, (2000, 2)),
                            [shapely.affinity.translate(each, *UTM) for each in PLOTS], {}),
    "nested, touching and twice": (np.vstack([GRID - 6, GRID * 1.5 - 9.5]), NESTED, {}),
    "on edges and beside": (on_edges(SLANTED), SLANTED, {}),
    "at the height of corners": (
        np.vstack([np.add(shapely.get_coordinates(ZIGZAG), (x, 0)) for x in (-0.01, 0, 0.01)]),
        [ZIGZAG], {},
    ),
    "points far away": (np.vstack([UTM + GRID, 1e9 + GRID, -1e11 * (GRID + 1)]),
                        [shapely.affinity.translate(RING, *UTM)], {}),
    "lower than a number's last place": (
        np.array([(500, y) for y in (0, 1e-300, 1e-20, 1e-13, 1e-5, 0.3, -0.1)]),
        [SLIVER, shapely.box(0, -500, 1000, 500)], {},
    ),
    "bounds": (GRID, PLOTS, {"bounds": (0.5, 0.5, 6.0, 8.0)}),
    "no polygons": (GRID, [], {}),
    "no points": (np.empty((0, 2)), PLOTS, {}),
}  # fmt: skip


def arguments(case):
    """Look up what the kernel takes, and its options."""
    points, shapes, options = CASES[case]
    wkb = [None if each is None else shapely.to_wkb(each, byte_order=1, flavor="iso")
           for each in shapes]  # fmt: skip
    ids = np.random.default_rng(1).permutation(10 * len(points))[: len(points)]
    x, y = (np.ascontiguousarray(each) for each in points.T)
    return {"x": x, "y": y, "point_id": ids, "polygons": Polygons.of(wkb)}, options
