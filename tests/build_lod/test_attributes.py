"""`attributes`: samples keep any column of numbers, that of the point that their id names."""

import duckdb
import laspy
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spatialq.udfs.build_lod import SAMPLE, external_partitioning
from spatialq.udfs.build_lod.cost import bytes_host

import spatialq
from spatialq.errors import StrayPointsWarning
from spatialq.functions.catalogue import catalogue
from spatialq.workflows import lod

from ..command_line import spatialq_command
from ..conftest import real_file

SMALL = {"max_points": 200, "grid_size": 8}
SIZES = "max_points := 200, grid_size := 8"
KINDS = ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")


def cloud(n=2000, seed=1):
    rng = np.random.default_rng(seed)
    x, y, z = rng.uniform(0, 50, (3, n)) * [[1], [1], [0.1]]
    return {"x": x, "y": y, "z": z}


def expected(ids, values, samples):
    """Look each sample's point up, one by one."""
    of = dict(zip(ids.tolist(), np.asarray(values).tolist(), strict=True))
    return [of[each] for each in samples["point_id"].tolist()]


@pytest.mark.parametrize("strategy", ["first", "random", "average", "weighted"])
@pytest.mark.parametrize("order", ["positions", "ascending", "mixed"])
def test_samples_have_the_values_of_their_points(strategy, order):
    rng, n = np.random.default_rng(2), 2000
    columns = {kind: rng.integers(0, 2, n).astype(kind) for kind in KINDS}
    columns["f8"] = rng.uniform(-1e9, 1e9, n)
    ids = {"positions": None, "ascending": np.arange(n) * 3, "mixed": rng.permutation(n) * 3}[order]
    found = spatialq.run(
        "build_lod", **cloud(n), point_id=ids, strategy=strategy, **SMALL,
        attributes=list(columns), **columns,
    )  # fmt: skip
    samples = found["samples"].columns
    assert list(samples) == [*SAMPLE, *columns]
    assert (~found["is_leaf"]).any()
    plain = spatialq.run("build_lod", **cloud(n), point_id=ids, strategy=strategy, **SMALL)
    for name in SAMPLE:
        np.testing.assert_array_equal(samples[name], plain["samples"].columns[name])
    ids = np.arange(n) if ids is None else ids
    for name, values in columns.items():
        assert samples[name].dtype == values.dtype
        assert samples[name].tolist() == expected(ids, values, samples), name


@given(data=st.data())
def test_no_order_of_points_changes_what_a_point_has(data):
    n = data.draw(st.integers(0, 60))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    xyz, times, ids = rng.integers(0, 9, (3, n)) * 1.0, rng.uniform(size=n), rng.permutation(n)
    found = spatialq.run(
        "build_lod", *xyz, ids, max_points=4, grid_size=2, attributes=["t"], t=times
    )
    samples = found["samples"].columns
    assert samples["t"].tolist() == expected(ids, times, samples)


def test_values_that_are_missing_stay_missing():
    n = 500
    lost = np.arange(n) % 3 == 0
    times = np.ma.MaskedArray(np.arange(n) * 1.0, lost)
    found = spatialq.run("build_lod", **cloud(n), **SMALL, attributes=["t"], t=times)
    samples = found["samples"].columns
    assert (np.ma.getmaskarray(samples["t"]) == lost[samples["point_id"]]).all()


def test_stray_points_and_bounds_take_their_values_with_them():
    columns, times = cloud(1000), np.arange(1000.0)
    columns["x"][7] = 1e9
    with pytest.warns(StrayPointsWarning):
        found = spatialq.run("build_lod", **columns, **SMALL, attributes=["t"], t=times)
    samples = found["samples"].columns
    assert 7 not in samples["point_id"]
    assert samples["t"].tolist() == samples["point_id"].tolist()
    found = spatialq.run(
        "build_lod", **cloud(1000), **SMALL, attributes=["t"], t=times, bounds=[10, 10, 30, 30]
    )
    samples = found["samples"].columns
    assert samples["t"].tolist() == samples["point_id"].tolist()
    assert samples["t"].size


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"attributes": ["t"]}, "attributes must be columns that are given, such as t=values"),
        ({"attributes": ["t"], "t": ["a"] * 100}, "t must be numbers, got <U1"),
        ({"attributes": ["t"], "t": np.zeros((100, 2))}, "t must be numbers, got float64 of shape"),
        ({"attributes": ["t", "T"]}, "attributes must be names of columns, each once"),
        ({"attributes": ["options"]}, "attributes must be names of columns, each once"),
        ({"attributes": [""]}, "attributes must be names of columns, each once"),
        ({"attributes": [3]}, "attributes must be a list of texts, got"),
        ({"t": np.zeros(100)}, "no option 't'"),
    ],
)
def test_what_is_no_attribute(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        spatialq.run("build_lod", **cloud(100), **options)


TRANSPORTS = {"native": spatialq.connect, "lists": duckdb.connect}


@pytest.fixture(params=TRANSPORTS)
def con(request):
    with TRANSPORTS[request.param]() as con:
        if request.param == "lists":
            spatialq.install(con)
        con.execute("SELECT setseed(0.5)")
        con.execute(
            "CREATE TABLE pts AS SELECT 5 * range AS point_id, 30 * random() AS x, 20 * random() "
            "AS y, random() AS z, range / 7 AS gps_time, range % 9 AS classification, "
            "if(range % 4 = 0, NULL, range)::SMALLINT AS \"my row\", 'n' || range AS name, "
            "range % 2 = 0 AS lod_row FROM range(1500) ORDER BY random()"
        )
        yield con


WANTED = "['gps_time', 'classification', 'my row', 'name', 'lod_row']"


def test_sql_over_tables_keeps_columns_of_any_type(con):
    con.execute("ALTER TABLE pts ALTER classification TYPE UTINYINT")
    con.execute(f"CREATE TABLE l AS FROM build_lod('pts', {SIZES}, attributes := {WANTED})")
    columns = 's.gps_time, s."my row", s.name, s.lod_row, s.classification'
    mine = con.sql(f"SELECT s.point_id, {columns} FROM (SELECT unnest(samples) AS s FROM l)")
    theirs = {row[0]: row for row in con.sql(
        'SELECT point_id, gps_time, "my row", name, lod_row, classification FROM pts'
    ).fetchall()}  # fmt: skip
    rows = mine.fetchall()
    assert len(rows) > 1500
    assert all(row == theirs[row[0]] for row in rows)


def test_sql_gives_the_rows_of_a_call_without_attributes(con):
    without = f"FROM build_lod('pts', {SIZES})"
    con.execute("ALTER TABLE pts ALTER classification TYPE UTINYINT")
    plain = con.sql(without).fetchall()
    rows = con.sql(f"FROM build_lod('pts', {SIZES}, attributes := ['gps_time'])").fetchall()
    assert [row[:-1] for row in rows] == [row[:-1] for row in plain]
    for mine, own in zip(rows, plain, strict=True):
        assert [{k: v for k, v in s.items() if k != "gps_time"} for s in mine[-1]] == own[-1]


def test_sql_says_which_column_is_missing(con):
    with pytest.raises(duckdb.Error, match="attributes must be columns of 'pts', got 'time'"):
        con.execute("FROM build_lod('pts', attributes := ['time'])")
    with pytest.raises(duckdb.Error, match="build_lod_list: attributes must be NULL"):
        con.execute("SELECT build_lod_list(point_id, x, y, z, attributes := ['z2']) FROM pts")


def write_scan(path, n, *, extra=True, seed=0):
    rng = np.random.default_rng(seed)
    header = laspy.LasHeader(point_format=7, version="1.4")
    header.scales, header.offsets = [1e-3] * 3, [0, 0, 0]
    if extra:
        header.add_extra_dims(
            [laspy.ExtraBytesParams("height", "f4"), laspy.ExtraBytesParams("tree", "u4")]
        )
    scan = laspy.LasData(header)
    scan.x, scan.y, scan.z = rng.uniform(0, 60, (3, n))
    scan.gps_time = rng.uniform(0, 1e9, n)
    scan.return_number = rng.integers(1, 5, n)
    scan.number_of_returns = np.full(n, 5)
    scan.red = rng.integers(0, 65536, n)
    if extra:
        scan.height, scan.tree = rng.uniform(0, 9, n).astype("f4"), rng.integers(0, 2**32, n)
    scan.write(path)
    return path


NAMES = ("gps_time", "return_number", "number_of_returns", "height", "tree", "withheld")


def truth_of(paths):
    """Read all points with laspy, one file after the other; None for what a file lacks."""
    rows = []
    for path in paths:
        scan = laspy.read(path)
        there = list(scan.point_format.dimension_names)
        columns = [
            np.asarray(scan[n]).tolist() if n in there else [None] * len(scan) for n in NAMES
        ]
        rows += zip(*columns, strict=True)
    return rows


def samples_of(table):
    samples = pq.read_table(table)["samples"].combine_chunks().values
    return {name: samples.field(name).to_pylist() for name in samples.type.names}


def require_values(samples, paths):
    truth = truth_of(paths)
    assert samples["point_id"]
    rows = zip(*(samples[name] for name in NAMES), strict=True)
    for point, row in zip(samples["point_id"], rows, strict=True):
        assert row == truth[point]


@pytest.mark.slow
@pytest.mark.parametrize("tiles", [False, True])
@pytest.mark.parametrize("bounds", [None, [5, 5, 40, 50]])
def test_files_keep_them_in_memory_and_through_files(tmp_path, monkeypatch, tiles, bounds):
    paths = [
        write_scan(tmp_path / "a.laz", 4000), write_scan(tmp_path / "b.laz", 1500, extra=False)
    ]  # fmt: skip
    if tiles:
        monkeypatch.setattr(lod, "_points_in", lambda *_: 900)
    table = tmp_path / "n.parquet"
    spatialq.write_lod(paths, table, bounds=bounds, attributes=NAMES, **SMALL)
    require_values(samples_of(table), paths)


@pytest.mark.slow
def test_temporary_files_are_beside_the_output(tmp_path, monkeypatch):
    """Where temporary files go otherwise there may be no room for a cloud."""
    source, table = write_scan(tmp_path / "a.laz", 4000), tmp_path / "n.parquet"
    monkeypatch.setattr(lod, "_points_in", lambda *_: 900)
    folders = []
    write = external_partitioning.write_points

    def write_points(batches, path):
        folders.append(path.parent.parent)
        return write(batches, path)

    monkeypatch.setattr(external_partitioning, "write_points", write_points)
    spatialq.write_lod(source, table, attributes=["gps_time"], **SMALL)
    assert folders == [tmp_path]
    assert sorted(tmp_path.iterdir()) == [source, table]


@pytest.mark.slow
def test_the_command_and_sql_over_files_agree(tmp_path):
    paths = [write_scan(tmp_path / "a.laz", 3000), write_scan(tmp_path / "b.laz", 900)]
    table = tmp_path / "n.parquet"
    result = spatialq_command(
        "lod", *paths, "-o", table, "--attributes", ",".join(NAMES), "--max-points", 200,
        "--grid-size", 8,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    require_values(samples_of(table), paths)
    with spatialq.connect() as con:
        rows = con.sql(
            f"FROM build_lod('{tmp_path}/*.laz', {SIZES}, attributes := {list(NAMES)})"
        ).to_arrow_table()
    assert rows.to_pylist() == pq.read_table(table).to_pylist()


@pytest.mark.slow
def test_a_name_that_no_file_has(tmp_path):
    path = write_scan(tmp_path / "a.laz", 100)
    with pytest.raises(ValueError, match="lod: attributes must be columns of numbers of the files"):
        spatialq.write_lod(path, tmp_path / "n.parquet", attributes=["colour"])
    with spatialq.connect() as con, pytest.raises(duckdb.Error, match=r"files, .*got 'colour'"):
        con.execute(f"FROM build_lod('{path}', attributes := ['colour'])")


@pytest.mark.slow
def test_real_extra_bytes(tmp_path):
    path = real_file("data/lidar/test_semis_2023_0292_6833_LA93_IGN69.laz")
    scan = laspy.read(path)
    extra = [*scan.point_format.extra_dimension_names, "gps_time"]
    table = tmp_path / "n.parquet"
    spatialq.write_lod(path, table, attributes=extra)
    samples = samples_of(table)
    for name in extra:
        assert samples[name] == scan[name][samples["point_id"]].tolist(), name


@pytest.mark.slow
def test_nulls_of_a_text_file_stay(tmp_path):
    path = tmp_path / "a.csv"
    rows = [f"{i % 10},{i // 10},0,{'' if i % 3 else i}" for i in range(200)]
    path.write_text("x,y,z,weight\n" + "\n".join(rows) + "\n")
    table = tmp_path / "n.parquet"
    spatialq.write_lod(path, table, attributes=["weight"], max_points=50, grid_size=4)
    samples = samples_of(table)
    for point, weight in zip(samples["point_id"], samples["weight"], strict=True):
        assert weight == (None if point % 3 else point)


def test_attributes_count_in_the_estimate_of_memory():
    choose = catalogue()["build_lod"].choose
    more = bytes_host(choose({"attributes": ["gps_time", "nir"]})) - bytes_host(choose({}))
    assert 2 * 2 * 8 <= more <= 2 * 4 * 8


@pytest.mark.gpu
def test_the_gpu_keeps_them_too():
    cupy = pytest.importorskip("cupy")
    columns, n = cloud(3000), 3000
    times = np.random.default_rng(5).uniform(size=n)
    given = {**SMALL, "attributes": ["t"]}
    here = spatialq.run("build_lod", **columns, **given, t=times, device="cpu")
    there = spatialq.run("build_lod", **columns, **given, t=times, device="gpu")
    on_it = spatialq.run(
        "build_lod", **{name: cupy.asarray(each) for name, each in columns.items()}, **given,
        t=cupy.asarray(times),
    )  # fmt: skip
    for found in (there, on_it):
        for name, values in here["samples"].columns.items():
            np.testing.assert_array_equal(found["samples"].columns[name], values)
