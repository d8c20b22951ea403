"""The formats that results can be written in: a module of this package each, found by itself.

A module defines `WRITER`. What a format needs beyond NumPy and PyArrow is imported when a file is
written.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from spatialq.database import frames
from spatialq.database.sources import require_one_crs
from spatialq.io.source import ROW_GROUP, Layout

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

Takes = Literal["rows", "points", "cells", "geometries", "GlobalIds", "clashes"]
"""Rows of any columns; points x, y, z; cells x, y, z of a regular grid; rows with a geometry; rows
with GlobalIds of a model; rows with the GlobalIds a and b of two elements."""


@dataclass
class Result:
    """The result of a query, which is not run before a writer asks for rows."""

    con: "duckdb.DuckDBPyConnection"
    statement: str
    """As the user wrote it: one statement that gives rows."""
    given_crs: str | None = None
    """PROJJSON, where the caller knows it."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What some writers take besides."""

    @cached_property
    def relation(self) -> "duckdb.DuckDBPyRelation":
        """The rows, of which columns of equal name are renamed: a, a_1."""
        # of a relation COPY takes all: a PIVOT is several statements to DuckDB
        return self.con.sql(self.statement).project("*")

    @property
    def query(self) -> str:
        """The text of one statement that gives the rows."""
        return str(self.relation.sql_query())

    @cached_property
    def columns(self) -> dict[str, str]:
        """The names of the columns and their SQL types."""
        return dict(zip(self.relation.columns, map(str, self.relation.types), strict=True))

    @cached_property
    def crs(self) -> str | None:
        """PROJJSON of the tables and files that the query reads.

        Raises
        ------
        CrsError
            If they have different ones.
        """
        return self.given_crs or require_one_crs(self.con, self.statement)

    @cached_property
    def layout(self) -> Layout | None:
        """Scale and offset of the LAS files that the rows come from, where all have the same."""
        return frames.layout(self.con, self.statement)

    def batches(self, rows: int = ROW_GROUP) -> "Iterator[pa.RecordBatch]":
        """Run the query and give its rows, some at a time."""
        yield from self.relation.to_arrow_reader(rows)


@dataclass(frozen=True)
class Writer:
    """A format that results can be written in."""

    name: str
    suffixes: tuple[str, ...]
    """In lower case, with the dot; or a whole name, of a file with others in a folder of its own,
    which is made."""
    takes: Takes
    write: Callable[[Result, Path], int]
    """Writes the file whole or not at all, and returns how many rows are in it."""
    keeps: str
    loses: str
    extra: str = ""
    """The optional dependencies that it needs, as `pip install 'spatialq[extra]'` names them."""
    options: tuple[str, ...] = ()
    """The names of `Result.options` that it takes."""


@cache
def writers() -> tuple[Writer, ...]:
    """List the formats, in the order of their names."""
    modules = (
        importlib.import_module(f"{__name__}.{found.name}")
        for found in pkgutil.iter_modules(__path__)
    )
    return tuple(sorted((module.WRITER for module in modules), key=lambda each: each.name.lower()))


def find_writer(path: Path) -> Writer | None:
    """Find the format of a file: by its name, or else by the longest ending of it."""
    name = path.name.lower()
    found = {
        suffix: each
        for each in writers()
        for suffix in each.suffixes
        if name == suffix or (suffix.startswith(".") and name[1:].endswith(suffix))
    }
    return found[max(found, key=len)] if found else None
