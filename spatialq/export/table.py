"""Query results to Parquet, CSV or JSON."""

from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.export.atomic import whole

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
    ValueError
        If the ending is none of .parquet, .csv, .json.
    """
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        message = f"output: '{path}' must end in one of {', '.join(FORMATS)}"
        raise ValueError(message)
    with whole(path) as partial:
        name = str(partial).replace("'", "''")
        (rows,) = con.execute(f"COPY ({query}) TO '{name}' (FORMAT {form})").fetchall()[0]
    return int(rows)
