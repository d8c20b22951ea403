"""`points_within` in SQL and as a method: ids, systems, files and errors."""

import duckdb
import pytest

import spatialq

from ..io.las_files import write as write_las


@pytest.fixture
def con():
    with spatialq.connect() as con:
        con.execute(
            "CREATE TABLE points AS SELECT i AS point_id, i % 10 AS x, i // 10 AS y, 0.0 AS z "
            "FROM range(100) t(i)"
        )
        con.execute(
            "CREATE TABLE plots AS FROM (VALUES "
            "('b', 'POLYGON ((1 1, 3 1, 3 3, 1 3, 1 1))'::GEOMETRY), "
            "('a', 'MULTIPOLYGON Z (((2 2 9, 4 2 9, 4 4 9, 2 4 9, 2 2 9)), "
            "((8 8 1, 9 8 1, 9 9 1, 8 8 1)))'::GEOMETRY), ('c', NULL), ('d', 'POLYGON EMPTY')"
            ") AS t(polygon_id, geometry)"
        )
        yield con


def counts(con, call):
    return con.sql(f"SELECT polygon_id, count(*) FROM {call} GROUP BY ALL ORDER BY ALL").fetchall()


def test_pairs_have_the_ids_of_both(con):
    assert counts(con, "points_within('points', 'plots')") == [("a", 12), ("b", 9)]
    rows = con.sql("FROM points_within('points', 'plots')")
    assert dict(zip(rows.columns, map(str, rows.types), strict=True)) == {
        "point_id": "BIGINT", "polygon_id": "VARCHAR"
    }  # fmt: skip
    shared = con.sql(
        "SELECT point_id FROM points_within('points', 'plots') "
        "GROUP BY point_id HAVING count(*) = 2 ORDER BY ALL"
    )
    assert shared.fetchall() == [(22,), (23,), (32,), (33,)]


def test_names_of_queries_views_and_open_transactions(con):
    query = "WITH few AS (FROM points WHERE y < 2), one AS (FROM plots WHERE polygon_id = 'b') "
    assert con.sql(f"{query} SELECT count(*) FROM points_within('few', 'one')").fetchall() == [(3,)]
    con.execute("CREATE TEMP VIEW column_one AS FROM points WHERE x = 1")
    assert counts(con, "points_within('column_one', 'plots')") == [("b", 3)]
    con.execute("BEGIN; DELETE FROM plots WHERE polygon_id = 'b'")
    assert counts(con, "points_within('points', 'plots')") == [("a", 12)]
    con.execute("ROLLBACK")


def test_no_points_and_no_polygons(con):
    con.execute(
        "CREATE TABLE none AS FROM points LIMIT 0; CREATE TABLE nowhere AS FROM plots LIMIT 0"
    )
    assert counts(con, "points_within('none', 'plots')") == []
    assert counts(con, "points_within('points', 'nowhere')") == []


def test_a_million_points_in_runs_of_duckdb(con):
    con.execute(
        "CREATE TABLE many AS SELECT i AS point_id, i % 1000 / 100 AS x, i // 1000 / 100 AS y "
        "FROM range(1000000) t(i)"
    )
    expected = "SELECT count(*) FROM many WHERE x BETWEEN 1 AND 3 AND y BETWEEN 1 AND 3"
    ((count,),) = con.sql(expected).fetchall()
    assert counts(con, "points_within('many', 'plots')")[1] == ("b", count)


def test_files_and_the_method(con, tmp_path):
    for name in ("a.las", "b.las"):
        write_las(tmp_path / name, 1, 1000)
    ((west, south, east, north),) = con.sql(
        f"SELECT min(x), min(y), max(x), max(y) FROM read_points('{tmp_path}/a.las')"
    ).fetchall()
    middle = (west + east) / 2
    con.execute(
        "CREATE TABLE half AS SELECT 7 AS polygon_id, printf('POLYGON ((%.17g %.17g, "
        "%.17g %.17g, %.17g %.17g, %.17g %.17g, %.17g %.17g))', $1, $2, $3, $2, $3, $4, $1, $4, "
        "$1, $2)::GEOMETRY AS geometry",
        [west, south, middle, north],
    )
    expected = con.sql(
        f"SELECT point_id FROM read_points('{tmp_path}/*.las') WHERE x <= {middle!r} ORDER BY ALL"
    ).fetchall()
    call = f"points_within('{tmp_path}/*.las', 'half')"
    assert con.sql(f"SELECT point_id FROM {call} ORDER BY ALL").fetchall() == expected
    query = spatialq.read_points(con, tmp_path / "*.las").points_within("half")
    assert sorted(query.select("point_id").fetchall()) == expected


def test_points_and_polygons_of_different_systems(con):
    import pyproj

    text = pyproj.CRS.from_epsg(25832).to_json().replace("'", "''")
    con.execute(
        f"CREATE TABLE map AS SELECT polygon_id, ST_SetCRS(geometry, '{text}') AS geometry "
        "FROM plots"
    )
    assert counts(con, "points_within('points', 'map')") == [("a", 12), ("b", 9)]
    for same in ("EPSG:25832", "EPSG:25832+7837"):  # heights do not matter
        con.execute(f'COMMENT ON TABLE points IS \'{{"crs": "{same}"}}\'')
        assert counts(con, "points_within('points', 'map')") == [("a", 12), ("b", 9)]
    con.execute('COMMENT ON TABLE points IS \'{"crs": "EPSG:2154"}\'')
    said = r"points_within: points table points are in .*2154.* but polygons are in .*25832"
    with pytest.raises(duckdb.Error, match=said.replace("table points", "'points'")):
        counts(con, "points_within('points', 'map')")
    assert counts(con, "points_within('points', 'map', crs := 'EPSG:25832')") == [
        ("a", 12),
        ("b", 9),
    ]


@pytest.mark.parametrize(
    ("setting", "call", "said"),
    [
        ("", "'points', 'points'", 'column "polygon_id" not found'),
        ("", "NULL, 'plots'", "points must be the name of a table or a file, got NULL"),
        ("", "'points', 5", "polygons must be the name of a table, got 5"),
        ("UPDATE points SET x = NULL WHERE point_id = 5", "'points', 'plots'",
         r"x and y of points must be finite, got NULL, 0\.0"),
        ("INSERT INTO plots VALUES ('e', 'POINT (1 2)')", "'points', 'plots'",
         "must be POLYGON or MULTIPOLYGON, got POINT of polygon_id e"),
        ("INSERT INTO plots VALUES ('e', 'POLYGON ((0 0, 1 0, 1 1))')", "'points', 'plots'",
         r"rings of polygons must be closed, got \(0.0, 0.0\) and \(1.0, 1.0\) .* polygon_id e"),
    ],
)  # fmt: skip
def test_errors(con, setting, call, said):
    if setting:
        con.execute(setting)
    with pytest.raises(duckdb.Error, match=said):
        con.sql(f"FROM points_within({call})").fetchall()
