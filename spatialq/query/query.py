"""Where queries begin: files, tables, statements."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from spatialq.database.readers import ifc_models
from spatialq.database.statements import one_statement
from spatialq.errors import QueryError
from spatialq.functions.sql_text import name_parts
from spatialq.io import clouds
from spatialq.io.access import for_connection
from spatialq.io.files import find_files, require_file
from spatialq.io.formats import files_of
from spatialq.io.grid import grids
from spatialq.io.ifc.model import require_meshes
from spatialq.io.storage import is_url, require_url
from spatialq.query.binding import columns_of, statement_of
from spatialq.query.functions import Elements, Grid, Objects, Points
from spatialq.query.models import of_file, of_objects, of_table
from spatialq.query.relational import Origin, Query, Reader, make
from spatialq.query.sentences import said_by
from spatialq.query.steps import Step, Table, sql, written
from spatialq.query.values import require_text

if TYPE_CHECKING:
    import duckdb


def of_step(
    con: "duckdb.DuckDBPyConnection",
    step: Step | Table,
    *,
    origin: Origin | None = None,
    caller: str = "query",
) -> Query:
    """Make a query of a step, of the kind that its columns are.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    step : Step or Table
    origin : Origin, optional
        Where its rows are from.
    caller : str
        What errors name.

    Raises
    ------
    QueryError
        If DuckDB does not understand it.
    """
    with said_by(caller):
        columns = columns_of(con, statement_of(con, step))
    return make(con, step, columns, origin)


def table(con: "duckdb.DuckDBPyConnection", name: str) -> Query:
    """Begin a query with the rows of a table or view.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    name : str
        The name; a schema may stand before it, and a part with a dot or quotes stands in quotes, as
        in ``'"my site".points'``.

    Returns
    -------
    Query
        Of the kind that the columns make: `Points` with point_id, x, y, z and so on.

    Raises
    ------
    QueryError
        If there is no such table; the sentence has a near name.
    """
    require_text("table", "name", name)
    found = of_step(con, Table(written(name, "table")), caller="table")
    model = of_objects(name) if isinstance(found, Objects) else of_table(name)
    return make(
        con, found.step, dict(zip(found.columns, found.types, strict=True)), Origin(model=model)
    )


def from_sql(con: "duckdb.DuckDBPyConnection", text: str) -> Query:
    """Begin a query with the rows of a statement.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    text : str
        A SELECT, or what else gives rows.

    Returns
    -------
    Query
        Of the kind that the columns make.

    Raises
    ------
    QueryError
        If it is not one statement, or DuckDB does not understand it.
    """
    with said_by("from_sql"):
        statement = one_statement("from_sql", con, require_text("from_sql", "text", text))
    return of_step(con, Step("result", sql(f"(\n{statement}\n)")), caller="from_sql")


@for_connection
def read_las(
    con: "duckdb.DuckDBPyConnection",
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    bounds: Sequence[float] | None = None,
    columns: Sequence[str] | None = None,
    to_crs: str | None = None,
    resolution: float | None = None,
) -> Points:
    """Begin a query with the points of LAS, LAZ or COPC files.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    path : path
        A file, a pattern such as ``tiles/*.laz``, or a folder such as ``tiles/``.
    name : str, optional
        Makes a view of this name, which other statements can read while the connection is open.
    bounds : sequence of float, optional
        xmin, ymin, xmax, ymax in the units of x and y: only points inside or on the border.
    columns : sequence of str, optional
        Only these columns are decoded.
    to_crs : str, optional
        Coordinate reference system to reproject x, y and z to, such as 'EPSG:25832'.
    resolution : float, optional
        Spacing of points, in the units of x and y of the file: finer nodes of an octree (COPC) are
        not read.

    Returns
    -------
    Points

    Raises
    ------
    FileError, CrsError, QueryError
        If a file cannot be read or reprojected, files have different CRS, or an argument is wrong.
    """
    chosen: dict[str, Any] = {"bounds": bounds, "columns": columns, "to_crs": to_crs}
    return _read_cloud("read_las", con, path, name, **chosen, resolution=resolution)


@for_connection
def read_points(
    con: "duckdb.DuckDBPyConnection",
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    bounds: Sequence[float] | None = None,
    columns: Sequence[str] | None = None,
    to_crs: str | None = None,
    resolution: float | None = None,
) -> Points:
    """Begin a query with the points of clouds: LAS, E57, PLY, PCD, PTS, PTX, text and so on.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    path : path
        A file, a pattern such as ``scans/*.e57``, or a folder such as ``scans/``.
    name : str, optional
        Makes a view of this name, which other statements can read while the connection is open.
    bounds : sequence of float, optional
        xmin, ymin, xmax, ymax in the units of x and y: only points inside or on the border.
    columns : sequence of str, optional
        Only these columns are decoded.
    to_crs : str, optional
        Coordinate reference system to reproject x, y and z to, such as 'EPSG:25832'.
    resolution : float, optional
        Spacing of points, in the units of x and y of the file: finer nodes of an octree (COPC) are
        not read.

    Returns
    -------
    Points

    Raises
    ------
    FileError, CrsError, QueryError
        If a file cannot be read or reprojected, files have different CRS, or an argument is wrong.
    """
    chosen: dict[str, Any] = {"bounds": bounds, "columns": columns, "to_crs": to_crs}
    return _read_cloud("read_points", con, path, name, **chosen, resolution=resolution)


def _read_cloud(
    caller: str,
    con: "duckdb.DuckDBPyConnection",
    path: str | os.PathLike[str],
    name: str | None,
    **arguments: Any,
) -> Points:
    file = _path(caller, path, may_be_folder=True)
    if name is not None:
        with said_by(caller):
            view = _view(caller, name)
            clouds.read_points(con, file, name=view.own_name, caller=caller, **arguments)
        return of_step(con, view, caller=caller).as_kind(Points)
    reader = Reader(caller, file, _given(**arguments))
    return _read(con, reader, Origin(reader=reader)).as_kind(Points)


@for_connection
def read_grid(
    con: "duckdb.DuckDBPyConnection",
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    nodata: float | None = None,
    band: int = 1,
    bounds: Sequence[float] | None = None,
    crs: str | None = None,
    to_crs: str | None = None,
    resolution: float | None = None,
) -> Grid:
    """Begin a query with the cells of terrain grids: GeoTIFF and what else GDAL reads, and .npy.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    path : path
        A file, or a pattern such as ``tiles/*.tif``.
    name : str, optional
        Makes a view of this name, which other statements can read while the connection is open.
    nodata : float, optional
        A value that means that there is none, besides those that the file declares.
    band : int
        Of a file with several bands, from 1.
    bounds : sequence of float, optional
        xmin, ymin, xmax, ymax in the units of x and y: only cells whose centre is inside.
    crs : str, optional
        Coordinate reference system of files that do not name one.
    to_crs : str, optional
        Coordinate reference system to reproject to, such as 'EPSG:25832'.
    resolution : float, optional
        Side of the square cells that reprojecting makes, in the unit of `to_crs`; by default cells
        keep the size that they have in the middle of the file.

    Returns
    -------
    Grid

    Raises
    ------
    FileError, CrsError, QueryError
        If a file cannot be read, files have different CRS, or an argument is wrong.
    """
    file = _path("read_grid", path)
    more: dict[str, Any] = {
        "bounds": bounds, "crs": crs, "to_crs": to_crs, "resolution": resolution,
    }  # fmt: skip
    if name is not None:
        with said_by("read_grid"):
            view = _view("read_grid", name)
            grids.read_grid(con, file, name=view.own_name, nodata=nodata, band=band, **more)
        return of_step(con, view, caller="read_grid").as_kind(Grid)
    given = _given(nodata=nodata, band=None if band == 1 else band, **more)
    reader = Reader("read_grid", file, given)
    return _read(con, reader, Origin(reader=reader)).as_kind(Grid)


@for_connection
def read_ifc(
    con: "duckdb.DuckDBPyConnection",
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    product_seconds: float = 60.0,
    geometry: Literal["auto", "exact"] = "auto",
) -> Elements:
    """Begin a query with the elements of IFC files: products that have a mesh.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    path : path
        A file (.ifc, .ifczip), or a pattern.
    name : str, optional
        Reads the file now, and creates the table `name` of the elements, and `name_objects`,
        `name_relations` and so on for the others, all or none.
    product_seconds : float, > 0
        A product whose mesh takes longer is left out.
    geometry : 'auto' or 'exact'
        'auto' takes meshes of ifclite-geom where they are whole, 'exact' those of IfcOpenShell.

    Returns
    -------
    Elements

    Raises
    ------
    FileError, QueryError
        If there is no such file, or an argument is wrong. Without a name, the file is opened when
        the rows are read.
    """
    file = _path("read_ifc", path)
    if name is not None:
        with said_by("read_ifc"):
            known = written(require_text("read_ifc", "name", name), "read_ifc")
            ifc_models.read_ifc(
                con, file, name=known, geometry=geometry, product_seconds=product_seconds
            )
        return table(con, known).as_kind(Elements)
    with said_by("read_ifc"):
        require_meshes("read_ifc", geometry)
    named = _given(
        product_seconds=None if product_seconds == 60 else product_seconds,
        geometry=None if geometry == "auto" else geometry,
    )
    reader = Reader("read_ifc", file, named)
    model = of_file(_stem(reader.path), reader.path)
    return _read(con, reader, Origin(model=model)).as_kind(Elements)


@for_connection
def read_ifc_objects(con: "duckdb.DuckDBPyConnection", path: str | os.PathLike[str]) -> Objects:
    """Begin a query with the objects of IFC files, with or without geometry.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    path : path
        A file (.ifc, .ifczip), or a pattern.

    Returns
    -------
    Objects
        Elements, spaces, storeys, groups, types, tasks and so on. The file is opened when the rows
        are read.
    """
    reader = Reader("read_ifc_objects", _path("read_ifc_objects", path))
    step = Step(f"{_stem(reader.path)}_objects", reader.text())
    model = of_file(_stem(reader.path), reader.path, step)
    found = of_step(con, step, origin=Origin(model=model), caller="read_ifc_objects")
    return found.as_kind(Objects)


@for_connection
def read_vector(
    con: "duckdb.DuckDBPyConnection",
    path: str | os.PathLike[str],
    *,
    layer: str | None = None,
    crs: str | None = None,
) -> Query:
    """Begin a query with the features of GeoPackage, Shapefile, GeoJSON, FlatGeobuf and so on.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    path : path
        A file, or a pattern such as ``plans/*.gpkg``.
    layer : str, optional
        The layer to read; needed where a file has several.
    crs : str, optional
        Coordinate reference system of the geometries, such as 'EPSG:25832', in the place of that of
        the files.

    Returns
    -------
    Query
        The number of a feature as `fid`, its attributes and its `geometry`. The file is read when
        the rows are.

    Raises
    ------
    FileError, CrsError, QueryError
        If a file cannot be read, files have different CRS, or an argument is wrong.
    """
    reader = Reader("read_vector", _path("read_vector", path), _given(layer=layer, crs=crs))
    return _read(con, reader, Origin())


def _read(con: "duckdb.DuckDBPyConnection", reader: Reader, origin: Origin) -> Query:
    step = Step(_stem(reader.path), reader.text())
    return of_step(con, step, origin=origin, caller=reader.function)


def _path(reader: str, path: str | os.PathLike[str], *, may_be_folder: bool = False) -> str:
    """Give a path, or a pattern, as text; reject at once what is no file or not there."""
    if is_url(path):
        path = str(require_url(reader, path))
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(name, str) or not name:
        message = f"{reader}: path must be a file or a pattern such as 'tiles/*', got {path!r}"
        raise QueryError(message)
    files = files_of(reader, name, ("points",)) if may_be_folder else find_files(reader, name)
    for file in files:
        require_file(reader, file)
    # with a slash behind it, a folder is no name of a table
    return name.rstrip("/") + "/" if not is_url(name) and Path(name).is_dir() else name


def _view(reader: str, name: str) -> Table:
    """Name a view of the connection, which is in no schema."""
    view = Table(written(require_text(reader, "name", name), reader))
    if len(name_parts(view.name)) > 1:
        message = f"{reader}: name must be without a schema, got {name!r}"
        raise QueryError(message)
    return view


def _stem(path: str) -> str:
    """Name a step after its file; of a pattern, after the folder."""
    name = Path(path).name
    if any(sign in name for sign in "*?["):
        name = Path(path).parent.name
    return name.split(".")[0] or "files"


def _given(**arguments: Any) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}
