"""Clouds with an octree, read only as densely as is needed: the levels that laspy reads."""

import laspy
import numpy as np
import pyarrow.parquet as pq
import pytest

import spatialq
from spatialq.errors import FileError

from .command_line import spatialq_command
from .conftest import made_once
from .export.test_tiles_points import SMALL, write_scene
from .export.tiles_reading import check

pytestmark = pytest.mark.slow  # as a whole


def write_all(folder):
    source = write_scene(folder / "a.laz")
    spatialq.write_lod(source, folder / "a.copc.laz", **SMALL)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return made_once(tmp_path_factory, "clouds-with-an-octree", write_all)


@pytest.fixture(scope="module")
def coarse(made):
    """A resolution, and the points of the levels that are at most as fine."""
    with laspy.CopcReader.open(made / "a.copc.laz") as reader:
        spacing = reader.copc_info.spacing
        points = reader.query(level=range(2))
    assert 100 < len(points) < 3000
    xyz = np.stack([np.asarray(points[axis]) for axis in "xyz"], axis=1)
    return spacing / 2, xyz


def same_points(one, other):
    one, other = (each[np.lexsort(np.round(each, 2).T)] for each in (one, other))
    return one.shape == other.shape and np.allclose(one, other, rtol=0, atol=2e-3)


def xyz_of(path):
    cloud = laspy.read(path)
    return np.stack([np.asarray(cloud[axis]) for axis in "xyz"], axis=1)


@pytest.mark.parametrize("name", ["b.copc.laz", "nodes.parquet", "tiles/tileset.json"])
def test_lod(tmp_path, made, coarse, name):
    resolution, expected = coarse
    done = spatialq.write_lod(made / "a.copc.laz", tmp_path / name, resolution=resolution, **SMALL)
    assert done["points"] == len(expected)
    if name.endswith(".laz"):
        assert same_points(xyz_of(tmp_path / name), expected)
    elif name.endswith(".json"):
        found = check(tmp_path / name)
        assert found.faults == []
        assert len(found.points()) == len(expected)
    else:
        rows = pq.read_table(tmp_path / name).to_pylist()
        leaves = [each for row in rows if row["is_leaf"] for each in row["samples"]]
        points = np.array([[each[axis] for axis in "xyz"] for each in leaves])
        assert same_points(points, expected)


def test_several_outputs_of_one_tree(tmp_path, made, coarse):
    resolution, expected = coarse
    targets = [tmp_path / "n.parquet", tmp_path / "b.copc.laz", tmp_path / "c.png"]
    done = spatialq.write_lod(made / "a.copc.laz", targets, resolution=resolution, **SMALL)
    assert done["points"] == len(expected)
    assert same_points(xyz_of(targets[1]), expected)


@pytest.mark.parametrize("command", ["ground", "planes"])
def test_points_with_what_was_found(tmp_path, made, coarse, command):
    resolution, expected = coarse
    targets = [tmp_path / "p.laz", tmp_path / "p.parquet"]
    write = getattr(spatialq, f"write_{command}")
    name = "point_resolution" if command == "ground" else "resolution"
    done = write(made / "a.copc.laz", targets, **{name: resolution})
    assert done["points"] == len(expected)
    assert same_points(xyz_of(targets[0]), expected)


def test_the_commands_take_lengths(tmp_path, made, coarse):
    resolution, expected = coarse
    cases = (
        ("planes", ["--resolution", f"{resolution * 100}cm"], "p.laz"),
        ("ground", ["--point-resolution", f"{resolution}u", "--resolution", "5m"], "g.laz"),
        ("lod", ["--resolution", f"{resolution}m"], "b.copc.laz"),
    )
    for command, flags, name in cases:
        target = tmp_path / name
        result = spatialq_command(command, made / "a.copc.laz", "-o", target, *flags)
        assert result.returncode == 0, result.stderr
        assert same_points(xyz_of(target), expected)
    target = tmp_path / "tiles" / "tileset.json"
    flags = ("--resolution", f"{resolution}m")
    assert spatialq_command("tiles", made / "a.copc.laz", "-o", target, *flags).returncode == 0
    assert len(check(target).points()) == len(expected)


def test_sql_and_load(tmp_path, made, coarse):
    resolution, expected = coarse
    source = made / "a.copc.laz"
    with spatialq.connect() as con:
        for name in ("lod", "tiles"):
            target = tmp_path / name / "tileset.json"
            outputs = f"'{target}'" if name == "tiles" else f"['{target}']"
            rows = con.sql(
                f"SELECT points FROM write_{name}('{source}', {outputs}, "
                f"resolution := {resolution})"
            )
            assert rows.fetchall() == [(len(expected),)]
        spatialq.load(con, source, "t", resolution=resolution)
        found = con.sql("SELECT x, y, z FROM t").fetchnumpy()
    assert same_points(np.stack([found[axis] for axis in "xyz"], axis=1), expected)


@pytest.mark.parametrize("command", ["lod", "planes", "ground"])
def test_what_is_wrong_is_said(tmp_path, made, command):
    write = getattr(spatialq, f"write_{command}")
    name = "point_resolution" if command == "ground" else "resolution"
    target = tmp_path / "p.parquet"
    with pytest.raises(FileError, match=rf"^{command}: '.*a\.laz': has no octree \(COPC"):
        write(made / "a.laz", target, **{name: 1.0})
    for wrong, message in ((0, "a number above 0, got 0"), (-1.0, "above 0"), ("2", "its unit")):
        with pytest.raises(ValueError, match=rf"^{command}: resolution must .*{message}"):
            write(made / "a.copc.laz", target, **{name: wrong})
    assert list(tmp_path.iterdir()) == []
