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


def odd_process(monkeypatch, tmp_path, command, module):
    """Give what replaces a process by one that runs some Python code before the `main` of a module.

    The code finds the module by its own name.
    """

    def use(code: str) -> None:
        script = tmp_path / f"odd_{module}.py"
        script.write_text(
            "import os, signal, sys, time\n"
            f"import spatialq.io.ifc.{module} as {module}\n"
            f"{code}\n"
            f"{module}.main(sys.argv[1], float(sys.argv[2]))\n"
        )
        monkeypatch.setattr(
            f"spatialq.io.ifc.process.{command}",
            lambda path, seconds: [sys.executable, str(script), str(path), str(seconds)],
        )

    return use


@pytest.fixture
def worker_that(monkeypatch, tmp_path):
    """Replace the worker by one with other behaviour."""
    return odd_process(monkeypatch, tmp_path, "command", "worker")


@pytest.fixture
def fast_process_that(monkeypatch, tmp_path):
    """Replace the process of `ifclite-geom` by one with other behaviour."""
    use = odd_process(monkeypatch, tmp_path, "fast_command", "ifclite")
    return lambda code: use(f"import ifclite_geom\n{code}")
