"""Fixtures of the readers' tests."""

import sys

import pytest

import spatialq
from spatialq.functions.sql_text import identifier
from spatialq.io.ifc.cache import CACHE

TABLES = "SELECT table_name, table_type FROM information_schema.tables"


@pytest.fixture(scope="module")
def connection():
    with spatialq.connect() as con:
        yield con


@pytest.fixture
def con(connection):
    """A connection with everything of spatialq on it; what a test makes goes with the test."""
    before = connection.execute(TABLES).fetchall()
    yield connection
    for name, kind in set(connection.execute(TABLES).fetchall()).difference(before):
        connection.execute(f"DROP {kind.removeprefix('BASE ')} {identifier(name)}")


@pytest.fixture
def ifc_con(con):
    """The same, and no model in the cache."""
    CACHE.clear()
    return con


@pytest.fixture
def worker_that(monkeypatch, tmp_path):
    """Replace the worker by one with other behaviour: Python code that runs before its `main`."""

    def use(code: str) -> None:
        script = tmp_path / "odd_worker.py"
        script.write_text(
            "import os, signal, sys, time\n"
            "import spatialq.io.ifc.worker as worker\n"
            f"{code}\n"
            "worker.main(sys.argv[1], float(sys.argv[2]))\n"
        )
        monkeypatch.setattr(
            "spatialq.io.ifc.process.command",
            lambda path, seconds: [sys.executable, str(script), str(path), str(seconds)],
        )

    return use


@pytest.fixture
def fast_process_that(monkeypatch, tmp_path):
    """Replace the process of `ifclite-geom` by one that runs some Python code before its `main`."""

    def use(code: str) -> None:
        script = tmp_path / "odd_fast_process.py"
        script.write_text(
            "import os, signal, sys, time\n"
            "import ifclite_geom\n"
            "import spatialq.io.ifc.ifclite as ifclite\n"
            f"{code}\n"
            "ifclite.main(sys.argv[1], float(sys.argv[2]))\n"
        )
        monkeypatch.setattr(
            "spatialq.io.ifc.process.fast_command",
            lambda path, seconds: [sys.executable, str(script), str(path), str(seconds)],
        )

    return use
