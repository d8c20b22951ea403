"""Outlines of triangles against their union by shapely, which is written in another way."""

import numpy as np
import pytest
import shapely
from spatialq.udfs.element_footprints.outline import outline


def union(xy, triangles):
    """The union of the triangles that have an area."""
    parts = shapely.polygons(xy[triangles])
    return shapely.union_all(parts[shapely.area(parts) > 0])


def as_shapely(polygons):
    return shapely.MultiPolygon([shapely.Polygon(ring, holes) for ring, *holes in polygons])


def random_triangles(rng, kind):
    """Some that are anywhere, and some whose corners and edges meet, or nearly do."""
    n = rng.integers(3, 30)
    match kind:
        case "anywhere":
            xy = rng.random((n, 2)) * 10
        case "on a lattice":
            xy = rng.integers(0, 6, (n, 2)).astype(float)
        case "nearly on a lattice":
            xy = rng.integers(0, 4, (n, 2)) + rng.normal(0, 1e-5, (n, 2))
        case "nearly flat":
            xy = np.column_stack([
                rng.random(n) * 50, rng.integers(0, 3, n) + rng.normal(0, 2e-5, n),
            ])  # fmt: skip
        case "turned":
            u, v = rng.integers(0, 5, (2, n))
            xy = np.column_stack([0.8 * u - 0.6 * v, 0.6 * u + 0.8 * v]) + 500
    return xy, rng.integers(0, n, (rng.integers(1, 25), 3))


@pytest.mark.parametrize(
    "kind", ["anywhere", "on a lattice", "nearly on a lattice", "nearly flat", "turned"]
)
def test_the_union_of_random_triangles(kind):
    rng = np.random.default_rng(21)
    for _ in range(40):
        xy, triangles = random_triangles(rng, kind)
        found, expected = as_shapely(outline(xy, triangles)), union(xy, triangles)
        assert found.is_valid
        assert found.symmetric_difference(expected).area <= 3e-5 * (expected.length + 1)


def test_parts_and_holes():
    """A frame with an island in it, and a square that meets the frame at a corner."""
    squares = [(0, 0, 10), (20, 20, 4), (4, 4, 2), (10, 10, 10)]
    xy, triangles = [], []
    for x, y, side in squares:
        first = len(xy)
        xy += [(x, y), (x + side, y), (x + side, y + side), (x, y + side)]
        triangles += [(first, first + 1, first + 2), (first, first + 2, first + 3)]
    # the first square becomes a frame: eight triangles around a hole of 1 to 9
    first = len(xy)
    xy += [(0, 0), (10, 0), (10, 10), (0, 10), (1, 1), (9, 1), (9, 9), (1, 9)]
    for k in range(4):
        a, b = first + k, first + (k + 1) % 4
        triangles += [(a, b, b + 4), (a, b + 4, a + 4)]
    found = outline(np.array(xy, float), np.array(triangles[2:]))
    rings = sorted((len(polygon), abs(shapely.Polygon(polygon[0]).area)) for polygon in found)
    assert rings == [(1, 4.0), (1, 16.0), (1, 100.0), (2, 100.0)]
    shapes = as_shapely(found)
    assert shapes.is_valid
    assert shapes.area == 36 + 16 + 4 + 100
    # without vertices that are none: four corners each
    assert all(len(ring) == 4 for polygon in found for ring in polygon)
    for outer, *holes in found:
        assert shapely.is_ccw(shapely.LinearRing(outer))
        assert not any(shapely.is_ccw(shapely.LinearRing(hole)) for hole in holes)


def test_coordinates_stay_decimal_numbers():
    xy = np.array([[447_999.1, 5_411_000.3], [448_000.7, 5_411_000.3], [448_000.7, 5_411_001.9]])
    ((ring,),) = outline(xy, np.array([[2, 1, 0]]))
    assert sorted(map(tuple, ring)) == sorted(map(tuple, xy))


def test_gaps_of_less_than_the_grid_are_closed():
    xy = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [1 + 2e-6, 0], [2, 0], [2, 1], [1 + 4e-6, 1]])
    quads = [[0, 1, 2], [0, 2, 3], [4, 5, 6], [4, 6, 7]]
    ((ring,),) = outline(xy, np.array(quads))
    assert sorted(map(tuple, ring)) == [(0, 0), (0, 1), (2, 0), (2, 1)]


@pytest.mark.parametrize("triangles", [[], [[0, 0, 1]], [[0, 1, 2]]])
def test_what_has_no_area_has_no_outline(triangles):
    xy = np.array([[0.0, 0.0], [1.0, 1.0], [3.0, 3.0]])
    assert outline(xy, np.array(triangles, int).reshape(-1, 3)) == []
