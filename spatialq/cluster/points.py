"""The points that a task reads, and the rows of its result that are its own."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.boxes import in_box
from spatialq.errors import FileError
from spatialq.export.spatial_order import cells_of, hilbert
from spatialq.io.formats import open_source
from spatialq.io.source import ROW_GROUP, numbers_of
from spatialq.io.storage import as_path
from spatialq.io.view import INFINITY

if TYPE_CHECKING:
    from numpy.typing import NDArray

TYPES = {"point_id": np.int64, "x": np.float64, "y": np.float64, "z": np.float64}


def read_points(data: dict[str, Any]) -> "dict[str, NDArray[Any]]":
    """Read the points of a core and its halo, by `Layout.reading`; ids are those in the survey.

    Raises
    ------
    FileError
        If a file cannot be read, or was changed since the job began.
    """
    box, bounds = data["read"], data["bounds"]
    if bounds is not None:
        box = [*np.maximum(box[:2], bounds[:2]).tolist(), *np.minimum(box[2:], bounds[2:]).tolist()]
    hint = (box[0], box[1], -INFINITY, box[2], box[3], INFINITY)
    parts: dict[str, list[Any]] = {
        name: [np.empty(0, np.dtype(kind))] for name, kind in TYPES.items()
    }
    for path, first, *stamp in data["sources"]:
        cloud = open_source(data["caller"], as_path(path), ["points"])
        if list(cloud.stamp) != stamp:
            raise FileError.of(data["caller"], path, "was changed while the job ran")
        for batch in cloud.batches(list(TYPES), hint):
            found = {
                name: numbers_of(cloud.path, name, batch[name], np.dtype(kind))
                for name, kind in TYPES.items()
            }
            inside = in_box(found["x"], found["y"], box)
            for name, values in found.items():
                chosen = values[inside]
                parts[name].append(chosen + first if name == "point_id" else chosen)
    return {name: np.concatenate(values) for name, values in parts.items()}


def is_own(own: dict[str, Any], rows: "dict[str, NDArray[Any]]") -> "NDArray[np.bool_]":
    """Say which rows, with `point_id`, x and y, are of the core itself."""
    if "box" in own:
        xmin, ymin, xmax, ymax = own["box"]
        x, y = rows["x"], rows["y"]
        inside: NDArray[np.bool_] = (x >= xmin) & (x < xmax) & (y >= ymin) & (y < ymax)
        return inside
    ids = rows["point_id"]
    within: NDArray[np.bool_] = (ids >= own["first"]) & (ids < own["stop"])
    return within


def write_rows(rows: "dict[str, NDArray[Any]]", path: Path) -> None:
    """Write rows with x and y to Parquet, so that those near each other are near in the file.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    x, y = rows["x"], rows["y"]
    order = np.arange(0)
    if x.size:
        box = float(x.min()), float(y.min()), float(x.max()), float(y.max())
        order = np.lexsort((rows["point_id"], hilbert(*cells_of(x, y, box))))
    table = pa.table({name: values[order] for name, values in rows.items()})
    pq.write_table(table, path, row_group_size=ROW_GROUP, compression="zstd")
