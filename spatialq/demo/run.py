"""The demo: two files in, a few queries, tables and a picture out."""

import time
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from spatialq.database.connection import connect_quietly
from spatialq.database.loading import load
from spatialq.export.features_picture import Terrain, write_features_picture
from spatialq.export.ground_picture import write_ground_picture
from spatialq.export.lod_picture import write_lod_picture
from spatialq.export.planes_picture import write_planes_picture
from spatialq.export.raster import covering, from_cells
from spatialq.functions.sql_text import literal
from spatialq.io.crs import unit_name
from spatialq.io.las.source import open_las
from spatialq.workflows.feature_choice import feature_maps

Show = Callable[[str, str, list[dict[str, Any]], float], None]
"""title, SQL, rows, seconds"""
KERNELS = files("spatialq.demo").joinpath("kernels.json")
"""What the queries and pictures call of compiled functions, as `spatialq.workflows.warming` lists
them; those that write the world compile while it is written."""
DRAWN = {
    "pca2": ("pca", "pca2"),
    "variance": ("stat", "variance"),
    "skewness": ("stat", "skewness"),
}


def queries() -> Iterator[tuple[str, str]]:
    """List title and text of each query of `queries.sql`."""
    text = files("spatialq.demo").joinpath("queries.sql").read_text(encoding="utf-8")
    for part in text.split(";\n"):
        if part.strip():
            title, query = part.strip().split("\n", 1)
            yield title.removeprefix("-- "), query


def run(las: Path, ifc: Path, folder: Path, show: Show, progress: Any = None) -> list[Path]:
    """Load a point cloud and a building model, run the demo's queries, draw pictures.

    Parameters
    ----------
    las, ifc : path
        A LAS, LAZ or COPC file and an IFC file.
    folder : path
        Gets `demo.duckdb`, `ground.png`, `planes.png`, `lod.png` and `features.png`.
    show : callable
        Gets title, SQL, rows and seconds of each query.
    progress : callable, optional
        As for `spatialq.load`.

    Returns
    -------
    list of paths
        The pictures.

    Raises
    ------
    FileError
        If a file cannot be read.
    """
    folder.mkdir(parents=True, exist_ok=True)
    database = folder / "demo.duckdb"
    database.unlink(missing_ok=True)
    con = connect_quietly(str(database))
    load(con, [las, ifc], progress=progress)
    for title, query in queries():
        started = time.perf_counter()
        result = con.execute(query.replace("'village.laz'", literal(str(las))))
        names = [column[0] for column in result.description or []]
        rows = [dict(zip(names, row, strict=True)) for row in result.fetchmany(20)]
        show(title, query, rows, time.perf_counter() - started)
    pictures = [folder / name for name in ("ground.png", "planes.png", "lod.png", "features.png")]
    unit = unit_name(open_las(las).crs)
    cloud = con.execute(
        "SELECT x, y, z, is_ground, margin FROM points JOIN heights USING (point_id)"
    ).fetchnumpy()
    cells = con.execute("SELECT x, y, z FROM terrain").fetchnumpy()
    terrain = from_cells(cells["x"], cells["y"], cells["z"])
    x_ends, y_ends = (
        (min(cloud[axis].min(), cells[axis].min()), max(cloud[axis].max(), cells[axis].max()))
        for axis in "xy"
    )
    write_ground_picture(
        pictures[0],
        covering(terrain, x_ends, y_ends),
        [cloud[axis] for axis in "xyz"],
        cloud["is_ground"],
        cloud["margin"],
        noise=0,
        title=f"Ground of {las.name}",
        unit=unit,
    )
    cloud = con.execute(
        "SELECT x, y, z, coalesce(plane_id, 0) AS plane_id "
        "FROM points LEFT JOIN roof_points USING (point_id)"
    ).fetchnumpy()
    planes = con.sql("FROM roofs ORDER BY plane_id").to_arrow_table().to_pylist()
    write_planes_picture(
        pictures[1],
        [cloud[axis] for axis in "xyz"],
        cloud["plane_id"],
        planes,
        title=f"Roof planes of {las.name}",
        unit=unit,
    )
    lod = con.sql("FROM lod ORDER BY level, node").to_arrow_table()
    write_lod_picture(pictures[2], lod, title=f"Levels of detail of {las.name}")
    ((side,),) = con.sql("SELECT 40 * getvariable('cell')").fetchall()  # as in queries.sql
    write_features_picture(
        pictures[3],
        Terrain.of(terrain),
        feature_maps(con, DRAWN),
        example=(side, side),
        title=f"Terrain of {las.name} at three scales",
    )
    con.close()
    return pictures
