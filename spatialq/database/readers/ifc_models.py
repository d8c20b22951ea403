"""Reads IFC models into DuckDB: the Python side of `sql/read_ifc.sql`."""

import os
import warnings
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pyarrow as pa

from spatialq.database.transaction import is_open, transaction
from spatialq.errors import FileWarning
from spatialq.io.files import find_files
from spatialq.io.ifc.cache import read_models
from spatialq.io.ifc.guard import READER
from spatialq.io.ifc.model import PRODUCT_SECONDS, IfcModel, read_model

if TYPE_CHECKING:
    import duckdb

__all__ = ["IfcModel", "read_ifc", "read_model"]


def read_ifc(
    con: "duckdb.DuckDBPyConnection",
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    product_seconds: float = PRODUCT_SECONDS,
) -> "duckdb.DuckDBPyRelation":
    """Read IFC files into a DuckDB connection.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    path : path
        A file or a glob pattern.
    name : str, optional
        Creates the tables `name`, `name_relations`, `name_properties` and `name_errors`, all or
        none. Without a name nothing is created.
    product_seconds : float, > 0
        How long one product's mesh may take.

    Returns
    -------
    duckdb.DuckDBPyRelation
        The elements.

    Raises
    ------
    FileError
        If a file cannot be read, see `read_model`, or no file matches.

    Warns
    -----
    FileWarning
        For every file about which something is odd, and for products without a mesh.
    """
    models = read_models(find_files(READER, path), geometry=True, product_seconds=product_seconds)
    for model in models:
        for warning in (*model.warnings, *failed_products(model)):
            warnings.warn(f"{READER}: '{model.path}': {warning}", FileWarning, stacklevel=2)
    tables = {
        "": [model.elements for model in models],
        "_relations": [model.relations for model in models],
        "_properties": [model.properties for model in models],
        "_errors": [model.load_errors for model in models],
    }
    if name is None:
        return con.from_arrow(pa.concat_tables(tables[""]))
    with nullcontext() if is_open(con) else transaction(con):
        for suffix, parts in tables.items():
            con.from_arrow(pa.concat_tables(parts)).create(f"{name}{suffix}")
    return con.table(name)


def failed_products(model: IfcModel) -> list[str]:
    """Say how many products have no mesh though they should."""
    failed = model.load_errors.num_rows - len(model.warnings)
    return [f"{failed} products have no mesh, see the table of errors"] if failed else []
