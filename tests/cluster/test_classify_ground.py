"""The ground of a survey as a job: that of one call on all files, to the bit."""

import shutil

import laspy
import numpy as np
import pyproj
import pytest

import spatialq
from spatialq import cluster
from spatialq.cluster.arrays import read_arrays, write_arrays
from spatialq.errors import FileError, JobError
from spatialq.workflows.ground import write_ground
from tests.cluster import surveys
from tests.cluster.processes import wait_for_lines
from tests.command_line import rows as command_rows
from tests.command_line import spatialq_command
from tests.conftest import made_once, real_file

FEET = "EPSG:2263"  # x and y in US survey feet
METRES_AND_FEET = "EPSG:25832+8228"  # z in feet


def make(folder):
    """Tiles with many fields and classes; noise is far from all others, and alone in one tile."""
    surveys.make(folder, columns=3, rows=3)
    rng = np.random.default_rng(5)
    for k, path in enumerate(sorted(folder.iterdir())):
        cloud = laspy.read(path)
        cloud.add_extra_dim(laspy.ExtraBytesParams("score", np.float32))
        n = len(cloud)
        cloud["score"] = rng.random(n)
        cloud.intensity = rng.integers(0, 60000, n)
        cloud.gps_time = rng.random(n)
        cloud.classification = rng.choice([0, 1, 2, 2, 6, 7, 9, 17, 18], n)
        if k == 4:
            cloud.classification = np.full(n, 7)
        x, y, z = (np.array(each) for each in (cloud.x, cloud.y, cloud.z))
        x[cloud.classification == 18] -= 900.0
        z[cloud.classification == 18] += 9000.0
        cloud.x, cloud.y, cloud.z = x, y, z
        cloud.write(path)
    return folder


@pytest.fixture(scope="session")
def tiles(tmp_path_factory):
    return made_once(tmp_path_factory, "ground_survey", make)


@pytest.fixture(scope="session")
def plain(tmp_path_factory):
    return made_once(tmp_path_factory, "survey", surveys.make)


def run(tiles, folder, **options):
    return cluster.run("classify_ground", str(tiles), folder, **(surveys.QUIET | options))


def of_job(folder):
    with spatialq.connect() as con:
        cluster.table(con, folder, "found")
        return surveys.rows_of(con, "FROM found")


def in_one_piece(tiles, **options):
    given = "".join(f", {name} := {value!r}" for name, value in (surveys.QUIET | options).items())
    return surveys.rows_of_call(f"classify_ground('{tiles}/*.laz'{given})")


CASES = {
    "as it is": {},
    "narrow objects": {"object_width": 20.0},
    "other windows": {"window_size": 7.0, "overlap": 0.5, "cell_size": 0.0, "min_points": 3},
    "bounds": {"bounds": [1013.3, 5007.7, 1101.0, 5088.8]},
    "feet": {"unit": 0.3048},
    "coarse": {"unit": 5.0, "object_width": 300.0},
}


@pytest.mark.slow
@pytest.mark.parametrize("tile_size", [None, 23.7, 30.0])
@pytest.mark.parametrize("name", CASES)
def test_parts_have_the_rows_of_one_piece(at_once, plain, tmp_path, name, tile_size):
    options = CASES[name]
    result = run(plain, tmp_path / "out", tile_size=tile_size, **options)
    expected = in_one_piece(plain, **options)
    assert of_job(tmp_path / "out") == expected
    assert result["rows"] == len(expected) > 1000
    assert 0.1 < np.mean([is_ground for *_, is_ground, _ in expected]) < 1.0
    assert not (tmp_path / "out" / "stages").exists()


def bytes_in(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


LAZ_CASES = {
    "as it is": {},
    "ground only": {"ground_only": True},
    "bounds": {"bounds": [1013.3, 5007.7, 1101.0, 5031.0]},
    "nothing in bounds": {"bounds": [0.0, 0.0, 1.0, 1.0]},
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", LAZ_CASES)
def test_clouds_are_those_of_the_command(at_once, tiles, tmp_path, name):
    """To the byte: all dimensions, noise, water and bridges as they were."""
    options = LAZ_CASES[name]
    result = cluster.run(
        "classify_ground", str(tiles), tmp_path / "out", part_format="laz", **options
    )
    (tmp_path / "whole").mkdir()
    whole = write_ground(tiles, f"{tmp_path}/whole/", **options)
    expected = bytes_in(tmp_path / "whole")
    assert bytes_in(tmp_path / "out" / "parts") == expected
    assert len(expected) == result["parts"] == 9
    assert result["rows"] == whole["ground_points" if "ground_only" in options else "points"]


def points_of(paths):
    """Give all points of files as rows of integers and bytes, sorted."""
    found = []
    for path in paths:
        cloud = laspy.read(path)
        assert cloud.header.scales.tolist() == [0.01] * 3
        found += [each.tobytes() for each in cloud.points.array]
    return sorted(found)


@pytest.mark.slow
@pytest.mark.parametrize("bounds", [None, [1013.3, 5007.7, 1060.0, 5031.0]])
def test_clouds_of_tiles_have_all_points(at_once, tiles, tmp_path, bounds):
    """Points on borders of tiles once, and noise far away, too."""
    options = surveys.QUIET | {"bounds": bounds}
    cluster.run(
        "classify_ground", str(tiles), tmp_path / "out", part_format="laz", tile_size=20.0,
        **options,
    )  # fmt: skip
    (tmp_path / "whole").mkdir()
    write_ground(tiles, f"{tmp_path}/whole/", bounds=bounds)
    parts = list((tmp_path / "out" / "parts").iterdir())
    assert points_of(parts) == points_of((tmp_path / "whole").iterdir())
    assert len(parts) >= 6


@pytest.mark.slow
@pytest.mark.parametrize("tile_size", [None, 23.7])
def test_rows_by_class_are_those_of_the_commands_table(at_once, tiles, tmp_path, tile_size):
    run(tiles, tmp_path / "out", tile_size=tile_size, by_class=True)
    write_ground(tiles, tmp_path / "whole.parquet")
    with spatialq.connect() as con:
        expected = surveys.rows_of(con, f"FROM '{tmp_path}/whole.parquet'")
    assert of_job(tmp_path / "out") == expected


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("crs", [FEET, METRES_AND_FEET])
def test_units_of_files(at_once, tiles, tmp_path, crs):
    copy = tmp_path / "tiles"
    copy.mkdir()
    for path in sorted(tiles.iterdir()):
        cloud = laspy.read(path)
        cloud.points = cloud.points[~np.isin(cloud.classification, (7, 18))]
        cloud.header.add_crs(pyproj.CRS(crs))
        cloud.write(copy / path.name)
    cluster.run("classify_ground", str(copy), tmp_path / "rows")
    with spatialq.connect() as con:
        expected = surveys.rows_of(con, f"FROM classify_ground('{copy}/*.laz')")
    assert of_job(tmp_path / "rows") == expected
    cluster.run("classify_ground", str(copy), tmp_path / "out", part_format="laz")
    (tmp_path / "whole").mkdir()
    write_ground(copy, f"{tmp_path}/whole/")
    assert bytes_in(tmp_path / "out" / "parts") == bytes_in(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_command(at_once, tiles, tmp_path):
    out = tmp_path / "out"
    options = ["--object-width", "40m"]
    (made,) = command_rows("ground", tiles, "-o", out, "--executor", "local", *options)
    (tmp_path / "whole").mkdir()
    write_ground(tiles, f"{tmp_path}/whole/", object_width=40.0)
    assert bytes_in(out / "parts") == bytes_in(tmp_path / "whole")
    again = spatialq_command("ground", tiles, "-o", out, "--tile-size", "20", "--resume")
    assert "begun with another tile_size, None, not '20'" in again.stderr
    (resumed,) = command_rows("ground", tiles, "-o", out, "--resume", *options)
    assert made["parts"] == resumed["resumed"] == 9
    rows = tmp_path / "rows"
    command_rows("ground", tiles, "-o", rows, "--workers", "1", "--part-format", "parquet")
    write_ground(tiles, tmp_path / "whole.parquet")
    with spatialq.connect() as con:
        expected = surveys.rows_of(con, f"FROM '{tmp_path}/whole.parquet'")
        with pytest.raises(JobError, match=r"parts of the job in .*out' are laz files, no rows"):
            cluster.table(con, out)
    assert of_job(rows) == expected


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        (["--resolution", "2u"], "--resolution of a job needs --part-format tif, the terrain"),
        (["--crs", "EPSG:25832"], "--crs is no option of a job"),
        (["-o", "terrain.tif"], "--output must be one folder, that of the job, got 2"),
        (["--object-width", "40"], "object_width must say its unit"),
    ],
)
def test_what_the_command_cannot_do_as_a_job(tiles, tmp_path, option, sentence):
    made = spatialq_command("ground", tiles, "-o", tmp_path / "out", "--workers", "1", *option)
    assert made.returncode == 1
    assert sentence in made.stderr
    assert not (tmp_path / "out").exists()


def test_a_file_is_no_folder_of_a_job(tiles, tmp_path):
    made = spatialq_command("ground", tiles, "-o", tmp_path / "terrain.tif", "--workers", "1")
    assert made.returncode == 1
    assert "--output must be the folder of the job, got" in made.stderr
    made = spatialq_command("ground", tiles, "-o", tmp_path / "out", "--part-format", "laz")
    assert made.returncode == 1
    assert "--part-format is an option of a job: give --executor, too" in made.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_two_files_of_one_name(at_once, tiles, tmp_path):
    copy = tmp_path / "tile_0_0.laz"
    shutil.copy(tiles / "tile_0_1.laz", copy)
    sources = [tiles / "tile_0_0.laz", copy]
    with pytest.raises(FileError, match=r"would both be 'tile_0_0\.laz' in it"):
        cluster.run("classify_ground", sources, tmp_path / "out", part_format="laz")
    run_of_tiles = {"part_format": "laz", "tile_size": 100.0}
    assert cluster.run("classify_ground", sources, tmp_path / "tiled", **run_of_tiles)["rows"] == (
        700 * 2
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("lines", [12, 30])
def test_a_job_that_is_killed_goes_on(tiles, tmp_path, lines):
    """While squares are counted, and while parts are written; `test_faults` has all stages."""
    out = tmp_path / "out"
    process = surveys.begin(
        tiles, out, function="classify_ground", part_format="laz", unit=None
    )  # fmt: skip
    wait_for_lines(out, lines, process)
    process.kill()
    process.communicate(timeout=60)
    (described,) = cluster.jobs(tmp_path)
    assert described["state"] == "unfinished"
    cluster.run("classify_ground", str(tiles), out, part_format="laz", workers=2, resume=True)
    (tmp_path / "whole").mkdir()
    write_ground(tiles, f"{tmp_path}/whole/")
    assert bytes_in(out / "parts") == bytes_in(tmp_path / "whole")
    assert surveys.journal_lines(out) == 36


@pytest.mark.slow
def test_real_tiles(at_once, tmp_path):
    cloud = laspy.read(real_file("data/lidar/ahn3_cropped_1.laz"))
    tiles = surveys.cut(cloud, tmp_path / "tiles")
    cluster.run("classify_ground", str(tiles), tmp_path / "rows")
    with spatialq.connect() as con:
        cluster.table(con, tmp_path / "rows", "found")
        con.execute(f"CREATE TABLE whole AS FROM classify_ground('{tiles}/*.laz')")
        assert con.sql("FROM found EXCEPT ALL FROM whole").fetchall() == []
        assert con.sql("FROM whole EXCEPT ALL FROM found").fetchall() == []
        assert con.sql("SELECT count(*) FROM found").fetchall() == [(len(cloud),)]
    cluster.run("classify_ground", str(tiles), tmp_path / "out", part_format="laz")
    (tmp_path / "whole").mkdir()
    write_ground(tiles, f"{tmp_path}/whole/")
    assert bytes_in(tmp_path / "out" / "parts") == bytes_in(tmp_path / "whole")


def test_arrays_in_a_file(tmp_path):
    """Also without a value, and of several dimensions."""
    path = tmp_path / "arrays"
    listed = [np.arange(6.0).reshape(2, 3), np.empty((3, 0)), np.array([[True], [False]])]
    arrays = {f"array {k}": each for k, each in enumerate(listed)}
    write_arrays(path, arrays, {"a": [1, None]})
    values, found = read_arrays(path)
    assert values == {"a": [1, None]}
    assert list(found) == list(arrays)
    for name, expected in arrays.items():
        assert found[name].dtype == expected.dtype
        assert np.array_equal(found[name], expected)
