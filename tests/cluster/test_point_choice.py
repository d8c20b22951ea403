"""`spatialq noise` and `spatialq thin` as jobs: the files that they write without one."""

import laspy
import numpy as np
import pytest

import spatialq
from spatialq import cluster
from tests.cluster import surveys
from tests.command_line import spatialq_command
from tests.conftest import made_once

NOISE = {"multiplier": 1.0, "mean_k": 5}
CASES = {
    "noise": ("classify_noise", spatialq.write_noise, NOISE, {}),
    "no noise": ("classify_noise", spatialq.write_noise, NOISE, {"drop_noise": True}),
    "thin": ("thin", spatialq.write_thinned, {"distance": 2.5}, {}),
}


def make(folder):
    """Write four tiles with classes, one without points, and one in which all points are noise."""
    surveys.make(folder / "plain", columns=2, rows=2)
    for path in sorted((folder / "plain").iterdir()):
        cloud = laspy.read(path)
        cloud.classification = np.arange(len(cloud)) % 19
        cloud.write(folder / path.name)
        path.unlink()
    (folder / "plain").rmdir()
    surveys.write_tile(folder / "nothing.laz", *np.empty((3, 0)))
    surveys.write_tile(folder / "noise.laz", *np.array([[1011.0, 1012], [5003.0, 5001], [9, 8.0]]))
    cloud = laspy.read(folder / "noise.laz")
    cloud.classification[:] = 7
    cloud.write(folder / "noise.laz")
    return folder


@pytest.fixture(scope="module")
def tiles(tmp_path_factory):
    return made_once(tmp_path_factory, "tiles_with_classes", make)


def records(path):
    """Give the points of a file as they are."""
    return laspy.read(path).points.array


@pytest.mark.parametrize("name", CASES)
def test_files_are_those_of_the_command(at_once, tiles, tmp_path, name):
    function, write, options, more = CASES[name]
    write(f"{tiles}/*.laz", f"{tmp_path}/one/", **options, **more)
    cluster.run(
        function, f"{tiles}/*.laz", tmp_path / "job", part_format="laz", noise=False,
        **surveys.QUIET, **options, **more,
    )  # fmt: skip
    parts = {path.name: records(path) for path in (tmp_path / "job" / "parts").iterdir()}
    expected = {path.name: records(path) for path in (tmp_path / "one").iterdir()}
    assert parts.keys() == expected.keys()
    for file, points in expected.items():
        assert np.array_equal(parts[file], points)
    assert sum(points.size for points in parts.values()) > 0


@pytest.mark.parametrize("name", CASES)
def test_tiles_have_the_points_of_the_command(at_once, tiles, tmp_path, name):
    function, write, options, more = CASES[name]
    write(f"{tiles}/*.laz", f"{tmp_path}/one.laz", **options, **more)
    made = cluster.run(
        function, f"{tiles}/*.laz", tmp_path / "job", part_format="laz", noise=False,
        tile_size=17.0, **surveys.QUIET, **options, **more,
    )  # fmt: skip
    parts = [records(path) for path in (tmp_path / "job" / "parts").iterdir()]
    found, expected = np.concatenate(parts), records(tmp_path / "one.laz")
    assert found.size == expected.size == made["rows"]
    names = list(expected.dtype.names)
    assert np.array_equal(np.sort(found, order=names), np.sort(expected, order=names))


@pytest.mark.parametrize("tile_size", [None, 17.0])
@pytest.mark.parametrize("name", CASES)
def test_of_noise_only(at_once, tmp_path, name, tile_size):
    """No point is considered, but what is not considered is in the parts as in the files."""
    function, write, options, more = CASES[name]
    (tmp_path / "tiles").mkdir()
    path = tmp_path / "tiles" / "noise.laz"
    surveys.write_tile(path, *np.random.default_rng(3).uniform(0, 30, (3, 500)))
    cloud = laspy.read(path)
    cloud.classification[:] = 7
    cloud.write(path)
    write(path, f"{tmp_path}/one.laz", **options, **more)
    made = cluster.run(
        function, path, tmp_path / "job", part_format="laz", noise=False, tile_size=tile_size,
        **surveys.QUIET, **options, **more,
    )  # fmt: skip
    parts = [records(each) for each in (tmp_path / "job" / "parts").iterdir()]
    expected = records(tmp_path / "one.laz")
    assert made["parts"] == len(parts) == (1 if tile_size is None else 4)
    assert np.array_equal(np.sort(np.concatenate(parts)), np.sort(expected))
    assert made["rows"] == expected.size == (500 if name == "noise" else 0)


def test_the_commands(tiles, tmp_path):
    job = ("--executor", "serial", "--tile-size", "17")
    done = spatialq_command(
        "noise", tiles, "-o", tmp_path / "noise", *job, "--drop-noise", "--multiplier", 1
    )
    assert done.returncode == 0, done.stderr
    again = spatialq_command(
        "noise",
        tiles,
        "-o",
        tmp_path / "noise",
        *job,
        "--drop-noise",
        "--multiplier",
        1,
        "--resume",
    )
    assert again.returncode == 0, again.stderr
    done = spatialq_command(
        "thin", tiles, "-o", tmp_path / "thin", *job, "--distance", "2m", "--part-format", "parquet"
    )
    assert done.returncode == 0, done.stderr
    without = spatialq.write_noise(tiles, tmp_path / "one.laz", drop_noise=True, multiplier=1)
    parts = (tmp_path / "noise" / "parts").iterdir()
    assert sum(records(path).size for path in parts) == records(tmp_path / "one.laz").size
    assert records(tmp_path / "one.laz").size < without["points"]
    spatialq.write_thinned(tiles, tmp_path / "thinned.laz", distance=2.0)
    with spatialq.connect() as con:
        cluster.table(con, tmp_path / "thin", "kept")
        ((kept,),) = con.sql("SELECT count(*) FROM kept").fetchall()
    assert kept == records(tmp_path / "thinned.laz").size
    assert all(path.suffix == ".laz" for path in (tmp_path / "noise" / "parts").iterdir())
    assert all(path.suffix == ".parquet" for path in (tmp_path / "thin" / "parts").iterdir())
    wrong = spatialq_command("thin", tiles, "-o", tmp_path / "out", *job, "--method", "poisson")
    assert "thin: method must be 'voxel' or 'nearest_to_mean' in a job" in wrong.stderr
    wrong = spatialq_command("noise", tiles, "-o", tmp_path / "out", "--part-format", "laz")
    assert "--part-format is an option of a job" in wrong.stderr
    wrong = spatialq_command("noise", tiles, "-o", tmp_path / "out", *job, "--to-crs", "EPSG:25832")
    assert "noise: --to-crs is no option of a job" in wrong.stderr


def test_rows_without_noise_are_no_parts(at_once, tiles, tmp_path):
    with pytest.raises(ValueError, match=r"drop_noise must be false with part_format 'parquet'"):
        cluster.run(
            "classify_noise", str(tiles), tmp_path / "out", drop_noise=True,
            progress=lambda *_: pytest.fail("a file was read"), **surveys.QUIET,
        )  # fmt: skip
