"""Files that DuckDB writes itself, whole or not at all."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from spatialq.database.writers import Result
from spatialq.errors import FileError
from spatialq.export.atomic import WRITER, whole
from spatialq.functions.sql_text import literal


def copy(file_format: str, result: Result, path: Path, options: str = "") -> int:
    """Write rows in a format of DuckDB's COPY, perhaps with more of its options."""
    with whole(path) as partial, said_of(path, partial):
        target = f"{literal(str(partial))} (FORMAT {file_format}{options})"
        ((rows,),) = result.con.execute(f"COPY ({result.query}\n) TO {target}").fetchall()
    return int(rows)


@contextmanager
def said_of(path: Path, partial: Path) -> Iterator[None]:
    """Turn DuckDB's error about a temporary file into one about the file that is written.

    Raises
    ------
    FileError
        If it cannot be written.
    """
    try:
        yield
    except duckdb.IOException as error:
        if partial.name not in str(error):  # it is about a file that the query reads
            raise
        reason = f"cannot be written: {_sentence(error).replace(str(partial), str(path))}"
        raise FileError.of(WRITER, path, reason) from error


def _sentence(error: Exception) -> str:
    """Give DuckDB's sentence, which is in JSON where a thread that writes meets the error."""
    text = str(error)
    start = text.find('{"exception_type"')
    if start < 0:
        return text
    said: str = json.JSONDecoder().raw_decode(text, start)[0]["exception_message"]
    return said
