"""`build_lod` through DuckDB, from files, and `spatialq.run`."""

from functools import partial

import laspy
import numpy as np
import pytest
from spatialq.udfs.build_lod import CHANNELS, SAMPLE, Options, colours, cpu

import spatialq
from spatialq.data.columns import Lists, Text
from spatialq.execution import run, validation
from spatialq.functions.catalogue import Function, catalogue
from spatialq.io.crs import from_text, metres_per_unit
from spatialq.io.las.source import open_las
from spatialq.planner import devices, log

from ..conftest import real_file
from ..host.device import HostDevice
from ..kernels import arrays_in, on_device

ATTRIBUTES = tuple(catalogue()["build_lod"].inputs.attributes)
SMALL = {"max_points": 150, "grid_size": 16}
SIZES = "max_points := 150, grid_size := 16"
N = 3000


def cloud(n=N):
    rng = np.random.default_rng(3)
    columns = {"point_id": np.sort(rng.choice(10 * n, n, replace=False))}
    for axis, low, width in (("x", 5e5, 60), ("y", 5.3e6, 40), ("z", 600, 8)):
        columns[axis] = low + np.round(rng.uniform(0, width, n), 2)
    for name in CHANNELS:
        columns[name] = rng.integers(0, 65536, n).astype(np.uint16)
    columns["classification"] = rng.integers(0, 256, n).astype(np.uint8)
    return columns


CLOUD = cloud()


@pytest.fixture
def con():
    with spatialq.connect() as con:
        known = CLOUD  # noqa: F841 (DuckDB finds it by its name)
        con.execute("CREATE TABLE pts AS FROM known")
        yield con


def rows_of(result):
    """Rows of what a kernel gave, as DuckDB gives them."""
    columns = []
    for values in result.values():
        if isinstance(values, Lists):
            cells = zip(*(each.tolist() for each in values.columns.values()), strict=True)
            structs = [dict(zip(values.columns, cell, strict=True)) for cell in cells]
            spans = zip(values.offsets.tolist(), values.offsets[1:].tolist(), strict=False)
            columns.append([structs[first:stop] for first, stop in spans])
        elif isinstance(values, Text):
            columns.append([values.names[k] if k >= 0 else None for k in values.codes.tolist()])
        else:
            columns.append(values.tolist())
    return list(zip(*columns, strict=True))


def kernel(columns=CLOUD, **options):
    given = {**dict.fromkeys(ATTRIBUTES), **columns}
    return rows_of(cpu.run(**given, options=Options(**{**SMALL, **options})))


def without(*names):
    return {name: values for name, values in CLOUD.items() if name not in names}


def test_columns_and_types(con):
    relation = con.sql(f"FROM build_lod('pts', {SIZES})")
    assert (
        dict(zip(relation.columns, map(str, relation.types), strict=True))
        == catalogue()["build_lod"].output.columns
    )
    fields = con.sql(f"SELECT unnest(samples[1]) FROM build_lod('pts', {SIZES})")
    assert dict(zip(fields.columns, map(str, fields.types), strict=True)) == SAMPLE


@pytest.mark.slow
@pytest.mark.parametrize(
    "written",
    [
        "(pts, {})",
        "('pts', {})",
        "(main.pts, {})",
        "('main.pts', {})",
        "(seen, {})",
        "('temp.main.passing', {})",
        '("odd name", {})',
        "('odd name', {}, device := 'cpu')",
        "(shuffled, {})",
        "(wide, {})",
        "(pts, {}, strategy := 'weighted', full_precision := false, seed := 0)",
    ],
)
def test_all_ways_to_name_a_table_give_what_the_kernel_gives(con, written):
    con.execute("CREATE VIEW seen AS FROM pts")
    con.execute("CREATE TEMP VIEW passing AS SELECT *, 7 AS other FROM pts")
    con.execute('CREATE TABLE "odd name" AS FROM pts')
    con.execute("CREATE TABLE shuffled AS FROM pts ORDER BY hash(point_id)")
    con.execute(
        "CREATE VIEW wide AS SELECT * REPLACE (red::INT AS red, blue::UBIGINT AS blue, "
        "intensity::HUGEINT AS intensity, classification::SMALLINT AS classification) FROM pts"
    )
    found = con.sql(f"FROM build_lod{written.format(SIZES)}").fetchall()
    assert found == kernel()
    assert len(found) > 20


@pytest.mark.parametrize("name", ["near", "'near'"])
def test_a_part_of_the_query_is_a_table_too(con, name):
    query = f"WITH near AS (FROM pts WHERE x < 500030) FROM build_lod({name}, {SIZES})"
    near = CLOUD["x"] < 500030
    found = con.sql(query).fetchall()
    assert found == kernel({name: values[near] for name, values in CLOUD.items()})


@pytest.mark.parametrize(
    "option",
    [
        {"strategy": "first"},
        {"strategy": "average"},
        {"strategy": "random", "seed": 7},
        {"max_points": 40},
        {"grid_size": 2},
        {"full_precision": True},
    ],
)
def test_each_option_reaches_the_kernel(con, option):
    """From the table macro, the one over lists, and Python."""
    chosen = {**SMALL, **option}
    named = ", ".join(f"{name} := {value!r}" for name, value in chosen.items())
    expected = kernel(**option)
    assert con.sql(f"FROM build_lod(pts, {named})").fetchall() == expected
    assert expected != kernel()
    lists = "point_id, x, y, z, red, green, blue, intensity, classification"
    ((nodes,),) = con.sql(f"SELECT build_lod_list({lists}, {named}) FROM pts").fetchall()
    assert [tuple(node.values()) for node in nodes] == expected
    assert spatialq.run("build_lod", **CLOUD, **chosen)["count"].tolist() == [
        row[list(catalogue()["build_lod"].output.columns).index("count")] for row in expected
    ]


def test_the_defaults(con, monkeypatch):
    reached = []

    def note(udf, _):
        def run(options, **columns):
            reached.append(options)
            return cpu.run(**columns, options=options)

        return run

    monkeypatch.setattr(Function, "kernel", note)
    con.sql("FROM build_lod(pts)").fetchall()
    con.sql("SELECT build_lod_list(point_id, x, y, z) FROM pts").fetchall()
    assert reached == [Options()] * 2


def test_group_by_runs_each_group_by_itself(con):
    rows = con.sql(
        "SELECT tile, unnest(build_lod_list(point_id, x, y, z, "
        f"red := red, {SIZES}), max_depth := 2) "
        "FROM (SELECT *, x > 500020 AS tile FROM pts) GROUP BY tile"
    ).fetchall()
    for tile in (False, True):
        chosen = (CLOUD["x"] > 500020) == tile
        part = {name: values[chosen] for name, values in without(*ATTRIBUTES).items()}
        assert [row[1:] for row in rows if row[0] == tile] == kernel(part)


def test_explain_runs_no_kernel_and_a_query_runs_it_once(con):
    log._entries.clear()
    con.sql(f"EXPLAIN FROM build_lod(pts, {SIZES})").fetchall()
    assert log.entries() == []
    con.sql(f"SELECT node, len(samples), samples FROM build_lod(pts, {SIZES})").fetchall()
    (entry,) = log.entries()
    assert (entry.function, entry.rows, entry.device, entry.error) == ("build_lod", N, "cpu", None)


def test_the_plan(con):
    """Of more points than there are 32-bit numbers, too."""
    for n in (0, 1_000_000, 2**32 + 1, 10**15):
        rows = con.sql(f"SELECT device, memory_bytes FROM spatialq_plan('build_lod', {n})")
        assert [device for device, memory in rows.fetchall() if memory > 0] == ["cpu", "gpu"]


def test_an_empty_table_gives_an_empty_result(con):
    con.execute("CREATE TABLE nothing AS FROM pts LIMIT 0")
    relation = con.sql("FROM build_lod(nothing)")
    assert (
        dict(zip(relation.columns, map(str, relation.types), strict=True))
        == catalogue()["build_lod"].output.columns
    )
    assert relation.fetchall() == []
    found = spatialq.run("build_lod", [], [], [])
    assert list(found) == list(catalogue()["build_lod"].output.columns)
    assert found.pop("samples").offsets.tolist() == [0]
    assert {values.shape for values in found.values()} == {(0,)}


# What a table has not


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        ("classification",),
        ("intensity",),
        ("red", "green", "blue"),
        ("green",),
        ATTRIBUTES,
    ],
)
def test_columns_that_are_absent_or_null(con, names):
    expected = kernel(without(*names))
    con.execute(f"CREATE TABLE few AS SELECT * EXCLUDE ({', '.join(names)}) FROM pts")
    assert con.sql(f"FROM build_lod(few, {SIZES})").fetchall() == expected
    nulls = ", ".join(f"NULL AS {name}" for name in names)
    con.execute(f"CREATE TABLE none AS SELECT * REPLACE ({nulls}) FROM pts")
    assert con.sql(f"FROM build_lod(none, {SIZES})").fetchall() == expected


LOST = {"red": 3, "green": 5, "blue": 7, "intensity": 4, "classification": 9}
"""Each so many-th row has none of it."""


def test_values_that_are_null_here_and_there(con):
    """A point without all of its colour is as grey as its intensity."""
    holes = ", ".join(f"if(rowid % {k} = 0, NULL, {name}) AS {name}" for name, k in LOST.items())
    con.execute(f"CREATE TABLE holes AS SELECT * REPLACE ({holes}) FROM pts ORDER BY point_id")
    found = con.sql(f"FROM build_lod(holes, {SIZES})").fetchall()
    row = np.arange(N)
    filled = {name: np.where(row % k, CLOUD[name], 0) for name, k in LOST.items()}
    dark = row % LOST["intensity"] == 0
    lost = np.any([row % LOST[name] == 0 for name in CHANNELS[:3]], axis=0)
    for name in CHANNELS[:3]:
        filled[name] = np.where(lost, np.where(dark, 32768, CLOUD["intensity"]), CLOUD[name])
    filled = {name: values.astype(CLOUD[name].dtype) for name, values in filled.items()}
    assert found == kernel({**CLOUD, **filled})
    masked = {name: np.ma.MaskedArray(CLOUD[name], row % k == 0) for name, k in LOST.items()}
    result = spatialq.run("build_lod", **{**CLOUD, **masked}, **SMALL)
    samples = [each for row in found for each in row[-1]]
    for name, values in result["samples"].columns.items():
        assert values.tolist() == [each[name] for each in samples], name


@pytest.mark.parametrize("threads", ["1", "3"])
def test_colours_by_hand(threads, monkeypatch):
    monkeypatch.setenv("SPATIALQ_THREADS", threads)
    rgbi = [np.array(values, np.uint16) for values in ([1, 2], [3, 4], [5, 6], [7, 65535])]
    assert colours.colours(*rgbi, 2).tolist() == [[1, 3, 5, 7], [2, 4, 6, 65535]]
    red, green, blue, light = rgbi
    assert colours.colours(red, None, blue, light, 2).tolist() == [[7] * 4, [65535] * 4]
    assert colours.colours(None, None, None, light, 2).tolist() == [[7] * 4, [65535] * 4]
    assert colours.colours(red, green, blue, None, 2).tolist() == [[1, 3, 5, 0], [2, 4, 6, 0]]
    grey = [32768, 32768, 32768, 0]
    assert colours.colours(None, None, None, None, 2).tolist() == [grey, grey]
    holes = np.ma.MaskedArray(green, [True, False])
    assert colours.colours(red, holes, blue, light, 2).tolist() == [[7] * 4, [2, 4, 6, 65535]]
    dark = np.ma.MaskedArray(light, [True, False])
    assert colours.colours(red, holes, blue, dark, 2).tolist() == [grey, [2, 4, 6, 65535]]


# Clouds that are hardly one


@pytest.mark.parametrize("n", [1, 2, 5000])
def test_points_at_one_place_are_one_leaf(n):
    found = spatialq.run("build_lod", [3.5] * n, [-2.0] * n, [7.0] * n, max_points=1)
    samples = found.pop("samples")
    assert {name: values.tolist() for name, values in found.items()} == {
        "node": ["r"], "level": [0], "parent": [""], "xmin": [3.5], "ymin": [-2.0], "zmin": [7.0],
        "size": [0.0], "spacing": [0.0], "is_leaf": [True], "points": [n], "count": [n],
    }  # fmt: skip
    assert samples.offsets.tolist() == [0, n]
    assert samples.columns["point_id"].tolist() == list(range(n))


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e9, 1e307])
@pytest.mark.parametrize("shift", [0.0, -0.5])
def test_extents_of_all_sizes(scale, shift):
    x, y, z = (np.random.default_rng(5).uniform(0, 1, (3, 400)) + shift) * scale
    unit = min(1, 1 / scale)  # of more metres such coordinates are too far away
    found = spatialq.run("build_lod", x, y, z, max_points=100, grid_size=8, unit=unit)
    leaves = found["is_leaf"]
    assert found["points"][leaves].sum() == 400
    assert found["count"][leaves].max() <= 100
    offsets, samples = found["samples"].offsets, found["samples"].columns
    for k in np.flatnonzero(leaves):
        ids = samples["point_id"][offsets[k] : offsets[k + 1]]
        for axis, values in zip("xyz", (x, y, z), strict=True):
            low, size = found[f"{axis}min"][k], found["size"][k]
            assert (values[ids] >= low - 1e-12 * scale).all()
            assert (values[ids] <= low + size + 1e-12 * scale).all()


def test_arrays_of_the_gpu_give_what_those_of_the_host_give(device, monkeypatch):
    """Numbers of other types, too, as far as they fit."""
    put = partial(on_device, device)
    if isinstance(device, HostDevice):
        monkeypatch.setattr(
            devices, "gpus", lambda: [devices.DeviceInfo("gpu", "host", 2, 2**33, "")]
        )
        for module in (run, validation):
            monkeypatch.setattr(module, "on_gpu", device.is_here)
    expected = arrays_in(spatialq.run("build_lod", **CLOUD, **SMALL, device="cpu"))
    there = {name: put(values) for name, values in CLOUD.items()}
    for red in (there["red"], put(CLOUD["red"].astype(np.int64)), CLOUD["red"]):
        found = arrays_in(spatialq.run("build_lod", **{**there, "red": red}, **SMALL))
        assert list(found) == list(expected)
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values, err_msg=name)
    kinds = {"x": np.float32, "y": np.int32, "z": np.float16, "point_id": np.int32}
    small = {name: CLOUD[name].astype(kind) for name, kind in kinds.items()}
    drawn = {**SMALL, "strategy": "random"}
    expected = arrays_in(spatialq.run("build_lod", **{**CLOUD, **small}, **drawn, device="cpu"))
    there_too = {name: put(values) for name, values in small.items()}
    found = arrays_in(spatialq.run("build_lod", **{**there, **there_too}, **drawn))
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)
    for name in ("y", "red", "point_id"):
        with pytest.raises(ValueError, match=rf"of one length, got .*'{name}': \(10,\)"):
            spatialq.run("build_lod", **{**there, name: put(CLOUD[name][:10])}, **SMALL)
    with pytest.raises(ValueError, match="build_lod: z must be numbers, got complex128"):
        spatialq.run("build_lod", **{**there, "z": put(CLOUD["z"].astype(complex))}, **SMALL)
    for wrong in (-1, 65536):
        red = np.where(np.arange(N) == 17, wrong, 5)
        with pytest.raises(ValueError, match=f"red must be whole numbers .*, got {wrong}"):
            spatialq.run("build_lod", **{**there, "red": put(red)}, **SMALL)


# Files


def write_las(path, columns, *, point_format=7, crs="EPSG:25832"):
    import pyproj

    header = laspy.LasHeader(version="1.4", point_format=point_format)
    header.scales, header.offsets = [0.01] * 3, [5e5, 5.3e6, 600]
    if crs:
        header.add_crs(pyproj.CRS(crs))
    las = laspy.LasData(header)
    for name in ("x", "y", "z", *ATTRIBUTES):
        if name in las.point_format.dimension_names or name in "xyz":
            setattr(las, name, columns[name])
    las.write(path)
    return str(path)


@pytest.fixture
def folder(tmp_path):
    """Three files, the middle one without colours."""
    for k, point_format in enumerate((7, 6, 8)):
        part = {name: values[k::3] for name, values in CLOUD.items()}
        write_las(tmp_path / f"tile {k}.laz", part, point_format=point_format)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("names", ["tile 0.laz", "tile 1.laz", "tile*.laz", "*[0-1].laz"])
def test_files_are_what_a_table_of_their_points_is(con, folder, names):
    path = str(folder / names)
    con.execute(f"CREATE TABLE rows AS FROM read_las('{path}')")
    expected = con.sql(f"FROM build_lod(rows, {SIZES})").fetchall()
    found = con.sql(f"FROM build_lod('{path}', {SIZES})")
    assert (
        dict(zip(found.columns, map(str, found.types), strict=True))
        == catalogue()["build_lod"].output.columns
    )
    assert found.fetchall() == expected
    assert log.entries()[-1].rows == con.sql("SELECT count(*) FROM rows").fetchall()[0][0]


def test_a_file_is_read_when_the_query_runs(con, folder):
    log._entries.clear()
    path = folder / "tile 0.laz"
    con.sql(f"EXPLAIN FROM build_lod('{path}', {SIZES})").fetchall()
    assert log.entries() == []
    con.execute(f"PREPARE later AS FROM build_lod('{path}', {SIZES})")
    before = con.execute("EXECUTE later").fetchall()
    assert len(before) > 5


def test_a_file_without_points_gives_no_rows(con, tmp_path):
    nothing = {name: values[:0] for name, values in CLOUD.items()}
    path = write_las(tmp_path / "nothing.las", nothing)
    assert con.sql(f"FROM build_lod('{path}')").fetchall() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "relative",
    [
        "data/rgb/simple.copc.laz",
        "data/rgb/1.2-with-color.las",
        "data/rgb/certainty3d-color-utm-feet-navd88.las",
    ],
)
def test_real_files(con, relative):
    path = real_file(relative)
    view = spatialq.read_las(con, path, name="rows")
    sizes = "max_points := 500, grid_size := 64, strategy := 'average'"
    found = con.sql(f"FROM build_lod('{path}', {sizes})").fetchall()
    assert found == con.sql(f"FROM build_lod(rows, {sizes})").fetchall()
    units = metres_per_unit(open_las(path).crs or from_text("EPSG:25832"))
    level = 1 if units is None else units[1] / units[0]  # heights in the unit of x and y
    columns = f"point_id, x, y, z * {level}::DOUBLE, red, green, blue, intensity"
    known = set(view.select(columns).fetchall())
    leaves = [
        (p["point_id"], p["x"], p["y"], p["z"], p["red"], p["green"], p["blue"], p["intensity"])
        for row in found
        if row[list(catalogue()["build_lod"].output.columns).index("is_leaf")]
        for p in row[-1]
    ]
    assert len(leaves) == len(known) == open_las(path).rows
    assert set(leaves) == known
