"""What the macros of `sql/read_ifc.sql` call: IFC files as lists of structs."""

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from spatialq.io.files import find_files
from spatialq.io.ifc import tables as ifc_tables
from spatialq.io.ifc.cache import read_models
from spatialq.io.ifc.guard import READER


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


def reader(schema: pa.Schema, name: str, *, geometry: bool) -> Callable[..., pa.ListArray]:
    """Make the function that gives one table of each file."""

    def read(paths: pa.ChunkedArray, seconds: pa.ChunkedArray) -> pa.ListArray:
        files = [Path(path) for path in given(paths)]
        limits = seconds.to_pylist()
        if None in limits:
            message = f"{READER}: product_seconds must be > 0, got NULL"
            raise ValueError(message)
        tables: list[pa.Table] = []
        # The macros give all rows the same limit, so all files are one group.
        pairs = zip(limits, files, strict=True)
        for limit, group in itertools.groupby(pairs, key=lambda pair: pair[0]):
            together = [file for _, file in group]
            models = read_models(together, geometry=geometry, product_seconds=limit)
            tables += [getattr(model, name) for model in models]
        return lists(tables, schema)

    read.__doc__ = (
        f"Read the {name} of each file; see `spatialq.database.readers.ifc_models.read_model`."
    )
    return read


read_ifc_elements = reader(ifc_tables.ELEMENTS, "elements", geometry=True)
read_ifc_relations = reader(ifc_tables.RELATIONS, "relations", geometry=False)
read_ifc_properties = reader(ifc_tables.PROPERTIES, "properties", geometry=False)
read_ifc_errors = reader(ifc_tables.ERRORS, "load_errors", geometry=True)
read_ifc_models = reader(ifc_tables.MODELS, "summary", geometry=False)
