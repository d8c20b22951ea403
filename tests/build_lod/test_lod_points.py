"""`spatialq lod` and `write_lod`: outputs that have the points themselves."""

import signal
import subprocess
import sys

import laspy
import numpy as np
import pyarrow.parquet as pq
import pytest
from spatialq.udfs.build_lod import cpu

import spatialq
from spatialq.errors import FileError
from spatialq.io.las.source import LasSource
from spatialq.workflows import lod

from ..command_line import rows
from ..export.test_potree import Potree
from .test_lod_command import SMALL, memory_for, write_scene

pytestmark = pytest.mark.slow  # as a whole


def sorted_points(path):
    cloud = laspy.read(path)
    names = [name for name in cloud.point_format.dimension_names if name != "scan_angle_rank"]
    columns = [np.asarray(cloud[name], np.float64) for name in names if name not in "XYZ"]
    found = np.column_stack([cloud.x, cloud.y, cloud.z, *columns])
    return found[np.lexsort(found.T[::-1])]


def test_the_command_writes_copc(tmp_path):
    source, target = write_scene(tmp_path / "a.laz"), tmp_path / "a.copc.laz"
    small = ("--max-points", 300, "--grid-size", 8)
    (done,) = rows("lod", source, "-o", target, *small)
    assert (done["points"], done["outputs"]) == (3000, [str(target)])
    assert done["nodes"] == done["leaves"] + done["inner_nodes"] > 10
    np.testing.assert_array_equal(sorted_points(target), sorted_points(source))
    assert LasSource(target).crs == LasSource(source).crs
    assert LasSource(target).header.find("copc", 1)


def test_points_need_no_colours(tmp_path):
    """A warning, which tests make an error, is for samples that would be black."""
    source = write_scene(tmp_path / "a.laz", point_format=6)
    cloud = laspy.read(source)
    cloud.intensity[:] = 0
    cloud.write(source)
    spatialq.write_lod(source, tmp_path / "a.copc.laz", **SMALL)
    with pytest.warns(spatialq.errors.FileWarning, match="has no colours"):
        spatialq.write_lod(source, [tmp_path / "a.copc.laz", tmp_path / "n.parquet"], **SMALL)


def test_one_tree_for_several_outputs(tmp_path, monkeypatch):
    source = write_scene(tmp_path / "a.laz")
    alone, both, table = (tmp_path / name for name in ("a.copc.laz", "b.copc.laz", "n.parquet"))
    only = spatialq.write_lod(source, alone, **SMALL)
    calls, build = [], cpu.build
    monkeypatch.setattr(cpu, "build", lambda *given: calls.append(1) or build(*given))
    done = spatialq.write_lod(source, [table, both], **SMALL)
    assert len(calls) == 1
    assert both.read_bytes() == alone.read_bytes()
    assert pq.read_metadata(table).num_rows == done["nodes"]
    assert {**done, "seconds": 0, "outputs": 0} == {**only, "seconds": 0, "outputs": 0}


@pytest.mark.parametrize("strategy", ["weighted", "random"])
def test_little_memory_does_not_change_the_file(tmp_path, strategy):
    source = write_scene(tmp_path / "a.laz")
    whole, tiled = tmp_path / "a.copc.laz", tmp_path / "b.copc.laz"
    spatialq.write_lod(source, whole, strategy=strategy, **SMALL)
    spatialq.write_lod(source, tiled, strategy=strategy, memory=memory_for(700), **SMALL)
    assert whole.read_bytes() == tiled.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.copc.laz", "a.laz", "b.copc.laz"]


@pytest.mark.parametrize("memory", [None, 700])
def test_bounds(tmp_path, memory):
    source, target = write_scene(tmp_path / "a.laz"), tmp_path / "a.copc.laz"
    bounds = [500020, 5000010, 500060, 5000090]
    memory = memory and memory_for(memory)
    outputs = [target, tmp_path / "n.parquet"]
    spatialq.write_lod(source, outputs, bounds=bounds, memory=memory, **SMALL)
    expected = sorted_points(source)
    x, y = expected[:, 0], expected[:, 1]
    inside = (x >= bounds[0]) & (x <= bounds[2]) & (y >= bounds[1]) & (y <= bounds[3])
    assert 500 < inside.sum() < 2000
    np.testing.assert_array_equal(sorted_points(target), expected[inside])
    with pytest.raises(FileError, match="must have a point, there is none"):
        spatialq.write_lod(source, tmp_path / "b.copc.laz", bounds=[0, 0, 1, 1], **SMALL)


def test_several_files_and_a_pattern(tmp_path):
    parts = [write_scene(tmp_path / f"{k}.laz", shift=100.0 * k, seed=k + 1) for k in range(3)]
    spatialq.write_lod(str(tmp_path / "?.laz"), tmp_path / "all.copc.laz", **SMALL)
    together = np.concatenate([sorted_points(part) for part in parts])
    expected = together[np.lexsort(together.T[::-1])]
    np.testing.assert_array_equal(sorted_points(tmp_path / "all.copc.laz"), expected)


def test_in_sql(tmp_path):
    source, target = write_scene(tmp_path / "a.laz"), tmp_path / "a.copc.laz"
    with spatialq.connect() as con:
        call = (
            f"FROM write_lod('{tmp_path}/?.laz', ['{target}'], max_points := 300, grid_size := 8)"
        )
        relation = con.sql(call)
        (row,) = relation.fetchall()
        done = dict(zip(relation.columns, row, strict=True))
        assert (done["points"], done["outputs"]) == (3000, [str(target)])
        shown = "points nodes levels leaves inner_nodes voxels device outputs"
        assert list(done) == shown.split()
        for wrong, sentence in {
            f"'{source}', ['b.xyz']": "lod: output 'b.xyz' must end in one of",
            f"NULL, ['{target}']": "write_lod: path must not be NULL",
            f"'{source}', [NULL]": "write_lod: outputs must not be NULL",
            f"'{source}', ['{target}'], max_points := 0": "max_points must be",
        }.items():
            with pytest.raises(Exception, match=sentence):
                con.sql(f"FROM write_lod({wrong})").fetchall()
        of_list = tmp_path / "c.copc.laz"
        con.sql(
            f"FROM write_lod(['{source}'], ['{of_list}'], max_points := 300, grid_size := 8)"
        ).fetchall()
    other = tmp_path / "b.copc.laz"
    spatialq.write_lod(source, other, **SMALL)
    assert other.read_bytes() == target.read_bytes() == of_list.read_bytes()


def test_clouds_of_other_formats(tmp_path):
    source, ply, target = (
        write_scene(tmp_path / "a.laz"),
        tmp_path / "a.ply",
        tmp_path / "a.copc.laz",
    )
    with spatialq.connect() as con:
        spatialq.write(con.sql(f"FROM read_las('{source}')"), ply)
    spatialq.write_lod(ply, target, **SMALL)
    found, expected = laspy.read(target), laspy.read(source)
    for name in ("x", "y", "z", "intensity", "red"):
        values = np.sort(np.asarray(expected[name]))
        np.testing.assert_allclose(np.sort(np.asarray(found[name])), values, atol=1e-9)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.copc.laz", "a.laz", "a.ply"]


def test_potree_in_a_folder_that_is_made(tmp_path):
    source, folder = write_scene(tmp_path / "a.laz"), tmp_path / "potree"
    (done,) = rows("lod", source, "-o", folder / "metadata.json", "--max-points", 300)
    assert done["outputs"] == [str(folder / "metadata.json")]
    potree = Potree(folder)
    values = np.concatenate([potree.xyz(potree.read(name)) for name in potree.nodes])
    expected = laspy.read(source).xyz
    np.testing.assert_allclose(values[np.lexsort(values.T)], expected[np.lexsort(expected.T)])
    assert sorted(p.name for p in folder.iterdir()) == [
        "hierarchy.bin", "metadata.json", "octree.bin"
    ]  # fmt: skip


def test_all_formats_at_once_and_again(tmp_path):
    source = write_scene(tmp_path / "a.laz")
    outputs = [tmp_path / name for name in ("a.copc.laz", "p/metadata.json", "n.parquet", "n.png")]
    for _ in range(2):  # the second time in the place of the first
        spatialq.write_lod(source, outputs, **SMALL)
        assert sum(Potree(tmp_path / "p").nodes[n][0] for n in Potree(tmp_path / "p").nodes) == 3000
        np.testing.assert_array_equal(sorted_points(outputs[0]), sorted_points(source))
    assert len(list(tmp_path.iterdir())) == 5


def test_nothing_is_left_of_potree_that_was_stopped(tmp_path, monkeypatch):
    from spatialq.export import potree

    source = write_scene(tmp_path / "a.laz")

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(potree, "_hierarchy", stop)
    with pytest.raises(KeyboardInterrupt):
        lod.write_lod(source, tmp_path / "p" / "metadata.json", **SMALL)
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("memory", [None, 700])
def test_stray_points_and_heights_in_another_unit_are_kept_as_they_are(tmp_path, memory):
    source, target = tmp_path / "a.laz", tmp_path / "a.copc.laz"
    write_scene(source, crs="EPSG:25832+8228")  # heights in feet
    cloud = laspy.read(source)
    cloud.X[0], cloud.Z[1] = 2_000_000_000, 1_900_000_000
    cloud.write(source)
    table = tmp_path / "n.parquet"
    with (
        pytest.warns(spatialq.errors.CrsWarning),
        pytest.warns(spatialq.errors.StrayPointsWarning, match="2 of 3000 points"),
    ):
        spatialq.write_lod(source, [target, table], memory=memory and memory_for(memory), **SMALL)
    np.testing.assert_array_equal(sorted_points(target), sorted_points(source))
    read = LasSource(target)
    assert not read.warnings
    assert all(chunk.box for span in read.spans() for chunk in span)


def test_other_commands_write_no_copc(tmp_path):
    source = write_scene(tmp_path / "a.laz")
    with pytest.raises(ValueError, match=r"no COPC file: write a \.laz, of which spatialq lod"):
        spatialq.write_ground(source, tmp_path / "g.copc.laz")


def test_an_output_must_not_be_the_source(tmp_path):
    source, target = write_scene(tmp_path / "a.laz"), tmp_path / "a.copc.laz"
    spatialq.write_lod(source, target, **SMALL)
    before = target.read_bytes()
    with pytest.raises(FileError, match="output must be another file than the input"):
        spatialq.write_lod(target, target, **SMALL)
    assert target.read_bytes() == before


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_process_leaves_nothing_under_the_name(tmp_path):
    source, target = write_scene(tmp_path / "a.laz"), tmp_path / "a.copc.laz"
    code = (
        "import os, sys, spatialq, spatialq.export.copc as copc\n"
        "write = copc._hierarchy\n"
        "copc._hierarchy = lambda *given: os.kill(os.getpid(), 9)\n"
        f"spatialq.write_lod({str(source)!r}, {str(target)!r}, max_points=300, grid_size=8)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not target.exists()
    spatialq.write_lod(source, target, **SMALL)  # which removes what the killed process left
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.copc.laz", "a.laz"]


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of processes")
def test_a_full_disk_leaves_nothing(tmp_path):
    source, target = write_scene(tmp_path / "a.laz"), tmp_path / "a.copc.laz"
    code = (
        "import resource, signal, sys, spatialq, spatialq.export.copc as copc\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "write = copc.write_copc\n"
        "def limited(*given):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (20000, resource.RLIM_INFINITY))\n"
        "    return write(*given)\n"
        "copc.write_copc = limited\n"
        f"spatialq.write_lod({str(source)!r}, {str(target)!r}, max_points=300, grid_size=8)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "FileError" in done.stderr.splitlines()[-1]
    assert "cannot be written" in done.stderr.splitlines()[-1]
    assert list(tmp_path.iterdir()) == [source]


def test_ctrl_c_ends_it_and_leaves_nothing(tmp_path, monkeypatch):
    from spatialq.export import copc

    source, target = write_scene(tmp_path / "a.laz"), tmp_path / "a.copc.laz"

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(copc, "_hierarchy", stop)
    with pytest.raises(KeyboardInterrupt):
        lod.write_lod(source, target, **SMALL)
    assert list(tmp_path.iterdir()) == [source]
