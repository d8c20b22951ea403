"""`points_within` against GEOS' `covers`, and of single edges against fractions."""

import re
import struct
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import shapely

import spatialq
from spatialq.geometry.point_polygons import side
from spatialq.geometry.polygon_index import PolygonIndex

from . import oracle
from .cases import CASES, arguments

SQUARE = shapely.to_wkb(shapely.box(0, 0, 1, 1), byte_order=1, flavor="iso")
FAR = np.array([652_000.0, 5_606_000.0])


def random_polygons(rng, count, far):
    """Polygons with holes, in several parts, of whole coordinates or not, that overlap."""
    polygons = []
    for k in range(count):
        centre, corners = rng.uniform(0, 1000, 2) + far, rng.integers(3, 60)
        angle = np.sort(rng.uniform(0, 2 * np.pi, corners))
        ring = centre + (rng.uniform(3, 30, corners) * [np.cos(angle), np.sin(angle)]).T
        polygon = shapely.Polygon(np.round(ring) if k % 3 == 0 else ring)
        polygon = polygon if polygon.is_valid else polygon.buffer(0)
        if k % 4 == 0:
            polygon = polygon.difference(shapely.box(*(centre - 1), *(centre + 1)))
        if k % 5 == 0:
            polygon = polygon.union(shapely.affinity.translate(polygon, 100, 0))
        polygons.append(polygon)
    return polygons


def points_of(rng, count, polygons, far):
    """Points anywhere, at whole coordinates, on corners, and on or beside edges."""
    box = [(-10, -10), (1110, 1110)]
    found = [
        far + rng.uniform(*box, (count, 2)),
        far + np.round(rng.uniform(*box, (count // 4, 2))),
    ]
    for ring in shapely.get_rings(shapely.get_parts(np.array(polygons, object))):
        corners = shapely.get_coordinates(ring)
        share = rng.uniform(0, 1, (len(corners) - 1, 1))
        found += [corners, (corners[1:] + corners[:-1]) / 2]
        found.append(corners[1:] * share + corners[:-1] * (1 - share))
    return np.vstack(found)


def as_wkb(polygons):
    return [shapely.to_wkb(each, byte_order=1, flavor="iso") for each in polygons]


def same_as_geos(polygons, points):
    x, y = np.ascontiguousarray(points.T)
    row, place = PolygonIndex.of(as_wkb(polygons)).find(x, y)
    tree = shapely.STRtree(polygons)
    expected = np.array(tree.query(shapely.points(points), predicate="covered_by"))
    expected = expected[:, np.lexsort(expected[::-1])]
    np.testing.assert_array_equal(row, expected[0])
    np.testing.assert_array_equal(place, expected[1])
    return row.size


@pytest.mark.parametrize("far", [np.zeros(2), FAR], ids=["near", "far"])
def test_a_hundred_polygons(far):
    rng = np.random.default_rng(3)
    polygons = random_polygons(rng, 100, far)
    assert same_as_geos(polygons, points_of(rng, 20_000, polygons, far)) > 1000


@pytest.mark.slow
def test_a_million_points_and_a_thousand_polygons():
    rng = np.random.default_rng(4)
    polygons = random_polygons(rng, 1000, FAR)
    assert same_as_geos(polygons, points_of(rng, 800_000, polygons, FAR)) > 100_000


def test_polygons_that_share_edges_and_lie_in_each_other():
    squares = [shapely.box(x, y, x + 1, y + 1) for x in range(8) for y in range(8)]
    rings = [shapely.Point(4, 4).buffer(r) for r in (1, 2, 3)]
    rings = [outer.difference(inner) for inner, outer in pairwise(rings)]
    whole = np.stack(np.meshgrid(np.arange(-1, 9.5, 0.25), np.arange(-1, 9.5, 0.25)), -1)
    same_as_geos([*squares, *rings, shapely.box(0, 0, 8, 8)], whole.reshape(-1, 2))


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e9])
def test_polygons_of_any_size(scale):
    rng = np.random.default_rng(5)
    polygons = [
        shapely.affinity.scale(p, scale, scale, origin=(0, 0)) for p in random_polygons(rng, 20, 0)
    ]
    points = points_of(rng, 2000, [], 0) * scale
    assert same_as_geos(polygons, points) > 20


def test_very_many_edges():
    angle = np.linspace(0, 2 * np.pi, 100_001)[:-1]
    radius = 100 + np.sin(angle * 1000) * 20
    polygon = shapely.Polygon((radius * [np.cos(angle), np.sin(angle)]).T)
    points = np.random.default_rng(6).uniform(-130, 130, (20_000, 2))
    same_as_geos([polygon], points)


def test_the_side_of_an_edge_is_exact():
    rng = np.random.default_rng(7)
    signs = set()
    for _ in range(2000):
        x0, y0, x1, y1 = rng.uniform(0, 1, 4) + np.tile(FAR, 2)
        share = rng.uniform()
        x, y = x0 + share * (x1 - x0), y0 + share * (y1 - y0)
        x, y = (np.nextafter(each, rng.choice([0, each, 1e9])) for each in (x, y))
        a, b, c, d, e, f = map(Fraction, map(float, (x0, y0, x1, y1, x, y)))
        expected = (c - a) * (f - b) - (d - b) * (e - a)
        found = side(x0, y0, x1, y1, x, y)
        assert np.sign(found) == (expected > 0) - (expected < 0)
        signs.add(np.sign(found))
    assert {-1, 1} <= signs
    assert side(0.1, 0.1, 0.7, 0.7, 0.3, 0.3) == 0  # on the line, where nothing is a round number


@pytest.mark.parametrize(
    ("wkt", "said"),
    [
        ("POINT (1 2)", "must be POLYGON or MULTIPOLYGON, got POINT of polygon_id 0"),
        ("LINESTRING (1 2, 3 4)", "must be POLYGON or MULTIPOLYGON, got LINESTRING"),
        ("GEOMETRYCOLLECTION (POINT (1 2))", "got GEOMETRYCOLLECTION"),
    ],
)
def test_what_is_no_polygon(wkt, said):
    with pytest.raises(ValueError, match=f"^points_within: .*{said}"):
        PolygonIndex.of(as_wkb([shapely.from_wkt(wkt)]), caller="points_within")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1.7e308, -1.1e150])
def test_a_vertex_that_is_too_far_away_is_refused(value):
    (wkb,) = as_wkb([shapely.Polygon([(0, 0), (1, 0), (1, 7)])])
    wkb = wkb.replace(struct.pack("<d", 7), struct.pack("<d", value))
    said = re.escape(f"vertices of polygons must be from -1e+150 to 1e+150, got {value} in ")
    with pytest.raises(ValueError, match=f"^points_within: {said}polygon_id plot$"):
        PolygonIndex.of([wkb], ["plot"], "points_within")


@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_polygons_of_any_size_are_exact(size):
    rng = np.random.default_rng(3)
    ring = size * np.array([(0, 0), (1, 0.3), (0.4, 1), (0, 0)])
    on = ring[0] + rng.uniform(0, 1, (200, 1)) * (ring[1] - ring[0])
    points = np.vstack([on, rng.uniform(0, size, (200, 2))])
    found, _ = PolygonIndex.of(as_wkb([shapely.Polygon(ring)])).find(
        *np.ascontiguousarray(points.T)
    )
    corners, exact = ([[*map(Fraction, each)] for each in some.tolist()] for some in (ring, points))
    assert found.tolist() == [
        k
        for k, (x, y) in enumerate(exact)
        if all(
            (x1 - x0) * (y - y0) >= (y1 - y0) * (x - x0) for (x0, y0), (x1, y1) in pairwise(corners)
        )
    ]
    assert 0 < len(found) < 400


def test_nothing():
    row, place = PolygonIndex.of([]).find(np.zeros(2), np.zeros(2))
    assert row.size == place.size == 0
    empty = as_wkb([shapely.Polygon(), shapely.MultiPolygon(), shapely.box(0, 0, 1, 1)])
    index = PolygonIndex.of([None, *empty])
    row, place = index.find(np.array([0.5, np.nan, 2]), np.array([1.0, 0.5, 0.5]))
    assert (row.tolist(), place.tolist()) == ([0], [3])
    assert index.find(np.empty(0), np.empty(0))[0].size == 0


def test_rings_that_cross_count_by_how_many_are_around():
    bow = shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])
    x, y = np.array([0.25, 1, 1, 1.75]), np.array([1, 1, 1.75, 1])
    assert PolygonIndex.of(as_wkb([bow])).find(x, y)[0].tolist() == [0, 1, 3]


@pytest.mark.parametrize("case", CASES)
def test_every_case_is_as_of_geos(case):
    points, shapes, options = CASES[case]
    given, _ = arguments(case)
    wkb = [
        None if each is None else shapely.to_wkb(each, byte_order=1, flavor="iso")
        for each in shapes
    ]
    found = spatialq.run(
        "points_within", given["x"], given["y"], None, given["point_id"], polygons=wkb,
        **options,
    )  # fmt: skip
    columns = (found[name].tolist() for name in ("point_id", "polygon_id"))
    expected = oracle.pairs(points, given["point_id"], shapes, **options)
    assert list(zip(*columns, strict=True)) == expected


@pytest.mark.parametrize(
    ("polygons", "said"),
    [
        (None, "run: points_within is a function of points and polygons: give polygons="),
        ("plots", "points_within: polygons must be a list of bytes, WKB of .*, got str at"),
        (5, "points_within: polygons must be a list of bytes, WKB of .*, got int at position 0"),
        ([None, "POLYGON EMPTY"], "polygons must be a list of bytes, .* got str at position 1"),
        ([b"abc"], "must be ISO WKB, little-endian and whole, got 3 bytes .* of polygon_id 0"),
        ([SQUARE[:-9]], "must be whole WKB, got one that ends after 84 bytes of polygon_id 0"),
        ([SQUARE[:9] + b"\xff" * 4], "must be whole WKB, got one that ends after 13 bytes"),
        ([shapely.to_wkb(shapely.box(0, 0, 1, 1), byte_order=0)], "must be ISO WKB, little-endian"),
        (
            [shapely.to_wkb(shapely.set_srid(shapely.box(0, 0, 1, 1), 4326), include_srid=True)],
            "must be ISO WKB, little-endian",
        ),
    ],
)
def test_what_are_no_polygons_in_python(polygons, said):
    with pytest.raises(ValueError, match=said):
        spatialq.run("points_within", [1.0], [1.0], None, polygons=polygons)


def test_points_of_any_kind_in_python():
    square = [shapely.to_wkb(shapely.box(0, 0, 1, 1), byte_order=1, flavor="iso")]
    found = spatialq.run("points_within", [0, 5, 1], [1, 5, 0], [7, 7, 7], polygons=square)
    assert (found["point_id"].tolist(), found["polygon_id"].tolist()) == ([0, 2], [0, 0])
    with pytest.raises(ValueError, match="points_within: x and y must be finite, got 1 points"):
        spatialq.run("points_within", [0.0, np.nan], [1.0, 1.0], None, polygons=square)
    with pytest.raises(ValueError, match="run: points_within is a function of points, it takes no"):
        spatialq.run("points_within", [0.0], [1.0], None, elements=[])
