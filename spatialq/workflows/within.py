"""Polygons of a file by which workflows cut clouds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from spatialq.errors import FileError
from spatialq.io.clipped import ClippedCloud
from spatialq.io.crs import require_one_plane
from spatialq.io.vector import READER

if TYPE_CHECKING:
    import os

    from spatialq.geometry.polygon_index import PolygonIndex
    from spatialq.io.source import PointSource


@dataclass(frozen=True)
class Within:
    """Which polygons of a file."""

    path: "str | os.PathLike[str]"
    layer: str | None = None
    where: str | None = None
    """A condition in SQL on the attributes; by default all polygons."""
    outside: bool = False
    """Whether the points in them are left out, instead of the others."""


def clipped(
    command: str,
    clouds: "Sequence[PointSource]",
    within: "Within | str | os.PathLike[str] | None",
    crs: str | None,
) -> "list[PointSource]":
    """Give clouds with the points in polygons alone; without those that no polygon touches.

    Parameters
    ----------
    command : str
        Whose errors they are.
    clouds : sequence of PointSource
    within : Within or path, optional
        A file that `read_vector` reads; without one, clouds come back as they are.
    crs : str, optional
        PROJJSON of the clouds.

    Raises
    ------
    CrsError
        If the polygons are in another CRS; one that is not known goes with any.
    FileError
        If the file cannot be read, has no polygon, or its polygons touch none of the clouds.
    ValueError
        If the condition is none on its columns, or a geometry is no polygon.
    """
    if within is None:
        return list(clouds)
    chosen = within if isinstance(within, Within) else Within(within)
    polygons = _polygons(command, chosen, crs)
    found = [ClippedCloud(each, polygons, outside=chosen.outside) for each in clouds]
    touched = [each for each in found if each.is_touched]
    if not touched:
        raise FileError.of(command, chosen.path, "its polygons touch none of the point clouds")
    return cast("list[PointSource]", touched)


def _polygons(command: str, within: Within, crs: str | None) -> "PolygonIndex":
    """Read the polygons.

    Raises
    ------
    CrsError, FileError, ValueError
        As `clipped`; also if the condition is none.
    """
    import duckdb

    from spatialq.database.connection import connect_quietly
    from spatialq.functions.sql_text import literal
    from spatialq.geometry.polygon_index import PolygonIndex

    read = f"{READER}({literal(str(within.path))}, layer := {literal(within.layer)})"
    with connect_quietly() as con:
        features = con.sql(f"SELECT * FROM {read}")
        if within.where is not None:
            try:
                features = features.filter(within.where)
            except duckdb.Error as error:
                reason = str(error).partition("\n")[0]
                message = (
                    f"{command}: where must be a condition on the columns "
                    f"{', '.join(features.columns)}, got {within.where!r}: {reason}"
                )
                raise ValueError(message) from error
        rows = features.project("ST_AsWKB(geometry), ST_CRS(geometry)").fetchall()
    if not rows:
        raise FileError.of(command, within.path, "there is no polygon to clip by")
    own = next((system for _, system in rows if system is not None), None)
    require_one_plane(command, (f"'{within.path}' is", own), ("the point clouds are", crs))
    return PolygonIndex.of([shape for shape, _ in rows], caller=command)
