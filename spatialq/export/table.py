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
        If the ending is none of .parquet, .csv, .json.
    """
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        message = f"output: '{path}' must end in one of {', '.join(FORMATS)}"
        raise ValueError(message)
    import duckdb

    with whole(path) as partial:
        name = str(partial).replace("'", "''")
        try:
            (rows,) = con.execute(f"COPY ({query}) TO '{name}' (FORMAT {form})").fetchall()[0]
        except duckdb.IOException as error:
            if partial.name not in str(error):  # it is about a file that the query reads
                raise
            reason = f"cannot be written: {str(error).replace(str(partial), str(path))}"
            raise FileError.of(WRITER, path, reason) from error
    return int(rows)
