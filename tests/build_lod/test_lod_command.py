"""From files to levels of detail: the command and the Python call."""

import json
import re
from itertools import pairwise

import laspy
import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image
from spatialq.udfs.build_lod import Options, cpu, gpu, validation
from spatialq.udfs.build_lod.cost import bytes_host

import spatialq
from spatialq.errors import CrsWarning
from spatialq.planner import log
from spatialq.planner.plan import Plan
from spatialq.workflows import lod, lod_table

from ..command_line import spatialq_command, spatialq_process
from ..conftest import real_file

pytestmark = pytest.mark.slow  # as a whole

SMALL = {"max_points": 300, "grid_size": 8}


def write_scene(path, n=3000, *, crs="EPSG:25832", point_format=7, shift=0.0, seed=1):
    """A hill with a colour that changes from west to east."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(0, 100, (2, n))
    header = laspy.LasHeader(point_format=point_format, version="1.4")
    header.scales, header.offsets = [1e-3] * 3, [500000, 5000000, 0]
    if crs:
        import pyproj

        header.add_crs(pyproj.CRS(crs))
    cloud = laspy.LasData(header)
    cloud.x, cloud.y = x + 500000 + shift, y + 5000000
    cloud.z = 30 * np.exp(-((x - 50) ** 2 + (y - 40) ** 2) / 800)
    cloud.intensity = rng.integers(0, 65536, n)
    cloud.classification = rng.integers(0, 20, n)
    if point_format == 7:
        cloud.red, cloud.green, cloud.blue = 600 * x, 65535 - 600 * x, rng.integers(0, 65536, n)
    cloud.write(path)
    return path


def in_sql(source, **options):
    named = "".join(f", {name} := {value!r}" for name, value in options.items())
    with spatialq.connect() as con:
        return con.sql(f"FROM build_lod('{source}'{named})").to_arrow_table().to_pylist()


def test_one_command_gives_table_and_picture(tmp_path):
    source = write_scene(tmp_path / "a.laz")
    table, picture = tmp_path / "n.parquet", tmp_path / "n.png"
    small = ("--max-points", 300, "--grid-size", 8)
    result = spatialq_process("lod", source, "-o", table, "-o", picture, *small, "--json")
    assert result.returncode == 0, result.stderr
    ((done,),) = (json.loads(result.stdout, parse_constant=pytest.fail),)
    rows = pq.read_table(table).to_pylist()
    assert rows == in_sql(source, **SMALL)
    leaves = [row for row in rows if row["is_leaf"]]
    inner = [row for row in rows if not row["is_leaf"]]
    assert done.pop("seconds") > 0
    assert done == {
        "points": 3000,
        "nodes": len(rows),
        "levels": 1 + max(row["level"] for row in rows),
        "leaves": len(leaves),
        "inner_nodes": len(inner),
        "voxels": sum(len(row["samples"]) for row in inner),
        "brightest": max(
            sample[name]
            for row in leaves
            for sample in row["samples"]
            for name in ("red", "green", "blue")
        ),
        "device": "cpu",
        "outputs": [str(table), str(picture)],
    }
    assert done["levels"] > 2
    ids = sorted(sample["point_id"] for row in leaves for sample in row["samples"])
    assert ids == list(range(3000))
    with Image.open(picture) as drawn:
        assert len(drawn.convert("P", palette=Image.Palette.ADAPTIVE).getcolors()) > 50


def test_what_goes_with_the_table(tmp_path):
    source, table = write_scene(tmp_path / "a.las"), tmp_path / "n.parquet"
    spatialq.write_lod(source, table, strategy="random", seed=7, **SMALL)
    known = pq.read_metadata(table).metadata
    assert json.loads(known[b"crs"])["id"] == {"authority": "EPSG", "code": 25832}
    chosen = {"strategy": "random", "seed": 7, "full_precision": False, **SMALL}
    assert json.loads(known[b"build_lod"]) == chosen
    assert pq.read_table(table).to_pylist() == in_sql(source, strategy="random", seed=7, **SMALL)
    with spatialq.connect() as con:
        kinds = dict(
            con.sql(f"SELECT column_name, column_type FROM (DESCRIBE '{table}')").fetchall()
        )
        con.execute(f"CREATE TABLE nodes AS FROM build_lod('{source}')")
        query = "SELECT column_name, column_type FROM (DESCRIBE nodes)"
        assert kinds == dict(con.sql(query).fetchall())


def test_row_groups_hold_few_samples(tmp_path, monkeypatch):
    """A viewer that wants a node reads a row group; every node is in one."""
    monkeypatch.setattr(lod_table, "GROUP_SAMPLES", 1000)
    source, table = write_scene(tmp_path / "a.las"), tmp_path / "n.parquet"
    spatialq.write_lod(source, table, **SMALL)
    file = pq.ParquetFile(table)
    sizes = [
        pq.ParquetFile(table).read_row_group(k, ["node", "count"]).to_pydict()
        for k in range(file.num_row_groups)
    ]
    assert len(sizes) > 2
    for group in sizes:
        assert sum(group["count"]) <= 1000 or len(group["count"]) == 1
    for one, other in pairwise(sizes):
        assert sum(one["count"]) + other["count"][0] > 1000
    order = [name for group in sizes for name in group["node"]]
    assert order == sorted(order, key=lambda name: (len(name), name))


def test_several_files_are_one_cloud(tmp_path):
    """Their ids run on; where a file has no colours, its points are as grey as they are bright."""
    write_scene(tmp_path / "a.las", 400)
    write_scene(tmp_path / "b.las", 500, point_format=6, shift=100.0, seed=2)
    done = spatialq.write_lod(tmp_path / "*.las", tmp_path / "n.parquet")
    assert (done["points"], done["nodes"]) == (900, 1)
    (root,) = pq.read_table(tmp_path / "n.parquet").to_pylist()
    samples = {sample["point_id"]: sample for sample in root["samples"]}
    assert sorted(samples) == list(range(900))
    first, second = (laspy.read(tmp_path / f"{name}.las") for name in "ab")
    for k in range(0, 400, 50):
        assert samples[k]["red"] == first.red[k]
        grey = int(second.intensity[k])
        assert [samples[400 + k][name] for name in ("red", "green", "blue")] == [grey] * 3
        assert samples[400 + k]["x"] == second.x[k]
        assert samples[400 + k]["classification"] == second.classification[k]
    assert [root] == in_sql(tmp_path / "*.las")


def test_a_viewer_gets_its_nodes_from_the_file(tmp_path):
    source, table = write_scene(tmp_path / "a.las"), tmp_path / "n.parquet"
    spatialq.write_lod(source, table, **SMALL)
    camera = "{eye: [500050, 4999990, 30], target: [500050, 5000050, 5], width: 400, height: 300}"
    query = f"SELECT node, octants, len(samples) FROM lod_select('{table}', {camera}, pixels := 40)"
    with spatialq.connect() as con:
        rows = con.sql(query).fetchall()
    assert len({len(name) for name, *_ in rows}) > 1
    counts = {row["node"]: row["count"] for row in pq.read_table(table).to_pylist()}
    assert all(counts[name] == n for name, _, n in rows)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_points(tmp_path, n):
    source = write_scene(tmp_path / "a.las", n)
    targets = [tmp_path / "n.parquet", tmp_path / "n.png"]
    done = spatialq.write_lod(source, targets)
    nodes = 1 if n else 0
    assert (done["points"], done["nodes"], done["levels"]) == (n, nodes, nodes)
    assert pq.read_table(targets[0]).num_rows == nodes
    with Image.open(targets[1]) as picture:
        assert picture.width > 500


def test_a_cloud_in_degrees_is_warned_about(tmp_path):
    source = write_scene(tmp_path / "a.las", 20, crs="EPSG:4326")
    sentence = r"CRS of '.*a.las', WGS 84 .*, is not projected: lengths are in degrees"
    with pytest.warns(CrsWarning, match=sentence):
        spatialq.write_lod(source)
    spatialq.write_lod(source, crs="EPSG:25832", override_crs=True)


@pytest.mark.parametrize("without", ["colours", "intensity, too"])
def test_a_cloud_without_colours_is_warned_about(tmp_path, without):
    source = tmp_path / "a.las"
    cloud = laspy.read(write_scene(source, 20, point_format=7 if without == "colours" else 6))
    for name in ("red", "green", "blue") if without == "colours" else ("intensity",):
        cloud[name][:] = 0
    cloud.write(source)
    expected = "lod: a.las has no colours: red, green and blue of all samples are 0"
    with pytest.warns(spatialq.FileWarning, match=expected):
        assert spatialq.write_lod(source)["brightest"] == 0
    assert f"warning: {expected}\n" in spatialq_command("lod", source).stderr


@pytest.mark.parametrize(("brightest", "full"), [(200, b"255"), (256, b"65535")])
def test_the_table_says_what_the_brightest_colour_could_be(tmp_path, brightest, full):
    source, table = tmp_path / "a.las", tmp_path / "n.parquet"
    cloud = laspy.read(write_scene(source))
    for name in ("red", "green", "blue"):
        cloud[name][:] = 7
    cloud.green[1234] = brightest
    cloud.write(source)
    assert spatialq.write_lod(source, table, **SMALL)["brightest"] == brightest
    assert pq.read_metadata(table).metadata[b"colour_range"] == full


def test_files_of_different_systems_are_refused(tmp_path):
    write_scene(tmp_path / "a.las", 20)
    write_scene(tmp_path / "b.las", 20, crs="EPSG:25833")
    with pytest.raises(spatialq.CrsError, match=r"lod: '.*a.las' is in .*25832.* but '.*b.las'"):
        spatialq.write_lod([tmp_path / "a.las", tmp_path / "b.las"])


@pytest.mark.parametrize(
    ("outputs", "options", "sentence"),
    [
        (["n.txt"], {}, "lod: output '.*n.txt' must end in one of .parquet, .png"),
        (["n.csv"], {}, "lod: output '.*n.csv' must end in one of .parquet, .png"),
        (["n.png", "n.png"], {}, "lod: outputs must be different files, got '.*n.png' twice"),
        (["no/n.png"], {}, "output: '.*no/n.png': there is no folder"),
        (["n.png"], {"strategy": "best"}, "build_lod: strategy must be 'first' or 'random' or"),
        (["n.png"], {"grid_size": 100}, "build_lod: grid_size must be a power of two from 2 to"),
        (
            ["n.png"],
            {"depth": 3},
            "build_lod: no option 'depth'; there is attributes, bounds, crs, full_precision, grid_",
        ),
        (
            ["n.png"],
            {"device": "tpu"},
            "build_lod: device must be 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1'",
        ),
        (["n.png"], {"crs": 25832}, "lod: crs must be text such as EPSG:25832, got 25832"),
        (["n.png"], {"memory": "1 cow"}, "lod: memory must be a size above 0 such as '2GB'"),
        (["n.png"], {"memory": True}, "lod: memory must be a size above 0 such as .*got True"),
        (
            ["n.png"],
            {"crs": "nowhere"},
            "lod: crs: PROJ cannot read the coordinate reference system 'nowh",
        ),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_written(tmp_path, outputs, options, sentence):
    path = write_scene(tmp_path / "a.las", 50)
    before = path.read_bytes()
    with pytest.raises((ValueError, spatialq.SpatialqError), match=sentence):
        spatialq.write_lod(path, [tmp_path / name for name in outputs], **options)
    assert [each.name for each in tmp_path.iterdir()] == ["a.las"]
    assert path.read_bytes() == before


@pytest.mark.parametrize("given", [None, 5, [None], ["a.las", 5]])
@pytest.mark.parametrize("name", ["source", "outputs"])
def test_paths_of_another_kind(tmp_path, name, given):
    paths = {"source": write_scene(tmp_path / "a.las", 50), "outputs": ()} | {name: given}
    sentence = f"lod: {name} must be a path or a list of paths, got {given!r}"
    with pytest.raises(ValueError, match=re.escape(sentence)):
        spatialq.write_lod(**paths)


def test_there_must_be_a_source(tmp_path):
    with pytest.raises(ValueError, match="lod: source must be at least one file or pattern, got"):
        spatialq.write_lod([], tmp_path / "n.parquet")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["none.las"], 1, "error: lod: 'none.las': there is no such file"),
        (["*.laz"], 1, "error: lod: '*.laz': no file matches this pattern"),
        (["house.ifc"], 1, "error: lod: 'house.ifc': is no point cloud: its name must end in"),
        (["a.las", "-o", "n.las"], 1, "error: lod: output 'n.las' must end in one of .parquet"),
        (["a.las", "./a.las"], 1, "error: lod: 'a.las': is named twice"),
        (["a.las", "--max-points", "0"], 1, "error: build_lod: max_points must be >= 1 and < 2"),
        (["a.las", "--seed", "x"], 2, "error: Invalid value for '--seed'"),
        ([], 2, "error: Missing argument 'files"),
    ],
)
def test_errors_are_one_line(tmp_path, arguments, code, message):
    (tmp_path / "house.ifc").touch()
    write_scene(tmp_path / "a.las", 50)
    result = spatialq_command("lod", *arguments, cwd=tmp_path)
    assert result.returncode == code
    assert result.stderr.startswith(message)
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_a_file_that_cannot_be_finished_leaves_none(tmp_path, monkeypatch):
    source = write_scene(tmp_path / "a.las")

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(pq.ParquetWriter, "write_table", stop)
    with pytest.raises(KeyboardInterrupt):
        spatialq.write_lod(source, tmp_path / "n.parquet")
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.slow
def test_a_real_cloud(tmp_path):
    source = real_file("data/rgb/lion_takanawa.copc.laz")
    done = spatialq.write_lod(source, tmp_path / "n.parquet", strategy="average")
    assert done["points"] == 341_989
    leaves = pq.read_table(tmp_path / "n.parquet", filters=[("is_leaf", "=", True)])
    samples = leaves["samples"].combine_chunks().flatten()
    before = laspy.read(source)
    order = np.argsort(samples.field("point_id").to_numpy())
    for name, values in (("x", before.x), ("red", before.red), ("intensity", before.intensity)):
        np.testing.assert_array_equal(samples.field(name).to_numpy()[order], values)


# Clouds that need more memory than they may have.


def nodes_of(table):
    return {row["node"]: row for row in pq.read_table(table).to_pylist()}


def memory_for(points, options=SMALL):
    return points * bytes_host(Options(**options)) / 2**30


@pytest.mark.parametrize("strategy", ["first", "random", "average", "weighted"])
def test_little_memory_does_not_change_the_rows(strategy, tmp_path):
    sources = [
        write_scene(tmp_path / "a.laz"),
        write_scene(tmp_path / "b.las", 2000, point_format=6, shift=60.0, seed=2),
    ]
    tables = [tmp_path / "one.parquet", tmp_path / "tiles.parquet"]
    heard = []
    options = {"strategy": strategy, **SMALL}
    rows = [
        lod.write_lod(sources, tables[0], **options),
        lod.write_lod(
            sources, tables[1], memory=memory_for(700), **options,
            progress=lambda path, done, of: heard.append((path, done, of)),
        ),
    ]  # fmt: skip
    for row in rows:
        del row["seconds"], row["outputs"]
    assert rows[1] == rows[0]
    assert nodes_of(tables[1]) == nodes_of(tables[0])
    schemas = [pq.read_schema(table) for table in tables]
    assert schemas[1].equals(schemas[0], check_metadata=True)
    assert heard == [(sources[0], 3000, 3000), (sources[1], 2000, 2000)]
    assert sorted(tmp_path.iterdir()) == sorted([*sources, *tables])


@pytest.mark.slow
def test_little_memory_is_enough_for_a_real_cloud(tmp_path):
    source = real_file("data/rgb/qcompass_outcrop.laz")
    tables = [tmp_path / "one.parquet", tmp_path / "tiles.parquet"]
    lod.write_lod(source, tables[0], max_points=3000)
    lod.write_lod(
        source, tables[1], max_points=3000, memory=memory_for(20_000, {"max_points": 3000})
    )
    assert nodes_of(tables[1]) == nodes_of(tables[0])


def test_a_cloud_of_more_points_than_a_tree_may_have_at_once_goes_tile_by_tile(
    tmp_path, monkeypatch
):
    source, sizes, build = write_scene(tmp_path / "a.laz"), [], cpu.build
    tables = [tmp_path / "one.parquet", tmp_path / "tiles.parquet"]
    lod.write_lod(source, tables[0], **SMALL)
    monkeypatch.setattr(validation, "MAX_POINTS", 1000)
    monkeypatch.setattr(
        cpu, "build", lambda points, *rest: sizes.append(len(points.x)) or build(points, *rest)
    )
    lod.write_lod(source, tables[1], memory=1.0, **SMALL)
    assert 300 < max(sizes) <= 1000
    assert nodes_of(tables[1]) == nodes_of(tables[0])


FULL = "no room for the masks"


def test_what_the_gpu_has_no_memory_for_goes_to_the_cpu(tmp_path, monkeypatch):
    """Tile by tile, too: the log says so; not if the GPU was asked for."""
    source, calls = write_scene(tmp_path / "a.laz"), []
    tables = [tmp_path / "cpu.parquet", tmp_path / "auto.parquet"]
    lod.write_lod(source, tables[0], memory=memory_for(1000), device="cpu", **SMALL)

    def full(*_):
        calls.append(1)
        raise MemoryError(FULL)

    monkeypatch.setattr(gpu, "build_and_bring", full)
    monkeypatch.setattr(gpu, "capacity", lambda _: 1000)
    monkeypatch.setattr(
        "spatialq.execution.call.plan_call", lambda *_: Plan("gpu", 1.0, "it is there", [])
    )
    done = lod.write_lod(source, tables[1], memory=memory_for(1000), **SMALL)
    entry = log.entries()[-1]
    assert (done["device"], entry.device, entry.rows, entry.error) == ("cpu", "cpu", 3000, None)
    assert entry.reason == f"the GPU ran out of memory: {FULL}"
    assert len(calls) == 1
    assert nodes_of(tables[1]) == nodes_of(tables[0])
    with pytest.raises(MemoryError, match=f"^build_lod: not enough memory: {FULL}$"):
        lod.write_lod(source, memory=memory_for(1000), device="gpu", **SMALL)
    assert log.entries()[-1].error == f"build_lod: not enough memory: {FULL}"


def write_heap(path, n):
    cloud = laspy.LasData(laspy.LasHeader(point_format=6, version="1.4"))
    cloud.x = cloud.y = cloud.z = np.r_[np.zeros(n), 0.01, 1.0]
    cloud.intensity = np.full(len(cloud.x), 500)
    cloud.write(path)
    return path


def test_points_of_one_place_must_fit_into_memory(tmp_path):
    source = write_heap(tmp_path / "heap.las", 1000)
    table = tmp_path / "n.parquet"
    match = (
        r"^build_lod: 1000 points lie in one place, at 0.0, 0.0, 0.0: memory must be enough for "
        r"all of them, it is for 500$"
    )
    with pytest.raises(ValueError, match=match):
        lod.write_lod(source, table, memory=memory_for(500), **SMALL)
    assert list(tmp_path.iterdir()) == [source]
    assert lod.write_lod(source, table, memory=memory_for(1000), **SMALL)["points"] == 1002


def test_memory_must_be_enough_for_a_leaf(tmp_path):
    source = write_scene(tmp_path / "a.laz")
    least = re.escape(f"{memory_for(300):.3g}")
    match = rf"^lod: memory must be enough for the 300 points of a leaf, >= {least} GiB, got "
    with pytest.raises(ValueError, match=match):
        lod.write_lod(source, memory=memory_for(299), **SMALL)


def test_a_picture_needs_the_whole_cloud_in_memory(tmp_path):
    source, picture = write_scene(tmp_path / "a.laz"), tmp_path / "n.png"
    match = (
        rf"^lod: output '{picture}' needs the whole cloud in memory, {memory_for(3000):.3g} GiB "
        rf"for 3000 points, got {memory_for(2000):.3g}$"
    )
    with pytest.raises(ValueError, match=match):
        lod.write_lod(source, picture, memory=memory_for(2000), **SMALL)
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_nothing_is_left_of_what_was_stopped(error, tmp_path, monkeypatch):
    source, table = write_scene(tmp_path / "a.laz"), tmp_path / "n.parquet"
    build = cpu.build

    def stop(points, cube, options, root):
        assert len(list(tmp_path.iterdir())) == 3  # the source, the table and the points so far
        if root.cell != (0, 0, 0):
            raise error
        return build(points, cube, options, root)

    monkeypatch.setattr(cpu, "build", stop)
    with pytest.raises((KeyboardInterrupt, spatialq.FileError)):
        lod.write_lod(source, table, memory=memory_for(700), **SMALL)
    assert list(tmp_path.iterdir()) == [source]


def test_the_command_takes_memory(tmp_path):
    source = write_scene(tmp_path / "a.laz")
    table = tmp_path / "n.parquet"
    small = ("--max-points", 300, "--grid-size", 8, "--memory", memory_for(1000))
    result = spatialq_command("lod", source, "-o", table, *small, "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)[0]["points"] == 3000
    assert pq.read_table(table)["node"].to_pylist()[-1] == "r"  # children come first
