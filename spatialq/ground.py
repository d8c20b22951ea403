"""From a point cloud file to a file of its ground points."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.connection import connect_quietly
from spatialq.errors import FileError
from spatialq.export.atomic import require_writable
from spatialq.export.las import require_format, write_classified
from spatialq.export.table import FORMATS, write_table
from spatialq.loading import kind_of, load

COMMAND = "ground"
LAS = (".las", ".laz")
GROUND = np.uint8(2)  # ASPRS class


def write_ground_points(
    source: Path, target: Path, progress: Callable[[Path, int, int], None], **options: Any
) -> dict[str, Any]:
    """Find the ground seeds of a cloud and write them.

    Parameters
    ----------
    source : path
        LAS, LAZ or COPC file.
    target : path
        .las or .laz: the points themselves, all dimensions kept, classified as ground (2);
        .parquet, .csv or .json: the table that `owm_ground` gives.
    progress : callable
        Called with file, rows so far and rows in all.
    **options
        Named arguments of `owm_ground`.

    Returns
    -------
    dict
        What was done: points, ground_points, filled_points, output.

    Raises
    ------
    FileError
        If the source cannot be read, or would be overwritten.
    ValueError
        If the ending of the target is unknown or an option is wrong.
    """
    if target.suffix.lower() not in (*LAS, *FORMATS):
        message = f"{COMMAND}: output '{target}' must end in one of {', '.join((*LAS, *FORMATS))}"
        raise ValueError(message)
    require_writable(target)
    if kind_of(COMMAND, source) != "las":
        raise FileError.of(COMMAND, source, "is no point cloud: LAS, LAZ or COPC")
    if target.exists() and target.samefile(source):
        raise FileError.of(COMMAND, target, "output must be another file than the input")
    if target.suffix.lower() in LAS:
        require_format(source, target)
    con = connect_quietly()
    (record,) = load(con, source, "points", columns=("point_id", "x", "y", "z"), progress=progress)
    names = ", ".join(f"{name} := ?" for name in options)
    con.execute(f"CREATE TABLE seeds AS FROM owm_ground('points', {names})", list(options.values()))
    seeds, filled = con.execute("SELECT count(*), count(*) FILTER (filled) FROM seeds").fetchall()[
        0
    ]
    if target.suffix.lower() in LAS:
        keep = np.zeros(record.rows, np.bool_)
        keep[con.execute("SELECT point_id FROM seeds").fetchnumpy()["point_id"]] = True
        classes = np.broadcast_to(GROUND, keep.shape)
        write_classified(
            source, target, classes, keep, lambda done, total: progress(target, done, total)
        )
    else:
        write_table(con, "SELECT * FROM seeds ORDER BY point_id", target)
    con.close()
    return {
        "points": record.rows,
        "ground_points": seeds,
        "filled_points": filled,
        "output": str(target),
    }
