"""What the macros of readers of several tables share: paths, and tables as lists of structs."""

import numpy as np
import pyarrow as pa

from spatialq.io.files import find_files


def read_files(reader: str, paths: pa.ChunkedArray) -> pa.Array:
    """List the files that each path or glob pattern means.

    Raises
    ------
    FileError
        If there is none.
    ValueError
        If a path is NULL.
    """
    return pa.array(
        [[str(file) for file in find_files(reader, path)] for path in given(reader, paths)]
    )


def given(reader: str, paths: pa.ChunkedArray) -> list[str]:
    """Give the paths of an argument as Python strings."""
    if paths.null_count:
        message = f"{reader}: path must be a file or a glob pattern, got NULL"
        raise ValueError(message)
    return [str(path) for path in paths.to_pylist()]


def lists(tables: list[pa.Table], schema: pa.Schema) -> pa.ListArray:
    """Turn tables of one schema into one list of structs each."""
    whole = pa.concat_tables([schema.empty_table(), *tables]).combine_chunks()
    arrays = [
        column.chunk(0) if column.num_chunks else pa.array([], column.type)
        for column in whole.columns
    ]
    starts = np.cumsum([0, *(table.num_rows for table in tables)])
    rows = pa.StructArray.from_arrays(arrays, fields=list(schema))
    return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), rows)
