"""`spatialq info` of what viewers show: COPC, Potree and 3D Tiles, and of damaged ones."""

import json
import shutil
import struct
import sys

import laspy
import numpy as np
import pytest

import spatialq
from spatialq.export.tiles.options import TileOptions
from spatialq.io.tileset import read_tileset

from .command_line import rows, spatialq_command
from .conftest import made_once
from .export.test_tiles_elements import cube, table
from .export.test_tiles_points import FAULTS, SMALL, edited, write_scene
from .export.tiles_reading import check

pytestmark = pytest.mark.slow  # as a whole


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


def rows_of(hierarchy):
    return [list(row) for row in struct.iter_unpack("<BBIQQ", hierarchy)]


def test_a_hierarchy_of_potree_that_is_damaged(folder):
    target = folder / "potree" / "metadata.json"
    file = target.with_name("hierarchy.bin")
    whole = rows_of(file.read_bytes())

    def warnings_of(change):
        nodes = [list(row) for row in whole]
        change(nodes)
        file.write_bytes(b"".join(struct.pack("<BBIQQ", *row) for row in nodes))
        return info(target)["warnings"]

    def same_bytes(nodes):
        nodes[2][3:], nodes[2][2] = nodes[1][3:], nodes[1][2]

    def more_points(nodes):
        nodes[1][2] += 1

    def behind(nodes):
        nodes[1][3] = 1 << 60

    def itself(nodes):
        nodes[1] = [2, 0, 0, 0, len(whole) * 22]

    def within(nodes):
        nodes[1] = [2, 0, 0, 22, (len(whole) - 1) * 22]

    assert warnings_of(lambda nodes: None) is None
    assert "two nodes have the points at byte" in warnings_of(same_bytes)
    assert "a node of level 1 has" in warnings_of(more_points)
    assert "lies behind the end of 'octree.bin'" in warnings_of(behind)
    assert "the chunk at byte 0 is named twice" in warnings_of(itself)
    assert "'hierarchy.bin' is damaged" in warnings_of(within)


def test_potree_whose_files_are_links(folder, tmp_path):
    file = folder / "potree" / "octree.bin"
    elsewhere = tmp_path / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    result = spatialq_command("info", file.with_name("metadata.json"))
    assert "names 'octree.bin', which is a link to something that is not" in result.stderr


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


SECRET = 12_345


def tileset(folder, name, *tiles, **more):
    """Write a tileset: its root, and tiles in it."""
    volume = {"boundingVolume": {"sphere": [0, 0, 0, 1]}, "geometricError": 0}
    children = [{**volume, **tile} for tile in tiles]
    root = {**volume, "refine": "ADD", "children": children, **more}
    said = {"asset": {"version": "1.1"}, "geometricError": 0, "root": root}
    (folder / name).write_text(json.dumps(said))
    return folder / name


def content(uri, **more):
    return {"content": {"uri": uri}, **more}


def moved(x):
    return {"transform": [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, x, 0, 0, 1]}


@pytest.mark.parametrize(
    "uri", ["../secret", "../secret.glb", "{}/secret", "file://{}/secret", "link", "out/secret"]
)
def test_nothing_outside_of_the_folder_is_read(tmp_path, uri):
    for name in ("secret", "secret.glb"):
        (tmp_path / name).write_bytes(bytes(SECRET))
    folder = tmp_path / "tiles"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "out").symlink_to(tmp_path)
    found = read_tileset("info", tileset(folder, "tileset.json", content(uri.format(tmp_path))))
    assert found.bytes == (folder / "tileset.json").stat().st_size
    assert "not in its folder" in found.faults[0]
    implicit = {
        "implicitTiling": {
            "subdivisionScheme": "OCTREE", "subtreeLevels": 1,
            "subtrees": {"uri": uri.format(tmp_path)},
        },
        "boundingVolume": {"box": [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1]}, **content("a.glb"),
    }  # fmt: skip
    told = found.faults
    found = read_tileset("info", tileset(folder, "tileset.json", **implicit))
    assert found.bytes == (folder / "tileset.json").stat().st_size
    assert found.faults == told


def test_a_tileset_in_a_folder_of_it_may_name_one_above(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b.dat").write_bytes(bytes(10))
    tileset(tmp_path / "a", "a.json", content("../b.dat"))
    target = tileset(tmp_path, "tileset.json", content("a/a.json"))
    found = read_tileset("info", target)
    assert (found.faults, found.tiles) == ([], 3)
    assert found.bytes == sum(each.stat().st_size for each in tmp_path.rglob("*.*"))


def test_files_that_are_named_twice_count_once(tmp_path):
    (tmp_path / "b.dat").write_bytes(bytes(10))
    tileset(tmp_path, "a.json", content("b.dat"))
    twice = tileset(tmp_path, "tileset.json", content("a.json"), content("a.json"))
    found = read_tileset("info", twice)
    assert found.faults == ["'a.json' is named twice: it counts once"]
    assert found.bytes == sum(each.stat().st_size for each in tmp_path.iterdir())
    twice = tileset(tmp_path, "tileset.json", content("b.dat"), content("./b.dat"))
    assert read_tileset("info", twice).faults == ["'b.dat' is named twice: it counts once"]
    # at two places it is there twice
    tiles = content("a.json", **moved(1)), content("a.json", **moved(2))
    assert read_tileset("info", tileset(tmp_path, "tileset.json", *tiles)).faults == []


def test_tilesets_within_themselves_end(tmp_path, monkeypatch):
    found = read_tileset("info", tileset(tmp_path, "a.json", content("a.json", **moved(1))))
    assert found.faults == ["'a.json' is within itself"]
    tileset(tmp_path, "b.json", content("a.json"))
    found = read_tileset("info", tileset(tmp_path, "a.json", content("b.json")))
    assert found.faults == ["'a.json' is within itself"]
    for k in range(12):
        tiles = [content(f"{k + 1}.json", **moved(i)) for i in range(2)]
        tileset(tmp_path, f"{k}.json", *tiles)
    tileset(tmp_path, "12.json")
    monkeypatch.setattr("spatialq.io.tileset.MOST_TILESETS", 100)
    found = read_tileset("info", tmp_path / "0.json")
    assert found.faults == ["'0.json' has more than 100 tilesets in it: not all were read"]


def test_tiles_in_tiles_without_end(tmp_path):
    inner = {"boundingVolume": {"sphere": [0, 0, 0, 1]}, "geometricError": 0}
    tile = inner
    for _ in range(sys.getrecursionlimit() // 3):
        tile = {**inner, "children": [tile]}
    found = read_tileset("info", tileset(tmp_path, "tileset.json", tile))
    assert found.tiles > 300 or "is damaged" in found.faults[0]


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({"subtreeLevels": 40}, "has subtrees of 40 levels: they were not read"),
        ({"subtreeLevels": 0}, "has subtrees of 0 levels: they were not read"),
        ({"subtrees": {"uri": "subtrees/0.0.0.0.subtree"}}, "is named twice: it counts once"),
        ({"subtrees": {"uri": "{level.__class__}{x:999999999}"}}, "is missing"),
    ],
)
def test_implicit_trees_without_end(folder, said, fault):
    target = folder / "implicit" / "tileset.json"
    whole = json.loads(target.read_text())
    tiling = whole["root"]["implicitTiling"]
    first = target.parent / tiling["subtrees"]["uri"].format(level=0, x=0, y=0, z=0)
    if "0.0.0.0" in str(said):
        said = {"subtrees": {"uri": str(first.relative_to(target.parent))}}
        raw = first.read_bytes()
        size, binary = struct.unpack_from("<QQ", raw, 8)
        about = json.loads(raw[24 : 24 + size])
        about["childSubtreeAvailability"] = {"constant": 1}
        text = json.dumps(about).encode()
        first.write_bytes(
            struct.pack("<4sIQQ", b"subt", 1, len(text), binary) + text + raw[24 + size :]
        )
    tiling |= said
    target.write_text(json.dumps(whole))
    assert any(fault in each for each in read_tileset("info", target).faults)


def test_counts_beyond_the_bytes(folder):
    target = folder / "tiles" / "tileset.json"
    file = sorted(target.parent.rglob("*.glb"))[-1]
    raw = file.read_bytes()
    size = struct.unpack_from("<I", raw, 12)[0]
    about = json.loads(raw[20 : 20 + size])
    for change in (-1, 10**9):
        for each in about["accessors"]:
            each["count"] = change
        text = json.dumps(about).encode()
        parts = struct.pack(
            "<4sIIII", b"glTF", 2, 20 + len(text) + len(raw) - 20 - size, len(text), 0x4E4F534A
        )
        file.write_bytes(parts + text + raw[20 + size :])
        assert f"has {change} values, more than there are bytes" in info(target)["warnings"]
