"""`spatialq info` of what viewers show: COPC, Potree and 3D Tiles, and of damaged ones."""

import json
import shutil

import laspy
import numpy as np
import pytest

import spatialq
from spatialq.export.tiles.options import TileOptions

from .command_line import rows, spatialq_command
from .conftest import made_once
from .export.test_tiles_elements import cube, table
from .export.test_tiles_points import FAULTS, SMALL, edited, write_scene
from .export.tiles_reading import check

pytestmark = pytest.mark.slow  # as a whole: `make check` leaves it to `make test`


def write_all(folder):
    source = write_scene(folder / "a.laz")
    for name in ("tiles", "implicit", "potree"):
        (folder / name).mkdir()
    targets = [folder / "a.copc.laz", folder / "potree" / "metadata.json"]
    spatialq.write_lod(source, [*targets, folder / "tiles" / "tileset.json"], **SMALL)
    implicit = TileOptions(implicit=True)
    spatialq.write_lod(source, folder / "implicit" / "tileset.json", tiles=implicit, **SMALL)


@pytest.fixture
def folder(tmp_path, tmp_path_factory):
    made = made_once(tmp_path_factory, "for-viewers", write_all)
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def info(path):
    (found,) = rows("info", path)
    return found


def levels_of(path):
    """Points by level, counted by laspy."""
    with laspy.CopcReader.open(path) as reader:
        counts, level = {}, 0
        while len(points := reader.query(level=level)):
            counts[str(level)] = len(points)
            level += 1
        return counts, reader.copc_info.spacing


def test_copc_says_its_octree(folder):
    found = info(folder / "a.copc.laz")
    counts, spacing = levels_of(folder / "a.copc.laz")
    assert len(counts) > 2
    assert found["points by level"] == counts
    assert (found["octree levels"], found["spacing of level 0"]) == (len(counts), spacing)
    assert found["rows"] == 4000
    assert found["warnings"] is None
    assert "octree levels" not in info(folder / "a.laz")
    shown = spatialq_command("info", folder / "a.copc.laz").stdout
    assert f"0: {counts['0']}" in shown


def test_potree_says_the_same_octree(folder):
    found, copc = (info(folder / name) for name in ("potree/metadata.json", "a.copc.laz"))
    for name in ("rows", "points by level", "octree nodes", "spacing of level 0", "crs"):
        assert found[name] == copc[name], name
    for name in ("xmin ymin xmax ymax", "zmin zmax"):
        assert np.allclose(found[name], copc[name], rtol=0, atol=1e-6)
    assert found["warnings"] is None


def test_potree_that_is_damaged(folder):
    target = folder / "potree" / "metadata.json"
    said = json.loads(target.read_text())
    target.write_text(json.dumps({**said, "points": 4001}))
    assert info(target)["warnings"] == "promises 4001 points, its nodes have 4000"
    for name in ("octree.bin", "hierarchy.bin"):
        file = target.with_name(name)
        whole = file.read_bytes()
        file.write_bytes(whole[:-1])
        assert "'hierarchy.bin' is damaged" in info(target)["warnings"]
        file.unlink()
        assert info(target)["warnings"] == f"'{name}' is missing"
        file.write_bytes(whole)
    target.write_text("{}")
    result = spatialq_command("info", target)
    assert result.returncode == 1
    assert f"error: info: '{target}': is no metadata of Potree 2" in result.stderr


@pytest.mark.parametrize("kind", ["tiles", "implicit"])
def test_tiles_say_what_the_checker_finds(folder, kind):
    target = folder / kind / "tileset.json"
    found, expected = info(target), check(target)
    assert expected.faults == []
    assert found["warnings"] is None
    assert (found["tiles"], found["points of all tiles"]) == (expected.tiles, expected.samples)
    assert found["points of leaves"] == len(expected.points()) == 4000
    assert found["bytes"] == sum(each.stat().st_size for each in expected.files)
    assert (found["crs"], found["format"]) == ("EPSG:25832", "3D Tiles 1.1")
    assert set(found["attributes"].split(", ")) == {"COLOR_0", *expected.leaves[0].attributes}


def test_elements_say_how_many(tmp_path):
    target = tmp_path / "tileset.json"
    spatialq.write_tiles(table([cube(at=(k, 0, 0)) for k in range(3)]), target)
    found = info(target)
    assert (found["triangles"], found["elements"], found["warnings"]) == (36, 3, None)


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_seen_as_by_the_checker(folder, fault):
    target = folder / "tiles" / "tileset.json"
    assert edited(target, FAULTS[fault])
    assert info(target)["warnings"]


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def test_damaged_parts_are_named(folder):
    for kind, pattern in (("tiles", "*.glb"), ("implicit", "*.glb"), ("implicit", "*.subtree")):
        target = folder / kind / "tileset.json"
        file = sorted(target.parent.rglob(pattern))[-1]
        whole = file.read_bytes()
        cut(file)
        assert f"{file.name}' is damaged" in info(target)["warnings"]
        file.unlink()
        assert f"{file.name}' is missing" in info(target)["warnings"]
        file.write_bytes(whole)
        assert info(target)["warnings"] is None
    result = spatialq_command("info", folder / "tiles" / "tileset.json", folder / "none.json")
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1


def test_no_tileset_is_an_error(tmp_path):
    for text in ("no JSON", "[]", "{}"):
        (tmp_path / "tileset.json").write_text(text)
        result = spatialq_command("info", tmp_path / "tileset.json")
        assert result.returncode == 1
        assert result.stderr.startswith(f"error: info: '{tmp_path}/tileset.json': ")


def test_counts_of_points_must_be_those_promised(folder):
    target = folder / "tiles" / "tileset.json"
    said = json.loads(target.read_text())
    said["extras"]["points"] = 4001
    target.write_text(json.dumps(said))
    assert "promises 4001 points, its leaves have 4000" in info(target)["warnings"]
