"""The coordinate reference systems that Parquet files state."""

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


def systems_of_parquet(reader: str, path: str) -> dict[str | None, str]:
    """Give the CRS that Parquet files state, PROJJSON or codes, and of each the first such file.

    The CRS is None where a file states none. There are none of files that cannot be read, which
    DuckDB will say, or that are elsewhere.
    """
    import pyarrow as pa

    found: dict[str | None, str] = {}
    try:
        for file in () if is_url(path) else find_files(reader, path):
            found.setdefault(_crs_of(os.fspath(file)), os.fspath(file))
    except (SpatialqError, OSError, pa.ArrowInvalid):
        return {}
    return found


def _crs_of(file: str) -> str | None:
    import pyarrow.parquet as pq

    metadata = pq.read_schema(file).metadata or {}
    if stated := metadata.get(KEY.encode()):
        return str(stated.decode("utf-8", "replace"))
    try:
        geo: Any = json.loads(metadata.get(GEO, b"{}"))
        crs = geo["columns"][geo["primary_column"]]["crs"]
    except (ValueError, KeyError, TypeError):
        return None
    return None if crs is None else json.dumps(crs)
