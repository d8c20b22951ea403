"""The cells of a regular grid as a query gives them."""

from pathlib import Path

from spatialq.database.writers import Result
from spatialq.export.atomic import WRITER
from spatialq.export.raster import Raster, from_cells


def raster_of(result: Result, path: Path) -> tuple[Raster, int]:
    """Run a query of cells x, y, z in any order, and count its rows.

    Raises
    ------
    ValueError
        If it gives other columns, or no regular grid.
    CrsError
        If the cells come from tables of different CRS.
    """
    if sorted(result.columns) != ["x", "y", "z"]:
        message = (
            f"{WRITER}: a query for '{path.name}' must give the columns x, y, z of a grid, got "
            f"{', '.join(result.columns)}"
        )
        raise ValueError(message)
    crs = result.crs
    relation = result.con.sql(f"FROM ({result.query}\n)")
    cells = relation.select("x::DOUBLE AS x, y::DOUBLE AS y, z::DOUBLE AS z").fetchnumpy()
    return from_cells(cells["x"], cells["y"], cells["z"], crs), int(cells["x"].size)
