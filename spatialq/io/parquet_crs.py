"""The coordinate reference system that a Parquet file states."""

import json
import os
from typing import Any

from spatialq.errors import SpatialqError
from spatialq.io.files import find_files
from spatialq.io.storage import is_url

KEY = "crs"
"""Of the metadata that has PROJJSON, where rows have x, y and z."""
GEO = b"geo"
"""That of GeoParquet, whose geometries have a CRS."""


def crs_of_parquet(reader: str, path: str) -> str | None:
    """Give the CRS that a Parquet file, or the first one of a pattern, states; PROJJSON or a code.

    None where it states none, or cannot be read, which DuckDB will say.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if is_url(path):
        return None
    try:
        (first, *_) = find_files(reader, path)
        metadata = pq.read_schema(os.fspath(first)).metadata or {}
    except (SpatialqError, OSError, pa.ArrowInvalid):
        return None
    if stated := metadata.get(KEY.encode()):
        return str(stated.decode("utf-8", "replace"))
    try:
        geo: Any = json.loads(metadata.get(GEO, b"{}"))
        crs = geo["columns"][geo["primary_column"]]["crs"]
    except (ValueError, KeyError, TypeError):
        return None
    return None if crs is None else json.dumps(crs)
