"""Query results to Parquet, CSV or JSON; those that are grids to GeoTIFF or PNG as well."""

from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.export.atomic import WRITER, require_folder, whole
from spatialq.export.raster import from_cells, write_hillshade, write_terrain
from spatialq.sources import require_one_crs

if TYPE_CHECKING:
    import duckdb

FORMATS = {".parquet": "PARQUET", ".csv": "CSV", ".json": "JSON"}
RASTERS = {".tif": write_terrain, ".tiff": write_terrain, ".png": write_hillshade}


def write_table(con: "duckdb.DuckDBPyConnection", query: str, path: Path) -> int:
    """Write the result of a query; the ending of the path tells the format.

    A .tif or .png takes the columns x, y, z of a regular grid, in any order of rows. The .tif
    has the CRS of the tables that the query names; the .png is the shaded relief.

    Returns
    -------
    int
        Rows written.

    Raises
    ------
    ValueError
        If the ending is unknown, or the result is no grid where it must be one.
    CrsError
        If a grid comes from tables of different CRS.
    """
    ending = path.suffix.lower()
    if ending in RASTERS:
        return _write_raster(con, query, path)
    if ending not in FORMATS:
        message = f"{WRITER}: '{path}' must end in one of {', '.join((*FORMATS, *RASTERS))}"
        raise ValueError(message)
    with whole(path) as partial:
        name = str(partial).replace("'", "''")
        (rows,) = con.execute(f"COPY ({query}) TO '{name}' (FORMAT {FORMATS[ending]})").fetchall()[
            0
        ]
    return int(rows)


def _write_raster(con: "duckdb.DuckDBPyConnection", query: str, path: Path) -> int:
    require_folder(path)
    crs = require_one_crs(con, query)
    relation = con.sql(f"SELECT * FROM ({query})")
    if sorted(relation.columns) != ["x", "y", "z"]:
        message = (
            f"{WRITER}: a query for '{path.name}' must give the columns x, y, z of a grid, got "
            f"{', '.join(relation.columns)}"
        )
        raise ValueError(message)
    cells = relation.select("x::DOUBLE AS x, y::DOUBLE AS y, z::DOUBLE AS z").fetchnumpy()
    RASTERS[path.suffix.lower()](path, from_cells(cells["x"], cells["y"], cells["z"], crs))
    return int(cells["x"].size)
