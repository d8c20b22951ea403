"""GeoPackage and FlatGeobuf, read back by geopandas and pyogrio; what they cannot hold."""

import datetime as dt
import resource

import duckdb
import geopandas
import numpy as np
import pyogrio
import pyproj
import pytest
import shapely

import spatialq
from spatialq.database import vector_files
from spatialq.database.table_files import write_table
from spatialq.errors import CrsError, FileError
from spatialq.io import crs as crs_text

TRIANGLE = "((0 0 1, 2 0 1, 2 2 1, 0 0 1))"
SHAPES = f"""
    SELECT * FROM (VALUES
        (1, 'POLYGON Z {TRIANGLE}'::GEOMETRY, 'a'),
        (2, 'MULTIPOLYGON Z ({TRIANGLE}, ((9 9 0, 9.5 9 0, 9 9.25 7, 9 9 0)))'::GEOMETRY, NULL),
        (3, 'POLYGON Z EMPTY'::GEOMETRY, ''),
    ) AS t(i, shape, text)
"""
pytestmark = pytest.mark.filterwarnings("error")  # GDAL's, such as about a missing CRS


@pytest.fixture(params=["gpkg", "fgb"])
def out(request, tmp_path):
    return tmp_path / f"a layer.{request.param}"


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        yield con


@pytest.mark.parametrize("crs", ["EPSG:25832", "EPSG:25832+7837", "EPSG:4326", None])
def test_geometries_and_crs_come_back(con, out, crs):
    stated = None if crs is None else crs_text.from_text(crs)
    assert write_table(con, SHAPES, out, crs=stated) == 3
    assert [each.name for each in out.parent.iterdir()] == [out.name]
    assert pyogrio.list_layers(out).tolist() == [["a layer", "MultiPolygon Z"]]
    frame = geopandas.read_file(out).sort_values("i")
    assert frame.crs == (None if crs is None else pyproj.CRS(crs))
    expected = shapely.from_wkt([wkt for _, wkt, _ in con.sql(
        f"SELECT i, ST_AsText(shape), text FROM ({SHAPES}) ORDER BY i").fetchall()])  # fmt: skip
    for found, shape in zip(frame.geometry, expected, strict=True):
        parts = shapely.MultiPolygon(shapely.get_parts(shape).tolist())
        assert (found is None and shape.is_empty) or shapely.equals_identical(found, parts)
    assert frame["i"].tolist() == [1, 2, 3]
    assert frame["text"].fillna("NULL").tolist() == ["a", "NULL", ""]


def test_types_of_columns(con, out):
    query = """
        SELECT 'POINT (1 2)'::GEOMETRY AS place, true AS truth, -7::TINYINT AS tiny,
            255::UTINYINT AS byte, 4294967295::UINTEGER AS wide, 9223372036854775807 AS large,
            2::UBIGINT AS positive, 3::HUGEINT AS huge, 0.1::FLOAT AS single, 0.1::DOUBLE AS double,
            1.25::DECIMAL(9, 2) AS price, DATE '1969-07-20' AS day,
            TIMESTAMP '2026-11-23 06:30:15.125' AS moment, TIME '06:30:15' AS clock,
            '00000000-0000-0000-0000-00000000002a'::UUID AS id, [1, 2] AS list,
            {'a': [1], 'b': 'c'} AS struct, INTERVAL 2 DAY AS span, 7 AS fid,
            '\\xAA'::BLOB AS bytes,
            'LINESTRING (0 0, 1 1)'::GEOMETRY AS line, 'x' AS "Name", 'ON'::ENUM('ON') AS choice
    """
    write_table(con, query, out)
    ((row),) = geopandas.read_file(out).to_dict("records")
    assert row["geometry"] == shapely.Point(1, 2)
    plain = {
        "truth": True, "tiny": -7, "byte": 255, "wide": 2**32 - 1, "large": 2**63 - 1,
        "positive": 2, "huge": 3, "single": np.float32(0.1), "double": 0.1, "price": 1.25,
        "clock": "06:30:15", "id": "00000000-0000-0000-0000-00000000002a", "list": "[1,2]",
        "struct": '{"a":[1],"b":"c"}', "span": "2 days", "fid": 7, "bytes": b"\xaa",
        "line": "LINESTRING (0 0, 1 1)", "Name": "x", "choice": "ON",
    }  # fmt: skip
    assert {name: row[name] for name in plain} == plain
    assert row["day"].isoformat()[:10] == "1969-07-20"
    moment = dt.datetime(2026, 11, 23, 6, 30, 15, 125_000)
    assert row["moment"].to_pydatetime().replace(tzinfo=None) == moment


def test_rows_with_places_are_points(con, out):
    query = "SELECT i, i * 0.1 AS x, 5e6 + i AS y, -i / 3 AS z FROM range(1000) AS t(i)"
    assert write_table(con, query, out) == 1000
    assert pyogrio.read_info(out)["geometry_type"] == "Point Z"
    frame = geopandas.read_file(out).sort_values("i")
    rows = con.sql(query).fetchnumpy()
    for axis in "xyz":
        assert np.array_equal(getattr(frame.geometry, axis), rows[axis])
        assert np.array_equal(frame[axis], rows[axis])


def test_places_that_are_missing(con, out):
    rows = "(1, 2.0, 3.0), (2, NULL, 3.0), (3, 2.0, 'nan'::DOUBLE)"
    assert write_table(con, f"SELECT * FROM (VALUES {rows}) AS t(i, x, y)", out) == 3
    frame = geopandas.read_file(out).sort_values("i")
    assert pyogrio.read_info(out)["geometry_type"] == "Point"
    assert frame.geometry.isna().tolist() == [False, True, True]


@pytest.mark.parametrize("query", [SHAPES, "SELECT 1 AS i, 2.0 AS x, 3.0 AS y"])
def test_no_rows_are_a_valid_file(con, out, query):
    assert (
        write_table(con, f"FROM ({query}) LIMIT 0", out, crs=crs_text.from_text("EPSG:2263")) == 0
    )
    frame = geopandas.read_file(out)
    assert len(frame) == 0
    assert frame.crs == pyproj.CRS("EPSG:2263")
    assert "i" in frame.columns


def test_several_types_are_one_layer(con, out):
    query = "SELECT unnest(['POINT (1 2)'::GEOMETRY, 'LINESTRING (0 0, 1 1)'::GEOMETRY]) AS shape"
    assert write_table(con, query, out) == 2
    assert pyogrio.read_info(out)["geometry_type"] == "Unknown"
    assert set(geopandas.read_file(out).geom_type) == {"Point", "LineString"}


def test_names_that_differ_in_nothing_but_their_places(con, out):
    query = (
        "SELECT 1.0 AS x, 2.0 AS y, 'text' AS geometry, 'other' AS \"geom\", 5 AS FID, 6 AS fid_1"
    )
    assert write_table(con, query, out) == 1
    frame = geopandas.read_file(out, use_arrow=True)
    assert frame.geometry.iloc[0] == shapely.Point(1, 2)
    layer = pyogrio.read_info(out)
    assert {"x", "y", "geometry", "geom", "FID", "fid_1"} <= set(layer["fields"])


@pytest.mark.parametrize(
    ("query", "error", "sentence"),
    [
        ("SELECT 1 AS a", ValueError, "must have a column of type GEOMETRY, or x and y, got a"),
        (
            "SELECT 1 AS x, 2 AS y, 18446744073709551615::UBIGINT AS id",
            duckdb.Error,
            "column 'id' must be of whole numbers up to 9223372036854775807, got 1844674407370",
        ),
        ("SELECT 1 AS x, 2 AS y, error('no') AS e", duckdb.Error, "no"),
    ],
)
def test_what_is_refused_leaves_no_file(con, out, query, error, sentence):
    with pytest.raises(error, match=sentence):
        write_table(con, query, out)
    assert list(out.parent.iterdir()) == []


def test_a_folder_that_is_not_there(con, out):
    with pytest.raises(FileError, match="there is no folder"):
        write_table(con, SHAPES, out.parent / "none" / out.name)


def test_tables_of_two_systems_are_no_layer(out):
    with spatialq.connect() as con:
        for name, crs in (("one", "EPSG:25832"), ("two", "EPSG:2263")):
            con.execute(f"CREATE TABLE {name} AS SELECT 1.0 AS x, 2.0 AS y")
            con.execute(f'COMMENT ON TABLE {name} IS \'{{"crs": "{crs}"}}\'')
        write_table(con, "FROM one", out)
        assert geopandas.read_file(out).crs == pyproj.CRS("EPSG:25832")
        with pytest.raises(CrsError, match="one of them"):
            write_table(con, "FROM one UNION ALL FROM two", out)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["fgb", "gpkg"])
def test_many_rows_are_written_by_another_process(tmp_path, monkeypatch, ending):
    query = "SELECT range AS a, range::DOUBLE AS x, 2.0 AS y FROM range(3000)"
    found = []
    for at_once in (0, 3000):
        monkeypatch.setattr("spatialq.database.vector_files.AT_ONCE", at_once)
        target = tmp_path / f"{at_once}" / f"a.{ending}"
        target.parent.mkdir()
        with spatialq.connect() as con:
            assert write_table(con, query, target) == 3000
        assert list(target.parent.iterdir()) == [target]
        found.append(pyogrio.read_arrow(target))
    (one, one_table), (other, other_table) = found
    assert one_table.equals(other_table)
    assert one["geometry_type"] == other["geometry_type"]


def test_a_geopackage_without_its_index_is_refused(tmp_path):
    target = tmp_path / "rtree_a.gpkg"
    where = geopandas.GeoDataFrame({"a": range(50)}, geometry=[shapely.Point(1, 2)] * 50, crs=25833)
    message = r"rtree_a\.gpkg': cannot be written: GDAL made no spatial index"
    where.to_file(target, engine="pyogrio", layer="rtree_a", SPATIAL_INDEX="YES")
    vector_files._require_index(target, target)
    whole = target.read_bytes()
    target.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileError, match=message):
        vector_files._require_index(target, target)
    target.unlink()
    where.to_file(target, engine="pyogrio", layer="rtree_a", SPATIAL_INDEX="NO")
    with pytest.raises(FileError, match=message):
        vector_files._require_index(target, target)


def test_a_full_disk_of_another_process(tmp_path, monkeypatch):
    monkeypatch.setattr("spatialq.database.vector_files.AT_ONCE", 0)
    target = tmp_path / "a.fgb"
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    with spatialq.connect() as con:
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, limit[1]))
        try:
            with pytest.raises(spatialq.FileError, match=r"a\.fgb': cannot be written by GDAL: \w"):
                write_table(con, "SELECT range / 2 AS x, 2.0 AS y FROM range(30000)", target)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert not list(tmp_path.iterdir())
