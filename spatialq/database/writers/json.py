"""JSON, one object per row, by DuckDB."""

from functools import partial

from spatialq.database.duckdb_copy import copy
from spatialq.database.writers import Writer

WRITER = Writer(
    name="JSON",
    suffixes=(".json",),
    takes="rows",
    write=partial(copy, "JSON"),
    keeps="all columns, lists and structs too",
    loses="types, CRS",
)
