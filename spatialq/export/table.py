"""Query results to Parquet, CSV or JSON."""

from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.errors import FileError
from spatialq.export.atomic import WRITER, whole

if TYPE_CHECKING:
    import duckdb

FORMATS = {".parquet": "PARQUET", ".csv": "CSV", ".json": "JSON"}


def write_table(con: "duckdb.DuckDBPyConnection", query: str, path: Path) -> int:
    """Write the result of a query; the ending of the path tells the format.

    Returns
    -------
    int
        Rows written.

    Raises
    ------
    FileError
        If it cannot be written.
    ValueError
        If the ending is none of .parquet, .csv, .json, or the query is not one statement.
    """
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        message = f"output: '{path}' must end in one of {', '.join(FORMATS)}"
        raise ValueError(message)
    import duckdb

    statements = con.extract_statements(query)
    if len(statements) != 1:
        message = f"output: the query must be one statement, got {len(statements)}"
        raise ValueError(message)
    statement = _without_semicolon(query)
    with whole(path) as partial:
        name = str(partial).replace("'", "''")
        try:
            (rows,) = con.execute(f"COPY ({statement}\n) TO '{name}' (FORMAT {form})").fetchall()[0]
        except duckdb.IOException as error:
            if partial.name not in str(error):  # it is about a file that the query reads
                raise
            reason = f"cannot be written: {str(error).replace(str(partial), str(path))}"
            raise FileError.of(WRITER, path, reason) from error
    return int(rows)


def _without_semicolon(query: str) -> str:
    """Cut one statement where it ends; a comment may follow."""
    import duckdb

    text = query.encode()
    for offset, kind in duckdb.tokenize(query):  # offsets are bytes
        if kind == duckdb.token_type.operator and text[offset : offset + 1] == b";":
            return text[:offset].decode()
    return query
