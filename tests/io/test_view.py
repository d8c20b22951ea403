"""Views of files: the same rows as a table, whatever is pushed down; nothing left behind."""

import gc
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from spatialq.errors import CrsError, FileError
from spatialq.io.filters import box_of
from spatialq.io.source import ROW_GROUP
from spatialq.io.view import View, register

NAN = float("nan")
SCHEMA = pa.schema(
    [
        ("point_id", pa.int64()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("z", pa.float64()),
        ("classification", pa.uint8()),
        ("withheld", pa.bool_()),
        ("gps_time", pa.float64()),
        ("scan_angle", pa.float32()),
        ("label", pa.string()),
        ("odd name (x <= 3)", pa.int32()),
    ]
)


def reject(path: Path) -> None:
    reader, reason = "read_cloud", "is damaged"
    raise FileError.of(reader, path, reason)


class Cloud:
    """A made-up source of some batches that tells what was asked of it."""

    kind = "made up"
    box = None
    warnings: Sequence[str] = ()

    def __init__(
        self, n: int = 1000, size: int = 300, crs: str | None = None, schema: pa.Schema = SCHEMA
    ) -> None:
        self.path = Path(f"cloud_{n}")
        self.schema = schema
        self.rows = n
        self.crs = crs
        self.size = size
        self.asked: list[tuple[list[str], object]] = []
        self.given = 0
        self.open = 0

    def table(self) -> pa.Table:
        random = np.random.default_rng(self.rows)
        n = self.rows
        values = {
            "point_id": np.arange(n),
            "x": random.integers(0, 10, n).astype(float),
            "y": random.normal(5, 3, n),
            "z": np.where(random.random(n) < 0.1, NAN, random.integers(0, 10, n)),
            "classification": random.integers(0, 6, n, np.uint8),
            "withheld": random.random(n) < 0.5,
            "gps_time": np.where(random.random(n) < 0.2, NAN, random.integers(0, 5, n)),
            "scan_angle": random.integers(-3, 3, n).astype(np.float32),
            "label": random.choice(["a", 'b" and (x <= 3)', "(x <= 3)"], n),
            "odd name (x <= 3)": random.integers(0, 9, n).astype(np.int32),
        }
        arrays = [
            pa.array(values[field.name], field.type, mask=random.random(n) < 0.1)
            if field.name == "label"
            else pa.array(values[field.name], field.type)
            for field in self.schema
        ]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def batches(self, columns: Sequence[str], hint: object = None) -> Iterator[pa.RecordBatch]:
        self.asked.append((list(columns), hint))
        self.open += 1
        try:
            for batch in self.table().select(columns).to_batches(self.size):
                self.given += 1
                yield batch
        finally:
            self.open -= 1


@pytest.fixture
def cloud(con) -> Cloud:
    source = Cloud()
    register(con, "read_cloud", [source], name="cloud")
    con.register("truth", source.table())
    con.execute("CREATE TABLE stored AS FROM truth")
    return source


CONDITIONS = (
    "x < 3",
    "x <= 3",
    "x > 3",
    "x >= 3",
    "x = 3",
    "x <> 3",
    "NOT (x >= 3)",
    "x BETWEEN 2 AND 4",
    "x > 2 AND x < 4",
    "x <= 3 AND y <= 5.5 AND z <= 7",
    "x IN (1, 3)",
    "x <= 3 OR y <= 1",
    "x <= 3 OR classification = 2",
    "(x <= 3 OR y <= 1) AND z < 5",
    "NOT (x <= 3 AND y <= 5)",
    "x < y",
    "x + 1 = 3",
    "x <= -1e-3",
    "x <= 1e300",
    "x <= 'inf'::DOUBLE",
    "x > '-inf'::DOUBLE",
    "x IS NULL",
    "x IS NOT NULL",
    "z = 'nan'::DOUBLE",
    "z <= 'nan'::DOUBLE",
    "z IN ('nan'::DOUBLE, 1)",
    "z > 3",
    "z >= 3",
    "z < 3",
    "NOT (z < 3)",
    "isnan(z)",
    "gps_time > 2",
    "gps_time BETWEEN 1 AND 3",
    "gps_time <> 2",
    "gps_time IN (0, 1)",
    "gps_time IS DISTINCT FROM 2",
    "scan_angle <= 0",
    "scan_angle > -1.5",
    "classification = 2",
    "classification <> 2",
    "classification BETWEEN 2 AND 4",
    "classification IN (1, 2, 200)",
    "classification NOT IN (1, 2)",
    "classification IN (1, 2) AND x <= 4",
    "classification > 2.5",
    "point_id BETWEEN 290 AND 310",
    "point_id = 999",
    "withheld",
    "NOT withheld",
    "withheld AND x < 2",
    "label = 'a'",
    "label = 'b\" and (x <= 3)'",
    "label = '(x <= 3)' AND y <= 5",
    "label IS NULL",
    "label IN ('a', '(x <= 3)')",
    "label LIKE '(x%'",
    '"odd name (x <= 3)" = 4',
    '"odd name (x <= 3)" BETWEEN 2 AND 5 AND y <= 5',
    "x <= (SELECT 3)",
    "false",
    "true",
)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_means_the_same_as_on_a_table(con, cloud, condition):
    query = "SELECT point_id, y FROM {} WHERE {} ORDER BY point_id"
    expected = con.sql(query.format("stored", condition)).fetchall()
    assert con.sql(query.format("cloud", condition)).fetchall() == expected
    n = con.sql(f"SELECT count(*) FROM cloud WHERE {condition}").fetchall()
    assert n == [(len(expected),)]


@pytest.mark.slow
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_hint_holds_every_row_that_passes(con, cloud, condition):
    rows = con.sql(f"SELECT x, y, z FROM cloud WHERE {condition}").fetchall()
    for _, hint in cloud.asked:
        if hint is not None:
            for row in rows:
                outside = [
                    v < low or v > high
                    for low, v, high in zip(hint[:3], row, hint[3:], strict=True)
                ]
                assert not any(outside)


def test_prepared_conditions(con, cloud):
    query = "SELECT count(*) FROM {} WHERE x <= ? AND classification = ?"
    for values in ([3, 2], [5.5, 1]):
        expected = con.execute(query.format("stored"), values).fetchall()
        assert con.execute(query.format("cloud"), values).fetchall() == expected


INFINITY = float("inf")


@pytest.mark.parametrize(
    ("condition", "box"),
    [
        (ds.field("x") <= 3, (-INFINITY,) * 3 + (3, INFINITY, INFINITY)),
        (
            (ds.field("x") <= 3) & (ds.field("x") >= -1.5e2),
            (-150, -INFINITY, -INFINITY, 3, INFINITY, INFINITY),
        ),
        (
            (ds.field("y") == 3) & (ds.field("label") == 2),
            (-INFINITY, 3, -INFINITY, INFINITY, 3, INFINITY),
        ),
        (
            ((ds.field("x") < 3) & (ds.field("y") < 4)) & (ds.field("z") < 5),
            (-INFINITY,) * 3 + (3, 4, 5),
        ),
        ((ds.field("x") <= 3) | (ds.field("y") <= 3), None),
        (~(ds.field("x") <= 3), None),
        (
            ((ds.field("x") <= 3) | (ds.field("y") <= 3)) & (ds.field("z") < 1),
            (-INFINITY,) * 3 + (INFINITY, INFINITY, 1),
        ),
        ((ds.field("x") <= 3) & (ds.field("label") == '" and (x <= 1) and "'), None),
        (ds.field("max") <= 3, None),
        (ds.field("x") <= float("nan"), None),
        (None, None),
    ],
)
def test_boxes_in_conditions(condition, box):
    schema = pa.schema([(name, pa.float64()) for name in ("x", "y", "z", "label")])
    assert box_of(condition, schema) == box


def test_only_the_columns_of_a_query_are_read(con, cloud):
    con.sql("SELECT count(*) FROM cloud").fetchall()
    con.sql("SELECT y FROM cloud WHERE classification = 2").fetchall()
    con.sql("SELECT max(z), min(x) FROM cloud").fetchall()
    asked = [columns for columns, _ in cloud.asked]
    assert asked == [["point_id"], ["y", "classification"], ["x", "z"]]


def test_columns_option_keeps_the_order_and_the_spelling(con):
    view = register(con, "read_cloud", [Cloud()], name="cloud", columns=["Z", "x", "z"])
    assert view.columns == ["z", "x"]
    with pytest.raises(ValueError, match="read_cloud: columns: there is no column 'height'"):
        View("read_cloud", [Cloud()], columns=["height"])


def test_bounds_include_their_border(con):
    register(con, "read_cloud", [Cloud()], name="cloud", bounds=[2, 4, 3, 6], columns=["point_id"])
    con.register("truth", Cloud().table())
    inside = "x BETWEEN 2 AND 3 AND y BETWEEN 4 AND 6"
    expected = con.sql(f"SELECT point_id FROM truth WHERE {inside}").fetchall()
    assert expected
    assert con.sql("FROM cloud ORDER BY point_id").fetchall() == expected


def test_several_sources_are_one_table(con):
    few = pa.schema([SCHEMA.field(i) for i in range(4)] + [pa.field("classification", pa.int16())])
    sources = [Cloud(700), Cloud(50, schema=few)]
    view = register(con, "read_cloud", sources, name="clouds")
    assert view.columns == [*SCHEMA.names, "file_name"]
    assert str(view.select("classification").types[0]) == "SMALLINT"
    rows = con.sql(
        "SELECT file_name, count(*), count(label) > 0, min(point_id), max(point_id) "
        "FROM clouds GROUP BY ALL ORDER BY ALL DESC"
    ).fetchall()
    assert rows == [("cloud_700", 700, True, 0, 699), ("cloud_50", 50, False, 700, 749)]
    one = "SELECT count(*) FROM clouds WHERE file_name = 'cloud_50' AND point_id <= 710"
    assert con.sql(one).fetchall() == [(11,)]


def test_sources_that_do_not_go_together():
    text = pa.schema([*SCHEMA.remove(4), pa.field("classification", pa.string())])
    with pytest.raises(FileError, match="read_cloud: 'cloud_5': its columns do not go together"):
        View("read_cloud", [Cloud(6), Cloud(5, schema=text)])
    capital = pa.schema([*SCHEMA.remove(4), SCHEMA.field(4).with_name("Classification")])
    with pytest.raises(FileError, match="'cloud_5': its column 'Classification' is called 'class"):
        View("read_cloud", [Cloud(6), Cloud(5, schema=capital)])
    projjson = '{"type": "GeographicCRS", "name": "somewhere"}'
    with pytest.raises(CrsError, match="'cloud_6' is in no CRS but 'cloud_5' is in somewhere"):
        View("read_cloud", [Cloud(6), Cloud(5, crs=projjson)])


def test_filtered_batches_are_whole_row_groups_again(monkeypatch):
    monkeypatch.setattr("spatialq.io.view.MAX_WAIT", 3600.0)  # however slow this machine is
    view = View("read_cloud", [Cloud(3 * ROW_GROUP, size=50_000)])
    reader = view.scanner(["point_id"], ds.field("x") <= 7).to_reader()
    sizes = [batch.num_rows for batch in reader if batch.num_rows]
    assert sizes[0] == ROW_GROUP
    assert len(sizes) == 3


def test_a_limit_closes_the_source(con):
    source = Cloud(10_000, size=100)
    register(con, "read_cloud", [source], name="cloud")
    assert len(con.sql("FROM cloud LIMIT 3").fetchall()) == 3
    gc.collect()
    assert source.open == 0
    assert source.given < 20


class Endless(Cloud):
    """A source that would never end, and says how many batches it has given."""

    def batches(self, columns: Sequence[str], hint: object = None) -> Iterator[pa.RecordBatch]:
        self.open += 1
        try:
            batch = self.table().select(columns).to_batches()[0]
            for self.given in itertools.count():
                time.sleep(0.001)
                yield batch
        finally:
            self.open -= 1


@pytest.mark.slow
def test_a_dropped_result_closes_the_source(con):
    source = Endless(100)
    register(con, "read_cloud", [source], name="cloud")
    reader = con.sql("FROM cloud").to_arrow_reader(1000)
    assert reader.read_next_batch().num_rows
    assert source.open == 1
    del reader
    con.execute("SELECT 1")
    gc.collect()
    assert source.open == 0


@pytest.mark.slow
@pytest.mark.parametrize("condition", ["true", "point_id = 77"])
def test_an_interrupt_ends_a_query_soon(con, condition):
    """Also where few rows pass."""
    source = Endless(100)
    register(con, "read_cloud", [source], name="cloud")
    before = []

    def interrupt():
        while source.given < 100:  # before the query runs, it would interrupt nothing
            time.sleep(0.001)
        before.append(source.given)
        con.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(duckdb.InterruptException):
        con.sql(f"SELECT sum(x) FROM cloud WHERE {condition}").fetchall()
    thread.join()
    assert source.given < before[0] + 1000  # half of those of which a vector of rows passes
    gc.collect()
    assert source.open == 0
    assert con.sql("SELECT 1").fetchall() == [(1,)]


CTRL_C = """
import duckdb, sys
sys.path.insert(0, sys.argv[1])
from tests.io.test_view import Endless
from spatialq.io.view import register
class Source(Endless):
    def batches(self, columns, hint=None):
        print("ready", flush=True)
        yield from super().batches(columns, hint)
con = duckdb.connect()
source = Source(100)
register(con, "read_cloud", [source], name="cloud")
try:
    con.sql("SELECT sum(x) FROM cloud").fetchall()
except (KeyboardInterrupt, duckdb.InterruptException):
    print("interrupted", con.sql("SELECT 1").fetchall(), source.open)
con.close()
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no SIGINT for a child process on Windows")
def test_ctrl_c_ends_a_query_and_the_process_goes_on():
    root = str(Path(__file__).parents[2])
    process = subprocess.Popen(
        [sys.executable, "-c", CTRL_C, root],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out) == (0, "interrupted [(1,)] 0\n"), err


def test_a_failure_in_the_stream_leaves_nothing_behind(con):
    class Broken(Cloud):
        def batches(self, columns: Sequence[str], hint: object = None) -> Iterator[pa.RecordBatch]:
            yield from itertools.islice(super().batches(columns, hint), 1)
            reject(self.path)

    source = Broken(1000)
    register(con, "read_cloud", [source], name="cloud")
    with pytest.raises(duckdb.Error, match="read_cloud: 'cloud_1000': is damaged"):
        con.execute("CREATE TABLE copy AS FROM cloud")
    assert con.sql("SELECT * FROM duckdb_tables() WHERE table_name = 'copy'").fetchall() == []
    gc.collect()
    assert source.open == 0


def test_a_connection_that_is_dropped_lets_the_view_go():
    con = duckdb.connect()
    register(con, "read_cloud", [Cloud()], name="cloud")
    alive = weakref.ref(con)
    del con
    gc.collect()
    assert alive() is None


def test_a_view_never_hides_a_table(con, cloud):
    with pytest.raises(ValueError, match="read_cloud: name: there is a table 'Stored' already"):
        register(con, "read_cloud", [cloud], name="Stored")
    again = register(con, "read_cloud", [Cloud(7)], name="cloud")
    assert len(again.fetchall()) == 7


def test_a_self_join_and_threads(con, cloud):
    query = "SELECT count(*) FROM {0} a JOIN {0} b USING (point_id) WHERE a.x <= 4"
    assert con.sql(query.format("cloud")).fetchall() == con.sql(query.format("stored")).fetchall()
    totals = []

    def work() -> None:
        with con.cursor() as cursor:
            register(cursor, "read_cloud", [Cloud()], name="cloud")
            totals.append(cursor.sql("SELECT sum(x), sum(classification) FROM cloud").fetchall())

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert totals == [con.sql("SELECT sum(x), sum(classification) FROM stored").fetchall()] * 6
