"""Every command of point clouds has the options that say which points are read, and in which CRS."""

import json

import laspy
import numpy as np
import pyarrow.parquet as pq
import pyproj
import pytest
import shapely
import typer

import spatialq
from spatialq.cli import main as cli
from spatialq.errors import CrsError

FLAGS = {"--crs", "--override-crs", "--to-crs", "--within"}
OF_POINTS = ("noise", "thin", "clip", "ground", "planes", "lod", "tiles")
"""Commands that read nothing but point clouds, or tiles that may be of other things, too."""
FROM, TO = "EPSG:25832", "EPSG:25833"
CORNER = (700_000.0, 5_600_000.0)
WRITERS = {
    "noise": lambda *args, **options: spatialq.write_noise(*args, **options),
    "thin": lambda *args, **options: spatialq.write_thinned(*args, distance=0.001, **options),
    "ground": lambda *args, **options: spatialq.write_ground(*args, **options),
    "planes": lambda *args, **options: spatialq.write_planes(*args, **options),
}
"""Commands that write points, with options so that all are written."""


@pytest.mark.parametrize("name", OF_POINTS)
def test_every_command_has_the_options(name):
    group = typer.main.get_command(cli.app)
    with typer.Context(group) as context:
        _, command, _ = group.resolve_command(context, [name])
    assert {flag for each in command.params for flag in each.opts} >= FLAGS


@pytest.fixture(scope="module")
def cloud(tmp_path_factory):
    """Points on hills, and the corners of a polygon around some of them in the other CRS."""
    rng = np.random.default_rng(8)
    x, y = rng.uniform(0, 60, (2, 4000))
    header = laspy.LasHeader(point_format=6, version="1.4")
    header.scales, header.offsets = [0.001] * 3, [*CORNER, 0]
    header.add_crs(pyproj.CRS(FROM))
    points = laspy.LasData(header)
    points.x, points.y = x + CORNER[0], y + CORNER[1]
    points.z = 100 + 0.1 * x + 2 * np.sin(y / 10)
    points.user_data = np.arange(4000) % 256
    path = tmp_path_factory.mktemp("clouds") / "a.laz"
    points.write(path)
    return path


def there(path):
    """Coordinates of a file by laspy."""
    cloud = laspy.read(path)
    return np.column_stack([cloud.x, cloud.y, cloud.z])


def moved(cloud):
    """Coordinates in the other CRS by pyproj."""
    xyz = there(cloud)
    change = pyproj.Transformer.from_crs(FROM, TO, always_xy=True)
    return np.column_stack([*change.transform(xyz[:, 0], xyz[:, 1]), xyz[:, 2]])


@pytest.fixture(scope="module")
def polygon(cloud):
    """A polygon in the other CRS, and which points are in it."""
    xyz = moved(cloud)
    shape = shapely.Point(*xyz[:, :2].mean(axis=0)).buffer(18)
    path = cloud.with_name("plot.geojson")
    system = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::25833"}}
    feature = {"type": "Feature", "properties": {}, "geometry": shapely.geometry.mapping(shape)}
    collection = {"type": "FeatureCollection", "crs": system, "features": [feature]}
    path.write_text(json.dumps(collection))
    return path, shapely.covers(shape, shapely.points(xyz[:, :2]))


@pytest.mark.parametrize("name", WRITERS)
def test_points_in_another_crs(name, cloud, polygon, tmp_path):
    target = tmp_path / "out.laz"
    path, inside = polygon
    WRITERS[name](cloud, target, to_crs=TO, within=path)
    written = laspy.read(target)
    assert written.header.parse_crs().to_epsg() == 25833
    assert np.abs(there(target) - moved(cloud)[inside]).max() < 0.001
    assert (written.user_data == laspy.read(cloud).user_data[inside]).all()


def test_clip_in_the_crs_of_the_polygons(cloud, polygon, tmp_path):
    path, inside = polygon
    target = tmp_path / "out.laz"
    with pytest.raises(CrsError, match="clip: .* reproject one of them first"):
        spatialq.write_clip(cloud, target, path)
    row = spatialq.write_clip(cloud, target, path, to_crs=TO)
    assert row["points"] == inside.sum()
    assert np.abs(there(target) - moved(cloud)[inside]).max() < 0.001


def test_levels_of_detail_in_another_crs(cloud, polygon, tmp_path):
    path, inside = polygon
    targets = [tmp_path / "a.parquet", tmp_path / "a.copc.laz"]
    with pytest.warns(match="has no colours"):
        row = spatialq.write_lod(cloud, targets, to_crs=TO, within=path)
    assert row["points"] == inside.sum()
    assert "25833" in pq.read_schema(targets[0]).metadata[b"crs"].decode()
    ours, theirs = there(targets[1]), moved(cloud)[inside]
    assert ours.shape == theirs.shape
    for k in range(3):
        assert np.abs(np.sort(ours[:, k]) - np.sort(theirs[:, k])).max() < 0.001


def test_tiles_of_some_points(cloud, polygon, tmp_path):
    path, inside = polygon
    with pytest.warns(match="has no colours"):
        row = spatialq.write_tiles(cloud, tmp_path / "tileset.json", to_crs=TO, within=path)
    assert row["points"] == inside.sum()


def test_a_file_without_a_crs_is_given_one_first(cloud, tmp_path):
    nameless = laspy.read(cloud)
    nameless.header.vlrs.clear()
    nameless.write(tmp_path / "a.laz")
    with pytest.raises(CrsError, match="ground: to_crs: .* has no CRS to reproject from"):
        spatialq.write_ground(tmp_path / "a.laz", tmp_path / "b.laz", to_crs=TO)
    spatialq.write_ground(tmp_path / "a.laz", tmp_path / "b.laz", crs=FROM, to_crs=TO)
    assert np.abs(there(tmp_path / "b.laz") - moved(cloud)).max() < 0.001
