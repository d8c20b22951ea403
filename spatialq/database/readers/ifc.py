"""What the macros of `sql/read_ifc.sql` call: IFC files as lists of structs."""

import itertools

import numpy as np
import pyarrow as pa

from spatialq.database.readers.ifc_models import warn_about_model
from spatialq.io.files import find_files
from spatialq.io.ifc.cache import read_models
from spatialq.io.ifc.guard import READER
from spatialq.io.ifc.model import require_meshes
from spatialq.io.ifc.tables import SCHEMAS
from spatialq.io.storage import as_path


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


def read_ifc_files(paths: pa.ChunkedArray) -> pa.Array:
    """List the files that each path or glob pattern means.

    Raises
    ------
    FileError
        If there is none.
    ValueError
        If a path is NULL.
    """
    return pa.array([[str(file) for file in find_files(READER, path)] for path in given(paths)])


def given(paths: pa.ChunkedArray) -> list[str]:
    """Give the paths of an argument as Python strings."""
    if paths.null_count:
        message = f"{READER}: path must be a file or a glob pattern, got NULL"
        raise ValueError(message)
    return [str(path) for path in paths.to_pylist()]


def read_ifc_table(
    name: str, paths: pa.ChunkedArray, seconds: pa.ChunkedArray, geometries: pa.ChunkedArray
) -> pa.ListArray:
    """Read one table of each file; see `spatialq.io.ifc.model.read_model`.

    Raises
    ------
    FileError
        If a file cannot be read.
    ValueError
        If an option is NULL or wrong.
    """
    files = [as_path(path) for path in given(paths)]
    options = {"product_seconds": seconds.to_pylist(), "geometry": geometries.to_pylist()}
    for option, values in options.items():
        if None in values:
            message = f"{READER}: {option} must not be NULL"
            raise ValueError(message)
    tables: list[pa.Table] = []
    # The macros give all rows the same options, so all files are one group.
    rows = zip(*options.values(), files, strict=True)
    for (limit, geometry), group in itertools.groupby(rows, key=lambda row: row[:2]):
        if name in ("elements", "load_errors"):
            require_meshes(READER, geometry)
        together = [file for *_, file in group]
        models = read_models(together, geometry=geometry, product_seconds=limit)
        tables += [model.tables[name] for model in models]
        if name == "elements":  # once, not again for each of the other tables
            for model in models:
                warn_about_model(READER, model, stacklevel=3)
    return lists(tables, SCHEMAS[name])
