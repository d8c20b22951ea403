"""Comma separated values, by DuckDB."""

from functools import partial

from spatialq.database.duckdb_copy import copy
from spatialq.database.writers import Writer

WRITER = Writer(
    name="CSV",
    suffixes=(".csv",),
    takes="rows",
    write=partial(copy, "CSV"),
    keeps="all columns, as text",
    loses="types, CRS",
)
