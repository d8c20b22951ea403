"""The points that a task reads, and the rows of its result that are its own."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.cluster.runs import ranges_in
from spatialq.data.boxes import in_box
from spatialq.errors import FileError
from spatialq.export.spatial_order import cells_of, hilbert
from spatialq.io.formats import open_source
from spatialq.io.source import ROW_GROUP, numbers_of
from spatialq.io.view import INFINITY

if TYPE_CHECKING:
    from numpy.typing import NDArray

GEOMETRY, COVERING = "geometry", "bbox"
"""Columns that make a part GeoParquet: the point again, and its box."""
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
    for (path, first, *stamp), runs in zip(data["sources"], data["runs"], strict=True):
        cloud = open_source(data["caller"], Path(path), ["points"])
        if list(cloud.stamp) != stamp:
            raise FileError.of(data["caller"], path, "was changed while the job ran")
        if runs is not None:
            cloud = cloud.of_rows(ranges_in(runs, box))
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


def write_rows(rows: "dict[str, NDArray[Any]]", path: Path, crs: str | None = None) -> None:
    """Write rows with x and y, and perhaps z, to GeoParquet, near ones near in the file.

    Parameters
    ----------
    rows : dict of arrays
        One of them `point_id`.
    path : Path
    crs : str, optional
        PROJJSON of x and y; None if it is not known.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from spatialq.database.geoparquet import metadata
    from spatialq.export.wkb import points, struct_of_boxes

    x, y = rows["x"], rows["y"]
    order = np.arange(0)
    if x.size:
        box = float(x.min()), float(y.min()), float(x.max()), float(y.max())
        order = np.lexsort((rows["point_id"], hilbert(*cells_of(x, y, box))))
    columns: dict[str, Any] = {name: values[order] for name, values in rows.items()}
    axes = [columns[axis] for axis in "xyz" if axis in columns]
    columns[GEOMETRY] = points(*axes)
    columns[COVERING] = struct_of_boxes(np.column_stack([*axes[:2], *axes[:2]]))
    known: dict[str, Any] = {"geometry_types": ["Point Z" if len(axes) > 2 else "Point"]}
    if x.size:
        known["bbox"] = [float(end(each)) for end in (np.min, np.max) for each in axes]
    geo = metadata({GEOMETRY: known}, {GEOMETRY: crs}, COVERING)
    table = pa.table(columns).replace_schema_metadata({"geo": geo})
    pq.write_table(table, path, row_group_size=ROW_GROUP, compression="zstd")
