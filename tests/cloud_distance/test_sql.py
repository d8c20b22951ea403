"""`cloud_distance` in SQL: tables, files, coordinate reference systems, and what is wrong."""

import duckdb
import laspy
import numpy as np
import pyproj
import pytest

import spatialq
from spatialq.database.native import loading
from spatialq.errors import CrsError, QueryError

CLOUDS = """
    CREATE TABLE later AS SELECT range + 7 AS point_id, range % 60 / 10.0 AS x,
        range // 60 / 10.0 AS y, 0.02 * sin(range) + if(x > 3, 0.5, 0) AS z FROM range(3000);
    CREATE TABLE before AS SELECT range + 100 AS point_id, range % 60 / 10.0 + 0.03 AS x,
        range // 60 / 10.0 AS y, 0.02 * cos(range) AS z FROM range(3000);
"""
METHODS = ["", ", method := 'm3c2', radius := 0.25, normal_radius := 0.4"]


@pytest.fixture(scope="module", params=["native", "lists"])
def con(request):
    if request.param == "native" and loading.problem():
        pytest.skip(f"the extension: {loading.problem()}")
    con = spatialq.connect() if request.param == "native" else duckdb.connect()
    if request.param == "lists":
        spatialq.install(con)
    con.execute(CLOUDS)
    yield con
    con.close()


def call(con, points, reference, more=""):
    query = f"FROM cloud_distance('{points}', '{reference}', unit := 1{more}) ORDER BY point_id"
    return con.execute(query).fetchall()


def test_against_a_join(con):
    """The nearest point by DuckDB's own arithmetic, over all pairs."""
    expected = con.execute("""
        SELECT l.point_id, min(sqrt((l.x - b.x)**2 + (l.y - b.y)**2 + (l.z - b.z)**2)) AS distance
        FROM later AS l, before AS b GROUP BY l.point_id ORDER BY l.point_id
    """).fetchall()
    found = call(con, "later", "before")
    assert [row[0] for row in found] == [row[0] for row in expected]
    assert [row[1] for row in found] == pytest.approx([row[1] for row in expected], rel=1e-12)
    apart = con.execute(
        "SELECT max(abs(d.distance - sqrt((l.x - b.x)**2 + (l.y - b.y)**2 + (l.z - b.z)**2))) "
        "FROM cloud_distance('later', 'before', unit := 1) AS d JOIN later AS l USING (point_id) "
        "JOIN before AS b ON b.point_id = d.reference_id"
    ).fetchall()[0][0]
    assert apart < 1e-12


@pytest.mark.parametrize("more", METHODS)
def test_the_order_of_rows_does_not_matter(con, more):
    con.execute(
        "CREATE OR REPLACE TEMP TABLE mixed AS FROM later ORDER BY hash(point_id);"
        "CREATE OR REPLACE TEMP TABLE mixed_before AS FROM before ORDER BY hash(point_id)"
    )
    found, expected = call(con, "mixed", "mixed_before", more), call(con, "later", "before", more)
    if not more:
        assert found == expected
    for each in zip(zip(*found, strict=True), zip(*expected, strict=True), strict=True):
        column, wanted = (np.array(values, np.float64) for values in each)
        # sums of M3C2 are in the order of the tree, which divides equal coordinates by rows
        np.testing.assert_allclose(column, wanted, rtol=1e-9, atol=1e-12)


def test_what_was_added_is_positive(con):
    added, same = con.execute(
        "SELECT avg(d.distance) FILTER (x BETWEEN 3.5 AND 5.5), "
        "avg(d.distance) FILTER (x BETWEEN 0.5 AND 2.5) "
        f"FROM cloud_distance('later', 'before', unit := 1{METHODS[1]}) AS d JOIN later "
        "USING (point_id)"
    ).fetchall()[0]
    assert added == pytest.approx(0.5, abs=0.005)
    assert same == pytest.approx(0, abs=0.005)
    assert con.execute(
        "SELECT count(*), count(distance), count(reference_id) FROM "
        f"cloud_distance('later', 'before', unit := 1{METHODS[1]})"
    ).fetchall() == [(3000, 3000, 0)]


@pytest.mark.parametrize("more", METHODS)
def test_empty_tables(con, more):
    con.execute("CREATE OR REPLACE TEMP VIEW none AS FROM before WHERE false")
    assert call(con, "none", "before", more) == []
    found = call(con, "later", "none", more)
    assert len(found) == 3000
    assert all(row[1] is None and row[2] is None for row in found)


@pytest.mark.parametrize("more", METHODS)
def test_files_are_as_tables(con, tmp_path, more):
    for name in ("later", "before"):
        rows = con.execute(f"SELECT x, y, z FROM {name} ORDER BY point_id").fetchnumpy()
        las = laspy.LasData(laspy.LasHeader(version="1.4", point_format=6))
        las.header.scales = [0.0001] * 3
        las.header.add_crs(pyproj.CRS("EPSG:25832"))
        las.x, las.y, las.z = (rows[axis] for axis in "xyz")
        las.write(tmp_path / f"{name}.las")
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE read_{name} AS FROM read_las('{tmp_path}/{name}.las')"
        )
    expected = call(con, "read_later", "read_before", more)
    assert call(con, f"{tmp_path}/later.las", f"{tmp_path}/before.las", more) == expected
    assert call(con, f"{tmp_path}/later.las", "read_before", more) == expected
    assert call(con, "read_later", f"{tmp_path}/before.las", more) == expected


def test_heights_in_feet_are_converted_in_both(con):
    """NAD83 / UTM in metres with heights in feet."""
    con.execute("""
        CREATE OR REPLACE TEMP TABLE l AS FROM later;
        CREATE OR REPLACE TEMP TABLE b AS FROM before;
        UPDATE l SET z = z / 0.3048006096012192; UPDATE b SET z = z / 0.3048006096012192;
    """)
    with pytest.warns(UserWarning, match="heights were converted"):
        found = con.execute(
            "SELECT distance FROM cloud_distance('l', 'b', crs := 'EPSG:26916+6360') "
            "ORDER BY point_id"
        ).fetchall()
    expected = [row[1] for row in call(con, "later", "before")]
    assert [row[0] for row in found] == pytest.approx(expected, rel=1e-9)


def test_clouds_in_two_systems_are_refused(con):
    con.execute("""
        CREATE OR REPLACE TEMP TABLE l AS FROM later;
        CREATE OR REPLACE TEMP TABLE b AS FROM before;
        COMMENT ON TABLE l IS '{"crs": "EPSG:25832"}'; COMMENT ON TABLE b IS '{"crs": "EPSG:25833"}'
    """)
    said = r"cloud_distance: points 'l' are in .*25832.* of the reference 'b' are in .*25833"
    with pytest.raises((duckdb.Error, CrsError), match=said):
        con.execute("FROM cloud_distance('l', 'b')").fetchall()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("'later', NULL", "reference must be the name of a table or a file, got NULL"),
        ("'later', ''", "reference must be the name of a table or a file, got ''"),
        ("'later', 'flat', unit := 1", "cloud_distance: 'flat' must have a column z of numbers"),
        ("'later', 'holes', unit := 1", "cloud_distance: reference: z must not be NULL, got 1"),
        ("'later', 'wild', unit := 1", "cloud_distance: reference: x, y and z must be finite"),
        ("'later', 'before', method := 'c2m'", "method must be 'nearest' or 'm3c2', got 'c2m'"),
        ("'later', 'before', radius := 0", "radius must be > 0 and <= 1e+06 metres, got 0.0"),
        (
            "'later', 'before', max_distance := 1e300",
            "max_distance must be > 0 and <= 1e+06 metres",
        ),
        ("'later', 'afar', unit := 1", "cloud_distance: reference: x must be from"),
    ],
)
def test_what_is_wrong_is_one_sentence(con, call, said):
    con.execute("""
        CREATE OR REPLACE TEMP VIEW flat AS SELECT * EXCLUDE (z) FROM before;
        CREATE OR REPLACE TEMP VIEW holes AS SELECT * REPLACE (if(point_id = 105, NULL, z) AS z)
            FROM before;
        CREATE OR REPLACE TEMP VIEW afar AS SELECT * REPLACE (if(point_id = 105, 1e300, x) AS x)
            FROM before;
        CREATE OR REPLACE TEMP VIEW wild AS SELECT * REPLACE (if(point_id = 105, 'nan', x) AS x)
            FROM before
    """)
    with pytest.raises(duckdb.Error) as error:
        con.execute(f"FROM cloud_distance({call})").fetchall()
    assert said in str(error.value)


def test_in_python(con):
    rows = [con.execute(f"FROM {name} ORDER BY point_id").fetchnumpy() for name in
            ("later", "before")]  # fmt: skip
    later, before = ([each[axis] for axis in "xyz"] for each in rows)
    found = spatialq.run("cloud_distance", *later, rows[0]["point_id"], reference=before)
    expected = call(con, "later", "before")
    assert found["distance"].tolist() == [row[1] for row in expected]
    assert (found["reference_id"] + 100).tolist() == [row[2] for row in expected]
    points = spatialq.table(con, "later").cloud_distance(spatialq.table(con, "before"), unit=1)
    columns = [each for each in points.columns if each not in "xyz"]
    assert sorted(points.select(*columns).fetchall()) == expected


def test_a_file_as_text_is_refused_by_the_builder(con):
    """It would be a table of that name, or what DuckDB reads, without its CRS."""
    with pytest.raises(QueryError, match=r"reference must be .* got the file 'a/b.laz'"):
        spatialq.table(con, "later").cloud_distance("a/b.laz")
    with pytest.raises(QueryError, match=r"polygons must be .* got the file '/x/plots.geojson'"):
        spatialq.table(con, "later").points_within("/x/plots.geojson")


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        (None, "run: cloud_distance is a function of points and reference: give reference="),
        ("before", "cloud_distance: reference must be three arrays x, y and z, got str"),
        (([1.0], [1.0]), "cloud_distance: reference must be three arrays x, y and z, got tuple"),
        (([1.0], [1.0], [1.0, 2]), "cloud_distance: reference: the columns must be .*one length"),
    ],
)
def test_what_is_no_cloud_in_python(reference, said):
    with pytest.raises(ValueError, match=said):
        spatialq.run("cloud_distance", [0.0], [0.0], [0.0], reference=reference)
