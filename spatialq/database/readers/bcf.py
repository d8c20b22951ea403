"""What the macros of `sql/read_bcf.sql` call: BCF archives as lists of structs."""

import warnings

import pyarrow as pa

from spatialq.data.arrow import arrow_type
from spatialq.database.readers.files import given, lists
from spatialq.errors import FileWarning
from spatialq.io.bcf import READER, TABLES, read_bcf
from spatialq.io.storage import as_path

SCHEMAS = {
    table: pa.schema([(name, arrow_type(kind)) for name, kind in columns.items()])
    for table, columns in TABLES.items()
}


def read_bcf_table(name: str, paths: pa.ChunkedArray) -> pa.ListArray:
    """Read one table of each archive.

    Raises
    ------
    FileError
        If an archive cannot be read.
    ValueError
        If a path is NULL.

    Warns
    -----
    FileWarning
        For viewpoints that an archive names but does not have.
    """
    tables = []
    for path in given(READER, paths):
        found = read_bcf(as_path(path))
        if name == "viewpoints":  # once, not again for each of the other tables
            for warning in found.warnings:
                warnings.warn(f"{READER}: '{path}': {warning}", FileWarning, stacklevel=2)
        tables.append(pa.Table.from_pylist(found.rows[name], SCHEMAS[name]))
    return lists(tables, SCHEMAS[name])
