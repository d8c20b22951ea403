"""`points_within` of a survey and of a file of polygons."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.cluster.arrays import read_arrays, write_arrays
from spatialq.cluster.folder import CALLER
from spatialq.cluster.job import Job
from spatialq.cluster.method import open_points
from spatialq.cluster.models import connected
from spatialq.cluster.points import CorePart, write_rows
from spatialq.cluster.staged import Make, StagedWork, method_of
from spatialq.cluster.survey import read_stamp
from spatialq.cluster.task import Task, name_of
from spatialq.data.polygons import Polygons
from spatialq.database.selection import KIND
from spatialq.errors import FileError
from spatialq.execution.units import Fitted
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import Parameters
from spatialq.functions.sql_text import literal
from spatialq.functions.stages import OfAll
from spatialq.geometry.polygon_index import PolygonIndex
from spatialq.io.crs import require_one_plane
from spatialq.io.files import require_file
from spatialq.io.storage import as_path
from spatialq.io.vector import FID, READER

POLYGONS = "polygons"
"""The stage that reads them, and its one file."""
NAME = "polygon_id"
MORE = {"polygons": None, "layer": None}


def check(more: Mapping[str, Any], *_: Any) -> None:
    """Refuse what names no file of polygons.

    Raises
    ------
    ValueError
    """
    if not isinstance(more[POLYGONS], str | Path) or not str(more[POLYGONS]):
        message = (
            f"{CALLER}: polygons must be the path of a file that {READER} reads, got "
            f"{more[POLYGONS]!r}"
        )
        raise ValueError(message)
    if not isinstance(more["layer"], str | None):
        message = f"{CALLER}: layer must be the name of a layer or None, got {more['layer']!r}"
        raise ValueError(message)


def open_points_and_polygons(
    function: Function, paths: Sequence[str], options: Parameters, more: dict[str, Any]
) -> tuple[Fitted, str | None]:
    """Find the polygons; give the parameters as the kernel takes them, and the CRS of the points.

    Raises
    ------
    FileError
        If there is no such file, and as `open_points`.
    """
    path = as_path(more[POLYGONS])
    require_file(CALLER, path)
    more[POLYGONS] = str(path.resolve())
    return open_points(function, paths, options, more)


class PolygonWork(StagedWork):
    """The stages of a job, a `PointAndPolygonWork`."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        call = job.call
        path = call.more[POLYGONS]
        data = {"caller": call.function, "path": path, "layer": call.more["layer"]}
        task = Task(POLYGONS, name_of(write_polygons), data)
        (done,) = job.files(POLYGONS, [task], 1, job.is_unchanged)
        of_polygons, of_points = f"polygons of '{path}' are", "points are"
        known = (of_points, call.options.crs or call.crs)
        require_one_plane(call.function, known, (of_polygons, done.facts["crs"]))
        self.polygons = OfAll(POLYGONS, done.facts)
        self.shared[POLYGONS] = job.path(POLYGONS, POLYGONS)
        self.write = write_named


def write_polygons(data: dict[str, Any], partial: Path) -> dict[str, Any]:
    """Read the polygons of a file, and write them, their boxes and what names them.

    That is the column `polygon_id` of the file, or else the number of the feature, or of the row.

    Returns
    -------
    dict
        `path`, its `stamp`, and `crs`, None where it is not known.

    Raises
    ------
    FileError
        If the file cannot be read.
    ValueError
        If a geometry is no polygon.
    """
    import duckdb

    caller, path = data["caller"], as_path(data["path"])
    stamp = read_stamp(caller, path)
    read = f"{READER}({literal(data['path'])}, layer := {literal(data['layer'])})"
    with connected() as con:
        try:
            features = con.sql(f"FROM {read}")
            names = [each for each in (NAME, FID) if each in features.columns]
            chosen = names[0] if names else "row_number() OVER ()"
            rows = features.project(
                f"{chosen} AS {NAME}, {chosen}::VARCHAR AS text, ST_AsWKB(geometry) AS shape, "
                "ST_CRS(geometry) AS crs"
            )
            kind, found = str(rows.types[0]), rows.fetchall()
        except duckdb.InvalidInputException as error:  # of the reader
            raise FileError(KIND.sub("", " ".join(str(error).split()))) from None
    texts = [text for _, text, _, _ in found]
    has_id = np.array([text is not None for text in texts], np.bool_)
    ids = [0 if each is None else each for each, *_ in found]
    is_whole = kind in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
    polygons = Polygons.of(
        [shape for _, _, shape, _ in found], ["NULL" if each is None else each for each in texts]
    )
    arrays = {
        **vars(polygons),
        "boxes": PolygonIndex.kept(polygons, caller).boxes,
        "ids": np.array(ids, np.int64) if is_whole else np.array([e or "" for e in texts], np.str_),
        "has_id": has_id,
    }
    write_arrays(partial, arrays)
    if read_stamp(caller, path) != stamp:
        raise FileError.of(caller, path, "was changed while the job ran")
    crs = next((each for *_, each in found if each is not None), None)
    return {"path": data["path"], "stamp": stamp, "crs": crs}


def write_named(part: CorePart, make: Make, path: Path) -> dict[str, Any]:
    """Write pairs with what names their polygons; give their number."""
    _, arrays = read_arrays(part.data[POLYGONS])
    rows = dict(make(part))
    rows[NAME] = np.ma.MaskedArray(arrays["ids"][rows[NAME]], ~arrays["has_id"][rows[NAME]])
    write_rows(rows, path, ["point_id", NAME])
    return {"rows": rows["x"].size}


METHOD = method_of(
    "points_within",
    {"parquet": PolygonWork},
    open=open_points_and_polygons,
    more=MORE,
    check=check,
    devices=("auto", "cpu"),
)
