"""Every command of point clouds has the options that say what is read and how it is written."""

import json

import duckdb
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
from spatialq.workflows.steps import steps_in

from .command_line import spatialq_command

FLAGS = {"--crs", "--override-crs", "--to-crs", "--within", "--scale", "--offset"}
OPTIONS = {
    **dict.fromkeys(("noise", "thin", "clip", "ground", "planes", "lod", "tiles"), FLAGS),
    "load": {"--crs", "--override-crs", "--to-crs"},
    "report": {"--crs", "--override-crs"},
    "verdict": {"--crs", "--override-crs"},
    "render": {"--within"},
    "features": {"--crs", "--to-crs"},
    "terrain": {"--crs", "--to-crs"},
}
"""Which of them each command has; the others of `spatialq` have none."""
FROM, TO = "EPSG:25832", "EPSG:25833"
CORNER = (700_000.0, 5_600_000.0)
WRITERS = {
    "noise": lambda *args, **options: spatialq.write_noise(*args, **options),
    "thin": lambda *args, **options: spatialq.write_thinned(*args, distance=0.001, **options),
    "ground": lambda *args, **options: spatialq.write_ground(*args, **options),
    "planes": lambda *args, **options: spatialq.write_planes(*args, **options),
}
"""Commands that write points, with options so that all are written."""


def test_which_command_has_which_options():
    group = typer.main.get_command(cli.app)
    found = {}
    with typer.Context(group) as context:
        for each in cli.COMMANDS:
            name, command, _ = group.resolve_command(context, [each.__name__])
            flags = {flag for option in command.params for flag in option.opts}
            found[name] = flags & FLAGS
    assert {name: flags for name, flags in found.items() if flags} == OPTIONS


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


def header_of(path):
    with laspy.open(path) as file:
        return file.header


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
    with pytest.raises(CrsError, match=r"clip: .* reproject one of them first"):
        spatialq.write_clip(cloud, target, path)
    row = spatialq.write_clip(cloud, target, path, to_crs=TO)
    assert row["points"] == inside.sum()
    assert np.abs(there(target) - moved(cloud)[inside]).max() < 0.001


def test_a_picture_of_some_points(cloud, polygon, tmp_path):
    """It is that of a file with only these."""
    path, _ = polygon
    spatialq.write_clip(cloud, tmp_path / "moved.laz", path, to_crs=TO)
    spatialq.write_ground(cloud, tmp_path / "all.laz", to_crs=TO)
    pictures = []
    for name, chosen in (("moved", ()), ("all", ("--within", path)), ("all", ())):
        picture = tmp_path / f"{name}.png"
        done = spatialq_command(
            "render", tmp_path / f"{name}.laz", "-o", picture, "--size", "90x60", *chosen
        )
        assert done.returncode == 0, done.stderr
        pictures.append(picture.read_bytes())
    assert pictures[0] == pictures[1] != pictures[2]


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


@pytest.mark.parametrize(("call", "name"), [("write_ground", "a.laz"), ("write_lod", "a.copc.laz")])
def test_in_sql(call, name, cloud, tmp_path):
    target = tmp_path / name
    with spatialq.connect() as con:
        steps = f"to_crs := '{TO}', scale := [0.01, 0.01, 0.1]"
        con.sql(f"FROM {call}('{cloud}', ['{target}'], {steps})").fetchall()
        header = header_of(target)
        assert header.scales.tolist() == [0.01, 0.01, 0.1]
        assert header.parse_crs().to_epsg() == 25833
        ours, theirs = there(target), moved(cloud)
        for k, step in enumerate(header.scales):
            assert np.abs(np.sort(ours[:, k]) - np.sort(theirs[:, k])).max() <= step * 0.51
        one = f"FROM {call}('{cloud}', ['{target}'], scale := [0.02], overwrite := true)"
        con.sql(one).fetchall()
        assert header_of(target).scales.tolist() == [0.02] * 3
        with pytest.raises(duckdb.Error, match="scale must be a number or three, of x, y and z"):
            con.sql(one.replace("[0.02]", "[1, 2]")).fetchall()


@pytest.mark.parametrize("name", ["noise", "ground", "planes"])
def test_a_target_in_degrees_is_not_said_of_the_file(name, cloud, tmp_path):
    says = r"a\.laz' after to_crs, WGS 84 .* mean nothing: give to_crs a projected CRS"
    with pytest.raises(CrsError, match=says):
        WRITERS[name](cloud, tmp_path / "b.laz", to_crs="EPSG:4326")


def test_a_file_without_a_crs_is_given_one_first(cloud, tmp_path):
    nameless = laspy.read(cloud)
    nameless.header.vlrs.clear()
    nameless.write(tmp_path / "a.laz")
    with pytest.raises(CrsError, match=r"ground: to_crs: .* has no CRS to reproject from"):
        spatialq.write_ground(tmp_path / "a.laz", tmp_path / "b.laz", to_crs=TO)
    spatialq.write_ground(tmp_path / "a.laz", tmp_path / "b.laz", crs=FROM, to_crs=TO)
    assert np.abs(there(tmp_path / "b.laz") - moved(cloud)).max() < 0.001


def test_reprojected_points_have_the_steps_of_the_file(cloud, tmp_path):
    spatialq.write_ground(cloud, tmp_path / "b.laz", to_crs=TO)
    header = header_of(tmp_path / "b.laz")
    assert header.scales.tolist() == [0.001] * 3


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("EPSG:25832", "EPSG:2903", (0.001, 0.001, 0.001)),  # a millimetre is 0.0033 feet
        ("EPSG:2903", "EPSG:25832", (1e-4, 1e-4, 1e-4)),
        ("EPSG:25832", "EPSG:4258", (1e-8, 1e-8, 0.001)),  # 1.1 mm
    ],
)
def test_steps_in_other_units(before, after, expected):
    systems = (pyproj.CRS(each).to_json() for each in (before, after))
    assert steps_in((0.001, 0.001, 0.001), *systems) == expected


@pytest.mark.parametrize("name", ["noise", "ground", "planes"])
def test_scale_and_offset(name, cloud, tmp_path):
    target = tmp_path / "out.laz"
    WRITERS[name](cloud, target, scale=(0.02, 0.05, 0.1), offset=(700_000, 5_600_000, 10))
    header = header_of(target)
    assert header.scales.tolist() == [0.02, 0.05, 0.1]
    assert header.offsets.tolist() == [700_000, 5_600_000, 10]
    steps = np.array([0.02, 0.05, 0.1])
    assert (np.abs(there(target) - there(cloud)).max(axis=0) <= steps / 2 + 1e-6).all()
    assert header.parse_crs().to_epsg() == 25832


@pytest.mark.parametrize("name", ["scale", "levels"])
def test_one_scale_for_all_axes(name, cloud, tmp_path):
    if name == "scale":
        spatialq.write_noise(cloud, tmp_path / "b.laz", scale=0.01)
    else:
        spatialq.write_lod(cloud, tmp_path / "b.copc.laz", scale=0.01)
    (written,) = tmp_path.iterdir()
    header = header_of(written)
    assert header.scales.tolist() == [0.01] * 3
    assert header.offsets.tolist() == [*CORNER, 0]


def test_a_fine_scale_gets_an_offset_near_the_points(cloud, tmp_path):
    far = laspy.read(cloud)
    xyz = far.xyz
    far.header.scales, far.header.offsets = [0.01] * 3, [0, 0, 0]
    far.change_scaling([0.01] * 3, [0, 0, 0])
    far.write(tmp_path / "far.laz")
    spatialq.write_noise(tmp_path / "far.laz", tmp_path / "b.laz", scale=1e-4)
    assert header_of(tmp_path / "b.laz").offsets.tolist() == np.floor(xyz.min(0)).tolist()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scale": 0}, "thin: scale must be a number above 0 or three such, of x, y and z, got 0"),
        ({"scale": "x"}, "thin: scale must be a number or three, of x, y and z, got 'x'"),
        ({"scale": [1, 2]}, r"thin: scale must be a number or three, of x, y and z, got \[1, 2\]"),
        ({"offset": [1, 2]}, r"thin: offset must be three numbers, x, y, z, got \[1, 2\]"),
        ({"scale": 1e-9}, "thin: scale 1e-09 and offset 700000 of x must give whole numbers of 32"),
    ],
)
def test_wrong_steps(options, said, cloud, tmp_path):
    with pytest.raises(ValueError, match=said):
        spatialq.write_thinned(cloud, tmp_path / "b.laz", distance=1.0, **options)


def test_steps_on_the_command_line(cloud, tmp_path):
    target = tmp_path / "b.laz"
    done = spatialq_command("noise", cloud, "-o", target, "--scale", "0.1,0.1,0.5")
    assert done.returncode == 0, done.stderr
    assert header_of(target).scales.tolist() == [0.1, 0.1, 0.5]
    done = spatialq_command("noise", cloud, "-o", target, "--scale", "fine")
    assert "error: noise: --scale must be numbers such as 0.001, got 'fine'" in done.stderr
