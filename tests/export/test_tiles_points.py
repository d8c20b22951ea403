"""Points as 3D Tiles: read back by a checker that has nothing of ours."""

import json
import re
import shutil
import subprocess
import sys

import laspy
import numpy as np
import pyproj
import pytest

import spatialq
from spatialq.errors import CrsError, CrsWarning, FileError
from spatialq.export.tiles.options import TileOptions
from spatialq.export.tiles.points import tones, values_of
from spatialq.workflows import lod
from spatialq.workflows.lod_nodes import CloudStatistics

from ..conftest import made_once
from .tiles_reading import check

pytestmark = pytest.mark.slow  # as a whole

SMALL = {"max_points": 300, "grid_size": 8}
STEP = 1e-3
"""Metres: half of it is the largest error of a quantised position."""


def write_scene(path, n=4000, *, crs="EPSG:25832", colours=65535, seed=1):
    """A hill of 100 m with colours and classes; 600 of its points crowd in a corner."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(0, 100, (2, n))
    x[:600], y[:600] = 0.003 * x[:600], 0.003 * y[:600]
    header = laspy.LasHeader(point_format=7, version="1.4")
    header.scales, header.offsets = [1e-2] * 3, [500000, 5600000, 0]
    if crs:
        header.add_crs(pyproj.CRS(crs))
    cloud = laspy.LasData(header)
    cloud.x, cloud.y = x + 500000, y + 5600000
    cloud.z = 100 + 30 * np.exp(-((x - 50) ** 2 + (y - 40) ** 2) / 800)
    cloud.intensity = rng.integers(0, 65536, n)
    cloud.classification = rng.integers(0, 20, n)
    if colours:
        rgb = rng.integers(0, colours + 1, (3, n))
        cloud.red, cloud.green, cloud.blue = rgb
    cloud.write(path)
    return path


def xyz_of(path):
    cloud = laspy.read(path)
    return np.stack([np.asarray(cloud[axis], float) for axis in "xyz"], axis=1)


def on_map(found):
    """Points of leaves in the coordinates of a map in metres, where the tileset has no CRS."""
    moved = np.array(found.transform).reshape(4, 4)[3, :3]
    return found.points() + moved


def sorted_rows(xyz):
    return xyz[np.lexsort(np.round(xyz, 2).T)]


def tiles(source, folder, **options):
    target = folder / "tileset.json"
    return spatialq.write_lod(source, target, **SMALL, **options), target


@pytest.mark.parametrize("implicit", [False, True])
@pytest.mark.parametrize("compress", [False, True])
def test_leaves_are_the_points_of_the_file(tmp_path, implicit, compress):
    source = write_scene(tmp_path / "a.laz", crs=None)
    options = TileOptions(implicit=implicit, compress=compress)
    row, target = tiles(source, tmp_path / "tiles", tiles=options)
    found = check(target)
    assert found.faults == []
    assert (found.tiles, found.samples) == (row["nodes"], row["points"] + row["voxels"])
    assert len(found.leaves) == row["leaves"]
    expected = sorted_rows(xyz_of(source))
    got = sorted_rows(on_map(found))
    assert got.shape == expected.shape
    assert np.abs(got - expected).max() <= STEP
    cloud = laspy.read(source)
    for name in ("classification", "intensity"):
        wanted = np.sort(np.asarray(cloud[name]))
        assert np.array_equal(np.sort(found.values(f"_{name.upper()}")), wanted)
    assert found.files == {path for path in target.parent.rglob("*") if path.is_file()}


@pytest.mark.parametrize("most", [255, 65535])
def test_colours_are_linear(tmp_path, most):
    """The sRGB curve, as IEC 61966-2-1 has it."""
    source = write_scene(tmp_path / "a.laz", crs=None, colours=most)
    _, target = tiles(source, tmp_path / "tiles")
    got = np.sort(check(target).values("COLOR_0")[:, 0])
    share = np.sort(np.asarray(laspy.read(source).red) / most)
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    assert np.abs(got - linear).max() <= 0.51 / 65535


def test_a_cloud_without_colours_is_as_bright_as_its_intensities(tmp_path):
    """Scanners count intensities up to some hundred or thousand, with a few flashes far above."""
    source = write_scene(tmp_path / "a.laz", crs=None)
    cloud = laspy.convert(laspy.read(source), point_format_id=6)
    cloud.intensity = np.arange(len(cloud)) % 400
    cloud.intensity[:10] = 65535
    cloud.write(source)
    _, target = tiles(source, tmp_path / "tiles")
    got = np.sort(check(target).values("COLOR_0")[:, 0])
    intensity = np.asarray(cloud.intensity)
    white = np.sort(intensity)[int(np.ceil(0.99 * len(cloud))) - 1]
    assert white < 400
    share = np.sort(np.minimum(intensity / white, 1))
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    assert np.abs(got - linear).max() <= 0.51 / 65535


def test_16_bits_keep_dark_tones_apart_and_8_do_not():
    assert len(set(tones(255, 255, 16).tolist())) == 256
    assert len(set(tones(255, 255, 8).tolist())) < 200
    assert tones(0, 255, 16) is None


def test_every_colour_has_a_tone_whichever_batch_it_is_in():
    """Once a colour has more than 8 bits and is no grey, later ones are not looked at."""
    seen, place = CloudStatistics("tiles", None, None), dict.fromkeys("xyz", np.zeros(1))
    for red in (300, 60_000):
        colour = {"red": red, "green": 1, "blue": 2, "intensity": 0}
        seen.add(place | {name: np.array([value], np.uint16) for name, value in colour.items()})
    assert tones(seen.brightest, seen.full, 16)[60_000] > 0


def test_tiles_lie_on_the_earth(tmp_path):
    source = write_scene(tmp_path / "a.laz")
    _, target = tiles(source, tmp_path / "tiles")
    found = check(target)
    assert found.faults == []
    points = np.c_[found.points(), np.ones(4000)] @ np.array(found.transform).reshape(4, 4)
    to_earth = pyproj.Transformer.from_crs("EPSG:25832", "EPSG:4326", always_xy=True)
    east, north, up = xyz_of(source).T
    geocentric = pyproj.Transformer.from_crs("EPSG:4979", "EPSG:4978", always_xy=True)
    expected = np.stack(geocentric.transform(*to_earth.transform(east, north), up), axis=1)
    by_distance = (
        np.linalg.norm(each - expected.mean(axis=0), axis=1)
        for each in (
            points[:, :3],
            expected,
        )
    )
    assert np.allclose(*map(np.sort, by_distance), atol=2e-3)
    assert np.abs(np.sort(points[:, 2]) - np.sort(expected[:, 2])).max() < 2e-3
    extras = json.loads(target.read_text())["extras"]
    assert extras == {
        "points": 4000, "crs": "EPSG:25832", "lies_in": "EPSG:4978", "folder": "tileset",
    }  # fmt: skip


def test_feet_become_metres(tmp_path):
    source = write_scene(tmp_path / "a.laz", crs="EPSG:2994")  # international feet
    _, target = tiles(source, tmp_path / "tiles")
    found = check(target)
    spread = np.ptp(found.points(), axis=0) / np.ptp(xyz_of(source), axis=0)
    assert np.allclose(spread, 0.3048, rtol=1e-3)
    assert found.faults == []


def test_a_cloud_larger_than_memory_gives_the_same_tiles(tmp_path, monkeypatch):
    source = write_scene(tmp_path / "a.laz")
    _, whole = tiles(source, tmp_path / "whole")
    monkeypatch.setattr(lod, "_points_in", lambda *_: 900)
    _, parts = tiles(source, tmp_path / "parts")
    for path in whole.parent.rglob("*"):
        if path.is_file():
            other = parts.parent / path.relative_to(whole.parent)
            assert path.read_bytes() == other.read_bytes(), path.name
    assert check(parts).faults == []


def test_one_point_and_none(tmp_path):
    one = write_scene(tmp_path / "one.laz", 1)
    _, target = tiles(one, tmp_path / "tiles")
    found = check(target)
    assert found.faults == []
    assert found.points().shape == (1, 3)
    with pytest.raises(FileError, match="tiles need at least one point, there is none"):
        tiles(write_scene(tmp_path / "none.laz", 0), tmp_path / "empty")
    assert not (tmp_path / "empty").exists()


def test_a_tileset_is_replaced_and_nothing_else_in_its_folder(tmp_path):
    folder = tmp_path / "tiles"
    tiles(write_scene(tmp_path / "a.laz"), folder)
    (folder / "notes.txt").write_text("mine")
    _, target = tiles(write_scene(tmp_path / "b.laz", 2000), folder)
    found = check(target)
    assert found.faults == []
    assert len(found.points()) == 2000
    assert {path.name for path in folder.iterdir()} == {"tileset.json", "tileset-2", "notes.txt"}
    tiles(tmp_path / "a.laz", folder)
    assert {path.name for path in folder.iterdir()} == {"tileset.json", "tileset", "notes.txt"}


def test_another_file_of_that_name_stays(tmp_path):
    source = write_scene(tmp_path / "a.laz")
    for text in ("{}", "no JSON", '{"asset": {"version": "1.1"}, "extras": {"folder": ".."}}'):
        (tmp_path / "tileset.json").write_text(text)
        with pytest.raises(FileError, match=r"tileset.json': is no tileset of spatialq"):
            tiles(source, tmp_path)
        assert (tmp_path / "tileset.json").read_text() == text


def test_a_failure_leaves_nothing(tmp_path, monkeypatch):
    source = write_scene(tmp_path / "a.laz")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("spatialq.export.tiles.points.to_json", fail)
    with pytest.raises(FileError, match=r"tileset.json': cannot be written: No space left"):
        tiles(source, tmp_path / "tiles")
    assert [path.name for path in tmp_path.iterdir()] == ["a.laz"]


def test_degrees_are_refused(tmp_path):
    source = write_scene(tmp_path / "a.laz", crs=None)
    with pytest.warns(CrsWarning), pytest.raises(CrsError, match="tiles need x and y of a map"):
        tiles(source, tmp_path / "tiles", crs="EPSG:4326")


def test_columns_that_attributes_cannot_hold_are_named(tmp_path):
    target = tmp_path / "tileset.json"
    plane = np.ma.array([3, 4, 5], np.int64, mask=[False, True, False])
    got = values_of(target, {"x": plane, "plane_id": plane, "height": np.array([1.5, np.nan, 2])})
    lowest = np.finfo(np.float32).min
    assert got["plane_id"].tolist() == [3, lowest, 5]
    assert got["height"].tolist() == [1.5, lowest, 2]
    with pytest.raises(FileError, match="column 'plane_id' has the value 16777217"):
        values_of(target, {"plane_id": np.array([2**24 + 1])})
    with pytest.raises(FileError, match="column 'kind' is NULL for some points"):
        values_of(target, {"kind": np.ma.array([1], np.uint8, mask=[True])})


# what a checker must see, so that the tests above mean something


def edited(target, edit):
    content = json.loads(target.read_text())
    edit(content["root"])
    target.write_text(json.dumps(content))
    return check(target).faults


def move(tile, metres):
    tile["boundingVolume"]["box"][0] += metres


def write_tiles(folder):
    tiles(write_scene(folder / "a.laz"), folder / "tiles")


FAULTS = {
    "outside its parent's": lambda root: move(root["children"][0], 500),
    "outside its box": lambda root: move(root, -80),
    "above its parent's": lambda root: root["children"][0].update(geometricError=1e6),
    "without refine": lambda root: root.pop("refine"),
    "is missing": lambda root: root["content"].update(uri="tileset/none.glb"),
    "error below": lambda root: root.update(geometricError=1e9),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_checker_sees_faults(tmp_path, tmp_path_factory, fault):
    made = made_once(tmp_path_factory, "tiles-of-a-hill", write_tiles)
    shutil.copytree(made / "tiles", tmp_path / "tiles")
    faults = edited(tmp_path / "tiles" / "tileset.json", FAULTS[fault])
    assert any(fault in each for each in faults), faults


DEATHS = {
    "kill -9": "from spatialq.export.tiles import tileset\n"
    "tileset.Tree.close = lambda *_: os.kill(os.getpid(), 9)",
    "full disk": "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))",
}


@pytest.mark.parametrize("death", DEATHS)
def test_nothing_is_left_under_the_name_of_what_was_not_finished(tmp_path, death):
    source, target = write_scene(tmp_path / "a.laz"), tmp_path / "tiles" / "tileset.json"
    script = (
        f"import os, resource, spatialq\n{DEATHS[death]}\n"
        f"spatialq.write_lod({str(source)!r}, {str(target)!r}, max_points=2000)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False
    )
    assert result.returncode == (-9 if death == "kill -9" else 1)
    if death == "full disk":
        assert re.search(r"FileError: output: '.*tileset\.json': cannot be written", result.stderr)
    left = [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")]
    assert left == ["a.laz"]
    tiles(source, target.parent)
    assert {path.name for path in tmp_path.iterdir()} == {"a.laz", "tiles"}
    assert check(target).faults == []
