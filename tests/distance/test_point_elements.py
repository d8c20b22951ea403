"""`point_elements` against brute force: every point, every triangle, every ray."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import spatialq

from ..conftest import real_file
from ..element_tables import box, put

RAYS = np.array([(0.36, 0.48, 0.8), (-0.6, 0.64, 0.48), (0.28, -0.6, 0.75)])
"""Directions of which most meet no edge; the majority says what is inside."""


def distances(points, corners):
    """The distances of points[n, 3] from the nearest of triangles[m, 3, 3], sides first."""
    nearest = np.full(len(points), np.inf)
    for triangle in corners:
        for i in range(3):
            start, side = triangle[i], triangle[(i + 1) % 3] - triangle[i]
            length2 = side @ side
            share = np.clip((points - start) @ side / length2, 0, 1) if length2 else 0.0
            foot = start + np.multiply.outer(share, side) if length2 else start
            nearest = np.minimum(nearest, np.linalg.norm(points - foot, axis=1))
        one, other = triangle[1] - triangle[0], triangle[2] - triangle[0]
        normal = np.cross(one, other)
        if not normal @ normal:
            continue
        weights = (points - triangle[0]) @ np.linalg.pinv(np.stack([one, other]))
        over = (weights >= 0).all(axis=1) & (weights.sum(axis=1) <= 1)
        height = np.abs((points - triangle[0]) @ normal) / np.linalg.norm(normal)
        nearest[over] = np.minimum(nearest, height)[over]
    return nearest


def inside(points, corners):
    """Whether rays cross the triangles an odd number of times, by the majority of three rays."""
    a, one, other = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    votes = np.zeros(len(points), int)
    for ray in RAYS:
        across = np.cross(ray, other)
        with np.errstate(all="ignore"):
            scale = 1 / np.sum(across * one, axis=1)
            away = points[:, None] - a
            u = np.sum(away * across, axis=2) * scale
            upright = np.cross(away, one)
            v = upright @ ray * scale
            along = np.sum(upright * other, axis=2) * scale
        hits = (u >= 0) & (v >= 0) & (u + v <= 1) & (along > 0)
        votes += hits.sum(axis=1) % 2
    return votes >= 2


def is_closed(mesh):
    _, places = np.unique(np.reshape(mesh[0], (-1, 3)), axis=0, return_inverse=True)
    faces = places[np.reshape(mesh[1], (-1, 3))]
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    edges = edges[edges[:, 0] != edges[:, 1]]
    return sorted(map(tuple, edges)) == sorted(map(tuple, edges[:, ::-1]))


def brute_force(points, elements, limit):
    """{(point_id, global_id): distance} of elements as (global_id, vertices, faces)."""
    found = {}
    for name, vertices, faces in elements:
        vertices, faces = np.reshape(vertices, (-1, 3)), np.reshape(faces, (-1, 3))
        corners = vertices[faces]
        low, high = corners.min(axis=(0, 1)) - limit, corners.max(axis=(0, 1)) + limit
        (near,) = np.nonzero(((points >= low) & (points <= high)).all(axis=1))
        if not len(near):
            continue
        away = distances(points[near], corners)
        if is_closed((vertices, faces)):
            away[inside(points[near], corners)] = 0
        found |= {(int(n), name): d for n, d in zip(near, away, strict=True) if d <= limit}
    return found


def put_points(con, points, name="points", ids=None):
    columns = dict(zip(("x", "y", "z"), np.ascontiguousarray(np.transpose(points)), strict=True))
    incoming = {"point_id": np.arange(len(points)) if ids is None else ids, **columns}
    con.register("incoming", pa.table(incoming))
    con.execute(f"CREATE OR REPLACE TABLE {name} AS FROM incoming")
    con.unregister("incoming")


def found_by(con, call):
    rows = con.sql(f"FROM point_elements({call})").fetchall()
    named = {(point, element): distance for point, element, distance in rows}
    assert len(named) == len(rows)  # no pair twice
    return named


def assert_as(found, expected, limit):
    sure = {pair: d for pair, d in expected.items() if d < limit - 1e-9}
    assert set(sure) <= set(found)
    for pair, distance in found.items():
        assert distance == pytest.approx(expected.get(pair, limit), abs=1e-9), pair


OPEN = (box((0, 0, 0), (1, 1, 1))[0] + (6, 0, 0), box((0, 0, 0), (1, 1, 1))[1][:-1])
ELEMENTS = {
    "wall": box((0, 0, 0), (4, 0.3, 3)),
    "beam in wall": box((1, -1, 1), (1.2, 2, 1.2)),
    "open": OPEN,
    "7": box((0, 2, 0), (4, 2.3, 3)),  # the id of a point, too
    "turned": (
        box((0, 0, 0), (1, 1, 1))[0] @ np.linalg.qr(np.random.default_rng(2).random((3, 3)))[0].T
        + (8, 2, 1),
        box((0, 0, 0), (1, 1, 1))[1],
    ),
    "triangle and needle": (
        np.array([(5, 2, 0), (6, 2, 0), (5, 3, 1), (5, 4, 0)], float),
        np.array([(0, 1, 2), (0, 3, 0), (3, 3, 3)]),
    ),
}


@pytest.fixture
def scene(con):
    put(con, "elements", global_id=list(ELEMENTS), mesh=list(ELEMENTS.values()))
    draw = np.random.default_rng(1)
    points = draw.random((3000, 3)) * (11, 5, 4) - (1, 1.5, 0.5)
    put_points(con, points)
    return points


@pytest.mark.parametrize("limit", [0.0, 0.05, 0.8, 30.0])
def test_points_and_bodies_are_as_far_apart_as_brute_force_has_it(con, scene, limit):
    found = found_by(con, f"'points', 'elements', {limit}")
    expected = brute_force(scene, [(name, *mesh) for name, mesh in ELEMENTS.items()], limit)
    assert_as(found, expected, limit)
    assert 0.0 in found.values()


def test_a_point_may_have_the_name_of_an_element(con, scene):
    put_points(con, [(1, 2.1, 1)], ids=[7])
    assert found_by(con, "'points', 'elements', 0.1") == {(7, "7"): 0.0}


def test_points_in_feet_and_far_from_the_origin(con, scene):
    shift = np.array([691_000.0, 5_334_000.0, 520.0])
    moved = [(vertices + shift, faces) for vertices, faces in ELEMENTS.values()]
    put(con, "moved", global_id=list(ELEMENTS), mesh=moved)
    put_points(con, (scene + shift) / 0.3048, "feet")
    found = found_by(con, "'feet', 'moved', 0.3, unit := 0.3048")
    near = found_by(con, "'points', 'elements', 0.3")
    for pair in set(found) ^ set(near):
        assert {**found, **near}[pair] == pytest.approx(0.3, abs=1e-7)
    for pair in set(found) & set(near):
        assert found[pair] == pytest.approx(near[pair], abs=1e-7)


def test_spaces_are_not_considered(con):
    put(con, "elements", global_id=["space", "wall"], ifc_class=["IfcSpace", "IfcWall"],
        mesh=[box((0, 0, 0), (4, 4, 3)), box((0, -1, 0), (4, 0, 3))])  # fmt: skip
    put_points(con, [(1, 0.5, 1)])
    assert found_by(con, "'points', 'elements', 1") == {(0, "wall"): 0.5}


def test_views_common_table_expressions_and_nothing(con, scene):
    con.execute("CREATE VIEW first_points AS FROM points WHERE point_id < 100")
    of_view = found_by(con, "'first_points', 'elements', 0.2")
    rows = con.sql(
        "WITH few AS (FROM points WHERE point_id < 100), all_of_them AS (FROM elements) "
        "FROM point_elements('few', 'all_of_them', 0.2)"
    ).fetchall()
    assert {(point, element): distance for point, element, distance in rows} == of_view != {}
    con.execute("CREATE VIEW none AS FROM points WHERE false")
    con.execute("CREATE VIEW nothing AS FROM elements WHERE false")
    assert found_by(con, "'none', 'elements', 1") == {}
    assert found_by(con, "'points', 'nothing', 1") == {}


def test_columns_and_types(con, scene):
    relation = con.sql("FROM point_elements('points', 'elements', 0.1)")
    assert relation.columns == ["point_id", "global_id", "distance"]
    assert list(map(str, relation.types)) == ["BIGINT", "VARCHAR", "DOUBLE"]


def test_a_point_of_one_id_twice_and_one_without_id_are_not_lost(con):
    put(con, "elements", global_id=["wall"], mesh=[ELEMENTS["wall"]])
    con.execute("CREATE TABLE points AS FROM (VALUES (1, 1.0, 0.1, 1.0), (1, 2.0, 0.1, 1.0), "
                "(NULL, 3.0, 0.1, 1.0)) AS p(point_id, x, y, z)")  # fmt: skip
    rows = con.sql("FROM point_elements('points', 'elements', 0)").fetchall()
    assert sorted(rows, key=str) == [(1, "wall", 0.0), (1, "wall", 0.0), (None, "wall", 0.0)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("'points', 'elements', -1", "point_elements: max_distance must be >= 0 metres, got -1"),
        ("'points', 'elements', NULL", "max_distance must be >= 0 metres, got NULL"),
        (
            "'points', 'elements', 1, unit := 0",
            "point_elements: unit must be > 0 metres or NULL",
        ),
        (
            "'points', 'elements', 1, device := 'tpu'",
            "device must be 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1'",
        ),
        ("'odd', 'elements', 1", "x, y and z must be finite numbers, .*nan.*, point_id 9"),
        ("'gap', 'elements', 1", "x, y and z must be finite numbers, .*'y': NULL.*, point_id 9"),
        ("'points', 'nowhere', 1", "nowhere"),
    ],
)
def test_wrong_arguments_are_one_sentence(con, scene, call, message):
    con.execute("CREATE VIEW odd AS SELECT 9 AS point_id, 0.0 AS x, 'nan'::DOUBLE AS y, 0.0 AS z")
    con.execute("CREATE VIEW gap AS SELECT 9 AS point_id, 0.0 AS x, NULL::DOUBLE AS y, 0.0 AS z")
    with pytest.raises(duckdb.Error, match=message):
        con.sql(f"FROM point_elements({call})").fetchall()


@pytest.mark.slow
def test_points_around_a_real_house(con):
    """Scanned and scattered points at the elements of a published model."""
    spatialq.load(con, real_file("data/ifc/AC20-FZK-Haus.ifc"))
    rows = con.sql(
        "SELECT global_id, mesh.vertices, mesh.faces FROM spatial_elements('elements')"
    ).fetchall()
    rows = [(name, np.array(v), np.array(f)) for name, v, f in rows if len(f) < 3 * 400]
    names = [name for name, *_ in rows]
    con.execute("CREATE TABLE chosen AS FROM elements WHERE list_contains(?, global_id)", [names])
    everything = np.concatenate([v.reshape(-1, 3) for _, v, _ in rows])
    draw = np.random.default_rng(3)
    low, high = everything.min(axis=0), everything.max(axis=0)
    scattered = low + draw.random((400, 3)) * (high - low)
    at_corners = everything[draw.integers(len(everything), size=400)]
    points = np.concatenate([scattered, at_corners + draw.normal(0, 0.02, (400, 3))])
    put_points(con, points, "scan")
    found = found_by(con, "'scan', 'chosen', 0.05")
    assert len(found) > 300
    assert_as(found, brute_force(points, rows, 0.05), 0.05)
