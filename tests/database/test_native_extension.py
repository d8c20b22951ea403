"""The extension itself: what it carries, when it is loaded, what it leaves behind."""

import gc
import os
import re
import signal
import subprocess
import sys
import threading
import time

import duckdb
import numpy as np
import pytest

import spatialq
from spatialq.database.native import library, loading
from spatialq.database.transport import groups
from spatialq.functions.catalogue import Function
from spatialq.runtime import progress

from ..native_library import held

pytestmark = pytest.mark.skipif(bool(loading.problem()), reason=f"extension: {loading.problem()}")

CUBE = (
    "{vertices: [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1]::DOUBLE[], "
    "faces: [0, 2, 1, 0, 1, 3, 1, 2, 3, 2, 0, 3]::INTEGER[]}"
)


@pytest.fixture
def con():
    gc.collect()
    with spatialq.connect() as con:
        con.execute(
            "CREATE TABLE pts AS SELECT range AS point_id, range % 97 * 1e0 AS x, "
            "range % 89 * 1e0 AS y, range % 7 * 1e0 AS z FROM range(5000)"
        )
        yield con
        # A call that was stopped is still being noted, by a cursor of this connection, which
        # cannot be closed in that moment.
        assert held() == (0, 0)
    assert held() == (0, 0)


def on_lists():
    con = duckdb.connect()
    spatialq.install(con)
    return con


# Loading


def test_unsigned_extensions_are_forbidden_again(con):
    assert con.sql("SELECT current_setting('allow_unsigned_extensions')").fetchall() == [(False,)]
    with pytest.raises(duckdb.Error):
        con.execute("SET allow_unsigned_extensions = true")


def test_a_setting_of_the_caller_stays():
    with spatialq.connect(config={"allow_unsigned_extensions": "true"}) as con:
        assert loading.is_loaded(con)
        query = "SELECT current_setting('allow_unsigned_extensions')"
        assert con.sql(query).fetchall() == [(True,)]


@pytest.mark.parametrize("part", [b"v1.2.0", b"linux_amd64", b"C_STRUCT"])
def test_an_extension_that_duckdb_refuses_is_done_without(monkeypatch, tmp_path, part):
    whole = loading.PATH.read_bytes()
    at = whole.rindex(part) if part in whole[-600:] else None
    if at is None:
        pytest.skip(f"the extension is not for {part.decode()}")
    other = bytearray(whole)
    other[at : at + len(part)] = b"x9.9.9".ljust(len(part), b"9")
    path = tmp_path / loading.PATH.name
    path.write_bytes(other)
    monkeypatch.setattr(loading, "PATH", path)
    with spatialq.connect() as con:
        assert not loading.is_loaded(con)
        assert con.sql("SELECT count(*) FROM spatialq_devices()").fetchall()[0][0] >= 2
        con.execute("CREATE TABLE p AS SELECT range AS point_id, 1.0 * range AS x, 0.0 AS y, "
                    "0.0 AS z FROM range(9)")  # fmt: skip
        assert con.sql("SELECT count(*) FROM classify_ground('p')").fetchall() == [(9,)]


def test_a_function_of_duckdb_at_another_position_is_never_called(monkeypatch, tmp_path):
    """Its name is exchanged with that of another one, as if DuckDB had them so."""
    one, other = b"duckdb_table_function_set_bind\0", b"duckdb_table_function_set_init\0"
    parts = [part.replace(other, one) for part in loading.PATH.read_bytes().split(one)]
    assert len(parts) > 1
    path = tmp_path / loading.PATH.name
    path.write_bytes(other.join(parts))
    monkeypatch.setattr(loading, "PATH", path)
    with spatialq.connect() as con:
        assert not loading.is_loaded(con)
        query = "SELECT problem FROM spatialq_devices() WHERE device = 'extension'"
        ((said,),) = con.sql(query).fetchall()
        needs = f"spatialq needs DuckDB {loading.DUCKDB}: duckdb_table_function_set_"
        assert re.fullmatch(f"it cannot be loaded: .*{needs}.* is elsewhere in this one; .*", said)
        con.execute("CREATE TABLE p AS SELECT range AS point_id, 1.0 * range AS x, 0.0 AS y, "
                    "0.0 AS z FROM range(9)")  # fmt: skip
        assert con.sql("SELECT count(*) FROM classify_ground('p')").fetchall() == [(9,)]


def test_a_file_that_was_not_built_is_done_without(monkeypatch, tmp_path):
    monkeypatch.setattr(loading, "PATH", tmp_path / "nothing.duckdb_extension")
    assert "not built" in loading.problem()
    with spatialq.connect() as con:
        assert not loading.is_loaded(con)


def test_a_database_file(tmp_path):
    """A file keeps its macros; each way to open it has those of its transport."""
    path = str(tmp_path / "a.duckdb")
    query = "SELECT len(owm_ground_list(point_id, x, y, z)) > 0 FROM pts"
    with spatialq.connect(path) as con:
        con.execute("CREATE TABLE pts AS SELECT range AS point_id, range % 97 * 1.0 AS x, "
                    "range % 89 * 1.0 AS y, 1.0 AS z FROM range(5000)")  # fmt: skip
        assert loading.is_loaded(con)
        with spatialq.connect(path) as again:
            assert loading.is_loaded(again)
            assert again.sql(query).fetchall() == [(True,)]
    with duckdb.connect(path) as con:
        spatialq.install(con)
        assert not loading.is_loaded(con)
        assert con.sql(query).fetchall() == [(True,)]
        with spatialq.connect(path) as joined:  # the file is open with other settings
            assert not loading.is_loaded(joined)
            assert joined.sql(query).fetchall() == [(True,)]
    with spatialq.connect(path) as con:
        assert loading.is_loaded(con)
        assert con.sql(query).fetchall() == [(True,)]
        used = con.sql(f"EXPLAIN {query}").fetchall()[0][1]
        assert "spatialq_owm_ground_aggregate" in used
    with spatialq.connect(path, read_only=True) as con:
        assert con.sql(query).fetchall() == [(True,)]


@pytest.mark.slow
def test_a_process_ends_while_a_kernel_runs_and_results_are_unread():
    code = """
import spatialq
con = spatialq.connect()
con.execute("CREATE TABLE p AS SELECT range AS point_id, random() AS x, random() AS y, "
            "random() AS z FROM range(300000)")
unread = con.sql("FROM classify_ground('p')").to_arrow_reader(1000)
next(iter(unread))
print("read")
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.stdout.endswith("read\n"), ended.stderr
    assert ended.returncode == 0, ended.stderr
    assert "leaked" not in ended.stderr


POINTS = """
import threading, time, duckdb, spatialq
from spatialq.database.native import calls, library
con = spatialq.connect()
con.execute("CREATE TABLE p AS SELECT range AS point_id, 1e0 * range AS x, 0e0 AS y, 0e0 AS z "
            "FROM range(2000)")
"""


def ended_process(code):
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", POINTS + code],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


@pytest.mark.slow
def test_a_process_that_ends_before_a_result_is_dropped_gives_it_back_once():
    code = """
known = calls.library()
class Late:
    def __getattr__(self, name):
        return getattr(known, name)
    def spatialq_wait_dropped(self):
        token = known.spatialq_wait_dropped()
        time.sleep(0.3)
        return token
calls.library = Late
release = library.Exported.release
def told(self):
    print(id(self))
    release(self)
library.Exported.release = told
kept = []  # no two batches have the same id
init = library.Exported.__init__
def keep(self, rows):
    kept.append(self)
    init(self, rows)
library.Exported.__init__ = keep
for _ in range(3):
    con.execute("SELECT count(*) FROM owm_ground('p')").fetchall()
"""
    released = ended_process(code).split()
    assert len(released) == len(set(released)) == 3


@pytest.mark.slow
def test_a_process_waits_for_a_kernel_whose_result_was_dropped():
    code = """
begun = threading.Event()
def answers(*_):
    begun.set()
    time.sleep(1)
    print("the kernel has ended")
    return []
calls.answers = answers
def interrupt():
    begun.wait()
    con.interrupt()
threading.Thread(target=interrupt).start()
try:
    con.execute("FROM owm_ground('p')").fetchall()
except duckdb.InterruptException:
    print("interrupted")
while calls._calls:
    time.sleep(0.01)
"""
    assert ended_process(code).splitlines() == ["interrupted", "the kernel has ended"]


def test_devices_and_log_say_which_way_rows_go(con, monkeypatch):
    query = "SELECT usable, problem FROM spatialq_devices() WHERE device = 'extension'"
    assert con.sql(query).fetchall() == [(True, None)]
    con.execute("FROM owm_ground('pts')").fetchall()
    logged = 'SELECT transport FROM spatialq_log() ORDER BY "at" DESC LIMIT 1'
    assert con.sql(logged).fetchall() == [("native",)]
    other = on_lists()
    ((usable, problem),) = other.sql(query).fetchall()
    assert not usable
    assert problem.startswith("the database was not opened by spatialq.connect()")
    monkeypatch.setattr(groups, "MANY_ROWS", 100)
    groups._hint.cache_clear()
    call = "FROM owm_ground('p', min_points := 1)"
    other.execute("CREATE TABLE p AS SELECT range AS point_id, 1e0 * range AS x, 0e0 AS y, "
                  "0e0 AS z FROM range(200)")  # fmt: skip
    with pytest.warns(UserWarning, match="several times as slow"):
        other.execute(call).fetchall()
    other.execute(call).fetchall()  # said once
    assert other.sql(logged).fetchall() == [("lists",)]


# What goes in


def seeds(con, table):
    return con.execute(f"FROM owm_ground('{table}', min_points := 1) ORDER BY ALL").fetchall()


@pytest.mark.parametrize(
    "select",
    [
        "FROM pts",
        "FROM pts WHERE z > 2",  # vectors with a selection
        "SELECT point_id, x, y, 5.0 AS z FROM pts",  # a constant vector
        "SELECT point_id::INTEGER AS point_id, x::FLOAT AS x, y::DECIMAL(9, 2) AS y, z FROM pts",
        "SELECT a.* FROM pts a JOIN pts b ON a.point_id = 3 * b.point_id",
        "FROM pts ORDER BY hash(point_id)",
        "SELECT point_id + 10000 * k AS point_id, x, y, z FROM pts, range(100) r(k)",
        "FROM pts LIMIT 1",
    ],
)
def test_all_kinds_of_vectors(con, select):
    con.execute(f"CREATE TABLE given AS {select}")
    other = on_lists()
    given = con.sql("FROM given").to_arrow_table()  # noqa: F841 - DuckDB finds it by its name
    other.execute("CREATE TABLE given AS FROM given")
    expected = seeds(other, "given")
    assert expected
    assert seeds(con, "given") == expected
    con.execute(f"CREATE VIEW chosen AS {select}")
    if "random" not in select:
        assert seeds(con, "chosen") == expected


@pytest.mark.parametrize(
    ("ids", "are_positions"),
    [
        ("range", True),
        ("range + 1", False),
        ("if(range = 70_000, -1, range)", False),
        ("range * 2", False),
        ("299_999 - range", False),
        ("if(range < 150_000, range, range + 7)", False),
    ],
)
def test_ids_that_are_positions_are_not_carried(con, ids, are_positions):
    """They are counted on; all others are what they are."""
    con.execute(f"CREATE TABLE many AS SELECT {ids} AS point_id, 1e0 * range AS x, 0e0 AS y, "
                "0e0 AS z FROM range(300_000)")  # fmt: skip
    expected = dict(con.execute("SELECT x, point_id FROM many").fetchall())
    seen = []

    def note(name, *_):
        def kernel(**arguments):
            seen.append((arguments["point_id"], arguments["x"].tolist()))
            return Function.no_rows(name)

        return kernel

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Function, "kernel", note)
        for threads in (1, 3):
            con.execute(f"SET threads = {threads}")
            con.execute("FROM owm_ground('many')").fetchall()
    for found, x in seen:
        if are_positions:
            assert found is None
            assert x == list(range(300_000))
        else:
            assert dict(zip(x, found.tolist(), strict=True)) == expected


def test_attributes_with_null_and_without(con):
    con.execute("CREATE TABLE colours AS SELECT *, if(point_id % 3 = 0, NULL, point_id)::USMALLINT "
                "AS red, point_id::USMALLINT AS green, NULL::USMALLINT AS blue, "
                "if(point_id < 4000, NULL, 2)::UTINYINT AS classification FROM pts")  # fmt: skip
    other = on_lists()
    colours = con.sql("FROM colours").to_arrow_table()  # noqa: F841
    other.execute("CREATE TABLE colours AS FROM colours")
    query = "FROM build_lod('colours', max_points := 100, grid_size := 16)"
    found, expected = con.execute(query).fetchall(), other.execute(query).fetchall()
    assert len(expected) > 10
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_a_table_that_ascends_gives_the_same_order_with_any_threads(con):
    con.execute("CREATE TABLE many AS SELECT range + 5 AS point_id, range % 997 * 1.0 AS x, "
                "range % 1009 * 1.0 AS y, 1.0 AS z FROM range(1_000_000)")  # fmt: skip
    seen = []

    def note(name, *_):
        def kernel(**arguments):
            seen.append(np.array(arguments["point_id"]))
            return Function.no_rows(name)

        return kernel

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Function, "kernel", note)
        for threads in (1, 2, 4):
            con.execute(f"SET threads = {threads}")
            con.execute("FROM owm_ground('many')").fetchall()
    assert all((ids == np.arange(5, 1_000_005)).all() for ids in seen)
    assert len(seen) == 3


@pytest.mark.slow
@pytest.mark.parametrize("mesh", [
    "e.mesh",
    "{vertices: list_transform(e.mesh.vertices, lambda v: v + 0.0), faces: e.mesh.faces}",
    "{vertices: list_reverse(list_reverse(e.mesh.vertices)), faces: e.mesh.faces[1:]}",
])  # fmt: skip
def test_meshes_and_long_names(con, mesh):
    con.execute(f"CREATE TABLE elements AS SELECT repeat('name', range % 9 + 1) || range AS "
                f"global_id, {CUBE} AS mesh FROM range(3000)")  # fmt: skip
    con.execute(f"CREATE VIEW chosen AS SELECT e.global_id, {mesh} AS mesh FROM elements e "
                "WHERE e.global_id LIKE '%9'")  # fmt: skip
    other = on_lists()
    chosen = con.sql("FROM chosen").to_arrow_table()
    other.register("chosen", chosen)
    query = "SELECT count(*), min(a), max(b), min(relation) FROM spatial_relations('chosen')"
    expected = other.execute(query).fetchall()
    assert expected[0][0] == chosen.num_rows * (chosen.num_rows - 1) // 2
    assert con.execute(query).fetchall() == expected


def test_null_in_a_mesh_is_named(con):
    con.execute(f"CREATE TABLE elements AS SELECT 'wall' || range AS global_id, {CUBE} AS mesh "
                "FROM range(5)")  # fmt: skip
    con.execute("CREATE VIEW holed AS SELECT global_id, if(global_id = 'wall3', {vertices: "
                "list_transform(mesh.vertices, lambda v: nullif(v, 1.0)), faces: mesh.faces}, "
                "mesh) AS mesh FROM elements")  # fmt: skip
    with pytest.raises(duckdb.Error, match="1 mesh with NULL among its vertices, the first is "
                                           "global_id wall3"):  # fmt: skip
        con.execute("FROM intersects_with('holed')").fetchall()


# What comes out


def test_all_types_of_results(con):
    types = {
        "owm_ground": ["BIGINT", "DOUBLE", "DOUBLE", "DOUBLE", "INTEGER", "BOOLEAN"],
        "plane_points": ["BIGINT", "BIGINT", "DOUBLE"],
    }
    for function, expected in types.items():
        assert list(map(str, con.sql(f"FROM {function}('pts')").types)) == expected
    con.execute("CREATE TABLE floor AS SELECT point_id, x, y, 0e0 AS z FROM pts")
    (boundary,) = con.execute("SELECT boundary FROM detect_planes('floor')").fetchall()[0]
    assert boundary[0] == 1  # little-endian WKB
    query = "SELECT typeof(boundary), orientation, plane_id FROM detect_planes('floor')"
    assert con.execute(query).fetchall()[0][0] == "GEOMETRY"
    nodes = con.execute("SELECT samples[1], is_leaf FROM build_lod('pts') LIMIT 1").fetchall()
    assert set(nodes[0][0]) >= {"x", "y", "z"}
    found = con.execute("SELECT count(*), count(plane_id), count(distance) FROM "
                        "plane_points('pts', max_distance := 0.001)").fetchall()[0]  # fmt: skip
    assert found[0] == 5000
    assert found[1] == found[2] < 5000


@pytest.mark.slow
def test_more_rows_than_a_span(con):
    con.execute("CREATE TABLE many AS SELECT range AS point_id, range % 997 * 1.0 AS x, "
                "range % 1009 * 1.0 AS y, range % 5 AS z FROM range(500_000)")  # fmt: skip
    for threads in (1, 2, 4):
        con.execute(f"SET threads = {threads}")
        rows = con.sql("FROM classify_ground('many', object_width := 5)").to_arrow_table()
        assert rows["point_id"].to_numpy().tolist() == list(range(500_000))
        con.execute("SET preserve_insertion_order = false")
        query = "SELECT count(*), sum(point_id), count(DISTINCT point_id) FROM classify_ground('many', object_width := 5)"  # noqa: E501
        assert con.execute(query).fetchall() == [(500_000, 124999750000, 500_000)]
        con.execute("RESET preserve_insertion_order")


# Order, errors, ends


@pytest.mark.parametrize("token", [0, -1, 10**15])
def test_rows_that_nobody_made_are_an_error(con, token):
    with pytest.raises(duckdb.Error, match="owm_ground: its rows were asked for before it got"):
        con.execute(f"FROM spatialq_owm_ground_rows({token})").fetchall()


@pytest.mark.parametrize("request_", ["", "nothing", "[]", '{"token": "a"}', '{"options": 3}'])
def test_a_request_that_is_none_is_an_error(con, request_):
    query = "SELECT spatialq_owm_ground_aggregate(?, 0, point_id, x, y, z) FROM pts"
    with pytest.raises(duckdb.Error):
        con.execute(query, [request_]).fetchall()


def test_an_error_of_the_kernel_reaches_the_query(con):
    con.execute("UPDATE pts SET z = 'nan' WHERE point_id = 77")
    for call in (
        "FROM classify_ground('pts')",
        "SELECT owm_ground_list(point_id, x, y, z) FROM pts",
    ):
        with pytest.raises(duckdb.Error, match=r"must be finite, got 1 points .* point_id 77"):
            con.execute(call).fetchall()


@pytest.mark.parametrize("transport", ["native", "lists"])
def test_the_parameters_of_a_group_must_be_the_same(con, transport):
    there = con if transport == "native" else on_lists()
    pts = con.sql("FROM pts LIMIT 3000").to_arrow_table()  # noqa: F841
    there.execute("CREATE OR REPLACE TABLE few AS FROM pts")
    query = "SELECT owm_ground_list(point_id, x, y, z, window_size := {}) FROM few GROUP BY z"
    for differs in ("x + 1", "if(point_id = 2999, 5.0, 6.0)"):
        sentence = "owm_ground_list: the parameters must be the same for all rows of a group"
        with pytest.raises(duckdb.Error, match=sentence):
            there.execute(query.format(differs)).fetchall()
    assert len(there.execute(query.format("z + 1")).fetchall()) == 7


@pytest.mark.parametrize("frame", ["ROWS 99 PRECEDING", "ROWS UNBOUNDED PRECEDING"])
def test_a_window_frame_is_right_or_an_error(con, frame):
    query = (
        f"SELECT len(plane_points_list(point_id, x, y, z) OVER (ORDER BY point_id {frame})), "
        f"count(*) OVER (ORDER BY point_id {frame}) FROM pts WHERE point_id < 300"
    )
    try:
        assert all(found == wanted for found, wanted in con.execute(query).fetchall())
    except duckdb.Error as error:
        assert "plane_points_list: a window frame cannot be used" in str(error)  # noqa: PT017


@pytest.mark.slow
def test_a_fork_after_use_works(con):
    code = """
import multiprocessing, spatialq
def count(_):
    con = spatialq.connect()
    con.execute("CREATE TABLE p AS SELECT range AS point_id, 1e0 * range AS x, 0e0 AS y, 0e0 AS z "
                "FROM range(2000)")
    return con.execute("SELECT count(*) FROM classify_ground('p')").fetchall()
if __name__ == "__main__":
    first = count(0)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(count, range(4)).get(timeout=60) == [first] * 4
    print("done")
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.stdout.endswith("done\n"), ended.stderr


def test_a_macro_with_such_a_name_is_no_extension():
    with duckdb.connect() as con:
        con.execute("CREATE MACRO garbage_collect(x) AS x")
        con.execute("CREATE MACRO spatialq_build_lod_collect(x) AS x")
        spatialq.install(con)
        assert not loading.is_loaded(con)
        con.execute("CREATE TABLE p AS SELECT range AS point_id, 1.0 * range AS x, 0.0 AS y, "
                    "0.0 AS z FROM range(9)")  # fmt: skip
        assert con.sql("SELECT count(*) FROM classify_ground('p')").fetchall() == [(9,)]


def test_a_callback_that_fails_early_is_an_error(con, monkeypatch):
    monkeypatch.setitem(sys.modules, "spatialq.database.native.calls", None)
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    for query in (
        "FROM owm_ground('pts')",
        "SELECT owm_ground_list(point_id, x, y, z) FROM pts",
    ):
        with pytest.raises(duckdb.Error, match="the function could not be run"):
            con.execute(query).fetchall()
    library.library().spatialq_free(library.library().spatialq_count_collected())
    monkeypatch.undo()
    for number in range(1, 10_000_000):  # more than a run of all tests collects
        if not library.library().spatialq_count_collected():
            break
        library.library().spatialq_free(number)


def test_a_long_message_is_cut_between_letters(con):
    query = f"SELECT owm_ground_list(point_id, x, y, z, device := '{3000 * 'ä'}') FROM pts"
    with pytest.raises(
        duckdb.Error,
        match="device must be 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1', got 'ää",
    ):
        con.execute(query).fetchall()


def test_results_go_with_their_query(con):
    con.execute("FROM classify_ground('pts') LIMIT 1").fetchall()
    con.execute("FROM classify_ground('pts')").fetchone()
    unread = con.sql("FROM classify_ground('pts')")
    del unread
    con.execute("EXPLAIN FROM classify_ground('pts')").fetchall()
    con.execute("SELECT 1 WHERE 1 = 0 AND EXISTS (FROM classify_ground('pts'))").fetchall()
    con.execute("SELECT count(*) FROM classify_ground('pts'), range(0)").fetchall()
    con.execute("SELECT 1")
    assert held() == (0, 0)


class Slow:
    """A kernel that works until it is told to stop."""

    def __init__(self):
        self.has_begun, self.was_stopped = threading.Event(), threading.Event()

    def kernel(self, *_):
        def run(**_):
            self.has_begun.set()
            try:
                while True:
                    time.sleep(0.005)
                    progress.check()
            except BaseException:
                self.was_stopped.set()
                raise

        return run


def test_interrupt_ends_the_query_and_the_kernel(con, monkeypatch):
    slow = Slow()
    monkeypatch.setattr(Function, "kernel", slow.kernel)
    ended = []

    def work():
        with pytest.raises(duckdb.InterruptException):
            con.execute("FROM classify_ground('pts')").fetchall()
        ended.append(time.monotonic())

    thread = threading.Thread(target=work)
    thread.start()
    assert slow.has_begun.wait(30)
    con.interrupt()
    thread.join(30)
    assert ended
    assert slow.was_stopped.wait(30)
    monkeypatch.undo()
    assert con.execute("SELECT count(*) FROM classify_ground('pts')").fetchall() == [(5000,)]


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_ctrl_c_in_the_main_thread_ends_the_query_and_the_kernel(con, monkeypatch):
    slow = Slow()
    monkeypatch.setattr(Function, "kernel", slow.kernel)
    con.execute("SET threads = 1")  # so that the main thread waits for the rows
    was_ended_in_time = []

    def press():
        assert slow.has_begun.wait(60)
        os.kill(os.getpid(), signal.SIGINT)
        was_ended_in_time.append(slow.was_stopped.wait(60))
        con.interrupt()

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises((duckdb.Error, RuntimeError), match="Query interrupted"):
        con.execute("FROM classify_ground('pts')").fetchall()
    thread.join()
    assert was_ended_in_time == [True]
    monkeypatch.undo()
    assert con.execute("SELECT count(*) FROM classify_ground('pts')").fetchall() == [(5000,)]


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_a_handler_that_raises_nothing_runs_while_rows_are_waited_for(con, monkeypatch):
    slow = Slow()
    monkeypatch.setattr(Function, "kernel", slow.kernel)
    was_handled = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: was_handled.set())
    handled_in_time = []

    def press():
        assert slow.has_begun.wait(60)
        os.kill(os.getpid(), signal.SIGINT)
        handled_in_time.append(was_handled.wait(60))
        con.interrupt()

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(duckdb.InterruptException):
        con.execute("FROM classify_ground('pts')").fetchall()
    thread.join()
    assert handled_in_time == [True]


def test_a_closed_connection_ends_the_kernel(con, monkeypatch):
    slow = Slow()
    monkeypatch.setattr(Function, "kernel", slow.kernel)
    other = con.cursor()

    def work():
        with pytest.raises(duckdb.Error):
            other.execute("FROM classify_ground('pts')").fetchall()

    thread = threading.Thread(target=work)
    thread.start()
    assert slow.has_begun.wait(30)
    other.interrupt()
    thread.join(30)
    other.close()
    assert slow.was_stopped.wait(30)


def test_memory_is_kept_up_to_a_limit_and_given_back(con):
    known = library.library()
    con.execute("CREATE TABLE many AS SELECT range AS point_id, 1.0 * range AS x, 0.0 AS y, "
                "0.0 AS z FROM range(1_000_000)")  # fmt: skip
    known.spatialq_keep(1 << 30)
    con.execute("SELECT count(*) FROM owm_ground('many')").fetchall()
    held()
    kept = known.spatialq_keep(1 << 30)
    assert kept >= 8_000_000
    con.execute("SELECT count(*) FROM owm_ground('many')").fetchall()
    held()
    assert known.spatialq_keep(1 << 30) <= 2 * kept
    assert known.spatialq_keep(3 << 20) <= 3 << 20
    assert known.spatialq_keep(0) == 0
    known.spatialq_keep(1 << 30)
