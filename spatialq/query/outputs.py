"""What comes out of a query: its SQL, its rows in the forms of other libraries, a table, a file."""

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.database.frames import crs_statements
from spatialq.database.sources import require_one_crs
from spatialq.database.table_files import write_table
from spatialq.errors import QueryError
from spatialq.functions.implementations import call
from spatialq.query import geometry as geometries
from spatialq.query import html, plans
from spatialq.query.binding import bind, statement_of
from spatialq.query.pinned import Pins, pinned
from spatialq.query.sentences import said_by
from spatialq.query.steps import Step, Table, plain, written
from spatialq.query.storeys import require_of_files
from spatialq.runtime.forks import may_use_threads

if TYPE_CHECKING:
    import duckdb
    import geopandas
    import pandas as pd
    import polars as pl
    import pyarrow as pa


class Outputs:
    """Rows that are not there yet: a connection, a step, and the columns that it has."""

    def __init__(
        self, con: "duckdb.DuckDBPyConnection", step: Step | Table, columns: dict[str, str]
    ) -> None:
        self._con = con
        self._step = step
        self._columns = columns

    @property
    def _pins(self) -> Pins:
        """The clouds that the user wants to have pinned, and where."""
        return ()

    # -- what it is

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._columns)

    @property
    def types(self) -> list[str]:
        """SQL types of the columns."""
        return list(self._columns.values())

    @property
    def step(self) -> Step | Table:
        """The step whose rows these are, for other queries and scripts."""
        return self._step

    def sql(self) -> str:
        """Write the statement that gives the rows."""
        with said_by("sql"):
            return statement_of(self._con, self._step)

    def explain(self) -> str:
        """Say how the rows are made: the SQL, the device of each kernel, and DuckDB's plan.

        Nothing runs. How many rows a kernel gets is taken from the header of the file or the size
        of the table that they begin with; conditions are not counted.
        """
        with said_by("explain", self._columns):
            return plans.explain(self._con, self._step, self.sql())

    def relation(self) -> "duckdb.DuckDBPyRelation":
        """Give the rows as a relation of DuckDB, which runs when it is read."""
        with said_by("relation", self._columns):
            return bind(self._con, self.sql())

    def __repr__(self) -> str:
        columns = ", ".join(f"{plain(name)} {kind}" for name, kind in self._columns.items())
        return f"<{type(self).__name__}: {columns}>\n{self.sql()}"

    # -- its rows

    @contextmanager
    def _prepared(self, caller: str) -> Iterator[Step | Table]:
        """Give the step while it may run: storeys and one CRS are there, and clouds pinned."""
        with said_by(caller, self._columns):
            require_of_files(self._con, self._step)
            require_one_crs(self._con, statement_of(self._con, self._step))
            with pinned(self._con, self._step, self._pins) as step:
                yield step

    @contextmanager
    def _running(self, caller: str) -> Iterator["duckdb.DuckDBPyRelation"]:
        """Give the relation while it may be read, on pinned columns where that pays."""
        with self._prepared(caller) as step:
            yield bind(self._con, statement_of(self._con, step))

    def count(self) -> int:
        """Count the rows.

        This and whatever else reads rows raises a CrsError if they are of tables of different CRS.
        """
        with self._running("count") as rows:
            (number,) = rows.aggregate("count(*)").fetchall()[0]
            return int(number)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Give all rows as tuples."""
        with self._running("fetchall") as rows:
            return rows.fetchall()

    def show(self, max_rows: int = 20) -> Any:
        """Print the first rows as a table; in a notebook, show those in the page that have a place.

        There the extra [notebook] is needed, and a `spatialq.view` is given: points, elements,
        planes, or pairs of elements, of which the page tells which are selected.
        """
        if (view := call("query_to_view", self)) is not None:
            return view
        with self._running("show") as rows:
            rows.limit(max_rows + 1).show(max_rows=max_rows)
        return None

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Give all rows to a library that takes Arrow, by the PyCapsule interface."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> "pa.Table":
        """Give all rows as a table of PyArrow."""
        with self._running("to_arrow") as rows:
            return rows.to_arrow_table()

    def to_pandas(self) -> "pd.DataFrame":
        """Give all rows as a frame of pandas.

        Raises
        ------
        QueryError
            If pandas is not installed.
        """
        _require("to_pandas", "pandas")
        with self._running("to_pandas") as rows:
            return rows.df()

    def to_polars(self) -> "pl.DataFrame":
        """Give all rows as a frame of Polars.

        Raises
        ------
        QueryError
            If Polars is not installed, or was imported before this process was forked.
        """
        _require("to_polars", "polars")
        if not may_use_threads("polars"):
            message = (
                "to_polars: Polars was imported before this process was forked, and would wait for "
                "ever for its threads; use to_arrow(), or start processes by 'spawn'"
            )
            raise QueryError(message)
        with self._running("to_polars") as rows:
            frame: pl.DataFrame = rows.pl()
            return frame

    def to_geopandas(
        self, *, geometry: str | None = None, crs: Any = None
    ) -> "geopandas.GeoDataFrame":
        """Give all rows as a frame of GeoPandas.

        Parameters
        ----------
        geometry : str, optional
            A column of type GEOMETRY. By default the first one, such as `boundary` of planes;
            without any, a column `geometry` is made: of points x, y, z or x, y, else of the boxes
            xmin, ymin, xmax, ymax.
        crs : optional
            As GeoPandas takes it, such as 'EPSG:25832'. By default that of the loaded tables and
            the files that the query reads, if it is known.

        Raises
        ------
        QueryError
            If GeoPandas is not installed, or the rows have no such columns.
        CrsError
            If files and tables have different ones.
        """
        _require("to_geopandas", "geopandas")
        names = geometries.choose(self._columns, geometry)
        with self._running("to_geopandas") as rows:
            known = require_one_crs(self._con, statement_of(self._con, self._step))
            return geometries.frame(rows, names, known if crs is None else crs)

    def create(self, name: str, *, replace: bool = False) -> None:
        """Create a table of the rows, which states their CRS.

        Parameters
        ----------
        name : str
            Of the table; a schema may stand before it.
        replace : bool
            Whether to replace a table of this name.

        Raises
        ------
        QueryError
            If there is one, or the database cannot be written.
        CrsError
            If the rows have a CRS that PROJ cannot read: then no table is made.
        """
        verb = "CREATE OR REPLACE TABLE" if replace else "CREATE TABLE"
        with self._running("create") as rows:
            table = written(name, "create")
            # before the table is there: a CRS that PROJ cannot read is an error
            noting = crs_statements(self._con, table, statement_of(self._con, self._step))
            self._con.execute(f"{verb} {table} AS {rows.sql_query()}")
            for statement in noting:
                self._con.execute(statement)

    def write(self, path: str | os.PathLike[str], **options: Any) -> int:
        """Write the rows to a file; its ending tells the format.

        Parameters
        ----------
        path : path
            What each ending takes, keeps and loses is listed by `spatialq formats`: tables of any
            rows, features of rows with a geometry or x and y, cells x, y, z of a regular grid, the
            objects of a model whose GlobalIds the rows have. Where a format has a CRS, it is that
            of the loaded tables and the files that the query reads, if it is known.
        **options
            What some formats take besides: `sort=True` for a .parquet whose rows are near their
            neighbours.

        Returns
        -------
        int
            Rows written; of a model, objects.

        Raises
        ------
        FileError, QueryError
            If the file cannot be written, or the rows are none for it.
        """
        with self._prepared("write") as step:
            # what is pinned no longer says where it is from
            crs = require_one_crs(self._con, statement_of(self._con, self._step))
            query = statement_of(self._con, step)
            return write_table(self._con, query, Path(path), crs=crs, **options)

    def _repr_html_(self) -> str:
        with self._running("_repr_html_") as rows:
            return html.table(type(self).__name__, self._columns, rows)


def _require(caller: str, library: str) -> None:
    try:
        importlib.import_module(library)
    except ImportError:
        message = f"{caller}: {library} is not installed: pip install {library}"
        raise QueryError(message) from None
