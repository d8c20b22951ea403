"""`spatialq.write`: relations of DuckDB and queries of the builder, in any format."""

import duckdb
import geopandas
import pyproj
import pytest

import spatialq
from spatialq.errors import FileError
from spatialq.io import crs


@pytest.fixture
def con():
    with spatialq.connect() as con:
        con.execute("CREATE TABLE places AS SELECT i, i * 1.5 AS x, 2.0 AS y FROM range(9) AS t(i)")
        stated = crs.from_text("EPSG:25832").replace("'", "''")
        con.execute(f"COMMENT ON TABLE places IS '{{\"crs\": {stated}}}'")
        yield con


@pytest.mark.parametrize("name", ["a.gpkg", "a.fgb"])
def test_a_relation_and_a_query_have_the_crs_of_their_table(con, tmp_path, name):
    for rows in (
        con.sql("FROM places").filter("i > 2").project("x, y"),
        spatialq.table(con, "places").where("i > 2"),
    ):
        assert spatialq.write(rows, tmp_path / name) == 6
        frame = geopandas.read_file(tmp_path / name)
        assert frame.crs == pyproj.CRS("EPSG:25832")
        assert sorted(frame.geometry.x) == [4.5, 6.0, 7.5, 9.0, 10.5, 12.0]


def test_a_relation_of_a_plain_connection(tmp_path):
    with duckdb.connect() as con:
        rows = con.sql("SELECT 1 AS x, 2 AS y, 3 AS z")
        assert spatialq.write(rows, str(tmp_path / "a.gpkg")) == 1
        assert spatialq.write(rows, tmp_path / "a.parquet", con=con, sort=True) == 1
    assert geopandas.read_file(tmp_path / "a.gpkg").crs is None


@pytest.mark.parametrize("rows", ["FROM places", 3, None])
def test_what_is_no_query_is_refused(tmp_path, rows):
    with pytest.raises(ValueError, match="write: rows must be a query, or a relation"):
        spatialq.write(rows, tmp_path / "a.csv")


def test_other_errors_name_the_file(con, tmp_path):
    rows = con.sql("FROM places")
    with pytest.raises(ValueError, match=r"a\.foo' must end in one of \."):
        spatialq.write(rows, tmp_path / "a.foo")
    with pytest.raises(FileError, match="there is no folder"):
        spatialq.write(rows, tmp_path / "none" / "a.csv")
    with pytest.raises(ValueError, match=r"sort is for \.parquet"):
        spatialq.write(rows, tmp_path / "a.gpkg", sort=True)
