"""Geometries leave as GeoParquet 1.1 with their CRS, from every door; null where it is unknown."""

import json
import re

import duckdb
import geopandas
import laspy
import numpy as np
import pyarrow.parquet as pq
import pyproj
import pytest
import shapely

import spatialq
from spatialq.database.table_files import write_table

from ..command_line import spatialq_command

TYPES = re.compile(
    r"(Point|LineString|Polygon|MultiPoint|MultiLineString|MultiPolygon|GeometryCollection)( Z)?"
)
COMPOUND = "EPSG:25832+7837"
VIEWS = """
    CREATE TEMP VIEW v AS FROM points;
    CREATE TEMP VIEW w AS FROM detect_planes('v');
    SELECT plane_id, boundary FROM w ORDER BY ALL
"""
SQUARE = "'POLYGON Z ((0 0 1, 2 0 1, 2 2 1, 0 0 1))'::GEOMETRY"


def geo_of(path):
    """The metadata of a file, after it was held against the rules of GeoParquet 1.1.

    They are those of its section "Metadata", as far as they are about WKB.
    """
    file = pq.ParquetFile(path)
    keys = [key for key in file.metadata.metadata if key == b"geo"]
    assert len(keys) == 1
    # JSON has no NaN and no infinity
    geo = json.loads(file.metadata.metadata[b"geo"], parse_constant=pytest.fail)
    assert geo["version"] == "1.1.0"
    assert geo["primary_column"] in geo["columns"]
    roots = {
        file.schema.column(k).path: file.schema.column(k) for k in range(len(file.schema.names))
    }
    for name, column in geo["columns"].items():
        assert column["encoding"] == "WKB"
        assert roots[name].physical_type == "BYTE_ARRAY"
        assert roots[name].logical_type.type == "NONE"
        assert all(TYPES.fullmatch(kind) for kind in column["geometry_types"])
        assert "crs" in column  # without it, it means longitude and latitude
        if column["crs"] is not None:
            pyproj.CRS.from_json_dict(column["crs"])
        known = {"encoding", "geometry_types", "crs", "bbox"}
        assert set(column) - known == ({"covering"} if name == geo["primary_column"] else set())
        assert len(column.get("bbox", [0] * 4)) in (4, 6)
    return geo


def check(path, crs, rows=None, column="boundary"):
    """Read a file by three programs; give its metadata."""
    geo = geo_of(path)
    expected = None if crs is None else pyproj.CRS(crs)
    found = geo["columns"][column]["crs"]
    assert found is None if crs is None else pyproj.CRS.from_json_dict(found).equals(expected)
    frame = geopandas.read_parquet(path)
    assert frame.crs == expected
    assert frame.geometry.name == geo["primary_column"] == column
    with duckdb.connect() as con:
        kind = con.sql(f"SELECT {column} FROM '{path}'").types[0]
    assert kind.id == "geometry"
    assert (str(kind) == "GEOMETRY") == (crs is None)
    assert rows is None or len(frame) == rows
    if len(frame):
        assert (geo["columns"][column]["bbox"][:2]) == pytest.approx(frame.total_bounds[:2])
    return geo


def write_room(path, crs):
    """Three planes of a corner, as a cloud."""
    u, v = (each.ravel() for each in np.meshgrid(np.arange(0, 4, 0.05), np.arange(0, 4, 0.05)))
    zero = np.zeros(u.size)
    header = laspy.LasHeader(point_format=6, version="1.4")
    header.scales, header.offsets = [1e-3] * 3, [500_000, 5_000_000, 0]
    if crs:
        header.add_crs(pyproj.CRS(crs))
    cloud = laspy.LasData(header)
    cloud.x = np.concatenate([u, u, zero]) + 500_000
    cloud.y = np.concatenate([v, zero, u]) + 5_000_000
    cloud.z = np.concatenate([zero, v, v])
    cloud.write(path)
    return path


@pytest.fixture(params=[COMPOUND, "EPSG:2263", None], ids=["compound", "feet", "unknown"])
def crs(request):
    return request.param


@pytest.fixture
def cloud(tmp_path, crs):
    return write_room(tmp_path / "room.las", crs)


@pytest.fixture
def loaded(tmp_path, cloud):
    with spatialq.connect(str(tmp_path / "site.duckdb")) as con:
        spatialq.load(con, cloud)
    return tmp_path / "site.duckdb"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::spatialq.errors.CrsWarning")
def test_every_door(tmp_path, cloud, loaded, crs):
    out = tmp_path / "out.parquet"
    for command in (
        ("planes", cloud, "-o", out),
        ("sql", "FROM detect_planes('points')", "-d", loaded, "-o", out),
        (
            "sql",
            VIEWS,
            *("-d", loaded, "-o", out),
        ),
    ):
        result = spatialq_command(*command)
        assert result.returncode == 0, result.stderr
        geo = check(out, crs, rows=3)
        assert geo["columns"]["boundary"]["geometry_types"] == ["Polygon Z"]
        out.unlink()
    with spatialq.connect(str(loaded)) as con:
        spatialq.table(con, "points").detect_planes().write(out)
        check(out, crs, rows=3)
        spatialq.read_las(con, cloud).detect_planes().write(out)  # a file states its CRS itself
        check(out, crs, rows=3)


def test_a_script_and_its_planes(tmp_path, loaded, crs):
    script = tmp_path / "s.ql4bim"
    script.write_text('c = ImportCloud("points")\np = Planes(c)\n')
    out = tmp_path / "out.parquet"
    result = spatialq_command("run", script, "-d", loaded, "-o", out)
    assert result.returncode == 0, result.stderr
    check(out, crs, rows=3)


def test_no_rows_are_a_valid_file(tmp_path, cloud, loaded, crs):
    out = tmp_path / "out.parquet"
    result = spatialq_command("planes", cloud, "-o", out, "--min-points", 10**6)
    assert result.returncode == 0, result.stderr
    assert check(out, crs, rows=0)["columns"]["boundary"]["geometry_types"] == []
    query = "FROM detect_planes('points') WHERE area > 1e6"
    result = spatialq_command("sql", query, "-d", loaded, "-o", out)
    assert result.returncode == 0, result.stderr
    check(out, crs, rows=0)


def test_what_a_type_says_goes_before_the_tables(tmp_path):
    """Two columns with a CRS of their own, and one without."""
    out = tmp_path / "out.parquet"
    french = pyproj.CRS("EPSG:2154").to_json().replace("Lambert-93", "l'autre")
    with spatialq.connect() as con:
        stated = f"ST_SetCRS({SQUARE}, $${french}$$) AS b"
        query = f"SELECT {SQUARE} AS a, {stated}, 'POINT (1 2)'::GEOMETRY('OGC:CRS84') AS c"
        assert write_table(con, query, out) == 1
    columns = check(out, None, column="a")["columns"]
    assert columns["b"]["crs"]["name"] == "RGF93 v1 / l'autre"
    assert columns["c"]["crs"]["id"] == {"authority": "OGC", "code": "CRS84"}
    assert [each["geometry_types"] for each in columns.values()] == [
        ["Polygon Z"],
        ["Polygon Z"],
        ["Point"],
    ]


@pytest.mark.slow
def test_values_and_order_stay(tmp_path):
    """Odd names of files and columns, geometries that are NULL, empty, or many."""
    folder = tmp_path / "a=1 [x]'s *"
    folder.mkdir()
    out = folder / "out.parquet"
    query = """
        SELECT i, CASE WHEN i % 7 > 0 THEN ('POINT (' || i || ' 2)')::GEOMETRY END AS "a ""g"" b",
            'POINT EMPTY'::GEOMETRY AS "e.f", i::VARCHAR AS i
        FROM range(300000) AS t(i) ORDER BY t.i DESC
    """
    with spatialq.connect() as con:
        assert write_table(con, query, out) == 300_000
    assert [each.name for each in folder.iterdir()] == ["out.parquet"]
    assert geo_of(out)["columns"]['a "g" b']["crs"] is None
    table = pq.read_table(out, partitioning=None)
    assert table.column_names == ["i", 'a "g" b', "e.f", "i_1", "bbox"]
    i = np.arange(300_000)[::-1]
    np.testing.assert_array_equal(table["i"], i)
    shapes = shapely.from_wkb(table['a "g" b'].to_numpy())
    np.testing.assert_array_equal(shapes == None, i % 7 == 0)  # noqa: E711
    np.testing.assert_array_equal(shapely.get_x(shapes[i % 7 > 0]), i[i % 7 > 0])
    assert shapely.is_empty(shapely.from_wkb(table["e.f"].to_numpy())).all()


def test_tables_without_geometry_are_plain(tmp_path, loaded):
    with spatialq.connect(str(loaded)) as con:
        write_table(con, "FROM points", tmp_path / "points.parquet")
    assert b"geo" not in (pq.read_metadata(tmp_path / "points.parquet").metadata or {})


def test_a_pivot_is_a_query_like_others(tmp_path):
    views = "CREATE TEMP VIEW v AS FROM (VALUES ('a', 1), ('b', 2)) AS t(k, n)"
    for ending in ("csv", "parquet", "json"):
        out = tmp_path / f"out.{ending}"
        result = spatialq_command("sql", f"{views}; PIVOT v ON k USING sum(n)", "-o", out)
        assert result.returncode == 0, result.stderr
        with duckdb.connect() as con:
            assert con.sql(f"SELECT a, b FROM '{out}'").fetchall() == [(1, 2)]


def test_boxes_are_those_of_the_geometries(tmp_path):
    """As shapely finds them; geopandas reads a part of the file by them."""
    shapes = [
        "POINT (3 4)", "POINT Z (1 2 3)", None, "LINESTRING (0 0, -5 2, 3 9)", "POINT EMPTY",
        "POLYGON ((0 0, 8 0, 8 8, 0 8, 0 0), (1 1, 2 1, 2 2, 1 1))", "MULTIPOINT Z (1 7 0, 2 6 9)",
        "MULTIPOLYGON (((20 20, 21 20, 21 21, 20 20)), ((30 30, 31 30, 31 32, 30 30)))",
        "GEOMETRYCOLLECTION (POINT (40 41), LINESTRING (50 60, 51 62))", "POLYGON EMPTY",
    ]  # fmt: skip
    listed = ", ".join("NULL" if each is None else f"'{each}'" for each in shapes)
    query = (
        f"SELECT i, 7 AS bbox, wkt::GEOMETRY AS g FROM unnest([{listed}]) WITH ORDINALITY t(wkt, i)"
    )
    out = tmp_path / "boxes.parquet"
    with spatialq.connect() as con:
        write_table(con, query, out)
    geo = geo_of(out)
    corners = ("xmin", "ymin", "xmax", "ymax")
    assert geo["columns"]["g"]["covering"] == {
        "bbox": {each: ["bbox_1", each] for each in corners}
    }  # fmt: skip
    boxes = pq.read_table(out)["bbox_1"].to_pylist()
    expected = shapely.bounds(shapely.from_wkt(shapes))
    for box, ends in zip(boxes, expected.tolist(), strict=True):
        assert box == (None if np.isnan(ends[0]) else dict(zip(corners, ends, strict=True)))
    # those whose box meets it
    part = geopandas.read_parquet(out, bbox=(7.5, 7.5, 20.5, 20.5))
    assert part["i"].tolist() == [6, 8]


@pytest.mark.parametrize("column", ["i", "('POINT (' || x || ' ' || y || ')')::GEOMETRY AS g"])
def test_sorted_rows_are_neighbours(tmp_path, column):
    """The curve passes from a cell of a lattice to one beside it."""
    side = 32
    query = (
        f"SELECT x, y, {column} FROM (SELECT i, i % {side} * 0.5 AS x, 9 - i // {side} * 0.5 AS y "
        f"FROM range({side * side}) AS t(i) ORDER BY hash(i))"
    )
    out = tmp_path / "sorted.parquet"
    with spatialq.connect() as con:
        assert write_table(con, query, out, sort=True) == side * side
        x, y = con.sql(f"SELECT x, y FROM '{out}'").fetchnumpy().values()
        assert sorted(pq.read_schema(out).names) == sorted(
            ["x", "y", "i"] if column == "i" else ["x", "y", "g", "bbox"]
        )
    assert set(zip(x, y, strict=True)) == {
        (k % side * 0.5, 9 - k // side * 0.5) for k in range(side * side)
    }
    assert (np.abs(np.diff(x)) + np.abs(np.diff(y)) == 0.5).all()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1.0 AS x, 2.0 AS y LIMIT 0",
        "SELECT NULL::GEOMETRY AS g FROM range(3)",
        "SELECT x, 'nan'::DOUBLE AS y FROM (VALUES (1.0), (NULL)) AS t(x)",
    ],
)
def test_rows_without_a_place_can_be_sorted(tmp_path, query):
    with spatialq.connect() as con:
        rows = con.sql(query).fetchall()
        assert write_table(con, query, tmp_path / "out.parquet", sort=True) == len(rows)
        assert con.sql(f"SELECT count(*) FROM '{tmp_path}/out.parquet'").fetchall() == [
            (len(rows),)
        ]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("a.csv", "sort is for .parquet, got"),
        ("a.parquet", "rows with a geometry or x and y, got i"),
    ],
)
def test_what_cannot_be_sorted(tmp_path, name, sentence):
    result = spatialq_command("sql", "SELECT 1 AS i", "-o", tmp_path / name, "--sort")
    assert result.returncode != 0
    assert sentence in result.stderr
    assert list(tmp_path.iterdir()) == []
