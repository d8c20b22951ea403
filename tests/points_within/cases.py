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
