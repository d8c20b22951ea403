"""`points_within` as a job: the rows of one call on all files, and of GEOS."""

import functools
import json
import shutil

import numpy as np
import pytest
import shapely

import spatialq
from spatialq import cluster
from spatialq.errors import CrsError, FileError, JobError
from tests.cluster import surveys
from tests.cluster.test_elements import require_same

SHAPES = {
    "across tiles": shapely.box(5.005, 5.005, 25, 15).difference(shapely.box(12, 8, 14, 10)),
    "two parts": shapely.MultiPolygon([shapely.box(1, 1, 4, 4), shapely.box(21, 21, 29, 29)]),
    "where no point is": shapely.box(500, 500, 501, 501),
    "nothing": None,
    None: shapely.Polygon([(0, 20), (10, 20), (5, 30)]),
}


def write_polygons(path, names="name", epsg=25832):
    """Write the polygons, with `polygon_id` as text, or as GeoJSON numbers them."""
    features = [
        {
            "type": "Feature",
            "properties": {names: name},
            "geometry": None if shape is None else json.loads(shapely.to_geojson(shape)),
        }
        for name, shape in SHAPES.items()
    ]
    crs = {"type": "name", "properties": {"name": f"urn:ogc:def:crs:EPSG::{epsg}"}}
    collection = {"type": "FeatureCollection", "crs": crs, "features": features}
    path.write_text(json.dumps(collection))
    return path


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    """Nine files of points, of which most touch no polygon by their boxes alone."""
    folder = tmp_path_factory.mktemp("polygons")
    rng = np.random.default_rng(2)
    for k in range(9):
        west, south = 10.0 * (k % 3), 10.0 * (k // 3)
        x, y = west + rng.uniform(0, 9.99, 800), south + rng.uniform(0, 9.99, 800)
        surveys.write_tile(folder / f"tile{k}.laz", x, y, np.zeros(800))
    return folder


def in_sql(con, source, polygons, name, **options):
    """Make the table `expected` of one call in SQL."""
    con.execute(
        f"CREATE TABLE plots AS SELECT {name} AS polygon_id, geometry FROM "
        f"read_vector('{polygons}')"
    )
    more = "".join(f", {key} := {list(value)}" for key, value in options.items())
    con.execute(f"CREATE TABLE expected AS FROM points_within('{source}', 'plots'{more})")


def of_geos(source):
    """Count the points in each polygon, its edges included."""
    with spatialq.connect() as con:
        rows = con.sql(f"SELECT x, y FROM read_points('{source}')").fetchnumpy()
    points = shapely.points(rows["x"], rows["y"])
    return {
        name: int(shapely.covers(shape, points).sum())
        for name, shape in SHAPES.items()
        if shape is not None and shapely.covers(shape, points).any()
    }


@pytest.mark.parametrize("tile_size", [None, 7.0])
@pytest.mark.parametrize("names", ["polygon_id", "name"])
def test_the_rows_are_those_of_one_call(at_once, survey, tmp_path, names, tile_size):
    source, polygons = f"{survey}/*.laz", write_polygons(tmp_path / "plots.geojson", names)
    made = cluster.run(
        "points_within", source, tmp_path / "out", polygons=polygons, tile_size=tile_size
    )
    with spatialq.connect() as con:
        in_sql(con, source, polygons, names if names == "polygon_id" else "fid")
        assert made["rows"] == require_same(con, tmp_path / "out")
        counts = con.sql("SELECT polygon_id, count(*) FROM found GROUP BY ALL").fetchall()
    expected = of_geos(source)
    assert made["points"] == 7200
    assert made["rows"] == sum(expected.values()) > 1000
    if names == "polygon_id":
        assert dict(counts) == expected
    else:
        numbers = {list(SHAPES).index(name): count for name, count in expected.items()}
        assert dict(counts) == numbers


def test_stray_points_are_kept(at_once, survey, tmp_path):
    folder = shutil.copytree(survey, tmp_path / "tiles")
    surveys.write_tile(folder / "stray.laz", *np.array([[12.0], [9.0], [900.0]]))
    source, polygons = f"{folder}/*.laz", write_polygons(tmp_path / "plots.geojson")
    made = cluster.run("points_within", source, tmp_path / "out", polygons=polygons)
    with spatialq.connect() as con:
        in_sql(con, source, polygons, "fid")
        assert made["rows"] == require_same(con, tmp_path / "out") > 1000


def test_bounds_and_processes(survey, tmp_path):
    source, polygons = f"{survey}/*.laz", write_polygons(tmp_path / "plots.geojson")
    bounds = (3.0, 6.0, 24.0, 28.5)
    told = []
    made = cluster.run(
        "points_within", source, tmp_path / "out", polygons=str(polygons), bounds=bounds,
        workers=2, memory="400MB", progress=lambda stage, *_: told.append(str(stage)),
    )  # fmt: skip
    with spatialq.connect() as con:
        in_sql(con, source, polygons, "fid", bounds=bounds)
        assert made["rows"] == require_same(con, tmp_path / "out") > 500
    assert list(dict.fromkeys(told)) == ["survey", "polygons", "parts"]


def test_files_that_no_polygon_touches_are_read_by_the_survey_alone(at_once, survey, tmp_path):
    polygons = tmp_path / "one.geojson"
    shape = json.loads(shapely.to_geojson(shapely.box(2, 2, 3, 3)))
    feature = {"type": "Feature", "properties": {}, "geometry": shape}
    polygons.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    # GeoJSON without a CRS is in longitude and latitude, of which the survey says nothing
    made = cluster.run("points_within", f"{survey}/*.laz", tmp_path / "out", polygons=polygons)
    lines = (tmp_path / "out" / "journal.jsonl").read_text().splitlines()
    parts = [each for each in map(json.loads, lines) if each["stage"] == "parts"]
    assert made["parts"] == len(parts) == 9
    assert sum("device" in each["facts"] for each in parts) == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "polygons must be the path of a file that read_vector reads, got None"),
        ({"polygons": 7}, "polygons must be the path of a file that read_vector reads, got 7"),
        ({"polygons": "none.gpkg"}, r"'none\.gpkg': there is no such file"),
        ({"polygons": "none.gpkg", "layer": 3}, "layer must be the name of a layer or None, got 3"),
        ({"polygons": "none.gpkg", "device": "gpu"}, "device must be one of auto, cpu for "),
    ],
)
def test_wrong_arguments_leave_nothing(at_once, survey, tmp_path, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        cluster.run("points_within", f"{survey}/*.laz", tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_polygons_that_cannot_be_used(at_once, survey, tmp_path):
    run = functools.partial(cluster.run, "points_within", f"{survey}/*.laz")
    no_polygons = tmp_path / "no.geojson"
    no_polygons.write_text("no polygons")
    with pytest.raises(FileError, match=r"^read_vector: '.*no\.geojson': is no GeoJSON"):
        run(tmp_path / "a", polygons=no_polygons)
    shape = {"type": "Point", "coordinates": [1, 2]}
    feature = {"type": "Feature", "properties": {"polygon_id": "p"}, "geometry": shape}
    no_polygons.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    with pytest.raises(ValueError, match="POLYGON or MULTIPOLYGON, got POINT of polygon_id p"):
        run(tmp_path / "b", polygons=no_polygons)
    elsewhere = write_polygons(tmp_path / "plots.geojson", epsg=2154)
    said = (
        r"points_within: points are in .*25832\) but polygons of '.*plots\.geojson' are in .*2154"
    )
    with pytest.raises(CrsError, match=said):
        run(tmp_path / "c", polygons=elsewhere, crs="EPSG:25832")


def test_a_job_is_resumed_only_with_the_same_polygons(at_once, survey, tmp_path):
    polygons = write_polygons(tmp_path / "plots.geojson")
    other = write_polygons(tmp_path / "other.geojson")
    run = functools.partial(
        cluster.run, "points_within", f"{survey}/*.laz", tmp_path / "out", resume=True
    )
    assert run(polygons=polygons)["resumed"] == 0
    assert run(polygons=polygons)["resumed"] == 9
    with pytest.raises(JobError, match="was begun with another polygons, "):
        run(polygons=other)
    polygons.write_text(polygons.read_text() + "\n")
    with pytest.raises(JobError, match=r"plots\.geojson' has changed since the job .* was begun"):
        run(polygons=polygons)


def test_a_job_in_sql(at_once, survey, tmp_path):
    source, polygons = f"{survey}/*.laz", write_polygons(tmp_path / "plots.geojson")
    with spatialq.connect() as con:
        con.sql(
            f"FROM cluster_run('points_within', '{source}', '{tmp_path}/out', "
            f"options := {{'polygons': '{polygons}'}})"
        ).fetchall()
        in_sql(con, source, polygons, "fid")
        assert require_same(con, tmp_path / "out") > 1000
