"""`read_vector` against geopandas, which reads the same files."""

import json
import sqlite3
from contextlib import closing

import duckdb
import geopandas as gpd
import numpy as np
import pandas as pd
import pyogrio
import pytest
import shapely
from pandas.testing import assert_series_equal

import spatialq

SHAPES = [
    shapely.box(0, 0, 4, 3).difference(shapely.box(1, 1, 2, 2)),
    shapely.MultiPolygon([shapely.box(5, 5, 6, 6), shapely.box(7, 7, 9, 8)]),
    shapely.Polygon([(0, 0), (1, 0), (0, 1)]),
]
ATTRIBUTES = {
    "name": ["a", None, "ü"],
    "n": np.array([1, -(2**40), 3]),
    "small": np.array([1, 2, 3], np.int32),
    "f": [1.5, None, -0.1],
    "flag": [True, False, True],
}
WRITTEN = {".gpkg": {}, ".shp": {}, ".geojson": {}, ".fgb": {}, ".parquet": {}}


@pytest.fixture
def con():
    with spatialq.connect() as con:
        yield con


def frame(crs=25832):
    return gpd.GeoDataFrame(ATTRIBUTES, geometry=SHAPES, crs=crs)


def write(path, features):
    if path.suffix == ".parquet":
        features.to_parquet(path)
    else:
        features.to_file(path, engine="pyogrio")
    return path


def same_shapes(found, expected):
    shapes = shapely.from_wkb([None if each is None else bytes(each) for each in found])
    assert shapely.equals_exact(shapes, expected).all()
    assert (shapely.has_z(shapes) == shapely.has_z(expected)).all()


@pytest.mark.parametrize("ending", WRITTEN)
def test_features_are_those_of_geopandas(con, tmp_path, ending):
    path = write(tmp_path / f"a{ending}", frame())
    read = gpd.read_parquet if ending == ".parquet" else gpd.read_file
    expected = read(path)
    rows = con.sql(f"FROM read_vector('{path}')")
    numbered = [] if ending == ".parquet" else ["fid"]
    assert rows.columns == [*numbered, *expected.columns]
    if numbered:
        fids = pyogrio.read_dataframe(path, fid_as_index=True).index.tolist()
        assert [
            fid for (fid,) in con.sql(f"SELECT fid FROM read_vector('{path}')").fetchall()
        ] == fids
    names = [name for name in expected.columns if name != "geometry"]
    found = con.sql(f"SELECT {', '.join(names)} FROM read_vector('{path}')").df()
    for name in names:
        assert_series_equal(
            found[name], pd.Series(expected[name]), check_dtype=False, check_index_type=False
        )
    (shapes,) = zip(
        *con.sql(f"SELECT ST_AsWKB(geometry) FROM read_vector('{path}')").fetchall(), strict=True
    )
    same_shapes(shapes, expected.geometry.to_numpy())


@pytest.mark.parametrize("ending", WRITTEN)
def test_the_crs_is_that_of_the_file(con, tmp_path, ending):
    path = write(tmp_path / f"a{ending}", frame())
    con.execute(f"CREATE TABLE t AS FROM read_vector('{path}')")
    ((stated,),) = con.sql("SELECT ST_CRS(geometry) FROM t LIMIT 1").fetchall()
    assert json.loads(stated)["id"] == {"authority": "EPSG", "code": 25832}
    con.sql("FROM t").write_parquet(str(tmp_path / "out.parquet"))
    assert gpd.read_parquet(tmp_path / "out.parquet").crs.to_epsg() == 25832


@pytest.mark.filterwarnings("ignore:'crs' was not provided")
def test_the_crs_is_unknown_or_given(con, tmp_path):
    path = write(tmp_path / "a.fgb", frame(None))
    assert str(con.sql(f"FROM read_vector('{path}')").types[-1]) == "GEOMETRY"
    given = con.sql(
        f"SELECT ST_CRS(geometry) FROM read_vector('{path}', crs := 'EPSG:2154') LIMIT 1"
    )
    assert json.loads(given.fetchall()[0][0])["id"]["code"] == 2154


def test_several_files_are_one_table(con, tmp_path):
    first = write(tmp_path / "a.gpkg", frame())
    second = write(tmp_path / "b.geojson", frame().drop(columns="f"))
    rows = con.sql(
        f"SELECT file_name, count(*), count(f) FROM read_vector(['{first}', '{second}']) "
        "GROUP BY ALL ORDER BY ALL"
    )
    assert rows.fetchall() == [(str(first), 3, 2), (str(second), 3, 0)]
    assert con.sql(f"FROM read_vector('{tmp_path}/*.g*')").columns[-1] == "file_name"
    write(tmp_path / "c.gpkg", frame(2154))
    with pytest.raises(
        duckdb.Error, match=r"a.gpkg' is in .*EPSG:25832.* but .*c.gpkg' is in .*EPSG:2154"
    ):
        con.sql(f"FROM read_vector('{tmp_path}/*.gpkg')")


def test_layers(con, tmp_path):
    path = tmp_path / "a.gpkg"
    for layer, count in (("plots", 1), ("roads", 2)):
        frame()[:count].to_file(path, layer=layer, engine="pyogrio")
    with pytest.raises(duckdb.Error, match=r"layer must be given, as .* several: 'plots', 'roads'"):
        con.sql(f"FROM read_vector('{path}')")
    assert len(con.sql(f"FROM read_vector('{path}', layer := 'roads')").fetchall()) == 2
    assert spatialq.read_vector(con, path, layer="plots").count() == 1


def test_drawings(con, tmp_path):
    path = tmp_path / "a.dxf"
    frame()[["geometry"]][:1].to_file(path, driver="DXF", engine="pyogrio")
    expected = gpd.read_file(path)
    rows = con.sql(f"SELECT Layer, ST_AsWKB(geometry) FROM read_vector('{path}')").fetchall()
    assert [layer for layer, _ in rows] == expected.Layer.tolist()
    same_shapes([shape for _, shape in rows], expected.geometry.to_numpy())


def test_features_without_a_geometry_and_files_without_features(con, tmp_path):
    features = frame()[:2]
    features.loc[1, "geometry"] = None
    path = write(tmp_path / "a.gpkg", features)
    assert con.sql(f"SELECT geometry IS NULL FROM read_vector('{path}')").fetchall() == [
        (False,),
        (True,),
    ]
    empty = write(tmp_path / "b.gpkg", frame()[:0])
    assert con.sql(f"FROM read_vector('{empty}')").fetchall() == []


def test_heights_stay(con, tmp_path):
    shapes = [shapely.Polygon([(0, 0, 1), (1, 0, 2), (0, 1, 3)])]
    path = write(tmp_path / "a.gpkg", gpd.GeoDataFrame(geometry=shapes, crs=25832))
    ((found,),) = con.sql(f"SELECT ST_AsWKB(geometry) FROM read_vector('{path}')").fetchall()
    same_shapes([found], shapes)


def test_attributes_with_names_of_ours(con, tmp_path):
    feature = {"type": "Feature", "properties": {"fid": 7, "A": 1, "a": 2, "Geometry": 3},
               "geometry": {"type": "Point", "coordinates": [1, 2]}}  # fmt: skip
    path = tmp_path / "a.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    rows = con.sql(f"SELECT * EXCLUDE (geometry) FROM read_vector('{path}')")
    assert dict(zip(rows.columns, rows.fetchall()[0], strict=True)) == {
        "fid": 7, "A": 1, "a_1": 2, "Geometry_1": 3
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.gpkg", b"<OGRVRTDataSource></OGRVRTDataSource>", "is no GPKG, as its name says"),
        ("a.geojson", b'{"a": "<OGRVRTDataSource>"}', "is no GeoJSON, as its name says"),
        ("a.fgb", b"fgb\x03fgb\x01 damaged", "has no layer"),
        ("a.parquet", b"PAR1", "is no GeoParquet"),
        ("a.txt", b"", "is no file of features: its name must end in one of .dxf, .fgb"),
    ],
)
def test_what_is_no_file_of_features(con, tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(duckdb.Error, match=f"FileError: read_vector: .*{name}.*{said}"):
        con.sql(f"FROM read_vector('{tmp_path / name}')")


def test_curves_are_named(con, tmp_path):
    path = tmp_path / "a.gpkg"
    frame()[:1].to_file(path, engine="pyogrio", geometry_type="Unknown", SPATIAL_INDEX="NO")
    arc = b"\1" + np.array([8, 3], "<u4").tobytes() + np.array([0, 0, 1, 1, 2, 0], "<f8").tobytes()
    head = b"GP\0\1" + np.array([25832], "<i4").tobytes()
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE a SET geom = ?", [head + arc])
        database.commit()
    with pytest.raises(duckdb.Error, match="feature 1 is an arc, which DuckDB's GEOMETRY has not"):
        con.sql(f"FROM read_vector('{path}')").fetchall()
