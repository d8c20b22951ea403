"""The calls of kernels in a table of each database file, for the processes that come later.

A call writes when it ends, before the query goes on, by a connection of its own: so no
transaction of the user's is touched, nothing keeps a database open, and a process that is killed
loses nothing but the calls that were too short to be written at once.
"""

import contextlib
import os
import time
import uuid
from typing import Any

import duckdb

from spatialq.database import instances
from spatialq.database.transaction import transaction
from spatialq.planner import log
from spatialq.runtime import forks

LONG = 0.1
"""Seconds of a call that is written when it ends: writing takes about a hundredth."""
PAUSE = 1.0
"""Seconds between two times that shorter ones are written."""
TABLE = """
CREATE TABLE IF NOT EXISTS spatialq_calls (
    process VARCHAR, "at" TIMESTAMP, function VARCHAR, row_count BIGINT, device VARCHAR,
    reason VARCHAR, estimated_seconds DOUBLE, seconds DOUBLE, error VARCHAR, transport VARCHAR,
    transport_seconds DOUBLE
)
"""
INSERT = f"INSERT INTO spatialq_calls VALUES ({', '.join(['?'] * 11)})"
FORGET = f"""
DELETE FROM spatialq_calls
WHERE rowid NOT IN (SELECT rowid FROM spatialq_calls ORDER BY "at" DESC LIMIT {log.CALLS_KEPT})
"""
EARLIER = """
SELECT * EXCLUDE (process) FROM spatialq_calls WHERE process <> ? ORDER BY "at"
"""
WRITABLE = """
SELECT path IS NOT NULL AND NOT readonly FROM duckdb_databases()
WHERE database_name = current_database()
"""

_process = uuid.uuid4().hex
_pid = os.getpid()
_lock = forks.lock()
_written = float("-inf")


def keep(entry: log.Entry) -> None:
    """Write an entry, and those before it, to the database files that are open; or soon."""
    with _lock:
        for instance in instances.all_used():
            instance.calls.append(entry)
    if entry.seconds >= LONG or time.monotonic() - _written >= PAUSE:
        write()


def write() -> None:
    """Write what is not yet written; a database that cannot be written goes without."""
    global _written
    if os.getpid() != _pid:  # a fork has none of DuckDB's threads
        return
    with _lock:
        _written = time.monotonic()
        for instance in instances.all_used():
            entries = []
            with contextlib.suppress(IndexError):  # another thread may close the instance
                while True:
                    entries.append(_row(instance.calls.popleft()))
            if entries:
                with contextlib.suppress(duckdb.Error):
                    _insert(instance, entries)


def earlier() -> list[tuple[Any, ...]]:
    """List the calls of other processes that the database instance has, oldest first."""
    cursor = instances.current().cursor()
    if cursor is None:
        return []
    try:
        with cursor:
            return cursor.execute(EARLIER, [_process]).fetchall()
    except duckdb.Error:  # it has none
        return []


def _insert(instance: instances.Instance, entries: list[tuple[Any, ...]]) -> None:
    cursor = instance.cursor()
    if cursor is None:
        return
    with cursor:
        if (True,) in cursor.execute(WRITABLE).fetchall():
            cursor.execute(TABLE)
            with transaction(cursor):
                cursor.executemany(INSERT, entries)
                cursor.execute(FORGET)


def _row(entry: log.Entry) -> tuple[Any, ...]:
    return (_process, *log.values(entry))


log.on_entry(keep)
