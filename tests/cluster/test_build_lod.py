"""Jobs of `build_lod`: chunks and the nodes above them are the tree of one call on all files."""

import os
import shutil

import laspy
import numpy as np
import pyarrow.parquet as pq
import pytest
from spatialq.udfs.build_lod import chunks, cpu
from spatialq.udfs.build_lod.split import split
from spatialq.udfs.build_lod.tree import Cube, Points, Root

import spatialq
from spatialq import cluster
from spatialq.errors import FileError, FileWarning
from tests.cluster import surveys
from tests.cluster.processes import wait_for_lines
from tests.command_line import rows as command_rows
from tests.command_line import spatialq_command
from tests.conftest import made_once, real_file

SMALL = {"max_points": 150, "grid_size": 16, "unit": 1.0}
CHUNK = 400


def write_tile(path, x, y, z, rng, *, kind=7, crs=None):
    """Write points with colours, classes and times, in centimetres."""
    header = laspy.LasHeader(version="1.4", point_format=kind)
    header.scales = np.full(3, 0.01)
    if crs is not None:
        header.add_crs(crs)
    record = laspy.ScaleAwarePointRecord.zeros(x.size, header=header)
    record.x, record.y, record.z = x, y, z
    record["return_number"] = record["number_of_returns"] = np.ones(x.size, np.uint8)
    record["intensity"] = rng.integers(0, 4000, x.size)
    record["classification"] = rng.integers(0, 7, x.size)
    record["gps_time"] = rng.random(x.size)
    if kind == 7:
        for name in ("red", "green", "blue"):
            record[name] = rng.integers(0, 65536, x.size)
    with laspy.open(path, "w", header=header) as file:
        file.write_points(record)


def make(folder, crs=None):
    """Write tiles that overlap, one without colours, with points that coincide and a dense spot."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(2)
    for k in range(12):
        column, row = k % 4, k // 4
        n = 900 if k != 5 else 3000
        x, y = (rng.integers(0, 330, n) / 10 for _ in range(2))
        if k == 5:
            x[:2000], y[:2000] = x[:2000] / 40 + 3, y[:2000] / 40 + 3
            x[:300], y[:300] = 7.0, 8.0
        x, y = x + column * 30 + 1000, y + row * 30 + 5000
        z = np.round((x - 1000) / 20 + rng.integers(0, 8, n) / 10, 1)
        if k == 5:
            z[:300] = 4.0
        write_tile(folder / f"tile_{k:02}.laz", x, y, z, rng, kind=6 if k == 3 else 7, crs=crs)
    return folder


@pytest.fixture(scope="session")
def tiles(tmp_path_factory):
    return made_once(tmp_path_factory, "coloured survey", make)


def run(source, folder, **options):
    given = SMALL | {"chunk_points": CHUNK} | options
    return cluster.run("build_lod", str(source), folder, **given)


def in_one_piece(source, **options):
    """Write the query of one call on all files."""
    given = SMALL | options
    literal = {name: repr(value) for name, value in given.items()}
    listed = "".join(f", {name} := {value}" for name, value in literal.items())
    return f"FROM build_lod('{source}'{listed})"


def require_same(folder, query):
    """Compare a job's rows with those of a query, as bags; give how many there are."""
    with spatialq.connect() as con:
        cluster.table(con, folder, "found")
        con.execute(f"CREATE TABLE expected AS {query}")
        for one, other in (("found", "expected"), ("expected", "found")):
            missing = f"SELECT count(*) FROM (FROM {one} EXCEPT ALL FROM {other})"
            assert con.sql(missing).fetchall() == [(0,)], (one, other)
        return con.sql("SELECT count(*) FROM found").fetchall()[0][0]


CASES = {
    "weighted": {},
    "average": {"strategy": "average"},
    "random": {"strategy": "random", "seed": 7},
    "first in full precision": {"strategy": "first", "full_precision": True},
    "bounds": {"bounds": [1013.3, 5007.7, 1081.0, 5058.8]},
    "attributes": {"attributes": ["gps_time", "intensity"]},
    "deep chunks": {"max_points": 5, "grid_size": 2},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_parts_have_the_rows_of_one_piece(at_once, tiles, tmp_path, name):
    options = CASES[name]
    result = run(tiles, tmp_path / "out", **options)
    found = require_same(tmp_path / "out", in_one_piece(f"{tiles}/*.laz", **options))
    assert result["rows"] == found > 30
    assert result["parts"] > 10


@pytest.mark.slow
def test_attributes_that_some_files_lack(at_once, tiles, tmp_path):
    """`extra` is missing in most files: NULL in their points, of the common type in all."""
    copy = tmp_path / "tiles"
    shutil.copytree(tiles, copy)
    for number, kind in ((1, "uint8"), (2, "int16")):
        path = copy / f"tile_{number:02}.laz"
        cloud = laspy.read(path)
        cloud.add_extra_dim(laspy.ExtraBytesParams("extra", kind))
        cloud["extra"] = np.arange(len(cloud)) % 100
        cloud.write(path)
    options = {"attributes": ["extra", "gps_time", "red"]}
    run(copy, tmp_path / "out", **options)
    require_same(tmp_path / "out", in_one_piece(f"{copy}/*.laz", **options))
    with spatialq.connect() as con:
        cluster.table(con, tmp_path / "out", "found")
        types = con.sql("SELECT DISTINCT typeof(samples[1].extra) FROM found").fetchall()
    assert types == [("SMALLINT",)]


def test_attributes_that_no_file_has(at_once, tiles, tmp_path):
    with pytest.raises(
        ValueError, match="attributes must be columns of numbers of the files, poin"
    ):
        run(tiles, tmp_path / "out", attributes=["height"])


@pytest.mark.slow
def test_heights_in_another_unit(at_once, tmp_path):
    """UTM in metres with heights in feet."""
    import pyproj

    source = make(tmp_path / "tiles", crs=pyproj.CRS("EPSG:32633+8228"))
    with pytest.warns(spatialq.errors.CrsWarning, match="heights were converted"):
        run(source, tmp_path / "out", unit=None)
    with pytest.warns(spatialq.errors.CrsWarning, match="heights were converted"):
        require_same(tmp_path / "out", in_one_piece(f"{source}/*.laz").replace(", unit := 1.0", ""))


@pytest.mark.slow
def test_one_chunk_and_none(at_once, tiles, tmp_path):
    result = run(tiles, tmp_path / "one", chunk_points=100_000)
    assert result["parts"] == 1
    require_same(tmp_path / "one", in_one_piece(f"{tiles}/*.laz"))
    bounds = [0, 0, 1, 1]
    with pytest.warns(FileWarning, match="no point is within the bounds"):
        result = run(tiles, tmp_path / "none", bounds=bounds)
    assert (result["parts"], result["rows"]) == (0, 0)
    assert require_same(tmp_path / "none", in_one_piece(f"{tiles}/*.laz", bounds=bounds)) == 0


@pytest.mark.slow
def test_chunks_in_less_memory(at_once, tiles, tmp_path, monkeypatch):
    """A chunk for whose nodes there is no room is built in parts, of the same rows in their order.

    So it is where the memory of a GPU is small.
    """
    run(tiles, tmp_path / "out", chunk_points=5000)
    monkeypatch.setattr(
        "spatialq.udfs.build_lod.external_partitioning._most_points", lambda *_: 150
    )
    run(tiles, tmp_path / "again", chunk_points=5000)
    parts = sorted((tmp_path / "out" / "parts").iterdir())
    assert len(parts) > 3
    for path in parts:
        assert pq.read_table(path).equals(pq.read_table(tmp_path / "again" / "parts" / path.name))


def test_files_say_what_they_are(at_once, tiles, tmp_path):
    bounds = [1000.0, 5000.0, 1040.0, 5040.0]
    options = {name: value for name, value in SMALL.items() if name != "unit"}
    spatialq.write_lod(tiles, tmp_path / "whole.parquet", bounds=bounds, **options)
    run(tiles, tmp_path / "out", bounds=bounds)
    whole = pq.read_schema(tmp_path / "whole.parquet")
    for path in (tmp_path / "out" / "parts").iterdir():
        found = pq.read_schema(path)
        assert found.equals(whole)
        for key in (b"build_lod", b"colour_range"):
            assert (
                pq.read_metadata(path).metadata[key]
                == (pq.read_metadata(tmp_path / "whole.parquet").metadata[key])
            )


@pytest.mark.slow
def test_real_tiles(at_once, tmp_path):
    cloud = laspy.read(real_file("data/rgb/autzen_2010_rgb_west.laz"))
    near = (cloud.x < cloud.x.min() + 1500) & (cloud.y < cloud.y.min() + 900)
    cloud.points = cloud.points[near]
    tiles = surveys.cut(cloud, tmp_path / "tiles")
    options = {"max_points": 2000, "grid_size": 32, "unit": None}
    result = run(tiles, tmp_path / "out", chunk_points=20_000, **options)
    query = f"FROM build_lod('{tiles}/*.laz', max_points := 2000, grid_size := 32)"
    assert require_same(tmp_path / "out", query) == result["rows"] > 100
    assert result["parts"] > 10


def points_of(rng, n=5000):
    """Points of which most are in a corner, and some coincide."""
    x, y, z = rng.random((3, n))
    for each in (x, y, z):
        each[: n // 2] *= 1e-4
        each[:50] = 0.0
    return x, y, z


@pytest.mark.parametrize("depth", [1, 2, 5, 12])
@pytest.mark.parametrize("most", [60, 700, 10_000])
def test_chunks_are_the_leaves_of_a_tree(most, depth):
    """Those that the kernel's own split of all points gives, which knows no counts."""
    x, y, z = points_of(np.random.default_rng(3))
    cube = Cube.around(*([f(each) for each in (x, y, z)] for f in (np.min, np.max)))
    nothing = np.empty(0, np.int64)
    steps, above, found = [chunks.Step(0, depth, nothing)], np.zeros((1, 3), np.int64), []
    while True:
        parts = [
            chunks.count(x[at : at + 777], y[at : at + 777], z[at : at + 777], cube, steps)
            for at in range(0, x.size, 777)
        ]
        found.append(chunks.divide(chunks.Counts.none().plus(parts), steps[-1], above, most))
        above, fullest = found[-1].full_cell, found[-1].full_points
        if not above.size:
            break
        last = steps.pop()
        level = last.level + last.depth
        steps += [
            chunks.Step(last.level, last.depth, found[-1].full),
            chunks.Step(level, chunks.next_depth(int(fullest.max()), level, most), nothing),
        ]
    leaves = chunks.in_order(found)
    ids = np.arange(x.size)
    points = Points(x, y, z, np.zeros((x.size, 4), np.uint16), ids)
    expected = split(cpu.sort(points, cube, Root()), most)
    if most > x.size:
        assert leaves.level.tolist() == [0]
    for name, values in vars(expected).items():
        np.testing.assert_array_equal(getattr(leaves, name), values, err_msg=name)
    for k in range(len(leaves.level)):
        inside = chunks.is_inside(x, y, z, cube, leaves.root(k))
        assert inside.sum() == leaves.points[k]
        xmin, ymin, xmax, ymax = chunks.box_of(cube, int(leaves.level[k]), leaves.cell[k])
        assert ((x[inside] >= xmin) & (x[inside] <= xmax)).all()
        assert ((y[inside] >= ymin) & (y[inside] <= ymax)).all()


def test_points_in_one_place(at_once, tiles, tmp_path):
    with pytest.raises(ValueError, match="300 points lie in one place: chunk_points must be as"):
        run(tiles, tmp_path / "out", chunk_points=200)


def test_levels_of_a_country():
    """A million tiles of a million points: two million chunks without a second step."""
    country = chunks.first_depth(10**12, 1e12, 1e6, 2_000_000)
    assert country == 12
    assert chunks.first_depth(10**6, 1e6, 1e3, 2_000_000) == 2
    assert chunks.first_depth(10**6, 0.0, 0.0, 2_000_000) == 2
    assert chunks.first_depth(10**6, 0.0, 1e3, 2_000_000) == 8
    assert chunks.next_depth(10**7, 50, 2_000_000) == 3


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"tile_size": 30.0}, "tile_size must be left out for build_lod, .* got 30.0"),
        ({"chunk_points": 100}, "must be a whole number from max_points, 150, to .*, got 100"),
        ({"chunk_points": 2e6}, "chunk_points must be a whole number .*, got 2000000.0"),
        ({"part_format": "laz"}, "part_format must be one of parquet for build_lod, got 'laz'"),
        ({"grid_size": 3}, "grid_size must be a power of two"),
    ],
)
def test_wrong_arguments(tiles, tmp_path, wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        run(tiles, tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_driver_that_is_killed_leaves_what_is_done(tiles, tmp_path):
    """While chunks are built; `test_faults` ends a job in each of its stages."""
    lines = 40
    given = SMALL | {"chunk_points": CHUNK}
    process = surveys.begin(tiles, tmp_path / "out", function="build_lod", **given)
    wait_for_lines(tmp_path / "out", lines, process)
    process.kill()
    process.communicate(timeout=60)
    (described,) = cluster.jobs(tmp_path)
    assert described["state"] == "unfinished"
    result = run(tiles, tmp_path / "out", workers=2, resume=True)
    assert result["resumed"] >= lines - 30
    require_same(tmp_path / "out", in_one_piece(f"{tiles}/*.laz"))
    assert len(list((tmp_path / "out" / "parts").iterdir())) == result["parts"]
    assert not (tmp_path / "out" / "stages").exists()


@pytest.mark.slow
def test_a_job_that_was_done(at_once, tiles, tmp_path):
    """Nothing is done again; but all if a part is damaged, since what it was made of is gone."""
    copy = tmp_path / "tiles"
    shutil.copytree(tiles, copy)
    made = run(copy, tmp_path / "out")
    again = run(copy, tmp_path / "out", resume=True)
    assert again["resumed"] == again["parts"] == made["parts"]
    assert again["rows"] == made["rows"]
    with pytest.raises(spatialq.errors.JobError, match="begun with another chunk_points, 400, not"):
        run(copy, tmp_path / "out", resume=True, chunk_points=500)
    (tmp_path / "out" / "parts" / "r.parquet").write_bytes(b"")
    mended = run(copy, tmp_path / "out", resume=True)
    assert mended["rows"] == made["rows"]
    require_same(tmp_path / "out", in_one_piece(f"{copy}/*.laz"))
    (copy / "tile_02.laz").touch()
    with pytest.raises(spatialq.errors.JobError, match=r"tile_02.laz' has changed since the job"):
        run(copy, tmp_path / "out", resume=True)


@pytest.mark.slow
def test_a_file_that_changes_while_the_job_runs(tiles, tmp_path, monkeypatch):
    """Its time is compared when it is read again."""
    from spatialq.cluster import driver
    from spatialq.cluster.serial_executor import SerialExecutor

    copy = tmp_path / "tiles"
    shutil.copytree(tiles, copy)

    class Touching(SerialExecutor):
        def map(self, tasks):
            for done in super().map(tasks):
                if done.name.endswith("tile_11.laz"):
                    os.utime(copy / "tile_02.laz", (1, 1))
                yield done

    monkeypatch.setattr(driver, "executor_of", lambda *_, **__: Touching())
    with pytest.raises(FileError, match=r"tile_02.laz': was changed while the job ran"):
        run(copy, tmp_path / "out")


def test_other_points_than_were_counted(at_once, tiles, tmp_path, monkeypatch):
    """What their times do not tell."""
    monkeypatch.setattr(chunks, "is_inside", lambda x, *_: np.zeros(x.size, bool))
    with pytest.raises(
        FileError, match=r"tile_\d\d.laz': has other points than when the job began"
    ):
        run(tiles, tmp_path / "out")


@pytest.mark.slow
def test_the_command(at_once, tiles, tmp_path):
    given = ["--max-points", 150, "--grid-size", 16]
    (made,) = command_rows(
        "lod", tiles, "-o", tmp_path / "out", "--executor", "local", "--chunk-points", CHUNK, *given
    )
    assert made["parts"] > 10
    require_same(tmp_path / "out", in_one_piece(f"{tiles}/*.laz"))
    (listed,) = command_rows("jobs", tmp_path / "out")
    assert (listed["function"], listed["done"]) == ("build_lod", made["parts"])
    (again,) = command_rows(
        "lod", tiles, "-o", tmp_path / "out", "--resume", "--chunk-points", CHUNK, *given
    )
    assert again["resumed"] == made["parts"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["-o", "tree.copc.laz"],
            "must be a folder, which gets parts/*.parquet, got 'tree.copc.la",
        ),
        (["-o", "nodes.parquet"], "must be a folder, which gets parts/*.parquet, got 'nodes.parqu"),
        ([], "--output must be one folder, that of the job, got 0"),
        (["-o", "out", "--compact"], "--compact is no option of a job"),
        (["-o", "out", "--resolution", "1"], "--resolution is no option of a job"),
        (["-o", "out", "--crs", "EPSG:25832"], "--crs is no option of a job"),
    ],
)
def test_what_no_job_does(tiles, tmp_path, arguments, sentence):
    said = spatialq_command("lod", tiles, "--executor", "local", *arguments, cwd=tmp_path)
    assert said.returncode == 1
    assert sentence in " ".join(said.stderr.split())
    assert not any(tmp_path.iterdir())
