"""Forked processes, and threads that go on when the main thread has ended: the same rows.

Each runs in a process of its own with a limit of time, as what fails here hangs.
"""

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spatialq.database.writers import writers
from spatialq.io.formats import readers

from .samples import sample

ROOT = Path(__file__).parents[1]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]
READ = """
import multiprocessing, os, sys, threading, warnings
warnings.simplefilter("ignore")
import spatialq
from spatialq.io.formats import MACROS, find_reader

def rows(path):
    kind = find_reader(path).kind
    with spatialq.connect() as con:
        con.execute("SET threads = 4")
        what = f"{MACROS[kind]}('{path}')"
        found = [con.sql(f"FROM {what} ORDER BY ALL").fetchall()]
        to_crs = "EPSG:25833" if path.endswith((".laz", ".tif")) else None
        if kind == "bcf":
            con.execute(f"CREATE TABLE t AS FROM {what}")
        else:
            spatialq.load(con, path, "t", to_crs=to_crs)
        found += [spatialq.table(con, "t").to_arrow().to_pylist()]
        if kind == "points":
            found += [con.sql("FROM owm_ground('t', unit := 1) ORDER BY ALL").fetchall()]
        con.sql(f"FROM {what} LIMIT 3").fetchall()  # leaves a scan that may go on
        return str(found)

path = sys.argv[1]
if __name__ == "__main__":
    first = rows(path)
"""
POOL = """
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(rows, [path] * 3).get(timeout=60) == [first] * 3
    print("done")
"""
LOCKED = """
    from spatialq.runtime import forks
    from spatialq.io.formats import readers
    held = threading.Event()
    def hold():
        for lock in list(forks._locks):
            lock.acquire()
        held.set()
        threading.Event().wait()
    threading.Thread(target=hold, daemon=True).start()
    held.wait()
    child = os.fork()
    if child == 0:
        os._exit(rows(path) != first)
    assert os.waitpid(child, 0)[1] == 0
    print("done")
    sys.stdout.flush()
    os._exit(0)
"""
LATE = """
    def late():
        threading.main_thread().join()
        assert rows(path) == first
        print("done")
    threading.Thread(target=late).start()
"""
WRITE = """
import multiprocessing, sys, warnings
warnings.simplefilter("ignore")
from pathlib import Path
import spatialq

def write(name):
    with spatialq.connect() as con:
        path = Path(name) / sys.argv[1]
        path.parent.mkdir()
        n = spatialq.from_sql(con, sys.argv[2]).write(path)
        files = sorted(each.suffix for each in path.parent.rglob("*") if each.is_file())
        return (n, files), path.stat().st_size

if __name__ == "__main__":
    first = write("a")
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.map_async(write, ["b", "c"]).get(timeout=60)
    # a workbook has the time in it
    assert all(one == first[0] and abs(size - first[1]) < 64 for one, size in found), found
    print("done")
"""
ROWS = {
    "rows": "SELECT range AS a, 'x' AS b FROM range(100000)",
    "points": "SELECT sin(range) * 100 AS x, cos(range) * 100 AS y, range % 7 AS z, "
    "range % 9 AS intensity FROM range(120000)",
    "cells": "SELECT range % 300 + 0.5 AS x, range // 300 + 0.5 AS y, 1.5 * range AS z "
    "FROM range(90000)",
    "geometries": "SELECT ('POINT (' || range || ' 1)')::GEOMETRY AS g, range AS a "
    "FROM range(5000)",
    "GlobalIds": "SELECT global_id, file_name FROM read_ifc('a.ifc')",
    "clashes": "SELECT min(global_id) AS a, max(global_id) AS b, file_name FROM read_ifc('a.ifc') "
    "GROUP BY file_name",
}


def done(code, *arguments, cwd):
    """Run code that prints 'done' in the end."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    printed = cwd / "out.txt"  # a file, as a fork that was left would keep a pipe open
    with (
        printed.open("w") as out,
        subprocess.Popen(
            command, cwd=cwd, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        ) as process,
    ):
        try:
            process.wait(timeout=120)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, printed.read_text()
    assert printed.read_text().endswith("done\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", [each.name for each in readers()])
@pytest.mark.parametrize("then", [POOL, LOCKED, LATE], ids=["pool", "locks held", "late thread"])
def test_a_reader_gives_the_same_rows(tmp_path, name, then):
    done(READ + then, sample(name, tmp_path), cwd=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("writer", writers(), ids=lambda each: each.name)
def test_a_writer_writes_the_same(tmp_path, writer):
    if writer.takes in ("GlobalIds", "clashes"):
        sample("IFC", tmp_path)
    suffix = writer.suffixes[-1]
    name = f"out{suffix}" if suffix.startswith(".") else suffix
    done(WRITE, name, ROWS[writer.takes], cwd=tmp_path)


def test_polars_says_that_it_cannot_be_used(tmp_path):
    code = """
import os, spatialq
query = lambda: spatialq.from_sql(spatialq.connect(), "SELECT 1 AS a")
assert query().to_polars().rows() == [(1,)]
child = os.fork()
if child == 0:
    try:
        query().to_polars()
    except spatialq.QueryError as error:
        assert "to_polars: Polars was imported before this process was forked" in str(error)
        os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
print("done")
"""
    done(code, cwd=tmp_path)


LOCKS = ("Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore")
OWN = {
    "spatialq/runtime/forks.py:lock": "makes those that are free in a fork",
    "spatialq/runtime/forks.py:rlock": "makes those that are free in a fork",
    "spatialq/database/native/calls.py:": "is made anew in a fork",
    "spatialq/database/native/calls.py:_begin_anew": "makes it anew in a fork",
    "spatialq/runtime/file_memory.py:_Watcher.__init__": "is made anew in a fork",
    "spatialq/runtime/file_memory.py:_Watcher.forked": "makes it anew in a fork",
    "spatialq/runtime/buffers.py:_Pool.forked": "makes it anew in a fork, and at first",
    "spatialq/runtime/gpus.py:_Shared.__init__": "lives as long as a call, in its threads",
    "spatialq/io/las/source.py:LasSource.read_into": "lives as long as a call, in its threads",
    "spatialq/io/ifc/process.py:Session.__init__": "lives as long as a call, in its threads",
    "spatialq/cluster/local_executor.py:LocalExecutor.map": "lives as long as a call",
    "spatialq/cluster/files.py:ObjectFiles.__init__": "of a run, which has a thread for it",
    "spatialq/cluster/locks.py:ObjectLock.__init__": "of a run, which has a thread for it",
    "spatialq/serve/app.py:Server.__init__": "of a server, which has threads for it",
    "spatialq/serve/pool.py:Cancellation.__init__": "of a query of a server",
    "spatialq/serve/pool.py:Pool.__init__": "of a server, which has threads for it",
    "spatialq/serve/views.py:Views.__init__": "of a server, which has threads for it",
}
"""Where locks are made that `forks` need not know, and why."""


def calls(names, folder):
    """Name where functions of these names are called, by file and definition."""

    def inside(node, within):
        for child in ast.iter_child_nodes(node):
            below = within
            if isinstance(child, ast.ClassDef | ast.FunctionDef):
                below = f"{within}.{child.name}".strip(".")
            if isinstance(child, ast.Call):
                called = child.func
                name = called.attr if isinstance(called, ast.Attribute) else called
                if (name.id if isinstance(name, ast.Name) else name) in names:
                    yield below
            yield from inside(child, below)

    for path in folder.rglob("*.py"):
        for within in inside(ast.parse(path.read_text(encoding="utf-8")), ""):
            yield f"{path.relative_to(ROOT).as_posix()}:{within}"


def of_threading(folder):
    return {each for each in calls(LOCKS, ROOT / folder) if "cli/shell" not in each}


def test_no_lock_is_forgotten():
    assert of_threading("spatialq") | of_threading("udfs") == set(OWN)


def test_all_pools_of_threads_work_for_late_threads():
    pools = {
        *calls(("ThreadPoolExecutor",), ROOT / "spatialq"),
        *calls(("ThreadPoolExecutor",), ROOT / "udfs"),
    }
    assert not pools


def test_object_storage_says_that_it_cannot_be_used(tmp_path):
    pytest.importorskip("obstore")
    code = """
import os, spatialq
os.environ.update(
    AWS_ENDPOINT_URL="http://127.0.0.1:1", AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b"
)
from spatialq.io import storage
storage.TRIES = 0
def said():
    try:
        spatialq.load(spatialq.connect(), "s3://bucket/a.laz")
    except spatialq.FileError as error:
        return str(error)
first = said()
assert "forked" not in first
child = os.fork()
if child == 0:
    text = said()
    assert text.startswith("load: 's3://bucket/a.laz': ")
    assert "object storage was used before this process was forked" in text
    assert "\\n" not in text
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
print("done")
"""
    done(code, cwd=tmp_path)


def test_progress_is_reported_to_a_late_thread(tmp_path):
    code = """
import threading
from datetime import UTC, datetime
from pathlib import Path
from spatialq.workflows.features import _reporting
told = []
def late():
    threading.main_thread().join()
    with _reporting(lambda *given: told.append(given), Path("a"), 10, datetime.now(UTC)):
        pass
    assert told[-1] == (Path("a"), 10, 10)
    print("done")
threading.Thread(target=late).start()
"""
    done(code, cwd=tmp_path)
