"""`distance` and its relatives through DuckDB."""

import duckdb
import pytest

import spatialq

from ..element_tables import box, put, put_room


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        put_room(con)
        # cubes of 1 m in a row, with gaps of 1, 2 and 4 m
        row = {"p": 0, "q": 2, "r": 5, "s": 10}
        cubes = [box((x, 0, 0), (x + 1, 1, 1)) for x in row.values()]
        put(con, "cubes", global_id=list(row), mesh=cubes)
        con.execute("CREATE VIEW ends AS FROM cubes WHERE global_id IN ('p', 's')")
        yield con


def distances(con, call):
    return sorted(con.sql(f"SELECT a, b, round(distance, 9) FROM {call}").fetchall())


ALL = [("p", "q", 1.0), ("p", "r", 4.0), ("p", "s", 9.0), ("q", "r", 2.0), ("q", "s", 7.0),
       ("r", "s", 4.0)]  # fmt: skip


def test_columns_and_types(con):
    relation = con.sql("FROM distance('cubes', NULL)")
    points = ["ax", "ay", "az", "bx", "by", "bz"]
    assert relation.columns == ["a", "b", "distance", *points, "flags"]
    expected = ["VARCHAR", "VARCHAR", *["DOUBLE"] * 7, "VARCHAR[]"]
    assert list(map(str, relation.types)) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("distance('cubes', NULL)", ALL),
        ("distance('cubes', NULL, max_distance := 4)", [row for row in ALL if row[2] <= 4]),
        ("distance(cubes, ends, max_distance := 1.5)", [("q", "p", 1.0)]),
        ("closer_than('cubes', NULL, 2.0)", [ALL[0], ALL[3]]),
        ("closer_than('ends', 'cubes', 1.0)", [ALL[0]]),
        ("closer_than('cubes', NULL, 0)", []),
        (
            "nearest('cubes', NULL)",
            [("p", "q", 1.0), ("q", "p", 1.0), ("r", "q", 2.0), ("s", "r", 4.0)],
        ),
        ("nearest('ends', 'cubes')", [("p", "q", 1.0), ("s", "r", 4.0)]),
        (
            "nearest('ends', 'cubes', k := 2)",
            [("p", "q", 1.0), ("p", "r", 4.0), ("s", "q", 7.0), ("s", "r", 4.0)],
        ),
        (
            "nearest('ends', 'cubes', k := 99)",
            sorted([*ALL[:3], ("s", "p", 9.0), ("s", "q", 7.0), ("s", "r", 4.0)]),
        ),
    ],
)
def test_macros(con, call, expected):
    assert distances(con, call) == expected


def test_the_nearest_points_are_that_far_apart(con):
    for row in con.sql("FROM distance('cubes', NULL)").fetchall():
        (_, _, distance, ax, ay, az, bx, by, bz, flags) = row
        assert ((ax - bx) ** 2 + (ay - by) ** 2 + (az - bz) ** 2) ** 0.5 == pytest.approx(distance)
        assert flags == []


def test_farther_than_is_the_rest_of_the_cross_set(con):
    near = {row[:2] for row in distances(con, "closer_than('cubes', 'cubes', 4)")}
    far = con.sql("FROM farther_than('cubes', 'cubes', 4)").fetchall()
    assert sorted(far) == [("p", "s"), ("q", "s"), ("s", "p"), ("s", "q")]
    assert near | set(far) == {(a, b) for a in "pqrs" for b in "pqrs" if a != b}


def test_elements_that_meet_are_at_0(con):
    rows = distances(con, "closer_than('elements', NULL, 0.0001)")
    assert {(a, b) for a, b, distance in rows if distance == 0} == {
        ("wall", "wall2"), ("wall", "slab"), ("wall2", "slab"), ("wall", "pipe"),
    }  # fmt: skip
    rows = distances(con, "closer_than('elements', NULL, 0.0001, exclude := 'default')")
    assert ("wall", "pipe", 0.0) not in rows
    assert len(rows) == 3


def test_scalar_forms(con):
    query = (
        "SELECT x.global_id, y.global_id, mesh_distance(x.mesh, y.mesh) AS d, "
        "ST_3DDistance(x.mesh, y.mesh) = d, mesh_closer_than(x.mesh, y.mesh, 2.0), "
        "mesh_farther_than(x.mesh, y.mesh, 2.0), ST_3DDWithin(x.mesh, y.mesh, 2.0) "
        "FROM cubes AS x, cubes AS y WHERE x.global_id < y.global_id ORDER BY ALL"
    )
    assert con.sql(query).fetchall() == [(a, b, d, True, d <= 2, d > 2, d <= 2) for a, b, d in ALL]
    query = "SELECT mesh_distance(NULL, mesh), mesh_closer_than(mesh, NULL, 1) FROM cubes LIMIT 1"
    assert con.sql(query).fetchall() == [(None, None)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("distance('cubes', NULL, max_distance := -1)", "distance: max_distance must be >= 0 metr"),
        (
            "closer_than('cubes', NULL, -0.5)",
            "closer_than: d must be >= 0 metres, got -0.5",
        ),
        ("closer_than('cubes', NULL, NULL)", "closer_than: d must be >= 0 metres, got NULL"),
        ("farther_than('cubes', 'cubes', NULL)", "farther_than: d must be >= 0 metres, got NULL"),
        ("nearest('cubes', NULL, k := 0)", "nearest: k must be >= 1, got 0"),
        ("nearest('cubes', NULL, k := NULL)", "nearest: k must be >= 1, got NULL"),
        ("nearest(NULL, 'cubes')", "nearest: a must be the name of a table of elements, got NULL"),
    ],
)
def test_wrong_arguments_are_one_sentence(con, call, message):
    with pytest.raises(duckdb.Error, match=message):
        con.sql(f"FROM {call}").fetchall()
