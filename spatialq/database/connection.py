"""Put every function and macro on a DuckDB connection."""

import atexit
import contextlib
from collections.abc import Collection
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import duckdb

from spatialq.database import call_log, instances, sources
from spatialq.database.macros import macros
from spatialq.database.native import loading
from spatialq.database.sql_functions import sql_functions
from spatialq.database.transport.request import Transport
from spatialq.functions.sql_text import identifier, literal
from spatialq.io import storage
from spatialq.runtime import forks, user_cache
from spatialq.runtime.temporary import temporary_folder

MEMORY = ":memory:"
ALLOW = "allow_unsigned_extensions"
INSTANCE = "spatialq_instance"
"""The function that tells in which instance it is called, see `instances.Instance`."""

_lock = forks.rlock()


def connect(
    path: str = MEMORY, *, read_only: bool = False, config: dict[str, Any] | None = None
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
    instance = instances.Instance()
    is_new = str(path) == MEMORY
    # a database file has one instance in the process, which one of two threads opens
    with contextlib.nullcontext() if is_new else _lock:
        con, transport = _open(str(path), instance, read_only=read_only, config=config or {})
        try:
            if storage.is_named():
                add_object_storage(con)
            if is_new:
                _install_in_memory(con, transport, instance)
            else:
                _install(con, instance)
        except BaseException:
            con.close()
            raise
    return con


def add_object_storage(con: duckdb.DuckDBPyConnection) -> None:
    """Let DuckDB's own readers read 's3://', also where the environment says nothing of it."""
    from spatialq.database.object_files import NAME, Objects  # it imports fsspec

    with _lock:
        if not con.filesystem_is_registered(NAME):
            con.register_filesystem(Objects())


def _open(
    path: str, instance: instances.Instance, *, read_only: bool, config: dict[str, Any]
) -> tuple[duckdb.DuckDBPyConnection, Transport]:
    """Open a database with the extension, or without it where that cannot be.

    DuckDB loads an extension that is not signed by its makers only if that was allowed when the
    database was opened. It is allowed for ours, and then forbidden again.
    """
    if not loading.problem():
        # an error in loading may leave the database unusable: then it is opened once more
        try:
            with contextlib.ExitStack() as stack:
                allowed = {ALLOW: "true", **config}
                con = duckdb.connect(path, read_only=read_only, config=allowed)
                stack.callback(con.close)
                loading.load(con, instance.number)
                if ALLOW not in config:
                    con.execute(f"SET {ALLOW} = false")
                stack.pop_all()
                return con, "native"
        except duckdb.Error as error:
            instance.without_extension = f"it cannot be loaded: {error}"
    return duckdb.connect(path, read_only=read_only, config=config), "lists"


def connect_quietly(path: str = MEMORY) -> duckdb.DuckDBPyConnection:
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
    _install(con, instances.Instance())


def _install(con: duckdb.DuckDBPyConnection, instance: instances.Instance) -> None:
    """Install; if the functions are new to the database instance, they are of that object."""
    _require_version()
    # by a cursor: a transaction of the caller's must not begin before the functions
    with con.cursor() as cursor:
        transport: Transport = "native" if loading.is_loaded(cursor) else "lists"
    with _lock:  # two threads that create the same entry get a catalog conflict
        are_new = _install_functions(con, transport, instance)
        _install_macros(con, transport)
        if are_new:
            instance.add(con)
        else:
            instances.of(con)


def _install_in_memory(
    con: duckdb.DuckDBPyConnection, transport: Transport, instance: instances.Instance
) -> None:
    """Install on a database that is new and nobody else's: nothing to look for, one transaction."""
    _require_version()
    with _lock:  # also for what is read once, and then kept for good
        with con.cursor() as cursor:
            _create_functions(cursor, transport, instance)
        instance.add(con)
        if not _copy_macros(con, transport):
            con.execute(f"BEGIN; {_statements('memory', transport)} COMMIT")


def _statements(database: str, transport: Transport) -> str:
    return "".join(macro.statements(database) for macro in macros(transport))


def _copy_macros(con: duckdb.DuckDBPyConnection, transport: Transport) -> bool:
    """Copy the macros from a file that has them, which is ten times as fast as to create them.

    The file is in the user's cache folder, and made at the first time. False where there is none,
    it is damaged, or the database may open no files: then nothing is copied.
    """
    made_by = f"{duckdb.__version__} {_statements('memory', transport)}"
    try:
        folder = user_cache.folder()
        if folder is None:
            return False
        path = folder / f"macros-{sha256(made_by.encode()).hexdigest()[:32]}.duckdb"
        if not path.exists():
            _write_macros(path, transport)
        con.execute(f"ATTACH {literal(str(path))} AS spatialq_macros (READ_ONLY)")
        con.execute("COPY FROM DATABASE spatialq_macros TO memory (SCHEMA)")
        con.execute("DETACH spatialq_macros")
    except (duckdb.Error, OSError):
        with contextlib.suppress(duckdb.Error):
            con.execute("DETACH DATABASE IF EXISTS spatialq_macros")
        return False
    return True


def _write_macros(path: Path, transport: Transport) -> None:
    """Write the file of macros; it appears whole, however many processes write it at once."""
    with temporary_folder("macros_", path.parent) as folder:
        part = folder / "macros.duckdb"
        instance = instances.Instance()
        con, road_there = _open(str(part), instance, read_only=False, config={})
        with con:
            _create_functions(con, road_there, instance)
            con.execute(_statements("macros", transport))
            con.execute("CHECKPOINT")  # closing does it, too, but ignores a full disk
        part.replace(path)


def _require_version() -> None:
    if int(duckdb.__version__.split(".")[0]) < 2:
        message = f"spatialq: DuckDB must be 2.0 or newer, got {duckdb.__version__}"
        raise RuntimeError(message)


def _create_functions(
    con: duckdb.DuckDBPyConnection,
    transport: Transport,
    instance: instances.Instance,
    present: Collection[str] = (),
) -> bool:
    """Create the functions that are not present; say whether the instance is a new one."""
    type_of = cache(con.sqltype)  # which takes DuckDB a while, and many are alike

    is_new = INSTANCE not in present
    owner = instance if is_new else instances.of(con)
    for function in sql_functions(transport):
        if function.name not in present:
            con.create_function(  # type: ignore[call-overload]  # it takes the strings, too
                function.name,
                owner.own(function),
                list(map(type_of, function.parameters)),
                type_of(function.returns),
                type="native" if function.is_native else "arrow",
                null_handling="special",
                side_effects=function.volatile,
            )
    if is_new:
        instances.keep(instance)
        con.create_function(  # type: ignore[call-overload]
            INSTANCE, instance, [type_of("INTEGER")], type_of("BIGINT"), type="arrow"
        )
    return is_new


def _install_functions(
    con: duckdb.DuckDBPyConnection, transport: Transport, instance: instances.Instance
) -> bool:
    # By a cursor, which has a transaction of its own: what a rollback of the caller's took away,
    # the caller's connection would never let anyone create again.
    with con.cursor() as cursor:
        rows = cursor.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() WHERE database_name = 'system'"
        ).fetchall()
        return _create_functions(cursor, transport, instance, {name for (name,) in rows})


def _install_macros(con: duckdb.DuckDBPyConnection, transport: Transport) -> None:
    (database, read_only) = con.execute(
        "SELECT database_name, readonly FROM duckdb_databases() "
        "WHERE database_name = current_database()"
    ).fetchall()[0]
    home = "temp" if read_only else database
    if not read_only:
        sources.migrate(con)
    rows = con.execute(
        "SELECT function_name, function_type = 'table_macro', comment FROM duckdb_functions() "
        "WHERE database_name = ? AND schema_name = 'main' AND function_type LIKE '%macro'",
        [home],
    ).fetchall()
    present = {(name, is_table): comment for name, is_table, comment in rows}
    wanted = macros(transport)
    for macro in macros("lists"):  # one that stands in for an aggregate of the extension hides it
        if macro not in wanted and (macro.name, macro.is_table) in present:
            con.execute(f"DROP MACRO {identifier(home)}.main.{macro.name}")
    for macro in wanted:
        if present.get((macro.name, macro.is_table)) != macro.comment:
            con.execute(macro.statements(home))


@atexit.register
def _close_connections() -> None:
    # DuckDB complains on standard error about functions that outlive the interpreter.
    call_log.write()
    instances.close_connections()
