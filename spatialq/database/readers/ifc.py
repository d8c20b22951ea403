"""What the macros of `sql/read_ifc.sql` call: IFC files as lists of structs."""

import itertools

import pyarrow as pa

from spatialq.database.readers.files import given, lists
from spatialq.database.readers.ifc_models import warn_about_model
from spatialq.io.ifc.cache import read_models
from spatialq.io.ifc.guard import READER
from spatialq.io.ifc.model import require_meshes
from spatialq.io.ifc.tables import SCHEMAS
from spatialq.io.storage import as_path


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
    files = [as_path(path) for path in given(READER, paths)]
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
