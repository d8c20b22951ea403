"""What the macros of `sql/check_ids.sql` call: models checked by IDS files, as lists of structs."""

import pyarrow as pa

from spatialq.database.readers.files import given, lists
from spatialq.io.files import require_file
from spatialq.io.ids import checks
from spatialq.io.ids.files import read_ids
from spatialq.io.ids.reader import READER, Ids
from spatialq.io.storage import as_path

LISTER = "ids_specifications"


def check_ids(models: pa.ChunkedArray, rules: pa.ChunkedArray) -> pa.ListArray:
    """Check the models that each row lists.

    Raises
    ------
    FileError
        If a model or an IDS cannot be read.
    ValueError
        If an argument is NULL, or a table names no file.
    """
    read: dict[str, Ids] = {}
    tables = []
    for paths, of_them in zip(models.to_pylist(), given(READER, rules, "rules"), strict=True):
        if of_them not in read:
            read[of_them] = read_ids(as_path(of_them))
        if None in paths:
            message = f"{READER}: elements must have the name of a file in each row, got NULL"
            raise ValueError(message)
        files = [as_path(path) for path in paths]
        for file in files:
            require_file(READER, file)
        found = checks.check(read[of_them], files)
        tables.append(pa.concat_tables([checks.SCHEMA.empty_table(), *found]))
    return lists(tables, checks.SCHEMA)


def ids_specifications(paths: pa.ChunkedArray) -> pa.ListArray:
    """List the specifications of each file.

    Raises
    ------
    FileError
        If a file cannot be read.
    ValueError
        If a path is NULL.
    """
    tables = [
        checks.specifications(read_ids(as_path(path), LISTER)) for path in given(LISTER, paths)
    ]
    return lists(tables, checks.SPECIFICATIONS_SCHEMA)
