"""Reads IFC models into DuckDB: the Python side of `sql/read_ifc.sql`."""

import os
import warnings
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pyarrow as pa

from spatialq.database.model_tables import beside_elements
from spatialq.database.transaction import is_open, transaction
from spatialq.errors import FileWarning
from spatialq.io.access import for_connection
from spatialq.io.files import find_files
from spatialq.io.ifc.cache import read_models
from spatialq.io.ifc.columns import TABLES, Geometry
from spatialq.io.ifc.guard import READER
from spatialq.io.ifc.model import PRODUCT_SECONDS, IfcModel, read_model, require_meshes

if TYPE_CHECKING:
    import duckdb

__all__ = ["IfcModel", "read_ifc", "read_model"]


@for_connection
def read_ifc(
    con: "duckdb.DuckDBPyConnection",
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    geometry: Geometry = "auto",
    product_seconds: float = PRODUCT_SECONDS,
) -> "duckdb.DuckDBPyRelation":
    """Read IFC files into a DuckDB connection.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    path : path
        A file or a glob pattern.
    name : str, optional
        Creates the table `name` of the elements, and `name_objects`, `name_relations` and so on
        for the others of `spatialq.io.ifc.columns.TABLES`, all or none. Without a name nothing is
        created.
    geometry : 'auto' or 'exact'
        Which library makes the meshes, see `read_model`.
    product_seconds : float, > 0, <= 1,000,000
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
    require_meshes(READER, geometry)
    models = read_models(
        find_files(READER, path), geometry=geometry, product_seconds=product_seconds
    )
    for model in models:
        warn_about_model(READER, model, stacklevel=3)
    if name is None:
        return con.from_arrow(pa.concat_tables(model.tables["elements"] for model in models))
    with nullcontext() if is_open(con) else transaction(con):
        for table in TABLES:
            rows = pa.concat_tables(model.tables[table] for model in models)
            con.from_arrow(rows).create(beside_elements(name, table))
    return con.table(name)


def warn_about_model(reader: str, model: IfcModel, *, stacklevel: int) -> None:
    """Issue the warnings about a model that was read, and about products without a mesh.

    Parameters
    ----------
    reader : str
    model : IfcModel
    stacklevel : int
        As in `warnings.warn`: 2 is the line that calls this function.
    """
    found = list(model.warnings)
    failed = model.tables["load_errors"]["stage"].to_pylist().count("geometry")
    if failed:
        where = "read_ifc_errors, or the table load_errors of loaded models"
        found.append(f"{failed:,} products have no mesh, see {where}")
    for warning in found:
        warnings.warn(f"{reader}: '{model.path}': {warning}", FileWarning, stacklevel=stacklevel)
