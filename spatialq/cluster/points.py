"""The points that a task reads, and the rows of its result that are its own."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.cluster.row_index import ranges_in
from spatialq.cluster.survey import Stamp
from spatialq.data.boxes import in_box
from spatialq.errors import FileError
from spatialq.execution.call import call_as_given
from spatialq.export.spatial_order import cells_of, hilbert
from spatialq.functions.catalogue import catalogue, divisible
from spatialq.functions.declaration import Parameters, PointsInput
from spatialq.functions.stages import Box, Columns
from spatialq.io.filters import INFINITY
from spatialq.io.formats import open_source
from spatialq.io.source import ROW_GROUP, PointSource, numbers_of
from spatialq.io.source import Box as BoxOfPoints
from spatialq.io.storage import as_path
from spatialq.runtime.arrays import Array, Bools

GEOMETRY, COVERING = "geometry", "bbox"
"""Columns that make a part GeoParquet: the point again, and its box."""
TYPES = {"point_id": np.int64, "x": np.float64, "y": np.float64, "z": np.float64}
CLASS = "classification"


def open_cloud(caller: str, path: str, stamp: Stamp) -> Any:
    """Open a file of a task as a `PointSource`.

    Raises
    ------
    FileError
        If it cannot be read, or has another time or size than when the job began.
    """
    cloud = open_source(caller, as_path(path), ["points"])
    if list(cloud.stamp) != stamp:
        raise FileError.of(caller, path, "was changed while the job ran")
    return cloud


def read_box(data: Mapping[str, Any]) -> tuple[list[float], BoxOfPoints]:
    """Give the box that the points of a task are in, and all that is in it as readers take it.

    The box is xmin, ymin, xmax, ymax: `read` of the data of the task, within its `bounds`.
    """
    box, bounds = list(data["read"]), data["bounds"]
    if bounds is not None:
        box = [*np.maximum(box[:2], bounds[:2]).tolist(), *np.minimum(box[2:], bounds[2:]).tolist()]
    return box, (box[0], box[1], -INFINITY, box[2], box[3], INFINITY)


class CorePart:
    """The points of a task, see `spatialq.functions.stages.Part`.

    Parameters
    ----------
    data : dict
        Of the task: `core`, its box; what to read, by `Layout.reading`; `caller`, `bounds`,
        `device`, `level`, and `left_out`, a list of classes.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.facts: dict[str, Any] = {}
        """What is recorded of the task: `device`, where a kernel has run."""

    @property
    def box(self) -> Box:
        """Around the points of the core."""
        xmin, ymin, xmax, ymax = self.data["core"]
        return xmin, ymin, xmax, ymax

    def points(self) -> dict[str, Array]:
        """Read the points of the core and its halo."""
        return self.leveled(self.read())

    def batches(self) -> Iterator[dict[str, Array]]:
        """Read these points one batch after the other."""
        return map(self.leveled, self._batches())

    def leveled(self, points: dict[str, Array]) -> dict[str, Array]:
        """Give points with heights as the kernel gets them."""
        level = self.data["level"]
        return points if level == 1 else points | {"z": points["z"] * level}

    def read(self) -> dict[str, Array]:
        """Read the points of the core and its halo, with heights as the files have them.

        Raises
        ------
        FileError
            If a file cannot be read, or was changed since the job began.
        """
        parts = list(self._batches())
        return {
            name: np.concatenate([np.empty(0, np.dtype(kind)), *(part[name] for part in parts)])
            for name, kind in self._types.items()
        }

    @property
    def _types(self) -> dict[str, Any]:
        inputs = divisible()[self.data["caller"]].inputs
        asked = isinstance(inputs, PointsInput) and CLASS in inputs.attributes
        return TYPES | ({CLASS: np.uint8} if asked or self.data["left_out"] else {})

    def _batches(self) -> Iterator[dict[str, Array]]:
        """Read points with the ids of the survey.

        Their `classification`, where it is read, is 0 where a file has none.
        """
        data, kinds = self.data, self._types
        box, hint = read_box(data)
        for cloud, first in self.clouds(box):
            names = [name for name in kinds if name != CLASS or name in cloud.schema.names]
            for batch in cloud.batches(names, hint):
                found = {
                    name: numbers_of(cloud.path, name, batch[name], np.dtype(kinds[name]))
                    for name in names
                }
                inside = in_box(found["x"], found["y"], box)
                if CLASS in kinds:
                    found.setdefault(CLASS, np.zeros(inside.size, np.uint8))
                    inside &= ~np.isin(found[CLASS], data["left_out"])
                found = {name: values[inside] for name, values in found.items()}
                found["point_id"] += first
                yield found

    def clouds(self, box: Sequence[float]) -> Iterator[tuple[PointSource, int]]:
        """Give the files, only with rows that may be in a box, and the ids of their first rows."""
        data = self.data
        for (path, first, *stamp), runs in zip(data["sources"], data["runs"], strict=True):
            cloud = open_cloud(data["caller"], path, stamp)
            yield cloud if runs is None else cloud.of_rows(ranges_in(runs, box)), first

    def is_own(self, rows: Columns) -> Bools:
        """Say which rows are of the core itself."""
        own = self.data["own"]
        if "box" in own:
            xmin, ymin, xmax, ymax = own["box"]
            x, y = rows["x"], rows["y"]
            inside: Bools = (x >= xmin) & (x < xmax) & (y >= ymin) & (y < ymax)
            return inside
        ids = rows["point_id"]
        within: Bools = (ids >= own["first"]) & (ids < own["stop"])
        return within

    def own(self, rows: Columns) -> dict[str, Array]:
        """Give the rows that are of the core itself."""
        own = self.is_own(rows)
        return {name: values[own] for name, values in rows.items()}

    def call(
        self, function: str, arguments: Mapping[str, Any], options: Parameters
    ) -> dict[str, Array]:
        """Run the kernel of a function as it is planned."""
        found, device = call_as_given(
            catalogue()[function], dict(arguments), options, self.data["device"], transport="files"
        )
        self.facts["device"] = device
        return found


class OwnPart(CorePart):
    """A core whose own points are given, as its files have them."""

    def __init__(self, part: CorePart, points: Columns) -> None:
        super().__init__(part.data)
        self.facts, self._points = part.facts, points

    def read(self) -> dict[str, Array]:
        """Give these points."""
        return dict(self._points)

    def own(self, rows: Columns) -> dict[str, Array]:
        """Give all rows."""
        return dict(rows)


def write_rows(
    rows: dict[str, Array],
    path: Path,
    columns: Sequence[str] | None = None,
    crs: str | None = None,
) -> None:
    """Write rows so that those near each other are near in the file.

    Of columns with x and y, and perhaps z, it is GeoParquet: points, boxes and CRS beside them.

    Parameters
    ----------
    rows : dict of arrays
        With `point_id`, x and y.
    path : Path
    columns : sequence of str, optional
        Those to write; by default all.
    crs : str, optional
        PROJJSON of x and y; None if it is not known.

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
    made: dict[str, Any] = {name: rows[name][order] for name in columns or rows}
    geo = _add_geometry(made, crs) if {"x", "y"} <= made.keys() else None
    table = pa.table(made).replace_schema_metadata(geo)
    pq.write_table(table, path, row_group_size=ROW_GROUP, compression="zstd")


def _add_geometry(columns: dict[str, Any], crs: str | None) -> dict[str, str]:
    """Add the columns of points and of boxes; give the metadata of GeoParquet."""
    from spatialq.database.geoparquet import metadata
    from spatialq.export.wkb import points, struct_of_boxes

    axes = [columns[axis] for axis in "xyz" if axis in columns]
    columns[GEOMETRY] = points(*axes)
    columns[COVERING] = struct_of_boxes(np.column_stack([*axes[:2], *axes[:2]]))
    known: dict[str, Any] = {"geometry_types": ["Point Z" if len(axes) > 2 else "Point"]}
    if axes[0].size:
        known["bbox"] = [float(end(each)) for end in (np.min, np.max) for each in axes]
    return {"geo": metadata({GEOMETRY: known}, {GEOMETRY: crs}, COVERING)}
