"""The database of a command: one that is there, unless a new one is asked for."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spatialq.cli.interruption import uninterrupted
from spatialq.errors import FileError
from spatialq.runtime.temporary import why_full

try:
    import fcntl
except ImportError:  # Windows, where a file in use cannot be removed
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    import duckdb

MEMORY = ":memory:"
NO_FILE = re.compile(r":memory:|\w{2,}:")
"""How the name begins of a database in memory, or of one that DuckDB does not take for a file."""

Database = Annotated[
    str, typer.Option("--database", "-d", help="DuckDB file; by default a database in memory.")
]
Create = Annotated[
    bool, typer.Option("--create", help="Make the file of --database if there is none.")
]

USED = "Could not set lock on file"
"""What DuckDB says of a database that another process has."""
HEADERS = 3 * 4096
"""Bytes of a database in which there is nothing yet."""
CONTENT = """
SELECT count(*)
FROM (
    SELECT table_name AS name, internal, database_name FROM duckdb_tables()
    UNION ALL SELECT view_name, internal, database_name FROM duckdb_views()
    UNION ALL SELECT schema_name, internal, database_name FROM duckdb_schemas()
    UNION ALL SELECT sequence_name, false, database_name FROM duckdb_sequences()
    UNION ALL SELECT type_name, internal, database_name FROM duckdb_types()
    UNION ALL SELECT function_name, internal OR comment LIKE '%spatialq %', database_name
        FROM duckdb_functions()
)
WHERE NOT internal AND database_name = ? AND NOT starts_with(name, 'spatialq_')
"""
"""Counts what there is in a database that `connect` has not put there."""


@contextmanager
def open_database(
    command: str, name: str, *, create: bool | None
) -> "Iterator[duckdb.DuckDBPyConnection]":
    """Connect to a database that is there, or make it if `create`, and close it at the end.

    `create` is None for a command that has no such option.

    A new file is removed where the command fails before there is anything in it.

    Raises
    ------
    FileError
        If there is no such file: the sentence has the near names in its folder.
    ValueError
        If the name is empty.
    """
    is_new = NO_FILE.match(name) is None and not Path(name).exists()
    made = [each for each in (Path(name), Path(f"{name}.wal")) if is_new and not each.exists()]
    try:
        con = _connect(command, name, create=create)
    except Exception as error:
        # where another process has the file, it was that one which made it
        is_ours = is_new and Path(name).exists() and USED not in str(error)
        reason = why_full(Path(name).parent) if is_ours else None
        if reason is None:
            raise
        _remove_begun(made)
        raise FileError.of(command, name, f"cannot be written: {reason}") from error
    try:
        yield con
    except BaseException:
        if is_new and _is_empty(con):
            _remove_open(con, made)
        con.close()
        raise
    con.close()


def _remove_begun(made: list[Path]) -> None:
    """Remove a database that could not be made, unless another process has begun to use it."""
    # closing any file of a database gives up DuckDB's lock of it, which this process has not
    with suppress(OSError), made[0].open("r+b") as file:
        if fcntl is not None:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if made[0].stat().st_size <= HEADERS:
            for path in made:
                path.unlink(missing_ok=True)


def _remove_open(con: "duckdb.DuckDBPyConnection", made: list[Path]) -> None:
    """Remove a database while it is open, since no other process can use it until it is closed."""
    if os.name == "nt":
        con.close()
    else:
        with (
            con.cursor() as cursor
        ):  # a checkpoint might meet the log of another process's database
            cursor.execute("PRAGMA disable_checkpoint_on_shutdown")
    for path in made:
        path.unlink(missing_ok=True)


def _is_empty(con: "duckdb.DuckDBPyConnection") -> bool:
    """Whether nothing is in a database that another connection could see."""
    import duckdb

    try:
        with con.cursor() as cursor:
            (database,) = cursor.execute("SELECT current_database()").fetchall()[0]
            (count,) = cursor.execute(CONTENT, [database]).fetchall()[0]
    except duckdb.Error:  # it may be closed, or not usable any more
        return False
    return bool(count == 0)


def _connect(command: str, name: str, *, create: bool | None) -> "duckdb.DuckDBPyConnection":
    import duckdb

    from spatialq.database.connection import connect_quietly

    if not name:
        message = f"{command}: database must be a file, got ''"
        raise ValueError(message)
    path, prefix = Path(name), NO_FILE.match(name)
    if prefix is None and not path.parent.is_dir():
        raise FileError.of(command, name, f"there is no folder '{path.parent}'")
    if prefix is None and path.is_dir():
        raise FileError.of(command, name, "is a folder, not a database")
    if not (create or prefix or path.exists()):
        near = get_close_matches(path.name, [each.name for each in path.parent.iterdir()])
        hints = [f"near names are {', '.join(near)}"] if near else []
        if create is not None:
            hints.append("--create makes a new one")
        raise FileError.of(command, name, "; ".join(["there is no such database", *hints]))
    try:
        # a KeyboardInterrupt while functions are created would end the process
        with uninterrupted():
            return connect_quietly(name)
    except duckdb.IOException as error:
        if prefix is None or "xtension" not in str(error):
            raise
        reason = f"DuckDB has no extension {prefix[0]!r} here; write './{name}' if it is a file"
        raise FileError.of(command, name, reason) from None
