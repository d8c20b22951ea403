"""The log of earlier processes, in a database file."""

import signal
import subprocess
import sys
from collections import deque
from datetime import UTC, datetime

import duckdb
import pytest

import spatialq
from spatialq.planner import log

POINTS = (
    "CREATE TABLE p AS SELECT i AS point_id, i % 9 AS x, i // 9 AS y, 0.0 AS z FROM range(99) r(i)"
)
CALL = "SELECT count(*) FROM owm_ground('p', unit := 1)"
LOG = "SELECT function, row_count, device, error FROM spatialq_log()"
EXPECTED = [("owm_ground", 99, "cpu", None)]


def process(code, *arguments):
    """Run Python that starts with a connection to the database that is named first."""
    start = "import os, sys, spatialq; con = spatialq.connect(sys.argv[1]); "
    command = [sys.executable, "-W", "ignore", "-c", start + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def database(tmp_path, monkeypatch):
    # the calls of tests before count among the last thousand, too
    monkeypatch.setattr(log, "_entries", deque(maxlen=log.CALLS_KEPT))
    path = tmp_path / "d.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute(POINTS)
    return path


def entry(seconds, name="owm_ground"):
    return log.Entry(datetime.now(UTC), name, 99, "cpu", "asked for", None, seconds, None)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_process_leaves_its_log(database):
    result = process(f'print(con.sql("{CALL}").fetchall()); os.kill(os.getpid(), 9)', database)
    assert result.returncode == -signal.SIGKILL, result.stderr
    for read_only in (True, False):
        with spatialq.connect(str(database), read_only=read_only) as con:
            assert con.sql(LOG).fetchall()[: len(EXPECTED)] == EXPECTED


def test_a_process_that_ends_writes_what_is_left(database):
    result = process(f'[con.sql("{CALL}").fetchall() for _ in range(5)]', database)
    assert result.returncode == 0, result.stderr
    with spatialq.connect(str(database)) as con:
        assert con.sql(LOG).fetchall()[:5] == EXPECTED * 5


def test_a_call_in_a_transaction_leaves_it_alone(database):
    with spatialq.connect(str(database)) as con, spatialq.connect(str(database)) as other:
        log.add(entry(1.0))  # and with it what earlier tests left
        other.execute("DELETE FROM spatialq_calls")
        con.execute("BEGIN; CREATE TABLE mine AS SELECT 1 AS one")
        log.add(entry(1.0))
        log.add(entry(1.0))
        assert other.sql("SELECT count(*) FROM spatialq_calls").fetchall() == [(2,)]
        con.execute("ROLLBACK")
        assert other.sql("SELECT count(*) FROM spatialq_calls").fetchall() == [(2,)]
        other.execute("BEGIN; DELETE FROM spatialq_calls")
        log.add(entry(1.0))
        other.execute("COMMIT")
        assert con.sql("SELECT count(*) FROM spatialq_calls").fetchall() == [(1,)]


def test_the_log_is_bounded(database):
    with spatialq.connect(str(database)) as con:
        log.add(entry(1.0))
        con.execute("INSERT INTO spatialq_calls SELECT c.* FROM spatialq_calls c, range(2000)")
        log.add(entry(1.0))
        assert con.sql("SELECT count(*) FROM spatialq_calls").fetchall() == [(log.CALLS_KEPT,)]
        assert len(con.sql(LOG).fetchall()) <= log.CALLS_KEPT


def test_a_closed_database_is_not_held_open(database):
    with spatialq.connect(str(database)):
        log.add(entry(1.0))
    log.add(entry(1.0))
    assert process('con.execute("CREATE TABLE mine AS SELECT 1")', database).returncode == 0
