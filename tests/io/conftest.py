"""Fixtures of the readers' tests."""

import sys

import pytest

<<<<<<< HEAD
import spatialq
from spatialq.io import ifc


@pytest.fixture
def con():
    """A connection with everything of spatialq on it."""
    with spatialq.connect() as con:
        yield con


@pytest.fixture
def ifc_con(con):
    """The same, and no model in the cache."""
    ifc.CACHE.clear()
    return con
=======
from spatialq.io.ifc_cache import CACHE
from spatialq.io.ifc_sql import SQL_FUNCTIONS


@pytest.fixture
def ifc_con():
    """A connection with the IFC functions and macros, and nothing in the cache."""
    CACHE.clear()
    con = duckdb.connect()
    for function in SQL_FUNCTIONS:
        con.create_function(
            function.name,
            function.call,
            list(function.parameters),
            function.returns,
            type="arrow",
            null_handling="special",
            side_effects=function.volatile,
        )
    con.execute(files("spatialq.sql").joinpath("read_ifc.sql").read_text())
    yield con
    con.close()
>>>>>>> ifc


@pytest.fixture
def worker_that(monkeypatch, tmp_path):
    """Replace the worker by one with other behaviour: Python code that runs before its `main`."""

    def use(code: str) -> None:
        script = tmp_path / "odd_worker.py"
        script.write_text(
            "import os, signal, sys, time\n"
            "import spatialq.io.ifc_worker as worker\n"
            f"{code}\n"
            "worker.main(sys.argv[1], float(sys.argv[2]))\n"
        )
        monkeypatch.setattr(
            "spatialq.io.ifc_process.command",
            lambda path, seconds: [sys.executable, str(script), str(path), str(seconds)],
        )

    return use
