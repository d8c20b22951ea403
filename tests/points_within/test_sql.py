"""`points_within` in SQL and as a method: ids, systems, files and errors."""

import duckdb
import laspy
import numpy as np
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
    with pytest.raises(
        duckdb.Error, match=r"points_within: crs is .*25832.*, but that of 'points'"
    ):
        counts(con, "points_within('points', 'map', crs := 'EPSG:25832')")
    con.execute("COMMENT ON TABLE points IS NULL")
    given = "points_within('points', 'map', crs := 'EPSG:{}')"
    assert counts(con, given.format(25832)) == [("a", 12), ("b", 9)]
    with pytest.raises(duckdb.Error, match=said.replace("table points", "'points'")):
        counts(con, given.format(2154))


@pytest.mark.parametrize(
    ("setting", "call", "said"),
    [
        ("", "'points', 'points'",
         "polygons must be a table with a column polygon_id, of any type, which 'points' lacks"),
        ("ALTER TABLE plots DROP geometry", "'points', 'plots'",
         "polygons must be a table with a column geometry, of type GEOMETRY, which 'plots' lacks"),
        ("ALTER TABLE plots ALTER geometry TYPE VARCHAR", "'points', 'plots'",
         "GEOMETRY, which geometry::GEOMETRY makes of WKT .*; in 'plots' it is of type VARCHAR"),
        ("CREATE TABLE odd AS SELECT 1 AS polygon_id, [1.5] AS geometry", "'points', 'odd'",
         r"geometry of polygons must be of type GEOMETRY, .* in 'odd' it is of type DECIMAL.*\[\]"),
        ("", "NULL, 'plots'", "points must be the name of a table or a file, .* got NULL"),
        ("", "'points', NULL", "polygons must be the name of a table, got NULL"),
        ("", "'points', 5", "polygons must be the name of a table, got 5 of type INTEGER"),
        ("ALTER TABLE points DROP point_id", "'points', 'plots'",
         "'points' must have a column point_id of numbers; CREATE VIEW points_numbered AS"),
        ("UPDATE points SET x = NULL WHERE point_id = 5", "'points', 'plots'",
         "points_within: x must not be NULL, got 1 of them, the first with point_id 5"),
        ("ALTER TABLE points ALTER x TYPE DOUBLE; UPDATE points SET x = 'inf' WHERE point_id = 7",
         "'points', 'plots'",
         "x and y must be finite, got 1 points with NaN or infinity, the first with point_id 7"),
        ("UPDATE points SET point_id = 7 WHERE point_id = 8", "'points', 'plots'",
         "point_id must be unique, got 7 more than once"),
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


def test_a_file_of_polygons_is_no_table(con, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plots.gpkg").write_bytes(b"")
    said = (
        "points_within: polygons must be the name of a table, got the file 'plots.gpkg': CREATE "
        r"TABLE t AS SELECT fid AS polygon_id, geometry FROM read_vector\('plots.gpkg'\) makes a "
        "table of it"
    )
    with pytest.raises(duckdb.Error, match=said):
        con.sql("FROM points_within('points', 'plots.gpkg')").fetchall()


def write_tiles(folder):
    """Write three tiles beside each other; the points of the first are in no polygon."""
    rng = np.random.default_rng(1)
    for k, west in enumerate((0.0, 100.0, 200.0)):
        header = laspy.LasHeader(point_format=6, version="1.4")
        header.scales = [0.001] * 3
        las = laspy.LasData(header)
        las.x, las.y, las.z = np.vstack([west + rng.uniform(0, 99, 3000), rng.uniform(0, 99, 3000),
                                         np.zeros(3000)])  # fmt: skip
        las.write(folder / f"tile{k}.las")
    return folder / "tile0.las"


@pytest.fixture
def tiles(con, tmp_path):
    con.execute(
        "CREATE OR REPLACE TABLE plots AS FROM (VALUES "
        "(DATE '2026-01-01', 'POLYGON ((150 50, 250 50, 250 60, 150 60, 150 50))'::GEOMETRY), "
        "(NULL, 'POLYGON ((210 0, 290 0, 250 90, 210 0))'), "
        "(DATE '2026-01-02', 'POLYGON ((500 0, 600 0, 600 90, 500 0))'), (DATE '2026-01-03', NULL)"
        ") AS t(polygon_id, geometry)"
    )
    write_tiles(tmp_path)
    con.execute(f"CREATE TABLE cloud AS FROM read_points('{tmp_path}/*.las')")
    return tmp_path


def require_same_rows(con, one, other):
    pairs = [
        con.sql(f"FROM points_within({call}) ORDER BY ALL").fetchall() for call in (one, other)
    ]
    assert pairs[0] == pairs[1]
    return len(pairs[0])


def test_the_rows_of_files_are_those_of_their_table(con, tiles):
    files = f"'{tiles}/*.las', 'plots'"
    assert require_same_rows(con, files, "'cloud', 'plots'") > 500
    listed = ", ".join(f"'{tiles}/tile{k}.las'" for k in range(3))
    assert require_same_rows(con, f"[{listed}], 'plots'", "'cloud', 'plots'") > 500
    for bounds in ("[120, 0, 230, 55]", "[0, 0, 99, 99]", "[240.5, 10.25, 260.5, 80]"):
        more = f", bounds := {bounds}"
        require_same_rows(con, files + more, "'cloud', 'plots'" + more)
    assert con.sql(f"FROM points_within('{tiles}/tile0.las', 'plots')").fetchall() == []


def test_tiles_that_no_polygon_touches_are_not_read(con, tiles):
    expected = con.sql("FROM points_within('cloud', 'plots') ORDER BY ALL").fetchall()
    whole = (tiles / "tile0.las").read_bytes()
    for name in ("tile0", "tile1"):  # records far away, behind the same header
        path = tiles / f"{name}.las"
        path.write_bytes(path.read_bytes()[:400] + b"\xff" * (len(whole) - 400))
        call = con.sql(f"FROM points_within('{tiles}/*.las', 'plots') ORDER BY ALL")
        if name == "tile0":
            assert call.fetchall() == expected
    with pytest.raises(duckdb.Error, match=r"tile1\.las': its points reach from x"):
        call.fetchall()
