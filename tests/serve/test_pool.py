"""Queries run in processes of their own: what ends one of them ends nothing else."""

import json
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from spatialq.serve.box import Box
from spatialq.serve.limits import Limits, QueryRefusedError
from spatialq.serve.pool import Cancellation, Pool, QueryFailedError
from spatialq.serve.queries import Target
from spatialq.serve.selection import Gathered, Selection, Values

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")

ENDLESS = "SELECT count(*) FROM range(100000000000) a, range(100000) b"
ALLOCATING = "SELECT list_sum(range(3000000000))"
"""A list of 24 GB, of which DuckDB counts nothing."""
MEMORY = 128 << 20


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    path = tmp_path_factory.mktemp("pool") / "small.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE points AS SELECT range AS point_id FROM range(1000)")
    return path


@pytest.fixture(scope="module")
def pool(database):
    limits = Limits(seconds=3.0, memory=MEMORY, rows=5)
    box = Box({"scene": str(database)}, [], limits, [Target(0, "points", 1000, 999)])
    with closing(Pool(box, 2)) as found:
        yield found


def rows(pool, text):
    return json.loads(pool.ask(text).data)["rows"]


def processes(pool):
    return [each._process.popen for each in pool._all if each.is_started]


def busy(pool):
    """Wait until the process of a pool computes, and give it."""
    while True:
        for process in processes(pool):
            if pool._all[0]._is_ready and (before := ticks(process)):
                time.sleep(0.2)
                if ticks(process) - before > 2:
                    return process
        time.sleep(0.1)


def ticks(process):
    return int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11])


@pytest.mark.slow
def test_an_allocation_that_duckdb_does_not_count_is_refused_in_a_sentence(pool):
    for text in (ALLOCATING, "SELECT max(length(repeat('x', 2000000000) || range)) FROM range(9)"):
        with pytest.raises(QueryRefusedError) as refused:
            pool.ask(text)
        assert str(refused.value) == (
            "view: the query took more than 128 MiB of memory (its share of --memory); "
            "ask for fewer rows, or a simpler question"
        )
        assert rows(pool, "SELECT count(*) FROM points") == [[1000]]


@pytest.mark.slow
def test_the_memory_of_a_process_is_limited_by_that_of_a_query(pool):
    """Its private memory can grow by the limit twice, and by the stacks of threads."""
    pool.ask("SELECT 1")
    (process,) = (each._process.popen for each in pool._all if each._is_ready)
    lines = Path(f"/proc/{process.pid}/limits").read_text().splitlines()
    (most,) = (int(line.split()[3]) for line in lines if line.startswith("Max data size"))
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    (now,) = (int(line.split()[1]) << 10 for line in lines if line.startswith("VmData"))
    threads = len(os.sched_getaffinity(0))
    # what it needed to start was given back in part
    assert now < most <= now + 2 * MEMORY + threads * (8 << 20) + (32 << 20)


@pytest.mark.slow
def test_an_endless_query_ends_and_the_next_is_answered(pool):
    with ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(pool.ask, ENDLESS) for _ in range(2)]
        for each in asked:
            with pytest.raises(QueryRefusedError) as refused:
                each.result()
            assert str(refused.value) == (
                "view: the query took longer than 3 s (--seconds); "
                "ask for fewer rows, or a simpler question"
            )
    assert rows(pool, "SELECT count(*) FROM points") == [[1000]]


@pytest.mark.slow
def test_a_process_that_is_killed_is_replaced(database):
    box = Box({"scene": str(database)}, [], Limits(seconds=60.0, memory=MEMORY))
    with closing(Pool(box, 1)) as pool, ThreadPoolExecutor(1) as threads:
        asked = threads.submit(pool.ask, ENDLESS)
        process = busy(pool)
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(QueryRefusedError) as refused:
            asked.result()
        assert str(refused.value) == (
            "view: the query ended its process, which crashed (SIGKILL) (it may take 128 MiB of "
            "memory, its share of --memory); ask for fewer rows, or a simpler question"
        )
        assert rows(pool, "SELECT count(*) FROM points") == [[1000]]
        # one that is killed while it waits costs no query
        (again,) = processes(pool)
        assert again.pid != process.pid
        os.kill(again.pid, signal.SIGKILL)
        again.wait()
        assert rows(pool, "SELECT count(*) FROM points") == [[1000]]


@pytest.mark.slow
def test_a_query_that_is_given_up_ends_and_the_next_is_answered(database):
    """With its process, of which the time limit would end it in a day."""
    box = Box({"scene": str(database)}, [], Limits(seconds=86_400.0, memory=MEMORY))
    with closing(Pool(box, 1)) as pool, ThreadPoolExecutor(1) as threads:
        cancellation = Cancellation()
        asked = threads.submit(pool.ask, ENDLESS, cancellation=cancellation)
        process = busy(pool)
        cancellation.set()
        with pytest.raises(QueryRefusedError, match="ended its process"):
            asked.result()
        assert process.poll() == -signal.SIGKILL
        assert rows(pool, "SELECT count(*) FROM points") == [[1000]]
        # one that is given up before it begins does not run
        with pytest.raises((QueryRefusedError, QueryFailedError)):
            pool.ask(ENDLESS, cancellation=cancellation)
        assert rows(pool, "SELECT count(*) FROM points") == [[1000]]


@pytest.mark.slow
def test_more_queries_than_processes_wait(pool):
    with ThreadPoolExecutor(50) as threads:
        found = list(threads.map(lambda k: rows(pool, f"SELECT {k}"), range(50)))
    assert found == [[[k]] for k in range(50)]
    assert len(processes(pool)) == 2


@pytest.mark.slow
def test_a_database_that_is_gone_is_said(tmp_path):
    box = Box({"scene": str(tmp_path / "none.duckdb")}, [], Limits())
    with closing(Pool(box, 1)) as pool, pytest.raises(QueryFailedError, match="while it started"):
        pool.ask("SELECT 1")


@pytest.mark.slow
def test_processes_end_with_the_pool_and_with_their_server(database):
    box = Box({"scene": str(database)}, [], Limits(seconds=60.0, memory=MEMORY))
    with closing(Pool(box, 1)) as pool, ThreadPoolExecutor(1) as threads:
        asked = threads.submit(pool.ask, ENDLESS)
        process = busy(pool)
        # a server that is killed closes the pipe to its processes
        pool._all[0]._process.popen.stdin.close()
        with pytest.raises(QueryRefusedError, match="ended its process, which ended"):
            asked.result()
        assert process.poll() == 0
        pool.ask("SELECT 1")
        (other,) = processes(pool)
    assert other.poll() is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t AS SELECT 1", "INSERT INTO points VALUES (1)", "ATTACH ':memory:' AS other",
        "FROM read_csv('/etc/passwd')", "FROM read_points('/etc/passwd')",
        "SET enable_external_access = true", "SELECT 1; SELECT 2",
    ],
)  # fmt: skip
def test_a_process_reads_the_databases_alone(pool, text):
    for form in ("rows", "arrow"):
        with pytest.raises(QueryRefusedError):
            pool.ask(text, form=form)


@pytest.mark.slow
def test_settings_of_a_process_are_locked(pool):
    """Whatever a statement may be."""
    settings = ("enable_external_access", "lock_configuration", "temp_directory", "memory_limit")
    found = rows(pool, f"SELECT {', '.join(f'current_setting({each!r})' for each in settings)}")
    assert found == [[False, True, "", "128.0 MiB"]]
    (read_only,) = rows(
        pool, "SELECT readonly FROM duckdb_databases() WHERE database_name = 'scene'"
    )
    assert read_only == [True]


@pytest.mark.slow
def test_all_rows_come_in_arrow(pool):
    data = pool.ask("SELECT point_id, point_id % 7 AS v FROM points", form="arrow").data
    with pa.ipc.open_stream(data) as stream:
        table = stream.read_all()
    assert table["v"].to_pylist() == [k % 7 for k in range(1000)]


@pytest.mark.parametrize("greatest", [60, 9_999])
def test_a_mask_has_the_bits_of_its_points(greatest):
    rng = np.random.default_rng(greatest)
    ids = rng.choice(greatest + 1, 40, replace=False)
    gathered = Gathered(61, greatest, np.uint8, 0)
    gathered.add(ids, 1)
    values, by_id = gathered.collected()
    mask = Selection("mask", np.packbits(values, bitorder="little"), by_id)
    wanted = np.concatenate([rng.integers(0, greatest + 1, 500), [greatest + 100, 0, greatest]])
    bits = np.unpackbits(np.frombuffer(mask.of(wanted), np.uint8), bitorder="little")
    assert bits[: len(wanted)].tolist() == np.isin(wanted, ids).tolist()
    assert not bits[len(wanted) :].any()


def test_bytes_of_more_numbers_than_one_run_are_those_of_one(monkeypatch):
    values = Values(pa.float32())
    numbers = values.numbers(pa.array(np.linspace(-3, 9, 1000), pa.float32()))
    numbers[::13] = np.nan
    whole = values.scaled(numbers)
    monkeypatch.setattr("spatialq.serve.selection.RUN", 64)
    assert np.array_equal(values.scaled(numbers), whole)
    expected = np.where(np.isnan(numbers), 0, 1 + np.rint(254 * (numbers.astype(float) + 3) / 12))
    assert np.array_equal(whole, expected)
