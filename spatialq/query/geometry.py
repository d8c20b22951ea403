"""Rows as features of GeoPandas."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from spatialq.errors import QueryError
from spatialq.query.steps import plain

if TYPE_CHECKING:
    import duckdb
    import geopandas

GEOMETRY = "GEOMETRY"
BOX = ("xmin", "ymin", "xmax", "ymax")


def choose(columns: dict[str, str], wanted: str | None) -> tuple[str, ...]:
    """Name the columns that geometries are made of.

    Raises
    ------
    QueryError
        If there are none.
    """
    there = [name for name, kind in columns.items() if kind.upper().startswith(GEOMETRY)]
    if wanted is not None:
        if wanted not in there:
            message = (
                f"to_geopandas: geometry must be a column of type GEOMETRY, got {wanted!r}; "
                f"{'there are ' + ', '.join(there) if there else 'there are none'}"
            )
            raise QueryError(message)
        return (wanted,)
    candidates: Iterable[tuple[str, ...]] = [(each,) for each in there[:1]]
    for names in (*candidates, ("x", "y", "z"), ("x", "y"), BOX):
        if all(name in columns for name in names):
            return names
    message = (
        "to_geopandas: these rows have no geometry: no column of type GEOMETRY, no x and y, and no "
        "xmin, ymin, xmax, ymax"
    )
    raise QueryError(message)


def frame(
    rows: "duckdb.DuckDBPyRelation", names: tuple[str, ...], crs: Any
) -> "geopandas.GeoDataFrame":
    """Make the frame; boxes become polygons, and points have a z where there is one."""
    import geopandas as gpd
    import shapely

    if len(names) == 1:
        binary = f"* REPLACE (ST_AsWKB({plain(names[0])}) AS {plain(names[0])})"
        found = rows.select(binary).df()
        shapes = shapely.from_wkb(found[names[0]].map(bytes, na_action="ignore"))
        return gpd.GeoDataFrame(found.assign(**{names[0]: shapes}), geometry=names[0], crs=crs)
    found = rows.df()
    values = [found[name] for name in names]
    shapes = shapely.box(*values) if names == BOX else gpd.points_from_xy(*values)
    return gpd.GeoDataFrame(found, geometry=shapes, crs=crs)
