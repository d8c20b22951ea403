"""The database of a project of clashes: opened, and found to be one, before models are read."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.database.transaction import transaction
from spatialq.errors import FileError
from spatialq.functions.sql_text import literal
from spatialq.workflows.clash_models import COMMAND

if TYPE_CHECKING:
    import duckdb

MEASURE = "penetration"
"""The column that tells how bad a clash is."""
TABLES = {
    "runs": {"run", "ran_at", "options", "elements", "searched", "clashes"},
    "models": {"run", "file_name", "digest"},
    "elements": {
        "row", "global_id", "ifc_class", "name", "file_name", "mesh", "element", "in_a", "in_b",
    },
    "pairs": {"a", "b", MEASURE},
    "clashes": {
        "clash", "status", "assignee", "first_run", "last_run", "relation", MEASURE, "a_element",
    },
    "history": {"run", "clash", "status"},
    "comments": {"clash"},
}  # fmt: skip
"""What a run needs of a project, by table."""


def last_run(con: "duckdb.DuckDBPyConnection", path: Path) -> tuple[int, str] | None:
    """Open the database of a project, if it is there; give its last run and the options of that.

    Raises
    ------
    FileError
        If it cannot be opened, or is another database, or one of an older version.
    """
    if not path.exists():
        folder = path.resolve().parent
        if not folder.is_dir():
            raise FileError.of(COMMAND, path, f"there is no folder '{folder}'")
        return None
    attach(con, path)
    columns: dict[str, set[str]] = {}
    for table, name in con.execute(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE database_name = 'project'"
    ).fetchall():
        columns.setdefault(table, set()).add(name)
    if not columns:
        return None
    if not columns.keys() >= TABLES.keys():
        raise FileError.of(COMMAND, path, "is a database, but not one of clashes")
    for table, needed in TABLES.items():
        if lacking := sorted(needed - columns[table]):
            reason = f"has no column {lacking[0]} in {table}, as projects of this version have"
            raise FileError.of(COMMAND, path, reason)
    runs = con.execute("SELECT run, options FROM project.runs ORDER BY run DESC LIMIT 1").fetchall()
    if not runs:
        raise FileError.of(COMMAND, path, "has clashes, but no run that found them")
    run, options = runs[0]
    return run, options


def attach(con: "duckdb.DuckDBPyConnection", path: Path) -> None:
    """Open the database of a project, or make it."""
    import duckdb

    try:
        con.execute(f"ATTACH IF NOT EXISTS {literal(str(path))} AS project")
    except duckdb.Error as error:
        raise FileError.of(COMMAND, path, f"cannot be opened: {error}") from None


def detach(con: "duckdb.DuckDBPyConnection", path: Path) -> None:
    """Close the database of a project, whose run is kept; DuckDB then writes what its log has.

    Raises
    ------
    FileError
        If it cannot be written, as where the disk is full.
    """
    import duckdb

    try:
        con.execute("DETACH project")
    except duckdb.Error as error:
        raise FileError.of(COMMAND, path, f"cannot be closed: {error}") from None


@contextmanager
def written(con: "duckdb.DuckDBPyConnection", path: Path) -> Iterator[None]:
    """Write all of a block to the database of a project, or nothing: no new file stays then.

    Raises
    ------
    FileError
        If it cannot be written.
    """
    import duckdb

    is_left = path.exists()
    try:
        attach(con, path)
        with transaction(con):
            yield
        is_left = True
    # a checkpoint that fails, as on a full disk, is fatal to the database
    except (duckdb.IOException, duckdb.TransactionException, duckdb.FatalException) as error:
        raise FileError.of(COMMAND, path, f"cannot be written: {error}") from None
    finally:
        if not is_left:
            with suppress(duckdb.Error):
                con.execute("DETACH project")
            path.unlink(missing_ok=True)
            path.with_name(f"{path.name}.wal").unlink(missing_ok=True)
