"""Points in the polygons of a file: `spatialq clip`, and `--within` of commands, by shapely."""

import json
import re

import geopandas as gpd
import laspy
import numpy as np
import pytest
import shapely

import spatialq
from spatialq.workflows.clip import write_clip

from .command_line import spatialq_command
from .conftest import real_file

TILES = [(0, 0), (100, 0), (0, 100)]
SHAPES = {
    "meadow": shapely.Polygon(
        [(10, 10), (80, 20), (60, 90), (20, 70)], [[(30, 30), (50, 30), (50, 50)]]
    ),
    "road": shapely.box(70, 40, 160, 50),
}  # fmt: skip
EAST, NORTH = 652_000, 5_606_000


def write_tile(path, column, row, seed, point_format=6):
    import pyproj

    rng = np.random.default_rng(seed)
    header = laspy.LasHeader(point_format=point_format, version="1.4")
    header.scales, header.offsets = [0.01] * 3, [EAST, NORTH, 0]
    header.add_crs(pyproj.CRS("EPSG:25832+7837"))
    cloud = laspy.LasData(header)
    cloud.x = EAST + column + np.round(rng.uniform(0, 100, 4000))
    cloud.y = NORTH + row + np.round(rng.uniform(0, 100, 4000))
    cloud.z = rng.uniform(0, 1, 4000)
    cloud.intensity = np.arange(4000)
    cloud.gps_time = rng.uniform(0, 1e6, 4000)
    cloud.write(path)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clip")
    (folder / "tiles").mkdir()
    for k, (column, row) in enumerate(TILES):
        write_tile(folder / "tiles" / f"{k}.laz", column, row, k)
    shapes = [shapely.affinity.translate(each, EAST, NORTH) for each in SHAPES.values()]
    features = gpd.GeoDataFrame({"kind": [*SHAPES]}, geometry=shapes, crs=25832)
    features.to_file(folder / "plots.gpkg", engine="pyogrio")
    features.to_crs(4326).to_file(folder / "degrees.geojson", engine="pyogrio")
    gpd.GeoDataFrame(geometry=[shapely.box(0, 0, 1, 1)], crs=25832).to_file(
        folder / "elsewhere.gpkg", engine="pyogrio"
    )
    return folder


def records(paths):
    return np.concatenate([laspy.read(path).points.array for path in paths])


def inside(paths, shapes):
    found = []
    for path in paths:
        cloud = laspy.read(path)
        points = shapely.points(np.array(cloud.x) - EAST, np.array(cloud.y) - NORTH)
        found.append(np.any([shapely.covers(each, points) for each in shapes], axis=0))
    return np.concatenate(found)


@pytest.mark.parametrize(
    ("options", "kinds", "tiles"),
    [
        ([], ["meadow", "road"], 2),  # no polygon touches the third
        (["--where", "kind = 'road'"], ["road"], 2),
        (["--where", "kind = 'meadow'"], ["meadow"], 1),
        (["--outside"], ["meadow", "road"], 3),
        (["--layer", "plots"], ["meadow", "road"], 2),
    ],
)
def test_points_in_polygons_stay_as_they_are(world, tmp_path, options, kinds, tiles):
    out = tmp_path / "out.laz"
    within = ("--within", world / "plots.gpkg", *options)
    done = spatialq_command("clip", world / "tiles/*.laz", *within, "-o", out, "--json")
    assert done.returncode == 0, done.stderr
    sources = sorted((world / "tiles").glob("*.laz"))
    keep = inside(sources, [SHAPES[kind] for kind in kinds]) ^ ("--outside" in options)
    np.testing.assert_array_equal(records([out]), records(sources)[keep])
    (row,) = json.loads(done.stdout)
    assert (row["points"], row["files"]) == (keep.sum(), tiles)
    assert laspy.read(out).header.parse_crs().to_2d().to_epsg() in (25832, None)


def test_a_folder_gets_the_tiles_that_polygons_touch(world, tmp_path):
    out = tmp_path / "out"
    row = write_clip(world / "tiles", f"{out}/", world / "plots.gpkg")
    assert sorted(each.name for each in out.iterdir()) == ["0.laz", "1.laz"]
    assert row["points"] == sum(len(records([each])) for each in out.iterdir())


def test_clouds_of_other_formats(world, tmp_path):
    cloud = laspy.read(world / "tiles" / "0.laz")
    xyz = np.column_stack([cloud.x, cloud.y, cloud.z])
    np.savetxt(tmp_path / "a.xyz", xyz, fmt="%.2f")
    row = write_clip(tmp_path / "a.xyz", tmp_path / "a.laz", world / "plots.gpkg")
    keep = inside([world / "tiles" / "0.laz"], SHAPES.values())
    assert row["points"] == keep.sum()
    assert np.allclose(np.array(laspy.read(tmp_path / "a.laz").x), xyz[keep, 0], atol=0.01)


def test_within_is_the_clipped_cloud(world, tmp_path):
    sources, plots = world / "tiles" / "*.laz", world / "plots.gpkg"
    write_clip(sources, tmp_path / "clipped.laz", plots)
    expected = spatialq.write_ground(tmp_path / "clipped.laz", tmp_path / "expected.laz")
    done = spatialq_command(
        "ground", sources, "--within", plots, "-o", tmp_path / "ground.laz", "--json"
    )
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    for name in ("points", "ground_points", "noise_points"):
        assert found[name] == expected[name]
    np.testing.assert_array_equal(
        records([tmp_path / "ground.laz"]), records([tmp_path / "expected.laz"])
    )
    planes = spatialq.write_planes(sources, within=plots)
    assert planes["points"] == expected["points"]
    out = tmp_path / "a.copc.laz"
    done = spatialq_command("lod", sources, "--within", plots, "-o", out)
    assert done.returncode == 0, done.stderr
    of_lod, of_clip = (records([each]) for each in (out, tmp_path / "clipped.laz"))
    for name in ("X", "Y", "Z", "gps_time"):
        np.testing.assert_array_equal(np.sort(of_lod[name]), np.sort(of_clip[name]))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--within", "{folder}/degrees.geojson"],
         r"clip: '.*degrees.geojson' is in .*4326.* but the point clouds are in .*25832"),
        (["--within", "{folder}/elsewhere.gpkg"], "its polygons touch none of the point clouds"),
        (["--within", "{folder}/none.gpkg"], "none.gpkg': there is no such file"),
        (["--within", "{folder}/plots.gpkg", "--where", "kind = 'x'"], "there is no polygon"),
        (["--within", "{folder}/plots.gpkg", "--where", "colour = 1"],
         "clip: where must be a condition on the columns fid, kind, geometry, got 'colour = 1': "),
        (["--within", "{folder}/plots.gpkg", "--layer", "x"], "has no layer 'x'"),
    ],
)  # fmt: skip
def test_errors(world, tmp_path, options, said):
    given = (each.format(folder=world) for each in options)
    done = spatialq_command("clip", world / "tiles/*.laz", *given, "-o", tmp_path / "a.laz")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert re.search(said, done.stderr), done.stderr
    assert not (tmp_path / "a.laz").exists()


def test_jobs_refuse_polygons(world, tmp_path):
    done = spatialq_command(
        "ground", world / "tiles/*.laz", "--within", world / "plots.gpkg",
        "--executor", "serial", "-o", tmp_path / "job",
    )  # fmt: skip
    assert done.returncode == 1
    assert "--within" in done.stderr


@pytest.mark.slow
def test_real_tiles(tmp_path):
    sources = [real_file(f"data/lidar/bcts_{k}.laz") for k in (1, 2, 4)]
    boxes = [laspy.read(each).header for each in sources]
    west, south = np.min([each.mins[:2] for each in boxes], axis=0)
    east, north = np.max([each.maxs[:2] for each in boxes], axis=0)
    rng = np.random.default_rng(1)
    at = rng.uniform([west, south], [east, north], (40, 2))
    shapes = [
        shapely.Point(each).buffer(radius)
        for each, radius in zip(at, rng.uniform(2, 20, 40), strict=True)
    ]
    crs = boxes[0].parse_crs()
    gpd.GeoDataFrame(geometry=shapes, crs=crs and crs.to_2d()).to_file(
        tmp_path / "plots.fgb", engine="pyogrio"
    )
    row = write_clip(sources, tmp_path / "a.laz", tmp_path / "plots.fgb")
    expected = 0
    whole = shapely.union_all(shapes)
    shapely.prepare(whole)
    for each in sources:
        cloud = laspy.read(each)
        expected += np.count_nonzero(shapely.covers(whole, shapely.points(cloud.x, cloud.y)))
    assert row["points"] == expected > 1000
