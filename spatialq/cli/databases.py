"""The database of a command: one that is there, unless a new one is asked for."""

import re
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spatialq.errors import FileError

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


def open_database(command: str, name: str, *, create: bool) -> "duckdb.DuckDBPyConnection":
    """Connect to a database that is there, or make it if `create`.

    Raises
    ------
    FileError
        If there is no such file: the sentence has the near names in its folder.
    ValueError
        If the name is empty.
    """
    import duckdb

    from spatialq.database.connection import connect_quietly

    if not name:
        message = f"{command}: database must be a file, got ''"
        raise ValueError(message)
    path, prefix = Path(name), NO_FILE.match(name)
    if not (create or prefix or path.exists()):
        if not path.parent.is_dir():
            raise FileError.of(command, name, f"there is no folder '{path.parent}'")
        near = get_close_matches(path.name, [each.name for each in path.parent.iterdir()])
        names = f"near names are {', '.join(near)}; " if near else ""
        reason = f"there is no such database; {names}--create makes a new one"
        raise FileError.of(command, name, reason)
    try:
        return connect_quietly(name)
    except duckdb.IOException as error:
        if prefix is None or "xtension" not in str(error):
            raise
        reason = f"DuckDB has no extension {prefix[0]!r} here; write './{name}' if it is a file"
        raise FileError.of(command, name, reason) from None
