"""Query results to files, in all formats of `spatialq.database.writers`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.database.statements import one_statement
from spatialq.database.writers import Result, Takes, Writer, find_writer, writers
from spatialq.export.atomic import WRITER, require_writable
from spatialq.io.access import for_connection
from spatialq.runtime.extras import require

if TYPE_CHECKING:
    import duckdb


@for_connection
def write_table(
    con: "duckdb.DuckDBPyConnection",
    query: str,
    path: Path,
    *,
    crs: str | None = None,
    **options: Any,
) -> int:
    """Write the result of a query; the ending of the path tells the format.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    query : str
    path : Path
    crs : str, optional
        PROJJSON of the coordinates; by default that of the tables and files that the query reads.
    **options
        What some formats take besides.

    Returns
    -------
    int
        Rows written; for a model, objects with the GlobalIds.

    Raises
    ------
    FileError
        If it cannot be written.
    ValueError
        If the ending is unknown, the query is not one statement, or its result is none for the
        format.
    CrsError
        If coordinates come from tables of different CRS.
    """
    writer = require_output(path)
    given = {
        name: value
        for name, value in options.items()
        if name in writer.options or value not in (None, False)
    }
    for name in given.keys() - set(writer.options):
        endings = (s for each in writers() if name in each.options for s in each.suffixes)
        message = f"{WRITER}: {name} is for {', '.join(endings) or 'no format'}, got '{path}'"
        raise ValueError(message)
    # an export of models tells better what is wrong with a query
    statement = query if writer.takes == "GlobalIds" else one_statement(WRITER, con, query)
    return writer.write(Result(con, statement, crs, given), path)


def require_output(path: Path, takes: tuple[Takes, ...] | None = None) -> Writer:
    """Reject a path that cannot be written to, before work is done for it.

    Parameters
    ----------
    path : Path
    takes : tuple of str, optional
        What the format may take, such as 'rows' of any columns; by default anything.

    Returns
    -------
    Writer
        The format of the path.

    Raises
    ------
    FileError
        If it cannot be written, or needs an extra that is not installed.
    ValueError
        If no such format has the ending.
    """
    found = find_writer(path)
    if found is None or (takes is not None and found.takes not in takes):
        there = (each for each in writers() if takes is None or each.takes in takes)
        endings = sorted(suffix for each in there for suffix in each.suffixes)
        message = f"{WRITER}: '{path}' must end in one of {', '.join(endings)}"
        raise ValueError(message)
    require(found.extra, WRITER, path)
    has_own_folder = path.name.lower() in found.suffixes
    require_writable(path.parent if has_own_folder and not path.parent.exists() else path)
    return found
