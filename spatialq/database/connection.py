"""Put every function and macro on a DuckDB connection."""

import atexit
import contextlib
import re
import threading
import weakref
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any, NamedTuple

import duckdb

from spatialq.database.sql_function import SqlFunction
from spatialq.functions.sql_text import identifier, literal

_lock = threading.Lock()
_connections: "weakref.WeakSet[duckdb.DuckDBPyConnection]" = weakref.WeakSet()


class Macro(NamedTuple):
    """One statement of `sql/*.sql`, with the comment lines above it."""

    name: str
    is_table: bool
    comment: str
    statement: str


def connect(
    path: str = ":memory:", *, read_only: bool = False, config: dict[str, Any] | None = None
) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB database with all functions of spatialq on it.

    Parameters
    ----------
    path : str
        A database file, or ":memory:".
    read_only : bool
        As for `duckdb.connect`.
    config : dict, optional
        DuckDB settings, as for `duckdb.connect`.

    Returns
    -------
    duckdb.DuckDBPyConnection

    Examples
    --------
    >>> con = spatialq.connect()
    >>> con.sql("FROM spatialq_devices()").fetchall()
    """
    con = duckdb.connect(str(path), read_only=read_only, config=config or {})
    try:
        install(con)
    except BaseException:
        con.close()
        raise
    return con


def connect_quietly(path: str = ":memory:") -> duckdb.DuckDBPyConnection:
    """Connect for the command line, whose standard output is for results, not for progress."""
    con = connect(path)
    con.execute("SET enable_progress_bar = false")
    return con


def install(con: duckdb.DuckDBPyConnection) -> None:
    """Put every function and macro of spatialq on a connection; again is harmless.

    The functions live in DuckDB's process, for all connections to this database. The macros are
    stored in the current database, so that cursors and later sessions have them too; where it
    cannot be written they are temporary, for this connection alone. After `USE` of another
    database call it again.

    Raises
    ------
    RuntimeError
        If DuckDB is older than 2.0.
    """
    if int(duckdb.__version__.split(".")[0]) < 2:
        message = f"spatialq: DuckDB must be 2.0 or newer, got {duckdb.__version__}"
        raise RuntimeError(message)
    with _lock:  # two threads that create the same entry get a catalog conflict
        _install_functions(con)
        _install_macros(con)
        _connections.add(con)


@cache
def sql_functions() -> tuple[SqlFunction, ...]:
    """All functions that DuckDB calls. Kept for good: DuckDB holds no reference to them."""
    from spatialq.database import element_sets, lod_select
    from spatialq.database import planner_tables as planner
    from spatialq.database.readers import grid as grid_sql
    from spatialq.database.readers import ifc as ifc_sql
    from spatialq.database.readers import las as las_sql
    from spatialq.database.transport import arrow as bridge
    from spatialq.database.transport import clouds as bridge_cloud
    from spatialq.database.transport import elements as bridge_elements
    from spatialq.database.transport import grid as bridge_grid
    from spatialq.database.transport import points_and_elements as bridge_points_elements
    from spatialq.functions.declaration import catalog
    from spatialq.workflows import ground_sql

    udfs = catalog().values()
    return (
        *(bridge.kernel_function(udf) for udf in udfs if udf.takes_points),
        *(f for udf in udfs if udf.carries for f in bridge_cloud.kernel_functions(udf)),
        *(f for udf in udfs if udf.takes_grid for f in bridge_grid.kernel_functions(udf)),
        *(bridge_points_elements.kernel_function(udf) for udf in udfs if udf.takes_elements),
        *(f for udf in udfs if not udf.columns for f in bridge_elements.kernel_functions(udf)),
        *element_sets.SQL_FUNCTIONS,
        *lod_select.SQL_FUNCTIONS,
        *planner.SQL_FUNCTIONS,
        *las_sql.SQL_FUNCTIONS,
        *grid_sql.SQL_FUNCTIONS,
        *ifc_sql.SQL_FUNCTIONS,
        *ground_sql.SQL_FUNCTIONS,
    )


@cache
def macros() -> tuple[Macro, ...]:
    """All statements of `sql/*.sql`, each after those whose macros it calls."""
    found: list[Macro] = []
    pattern = re.compile(
        r"((?:^--[^\n]*\n)+)^(CREATE OR REPLACE MACRO (\w+)\(.*?;)$", re.DOTALL | re.MULTILINE
    )
    for file in sorted(files("spatialq.sql").iterdir(), key=lambda file: file.name):
        if file.name.endswith(".sql"):
            for comment, statement, name in pattern.findall(file.read_text(encoding="utf-8")):
                is_table = re.search(r"\)\s*AS TABLE\b", statement) is not None
                text = re.sub(r"^-- ?", "", comment.strip(), flags=re.MULTILINE)
                found.append(Macro(name, is_table, text, statement))
    ordered: list[Macro] = []
    while found:
        names = {macro.name for macro in found}
        for macro in found:
            called = set(re.findall(r"(\w+)\(", macro.statement)) - {macro.name}
            if not called & names:
                break
        found.remove(macro)
        ordered.append(macro)
    return tuple(ordered)


def _install_functions(con: duckdb.DuckDBPyConnection) -> None:
    # By a cursor, which has a transaction of its own: what a rollback of the caller's took away,
    # the caller's connection would never let anyone create again.
    with con.cursor() as cursor:
        rows = cursor.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() WHERE database_name = 'system'"
        ).fetchall()
        present = {name for (name,) in rows}
        for function in sql_functions():
            if function.name not in present:
                cursor.create_function(  # type: ignore[call-overload]  # takes the strings, too
                    function.name,
                    function.call,
                    list(function.parameters),
                    function.returns,
                    type="arrow",
                    null_handling="special",
                    side_effects=function.volatile,
                )


def _install_macros(con: duckdb.DuckDBPyConnection) -> None:
    (database, read_only) = con.execute(
        "SELECT database_name, readonly FROM duckdb_databases() "
        "WHERE database_name = current_database()"
    ).fetchall()[0]
    home = "temp" if read_only else database
    wanted = {
        (macro.name, macro.is_table): f"{macro.comment}\n\nspatialq {version('spatialq')}"
        for macro in macros()
    }
    rows = con.execute(
        "SELECT function_name, function_type = 'table_macro', comment FROM duckdb_functions() "
        "WHERE database_name = ? AND schema_name = 'main' AND function_type LIKE '%macro'",
        [home],
    ).fetchall()
    present = {(name, is_table): comment for name, is_table, comment in rows}
    for macro in macros():
        comment = wanted[macro.name, macro.is_table]
        if present.get((macro.name, macro.is_table)) == comment:
            continue
        place = f"{identifier(home)}.main.{macro.name}"
        con.execute(
            macro.statement.replace(
                f"CREATE OR REPLACE MACRO {macro.name}",
                f"CREATE OR REPLACE {'TEMP' if home == 'temp' else ''} MACRO {place}",
                1,
            )
        )
        kind = "MACRO TABLE" if macro.is_table else "MACRO"
        con.execute(f"COMMENT ON {kind} {place} IS {literal(comment)}")


@atexit.register
def _close_connections() -> None:
    # DuckDB complains on standard error about functions that outlive the interpreter.
    for con in list(_connections):
        with contextlib.suppress(Exception):
            con.close()
