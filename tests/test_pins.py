"""Pinned tables: results of the table that was pinned, when they are not used, and their memory."""

import gc
import threading

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import spatialq
from spatialq.database import instances, pins
from spatialq.database.native import loading
from spatialq.database.transport import points as points_transport
from spatialq.functions.catalogue import catalogue
from spatialq.functions.declaration import PointsInput
from spatialq.geometry import rtree
from spatialq.planner import devices, log

from .element_tables import box, put, put_room
from .host.device import HostDevice
from .native_library import held

N = 1500
OF_POINTS = [name for name, each in catalogue().items() if isinstance(each.inputs, PointsInput)]
CALL = "FROM owm_ground('pts', window_size := 20.0) ORDER BY ALL"
ONE = "WHERE point_id = (SELECT point_id FROM pts ORDER BY z, point_id LIMIT 1)"


def cloud(n=N):
    rng = np.random.default_rng(7)
    columns = {"point_id": pa.array(rng.permutation(4 * n)[:n])}
    for axis, low, width in (("x", 5e5, 60), ("y", 5.3e6, 40), ("z", 600, 8)):
        columns[axis] = pa.array(low + np.round(rng.uniform(0, width, n), 2))
    for name in ("red", "green", "blue"):
        columns[name] = pa.array(rng.integers(0, 65536, n).astype(np.uint16))
    columns["classification"] = pa.array(
        rng.integers(0, 3, n).astype(np.uint8), mask=rng.random(n) < 0.1
    )
    return pa.table(columns)


CLOUD = cloud()


def opened(transport):
    """Open a database by a transport; the lists serve where the extension is not loaded."""
    if transport == "native":
        return spatialq.connect()
    con = duckdb.connect()
    spatialq.install(con)
    return con


@pytest.fixture(params=["native", "lists"])
def con(request):
    if request.param == "native" and loading.problem():
        pytest.skip(f"extension: {loading.problem()}")
    with opened(request.param) as con:
        assert loading.is_loaded(con) == (request.param == "native")
        known = CLOUD  # noqa: F841 (DuckDB finds it by its name)
        con.execute("CREATE TABLE pts AS FROM known")
        yield con
    if request.param == "native":
        assert held() == (0, 0)


def state(con, name="pts"):
    """How often the pin was used, and how often another state was found."""
    return con.execute(
        "SELECT uses, misses FROM spatialq_pins() WHERE table_name = ?", [name]
    ).fetchall()


def without(con, query):
    """Give the rows of a query without pins."""
    instance = instances.of(con)
    held, instance.pins = instance.pins, {}
    try:
        return con.execute(query).fetchall()
    finally:
        instance.pins = held


@pytest.mark.parametrize("name", OF_POINTS)
def test_every_function_of_points_gives_the_same(con, name):
    query = f"FROM {name}('pts')"
    expected = sorted(map(repr, con.execute(query).fetchall()))
    assert expected
    spatialq.pin(con, "pts")
    for _ in range(2):
        assert sorted(map(repr, con.execute(query).fetchall())) == expected
    assert state(con) == [(2, 0)]


INSERT = "INSERT INTO pts (point_id, x, y, z) VALUES (-1, 500001, 5300001, 598)"
MINUS = "CREATE {} pts AS SELECT * REPLACE (-z AS z) FROM {}"
CHANGES = {
    "insert": [INSERT],
    "delete": [f"DELETE FROM pts {ONE}"],
    "delete and checkpoint": [f"DELETE FROM pts {ONE}", "CHECKPOINT"],
    "drop and create": ["CREATE TABLE o AS FROM pts", "DROP TABLE pts", MINUS.format("TABLE", "o")],
    "create or replace": [MINUS.format("OR REPLACE TABLE", "pts")],
    "change a type": ["ALTER TABLE pts ALTER z TYPE FLOAT USING -z"],
    "add a column": ["ALTER TABLE pts ADD COLUMN o INTEGER", f"UPDATE pts SET z = z - 1 {ONE}"],
    "swap names": ["ALTER TABLE pts RENAME x TO o", "ALTER TABLE pts RENAME z TO x",
                   "ALTER TABLE pts RENAME o TO z"],
    "rename": ["ALTER TABLE pts RENAME TO o", MINUS.format("VIEW", "o")],
    "own uncommitted insert": ["BEGIN", INSERT],
    "temporary table": [MINUS.format("TEMP TABLE", "memory.pts")],
    "another schema": ["CREATE SCHEMA s", "USE s", MINUS.format("TABLE", "memory.main.pts")],
    "another database": ["ATTACH ':memory:' AS o", "USE o",
                         MINUS.format("TABLE", "memory.main.pts")],
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_noticed(con, change):
    before = con.execute(CALL).fetchall()
    spatialq.pin(con, "pts")
    for statement in CHANGES[change]:
        con.execute(statement)
    if change == "another database":
        spatialq.install(con)
    found = con.execute(CALL).fetchall()
    assert found == without(con, CALL) != before
    assert state(con) == [(0, 1)]


def test_where_names_are_looked_up(con):
    """Tables that were there when the table was pinned may be what its name means later."""
    con.execute("CREATE SCHEMA s; CREATE TABLE s.pts AS SELECT * REPLACE (-z AS z) FROM pts")
    con.execute("ATTACH ':memory:' AS o; CREATE TABLE o.pts AS FROM s.pts")
    spatialq.pin(con, "pts")
    con.execute("SET search_path = 's,main'")
    assert con.execute(CALL).fetchall() == without(con, CALL)
    con.execute("USE o")
    spatialq.install(con)
    assert con.execute(CALL).fetchall() == without(con, CALL)
    assert state(con) == [(0, 2)]
    con.execute("USE memory.main")
    con.execute(CALL)
    assert state(con) == [(0, 3)]  # "memory.main" is not what the path was


UPDATE = f"UPDATE pts SET z = z - 1 {ONE}"
VALUES = {
    "update": [UPDATE],
    "update and checkpoint": [UPDATE, "CHECKPOINT"],
    "delete and insert": [f"DELETE FROM pts {ONE}", INSERT],
    "change values by their type": ["ALTER TABLE pts ALTER z TYPE DOUBLE USING -z"],
    "own uncommitted update": ["BEGIN", UPDATE],
}


@pytest.mark.parametrize("change", VALUES)
def test_a_pin_has_the_values_that_were_pinned(con, change):
    before = con.execute(CALL).fetchall()
    spatialq.pin(con, "pts")
    for statement in VALUES[change]:
        con.execute(statement)
    assert con.execute(CALL).fetchall() == before != without(con, CALL)
    assert state(con) == [(1, 0)]
    spatialq.pin(con, "pts")
    assert con.execute(CALL).fetchall() == without(con, CALL)
    assert state(con) == [(1, 0)]


def test_a_view_has_the_values_that_were_pinned(con):
    con.execute("CREATE VIEW v AS SELECT * FROM pts WHERE z > 601")
    query = CALL.replace("pts", "v")
    before = con.execute(query).fetchall()
    spatialq.pin(con, "v")
    con.execute("UPDATE pts SET z = z + 1 WHERE z > 601")
    assert con.execute(query).fetchall() == before != without(con, query)
    con.execute("INSERT INTO pts (point_id, x, y, z) VALUES (-1, 500001, 5300001, 602)")
    assert con.execute(query).fetchall() == without(con, query)
    con.execute("CREATE OR REPLACE VIEW v AS FROM pts LIMIT 100")
    assert con.execute(query).fetchall() == without(con, query)
    assert state(con, "v") == [(1, 2)]


def test_the_log_says_what_a_call_ran_on(con):
    put(con, "box", global_id=["box"], mesh=[box((3, -1, 1), (5, 1, 2))])
    for table, query in (("pts", CALL), ("box", "FROM intersects_with('box')")):
        con.execute(query)
        assert "pinned" not in log.entries()[-1].reason
        at = spatialq.pin(con, table)["pinned_at"]
        con.execute(query)
        assert f"on '{table}' as pinned at {at:%Y-%m-%d %H:%M:%S} UTC" in log.entries()[-1].reason


SAME = {
    "checkpoint": ["CHECKPOINT"],
    "rollback": ["BEGIN", f"DELETE FROM pts {ONE}", "ROLLBACK"],
    "the same rows in another order": ["CREATE TABLE o AS FROM pts ORDER BY z", "TRUNCATE pts",
                                       "INSERT INTO pts FROM o"],
    "an attribute that the function does not take": ["UPDATE pts SET red = 0"],
}  # fmt: skip


@pytest.mark.parametrize("change", SAME)
def test_what_changes_nothing_keeps_the_pin(con, change):
    spatialq.pin(con, "pts")
    for statement in SAME[change]:
        con.execute(statement)
    assert con.execute(CALL).fetchall() == without(con, CALL)
    assert state(con) == [(1, 0)]


def test_a_cte_of_the_name(con):
    spatialq.pin(con, "pts")
    for row_id in ("", "rowid, "):
        query = f"WITH pts AS (SELECT {row_id}* REPLACE (-z AS z) FROM memory.pts) {CALL}"
        assert con.execute(query).fetchall() == without(con, query) != without(con, CALL)
    assert state(con) == [(0, 2)]


def test_transactions_of_others(con):
    """A query sees what its snapshot holds, whoever commits meanwhile."""
    before = con.execute(CALL).fetchall()
    spatialq.pin(con, "pts")
    other = con.cursor()
    other.execute(f"BEGIN; DELETE FROM pts {ONE}")
    assert con.execute(CALL).fetchall() == before
    assert state(con) == [(1, 0)]
    assert other.execute(CALL).fetchall() != before
    assert state(con) == [(1, 1)]
    con.execute("BEGIN")
    assert con.execute(CALL).fetchall() == before
    other.execute("COMMIT")
    assert con.execute(CALL).fetchall() == before
    assert state(con) == [(3, 1)]
    con.execute("COMMIT")
    assert con.execute(CALL).fetchall() != before
    assert state(con) == [(3, 2)]


@pytest.fixture
def read_only(con, tmp_path):
    """A database of the points that cannot be written, attached as `site`."""
    path = tmp_path / "site.duckdb"
    con.execute(f"ATTACH '{path}' AS site; CREATE TABLE site.pts AS FROM pts")
    put_room(con, "site.elements")
    con.execute(f"DETACH site; ATTACH '{path}' AS site (READ_ONLY)")
    return con, path


def test_full_names(read_only):
    """A table in a database that was attached anew may be another one."""
    con, path = read_only
    full = CALL.replace("'pts'", "'Site.main.\"PTS\"'")
    expected = con.execute(CALL).fetchall()
    spatialq.pin(con, 'Site.main."PTS"')
    shadows = "WITH site AS (SELECT 1), pts AS (FROM pts WHERE false)"
    assert con.execute(full).fetchall() == expected
    assert con.execute(f"{shadows} {full}").fetchall() == expected
    assert state(con, 'Site.main."PTS"') == [(2, 0)]
    con.execute(f"DETACH site; ATTACH '{path}' AS site; UPDATE site.pts SET z = -z")
    assert con.execute(full).fetchall() == without(con, full) != expected
    assert state(con, 'Site.main."PTS"') == [(2, 1)]


def test_the_kernel_runs_once_and_no_row_is_collected(con, monkeypatch):
    spatialq.pin(con, "pts")
    collected = []
    answers = points_transport.answers

    def watch(function, request, parts, *, transport):
        collected.extend(len(part["x"]) for part in parts)
        return answers(function, request, parts, transport=transport)

    monkeypatch.setattr(points_transport, "answers", watch)
    log._entries.clear()
    con.execute(CALL)
    assert len(log.entries()) == 1
    assert not any(collected)
    con.execute(f"DELETE FROM pts {ONE}")
    con.execute(CALL)
    assert len(log.entries()) == 2
    assert sum(collected) == N - 1


def test_a_prepared_statement_outlives_its_pin(con):
    expected = con.execute(CALL).fetchall()
    spatialq.pin(con, "pts")
    con.execute(f"PREPARE q AS {CALL}")
    assert con.execute("EXECUTE q").fetchall() == expected
    assert spatialq.unpin(con, "pts")
    assert con.execute("EXECUTE q").fetchall() == expected


def test_threads(con):
    expected = con.execute(CALL).fetchall()
    spatialq.pin(con, "pts")
    found = []

    def work():
        with con.cursor() as cursor:
            for _ in range(5):
                found.append(cursor.execute(CALL).fetchall())  # noqa: PERF401

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 20
    assert state(con) == [(20, 0)]


def test_names_are_those_of_sql(con):
    spatialq.pin(con, "PTS")
    con.execute(CALL)
    spatialq.pin(con, "main.pts")
    con.execute(CALL.replace("'pts'", "'main.pts'"))
    names = con.execute("SELECT table_name, uses FROM spatialq_pins() ORDER BY 1").fetchall()
    assert names == [("PTS", 1), ("main.pts", 1)]


def test_an_empty_table(con):
    con.execute("CREATE TABLE none AS FROM pts WHERE false")
    assert spatialq.pin(con, "none")["row_count"] == 0
    assert con.execute("FROM owm_ground('none')").fetchall() == []
    assert state(con, "none") == [(1, 0)]


def test_chosen_columns(con):
    """A function that takes columns that are not kept collects them all."""
    query = "SELECT hash(b) FROM build_lod('pts') AS b ORDER BY ALL"
    expected = con.execute(query).fetchall()
    row = con.execute("FROM spatialq_pin('pts', columns := ['red'])").fetchall()[0]
    assert row[3] == ["point_id", "x", "y", "z", "red"]
    assert row[4] == N * (4 * 8 + 2)
    assert con.execute(query).fetchall() == expected
    assert state(con) == [(0, 0)]
    con.execute(CALL)
    assert state(con) == [(1, 0)]


ERRORS = [
    ("NULL", "table must be the name of a table, got NULL"),
    ("''", "table must be the name of a table, got ''"),
    ("'pts', device := 'tpu'", "device must be 'cpu' or 'gpu', got 'tpu'"),
    ("'pts', device := NULL", "device must be 'cpu' or 'gpu', got NULL"),
    ("'pts', columns := ['gps_time']", "columns must be some of point_id, .*, got 'gps_time'"),
    ("'flat'", "'flat' must have a column z, or mesh"),
    ("'nulls'", "z must not be NULL, got 1 of them"),
    ("'halves'", "point_id must be whole numbers .*, got 1.5 of type"),
    ("'reds'", "red must be whole numbers .*, got 0.5 of type"),
]


@pytest.mark.parametrize(("arguments", "sentence"), ERRORS)
def test_errors(con, arguments, sentence):
    con.execute("CREATE TABLE flat AS SELECT 1 AS point_id, 2 AS x, 3 AS y")
    con.execute("CREATE TABLE nulls AS SELECT 1 AS point_id, 2 AS x, 3 AS y, NULL::DOUBLE AS z")
    con.execute("CREATE TABLE halves AS SELECT 1.5 AS point_id, 2 AS x, 3 AS y, 4 AS z")
    con.execute("CREATE TABLE reds AS SELECT 1 AS point_id, 2 AS x, 3 AS y, 4 AS z, 0.5 AS red")
    with pytest.raises(duckdb.Error, match=f"spatialq_pin: {sentence}"):
        con.execute(f"FROM spatialq_pin({arguments})")
    assert con.execute("FROM spatialq_pins()").fetchall() == []


@pytest.fixture
def budget(monkeypatch):
    monkeypatch.setattr(pins, "_budgets", {"cpu": None, "gpu": None})


@pytest.mark.usefixtures("budget")
def test_the_budget(con):
    size = spatialq.pin(con, "pts")["bytes"]
    held = spatialq.pin_budget()
    assert held["host"] == devices.cpu().memory_bytes // 2
    assert spatialq.pin_budget(host=2 * size - 1)["host"] == 2 * size - 1
    con.execute("CREATE TABLE more AS FROM pts")
    sentence = (
        f"spatialq_pin: 'more' takes {size} bytes of host memory, but the budget of all pins is "
        f"{2 * size - 1} of which 'pts' holds {size}: unpin some, or set another"
    )
    with pytest.raises(duckdb.Error, match=sentence):
        spatialq.pin(con, "more")
    spatialq.pin(con, "pts")  # what has the name makes room
    spatialq.unpin(con, "pts")
    spatialq.pin(con, "more")
    for wrong in (-1, 1.5, True):
        with pytest.raises(ValueError, match=r"pin_budget: gpu must be a number of bytes >= 0"):
            spatialq.pin_budget(gpu=wrong)


def test_instances_have_pins_of_their_own(con):
    spatialq.pin(con, "pts")
    with spatialq.connect() as other:
        columns = "range AS point_id, 0.0 AS x, 0.0 AS y, 1.0 AS z"
        other.execute(f"CREATE TABLE pts AS SELECT {columns} FROM range(5)")
        assert other.execute("FROM spatialq_pins()").fetchall() == []
        assert len(other.execute("FROM owm_ground('pts')").fetchall()) == 1
        spatialq.pin(other, "pts")
        assert state(con) == [(0, 0)]
        assert not spatialq.unpin(other, "none")


def test_what_is_no_table_is_not_pinned(con, tmp_path):
    """A variable of Python, or a file, may be another one at the next call, with as many rows."""
    here = CLOUD  # noqa: F841 (DuckDB finds it by its name)
    con.execute(f"COPY pts TO '{tmp_path}/there.parquet'")
    for name in ("here", f"{tmp_path}/there.parquet"):
        with pytest.raises(duckdb.Error, match=f"the name of a table or view, got '{name}'"):
            con.execute(f"FROM spatialq_pin('{name}')")
    spatialq.pin(con, "pts")
    con.execute("DROP TABLE pts")
    pts = CLOUD.set_column(3, "z", pa.array(np.zeros(N)))  # noqa: F841
    assert con.execute("SELECT DISTINCT z FROM owm_ground('pts')").fetchall() == [(0.0,)]
    con.register("known", CLOUD)
    spatialq.pin(con, "known")


def test_pins_go_when_the_database_is_closed(tmp_path):
    def all_pins():
        return {each.number for each in instances.all_pins()}

    gc.collect()
    instances.close_unused()  # those of other tests
    before = all_pins()
    con, other = (spatialq.connect(tmp_path / "t.duckdb") for _ in range(2))
    con.execute("CREATE TABLE t AS SELECT 1 AS point_id, 2.0 AS x, 3.0 AS y, 4.0 AS z")
    spatialq.pin(con, "t")
    con.close()
    del con
    gc.collect()
    assert all_pins() > before
    assert other.execute("FROM spatialq_pins()").fetchall()
    other.close()
    del other
    gc.collect()
    with spatialq.connect() as con:
        spatialq.unpin(con, "nothing")  # looks for databases that were closed
    assert all_pins() == before
    with spatialq.connect() as con:  # closed, but not collected
        con.execute("CREATE TABLE t AS SELECT 1 AS point_id, 2.0 AS x, 3.0 AS y, 4.0 AS z")
        con.execute("FROM spatialq_pin('t')")
        assert all_pins() > before
    with spatialq.connect() as other:
        spatialq.unpin(other, "nothing")
    assert all_pins() == before


# -- elements

SETS = {
    "intersects_with": ["'elements'", "'elements', 'box'", "'box', 'elements'", "'box'"],
    "spatial_relations": ["'elements'", "'elements', 'box'"],
    "distance": ["'elements', 'box'", "'box', 'elements', max_distance := 2"],
    "nearest": ["'box', 'elements', k := 2"],
    "above": ["'elements', 'box'"],
}


@pytest.fixture
def model(con):
    put_room(con)
    put(con, "box", global_id=["box", "slab"], mesh=[box((3, -1, 1), (5, 1, 2)), None])
    return con


@pytest.mark.parametrize("pinned", [["elements"], ["box"], ["elements", "box"]])
@pytest.mark.parametrize("name", SETS)
def test_functions_of_elements_give_the_same(model, name, pinned):
    queries = [f"FROM {name}({arguments}) ORDER BY ALL" for arguments in SETS[name]]
    expected = [model.execute(query).fetchall() for query in queries]
    assert any(expected)
    for table in pinned:
        spatialq.pin(model, table)
    assert [model.execute(query).fetchall() for query in queries] == expected
    for table in pinned:
        ((uses, misses),) = state(model, table)
        assert uses == sum(f"'{table}'" in arguments for arguments in SETS[name])
        assert misses == 0


@pytest.mark.parametrize("table", ["elements", "site.main.elements"])
def test_a_correlated_subquery_runs_the_kernel_once(read_only, table):
    con, _ = read_only
    put_room(con)
    put(con, "box", global_id=["box"], mesh=[box((3, -1, 1), (5, 1, 2))])
    query = (
        f"SELECT global_id FROM elements e WHERE EXISTS (FROM intersects_with('{table}', 'box') p "
        "WHERE p.a = e.global_id) ORDER BY ALL"
    )
    expected = con.execute(query).fetchall()
    assert 0 < len(expected) < 5
    spatialq.pin(con, table)
    spatialq.pin(con, "box")
    log._entries.clear()
    assert con.execute(query).fetchall() == expected
    assert len(log.entries()) == 1
    assert state(con, table) == state(con, "box") == [(1, 0)]


def test_elements_have_the_meshes_that_were_pinned(model):
    query = "FROM spatial_relations('elements', 'box', tolerance := 0.01) ORDER BY ALL"
    before = model.execute(query).fetchall()
    spatialq.pin(model, "elements")
    model.execute("UPDATE elements SET mesh = NULL WHERE global_id = 'wall2'")
    assert model.execute(query).fetchall() == before != without(model, query)
    model.execute("DELETE FROM elements WHERE global_id = 'wall2'")
    assert model.execute(query).fetchall() == without(model, query) != before
    ((uses, misses),) = state(model, "elements")
    assert uses == misses > 0


def test_the_tree_is_built_once(model, monkeypatch):
    built = []
    along_curve = rtree.along_curve

    def count(boxes, rows):
        built.append(len(boxes))
        return along_curve(boxes, rows)

    monkeypatch.setattr(rtree, "along_curve", count)
    spatialq.pin(model, "elements")
    assert built == [5]
    for _ in range(3):
        assert model.execute("FROM intersects_with('elements', 'box')").fetchall()
        assert model.execute("FROM intersects_with('box', 'elements')").fetchall()
    assert built == [5]


def test_elements_stay_on_the_host(model, monkeypatch):
    monkeypatch.setattr(devices, "gpus", lambda: [devices.DeviceInfo("gpu", "host", 2, 2**33, "")])
    with pytest.raises(duckdb.Error, match="elements are kept on the host, got device 'gpu'"):
        spatialq.pin(model, "elements", device="gpu")


# -- on the GPU


@pytest.fixture
def gpu(device, monkeypatch):
    if isinstance(device, HostDevice):
        info = devices.DeviceInfo("gpu", "host", 2, 2**33, "")
        monkeypatch.setattr(devices, "gpus", lambda: [info])
        monkeypatch.setattr(points_transport, "on_gpu", device.is_here)
    return device


@pytest.mark.slow
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", [n for n in OF_POINTS if catalogue()[n].has_kernel("gpu")])
def test_columns_on_the_gpu(con, name):
    query = f"FROM {name}('pts', device := 'auto')"
    con.execute("UPDATE pts SET classification = 2")  # the GPU takes no masked columns
    cpu = f"FROM {name}('pts', device := 'cpu')"
    expected = sorted(map(repr, con.execute(cpu).fetchall()))
    assert spatialq.pin(con, "pts", device="gpu")["device"] == "gpu"
    assert sorted(map(repr, con.execute(query).fetchall())) == expected
    assert log.entries()[-1].device == "gpu"
    assert state(con) == [(1, 0)]
    assert sorted(map(repr, con.execute(cpu).fetchall())) == expected
    assert log.entries()[-1].device == "cpu"


def test_without_a_gpu(con, monkeypatch):
    info = devices.DeviceInfo("gpu", "none", 0, 0, "there is none")
    monkeypatch.setattr(devices, "gpus", lambda: [info])
    with pytest.raises(duckdb.Error, match="device 'gpu' cannot be used: there is none"):
        spatialq.pin(con, "pts", device="gpu")
