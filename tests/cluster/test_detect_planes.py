"""Planes of a survey as a job: those of one call on all files, and so are the planes of points."""

import json
import shutil
import warnings

import laspy
import numpy as np
import pyproj
import pytest

import spatialq
from spatialq import cluster
from spatialq.demo.house import write_house
from spatialq.errors import CrsWarning, FileError, FileWarning, JobError, SparsePointsWarning
from tests.cluster import surveys
from tests.cluster.processes import wait_for_lines
from tests.command_line import rows as command_rows
from tests.command_line import spatialq_command
from tests.conftest import made_once, real_file
from tests.detect_planes.cases import hills, rooms

FUNCTIONS = ("detect_planes", "plane_points")


def make(folder, columns=3, rows=2, n=20_000, scene_of=rooms.building):
    """Write tiles of a building whose walls go on across borders; many points lie on these."""
    folder.mkdir(parents=True, exist_ok=True)
    scene = scene_of(n)
    xyz = np.round(np.column_stack([scene.x + 1000, scene.y + 5000, scene.z + 20]), 2)
    low, high = xyz.min(0), xyz.max(0)
    at = (xyz[:, :2] - low[:2]) / (high - low)[:2] * [columns, rows]
    column, row = np.minimum(at.astype(int), [columns - 1, rows - 1]).T
    for k in range(columns * rows):
        own = (column == k % columns) & (row == k // columns)
        surveys.write_tile(folder / f"tile_{k:02}.laz", *xyz[own].T)
    surveys.write_tile(folder / "nothing.laz", *np.empty((3, 0)))
    return folder


@pytest.fixture(scope="session")
def tiles(tmp_path_factory):
    return made_once(tmp_path_factory, "building", make)


def run(function, tiles, folder, **options):
    return cluster.run(function, str(tiles), folder, **({"unit": 1.0} | options))


def assert_same(function, tiles, folder, **options):
    """Compare the parts of a job with one call, as bags of rows; give how many there are."""
    given = {"unit": 1.0} | options
    arguments = "".join(
        f", {name} := {json.dumps(value) if not isinstance(value, str) else repr(value)}"
        for name, value in given.items()
    )
    with spatialq.connect() as con:
        cluster.table(con, folder, "found")
        con.execute(
            f"CREATE TABLE expected AS FROM {function}('{tiles}/*.laz'{arguments}, device := 'cpu')"
        )
        text = "SELECT * REPLACE (boundary::VARCHAR AS boundary) FROM"
        one, other = "FROM found", "FROM expected"
        if function == "detect_planes":
            one, other = f"{text} found", f"{text} expected"
        assert con.sql(f"{one} EXCEPT ALL {other}").fetchall() == []
        assert con.sql(f"{other} EXCEPT ALL {one}").fetchall() == []
        ((count,),) = con.sql("SELECT count(*) FROM expected").fetchall()
        assert con.sql("FROM found").columns == con.sql("FROM expected").columns
        return count


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(("density", "is_told"), [(0.5, True), (1.2, False)])
def test_sparse_points_are_told_once(at_once, tmp_path, function, density, is_told):
    """With the sentence of one call; squares go on across the borders of tiles."""
    x, y, z = hills(density, 130.0)
    (tmp_path / "tiles").mkdir()
    for k, own in enumerate((x < 47.3, x >= 47.3)):
        surveys.write_tile(tmp_path / "tiles" / f"{k}.laz", x[own], y[own], z[own])
    given = {"unit": 1.0}
    with spatialq.connect() as con:
        query = f"FROM {function}('{tmp_path}/tiles/*.laz', unit := 1.0)"
        expected = sparse(lambda: con.sql(query).fetchall())
    found = sparse(lambda: cluster.run(function, tmp_path / "tiles", tmp_path / "out", **given))
    assert found == expected
    assert len(found) == is_told


def test_sparse_points_of_elements_are_told_once(at_once, tmp_path):
    (tmp_path / "tiles").mkdir()
    for k, own in enumerate(np.array_split(np.column_stack(hills(0.5, 130.0)), 2)):
        surveys.write_tile(tmp_path / "tiles" / f"{k}.laz", *own.T)
    write_house(tmp_path / "house.ifc")
    with spatialq.connect() as con, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        con.execute(f"CREATE TABLE elements AS FROM read_ifc('{tmp_path}/house.ifc')")
        query = f"FROM plane_elements('{tmp_path}/tiles/*.laz', 'elements', unit := 1.0)"
        expected = sparse(lambda: con.sql(query).fetchall())
    found = sparse(
        lambda: cluster.run(
            "plane_elements", tmp_path / "tiles", tmp_path / "out",
            elements=tmp_path / "house.ifc", unit=1.0,
        )
    )  # fmt: skip
    assert found == expected
    assert len(found) == 1


def sparse(work):
    """Do some work, and give the sentences of warnings of sparse points."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        work()
    return [str(each.message) for each in found if each.category is SparsePointsWarning]


CASES = {
    "as it is": {},
    "split": {"split": True, "outline": "convex"},
    "deep": {"s_level": 4, "s_ms": 4},
    "the paper's kernel": {"kernel": "paper"},
    "given limits": {"max_distance": 0.03, "min_points": 40},
    "bounds": {"bounds": [1001.3, 5000.7, 1009.0, 5008.8]},
    "no planes": {"min_points": 19_000},
}


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("name", "tile_size"), [*((name, None) for name in CASES), ("as it is", 5.7), ("bounds", 5.7)]
)
def test_parts_have_the_rows_of_one_piece(at_once, tiles, tmp_path, name, tile_size, function):
    options = CASES[name]
    result = run(function, tiles, tmp_path / "out", tile_size=tile_size, **options)
    count = assert_same(function, tiles, tmp_path / "out", **options)
    assert result["rows"] == count
    assert (count > 3) is (name != "no planes" or function == "plane_points")
    if function == "detect_planes":
        assert [path.name for path in (tmp_path / "out" / "parts").iterdir()] == ["planes.parquet"]
    assert not (tmp_path / "out" / "stages").exists()


def cut(cloud, folder, columns=5, rows=4):
    """Write twenty tiles of a real cloud, with borders through whatever is there."""
    x, y, z = (np.asarray(each) for each in (cloud.x, cloud.y, cloud.z))
    column = np.minimum(((x - x.min()) / np.ptp(x) * columns).astype(int), columns - 1)
    row = np.minimum(((y - y.min()) / np.ptp(y) * rows).astype(int), rows - 1)
    folder.mkdir()
    for k in range(columns * rows):
        own = (column == k % columns) & (row == k // columns)
        surveys.write_tile(folder / f"tile_{k:02}.laz", x[own], y[own], z[own])
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS)
def test_real_tiles(at_once, tmp_path, function):
    cloud = laspy.read(real_file("data/lidar/ahn3_cropped_1.laz"))
    tiles = cut(cloud, tmp_path / "tiles")
    run(function, tiles, tmp_path / "out")
    assert assert_same(function, tiles, tmp_path / "out") > 20


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS)
def test_heights_in_another_unit(at_once, tmp_path, function):
    """Feet along x and y, and metres upright."""
    tiles = tmp_path / "tiles"
    make(tiles)
    (tiles / "nothing.laz").unlink()
    crs = pyproj.CRS.from_user_input("EPSG:2278+5703")
    for path in tiles.iterdir():
        cloud = laspy.read(path)
        cloud.header.add_crs(crs)
        cloud.write(path)
    with pytest.warns(CrsWarning, match="heights were converted"):
        cluster.run(function, str(tiles), tmp_path / "out")
    with pytest.warns(CrsWarning, match="heights"):
        count = assert_same(function, tiles, tmp_path / "out", unit=None)
    assert count > 3


@pytest.mark.slow
def test_points_far_away_that_are_no_stray_points(at_once, tmp_path):
    """They make the cube wide, for a job as for one call."""
    tiles = make(tmp_path / "tiles", n=890, scene_of=rooms.box)
    for k in range(10):  # more than may be stray on a side of so few points
        surveys.write_tile(tiles / f"zz_{k}.laz", *np.array([[1500.0 + k], [5005.0], [25.0]]))
    for function in FUNCTIONS:
        out = tmp_path / function
        run(function, tiles, out)
        assert assert_same(function, tiles, out) > 1


@pytest.mark.slow
@pytest.mark.parametrize("tile_size", [None, 5.7])
def test_clouds_have_the_planes_of_one_piece(at_once, tiles, tmp_path, tile_size):
    copy = tmp_path / "tiles"
    shutil.copytree(tiles, copy)
    path = copy / "tile_03.laz"
    cloud = laspy.read(path)
    cloud.classification[::50] = 7  # noise is of no plane
    cloud.write(path)
    bounds = "1001.3,5000.7,1009.0,5008.8"
    out = tmp_path / "out"
    given = ["--tile-size", tile_size] if tile_size else ["--executor", "local"]
    (made,) = command_rows(
        "planes",
        copy,
        "-o",
        out,
        "--part-format",
        "laz",
        "--bounds",
        bounds,
        "--workers",
        1,
        *given,
    )
    command_rows("planes", copy, "-o", tmp_path / "one.laz", "--bounds", bounds)
    found = [laspy.read(each) for each in sorted((out / "parts").iterdir())]
    expected = laspy.read(tmp_path / "one.laz")
    assert made["rows"] == len(expected) > 1000
    names = "X", "Y", "Z", "classification", "plane_id", "plane_distance"

    def rows(clouds):
        columns = [np.concatenate([np.asarray(each[name]) for each in clouds]) for name in names]
        return sorted(
            zip(*(np.nan_to_num(each, nan=-99).tolist() for each in columns), strict=True)
        )

    assert rows(found) == rows([expected])
    assert max(expected["plane_id"]) > 3
    with spatialq.connect() as con, pytest.raises(JobError, match="are laz files, no rows"):
        cluster.table(con, out)


def test_clouds_of_noise_only_have_all_points(at_once, tmp_path):
    path = tmp_path / "noise.laz"
    surveys.write_tile(path, *np.random.default_rng(3).uniform(0, 30, (3, 500)))
    cloud = laspy.read(path)
    cloud.classification[:] = 7
    cloud.write(path)
    run("plane_points", path, tmp_path / "out", part_format="laz", noise=False)
    found = laspy.read(tmp_path / "out" / "parts" / "noise.laz")
    assert np.array_equal(found.xyz, cloud.xyz)
    assert not np.any(found.plane_id)
    assert np.isnan(found.plane_distance).all()


def test_two_parts_of_one_name_are_refused(at_once, tiles, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        shutil.copy(tiles / "tile_01.laz", tmp_path / name)
    source = [str(tmp_path / name / "tile_01.laz") for name in ("a", "b")]
    with pytest.raises(FileError, match=r"would both be 'tile_01\.laz' in it"):
        cluster.run("plane_points", source, tmp_path / "out", unit=1.0, part_format="laz")


@pytest.mark.slow
def test_a_driver_that_is_killed(tiles, tmp_path):
    """In the middle of the passes, which both functions have; what was done is left as it is."""
    out, function = tmp_path / "out", "detect_planes"
    process = surveys.begin(tiles, out, function=function)
    wait_for_lines(out, 60, process)
    process.kill()
    process.communicate(timeout=60)
    lines = (out / "journal.jsonl").read_text().splitlines()
    before = {(line["stage"], line["name"]) for line in map(json.loads, lines)}
    assert not any(stage == "parts" for stage, _ in before)
    run(function, tiles, out, workers=2, resume=True)
    assert assert_same(function, tiles, out) > 5
    after = (out / "journal.jsonl").read_text().splitlines()[len(lines) :]
    again = {(line["stage"], line["name"]) for line in map(json.loads, after)} & before
    assert {stage for stage, _ in again} <= {"survey"}
    count = len(lines) + len(after)
    run(function, tiles, out, workers=2, resume=True)
    assert surveys.journal_lines(out) == count


def test_passes_run_on_the_cpu(tiles, tmp_path):
    with pytest.raises(
        ValueError, match=r"device must be one of auto, cpu for detect_planes, .*gpu"
    ):
        run("detect_planes", tiles, tmp_path / "out", device="gpu")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_nothing_in_bounds(at_once, tiles, tmp_path):
    for function in FUNCTIONS:
        with pytest.warns(FileWarning, match=f"{function}: no point is within the bounds"):
            result = run(function, tiles, tmp_path / function, bounds=[0, 0, 1, 1])
        assert result["rows"] == 0
        assert_same(function, tiles, tmp_path / function, bounds=[0, 0, 1, 1])


def test_commands(at_once, tiles, tmp_path):
    wrong = spatialq_command("planes", tiles, "-o", tmp_path / "a.png", "--executor", "local")
    assert wrong.returncode == 1
    assert "--output must be the folder of the job" in wrong.stderr
    wrong = spatialq_command("planes", tiles, "-o", tmp_path / "a", "--resume", "--up", "y")
    assert "--up is no option of a job" in wrong.stderr
    wrong = spatialq_command("planes", tiles, "-o", tmp_path / "a", "--part-format", "laz")
    assert "--part-format is an option of a job" in wrong.stderr
    (made,) = command_rows(
        "planes", tiles, "-o", tmp_path / "out", "--executor", "local", "--max-distance", "5cm"
    )
    assert (made["function"], made["parts"]) == ("detect_planes", 1)
    assert assert_same("detect_planes", tiles, tmp_path / "out", max_distance=0.05) == made["rows"]


def test_a_roof_across_the_border_of_tiles_has_two_planes(at_once, tmp_path):
    """A gable roof of 20 by 10 metres, cut across its ridge: a face is one plane on both sides."""
    rng, tiles = np.random.default_rng(1), tmp_path / "tiles"
    tiles.mkdir()
    x, y = np.sort(rng.uniform(0, 20, 6000)), rng.uniform(0, 10, 6000)
    z = 30 - 0.5 * np.abs(y - 5) + rng.normal(0, 0.02, x.size)
    for k, own in enumerate((x < 10, x >= 10)):
        surveys.write_tile(tiles / f"tile_{k}.laz", x[own] + 1000, y[own] + 5000, z[own])
    run("plane_points", tiles, tmp_path / "out")
    with spatialq.connect() as con:
        cluster.table(con, tmp_path / "out", "found")
        found = con.sql("SELECT plane_id FROM found ORDER BY point_id").fetchall()
    plane_id = np.array([plane or 0 for (plane,) in found])
    assert plane_id.size == x.size  # the first tile has the first points
    of_faces = []
    for face in (y < 4.5, y > 5.5):
        left, right = (plane_id[face & side] for side in (x < 10, x >= 10))
        assert (left == np.median(right)).mean() > 0.95
        assert (right == np.median(left)).mean() > 0.95
        of_faces.append(np.median(left))
    assert sorted(of_faces) == [1, 2]
