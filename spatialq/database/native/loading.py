"""Loads the extension into databases, with the functions that are declared."""

import os
from ctypes import c_char_p
from typing import Any

import duckdb
import pyarrow as pa

from spatialq.data.arrow import arrow_type
from spatialq.database.native.library import (
    FORMATS,
    PATH,
    RUN,
    Exported,
    library,
    look_for_signals,
)
from spatialq.database.transport.columns import given_by, given_to
from spatialq.functions.catalogue import catalogue
from spatialq.functions.sql_text import literal
from spatialq.io.formats import MACROS, READ_BY_DUCKDB, readers
from spatialq.runtime import forks

DUCKDB = "2.0"
"""The version of which the positions in duckdb_api.h, and the plans of queries, are known.

With any other rows go as lists: a function at another position would be called without notice.
"""
_lock = forks.lock()
_declared: list[str] = []
"""Names of functions, where the library has their numbers."""


@RUN
def _run(number: int, *arguments: Any) -> int:
    """Run a function for an aggregate; what that needs is imported at the first call."""
    from spatialq.database.native.calls import run  # an exception is an error for the library

    return run(_declared[number], *arguments)


def load(con: duckdb.DuckDBPyConnection, instance: int) -> None:
    """Load the extension into a database, whose settings must allow unsigned extensions.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    instance : int
        The number of the database instance, unless the extension is in it already.

    Raises
    ------
    OSError, duckdb.Error
        If it cannot be loaded; the database is as before.
    """
    with _lock:
        known = library()
        if not _declared:
            known.spatialq_set_run(_run)
            look_for_signals()
            for reader in readers():
                for suffix in reader.suffixes:
                    if suffix not in READ_BY_DUCKDB:
                        known.spatialq_read_by(suffix.encode(), MACROS[reader.kind].encode())
        for function in catalogue().values():
            if function.name not in _declared:
                formats = [FORMATS[kind] for kind in given_to(function).values()]
                rows = pa.list_(_result_type(given_by(function)))
                exported = Exported(rows)
                number = known.spatialq_declare(
                    function.name.encode(), (c_char_p * len(formats))(*formats), len(formats),
                    exported.schema,
                )  # fmt: skip
                exported.release()
                if number != len(_declared):
                    message = f"the extension cannot have the function {function.name}"
                    raise OSError(message)
                _declared.append(function.name)
        known.spatialq_set_instance(instance)
        try:
            con.execute(f"LOAD {literal(str(PATH))}")
        finally:
            known.spatialq_set_instance(0)  # which nobody took if the extension was there


def problem() -> str:
    """Say why databases that this process opens have no extension; empty if they have."""
    if not duckdb.__version__.startswith(f"{DUCKDB}."):
        return f"it needs DuckDB {DUCKDB}, and this is {duckdb.__version__}"
    if not PATH.exists():
        return "it was not built: there was no C compiler when spatialq was installed"
    try:
        library()
    except OSError as error:
        return f"it cannot be opened: {error}"
    return ""


def is_loaded(con: duckdb.DuckDBPyConnection) -> bool:
    """Whether a database has the extension."""
    name = f"spatialq_{next(iter(catalogue()))}_collect"
    query = (
        "SELECT 1 FROM duckdb_functions() WHERE database_name = 'system' "
        f"AND function_type = 'aggregate' AND function_name = {literal(name)}"
    )
    return bool(con.execute(query).fetchall())


def _result_type(columns: dict[str, str]) -> pa.DataType:
    """Give the type of a row; large binary stands for geometries."""
    geometry = pa.large_binary()
    fields = [
        (name, geometry if kind == "GEOMETRY" else arrow_type(kind))
        for name, kind in columns.items()
    ]
    return pa.struct(fields)


def _forked() -> None:
    if library.cache_info().currsize:
        library().spatialq_forget_closed()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
