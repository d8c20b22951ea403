"""Point cloud files as workflows read them: checked and opened, their CRS, their columns.

Several files are one cloud: the position of a point runs on from file to file. What is computed
goes back to the positions, and outputs are made by reading the files again, one after the other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.errors import FileError
from spatialq.io.formats import open_source
from spatialq.io.source import LAS, PointSource, Progress, numbers_of
from spatialq.runtime import buffers
from spatialq.runtime.threads import chunks
from spatialq.workflows.outputs import Outputs

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOISE = (7, 18)  # ASPRS classes
IS_NOISE = np.isin(np.arange(256), NOISE)
"""By class."""
CLASS, POINT_ID = "classification", "point_id"
AXES = ("x", "y", "z")

Bounds = tuple[float, float, float, float]
"""xmin, ymin, xmax, ymax."""


def open_clouds(
    sources: Sequence[Path], outputs: Outputs, endings: Sequence[str]
) -> list[PointSource]:
    """Open point clouds, after checking that the outputs can be written.

    Raises
    ------
    FileError
        If a source cannot be read or is given twice, or an output cannot be written.
    ValueError
        If an output has none of the endings, or two are one file.
    """
    command = outputs.command
    there: set[Path] = set()
    for source in sources:
        if source.resolve() in there:
            raise FileError.of(command, source, "is given twice")
        there.add(source.resolve())
    outputs.check(sources, endings)
    clouds = [open_source(command, source, ["points"]) for source in sources]
    for target, group in las_outputs(clouds, outputs):
        _require_format(command, group, target)
    return clouds


def las_outputs(
    clouds: Sequence[PointSource], outputs: Outputs
) -> list[tuple[Path, Sequence[PointSource]]]:
    """Name the LAS and LAZ files to write, and of which clouds each has the points."""
    found: list[tuple[Path, Sequence[PointSource]]] = [
        (target, clouds) for target in outputs.ending_in(*LAS)
    ]
    for folder in outputs.folders:
        targets = outputs.in_folder(folder, [cloud.path for cloud in clouds])
        found += [(target, [cloud]) for target, cloud in zip(targets, clouds, strict=True)]
    return found


def _require_format(command: str, clouds: Sequence[PointSource], target: Path) -> None:
    from spatialq.export.las import require_format
    from spatialq.export.las_records import PointRecords
    from spatialq.export.point_columns import sql_types

    if are_las(clouds):
        require_format([cloud.path for cloud in clouds], target)
        return
    PointRecords(target, sql_types(clouds[0].schema))  # refuses columns of text
    first, *others = clouds
    for cloud in others:
        columns = [sorted(sql_types(each.schema).items()) for each in (first, cloud)]
        if columns[0] != columns[1]:
            apart = sorted(name for name, _ in set(columns[0]) ^ set(columns[1]))
            reason = (
                f"'{first.path}' and '{cloud.path}' have different columns "
                f"({', '.join(dict.fromkeys(apart))}); write each into a file of its own (an "
                "output that is a folder, such as out/)"
            )
            raise FileError.of(command, target, reason)


def crs_of(
    command: str, clouds: Sequence[PointSource], crs: str | None, *, override: bool
) -> str | None:
    """Give the CRS of clouds, or the argument `crs`, and warn about the clouds.

    Raises
    ------
    CrsError, ValueError
        As `spatialq.io.crs.given_or_own`.
    """
    from spatialq.io import crs as crs_text
    from spatialq.io.files import warn_about

    named = [(cloud.path, cloud.crs) for cloud in clouds]
    crs = crs_text.given_or_own(command, named, crs, override=override)
    for cloud in clouds:
        warn_about(command, cloud)
    return crs


@dataclass
class Points:
    """The points of a cloud that are considered, and the class of every point."""

    x: "NDArray[np.float64]"
    y: "NDArray[np.float64]"
    z: "NDArray[np.float64]"
    point_id: "NDArray[np.int64]"
    """Positions of these points among those of all files, ascending."""
    classes: "NDArray[np.uint8]"
    """By position, 0 where a file has none."""
    keep: "NDArray[np.bool_] | None"
    """By position: whether a point is within the bounds; None where all are."""
    count: int
    """Points within the bounds."""
    starts: Mapping[Path, int]
    """The first position of each file."""

    @property
    def xyz(self) -> "tuple[NDArray[np.float64], ...]":
        """The coordinates."""
        return self.x, self.y, self.z

    @property
    def columns(self) -> "dict[str, NDArray[Any]]":
        """What a function of points gets."""
        return {"x": self.x, "y": self.y, "z": self.z, POINT_ID: self.point_id}

    @property
    def noise(self) -> int:
        """Points that are not considered."""
        return self.count - self.point_id.size

    def rows_of(self, clouds: Sequence[PointSource]) -> slice:
        """Give the positions of the points of neighbouring files."""
        return slice(
            self.starts[clouds[0].path], self.starts[clouds[-1].path] + clouds[-1].rows
        )

    def by_position(
        self, values: "NDArray[Any]", dtype: Any, *, missing: float
    ) -> "NDArray[Any]":
        """Give values of the points that are considered a place among those of all points."""
        found = buffers.empty(self.classes.size, dtype)
        found[...] = missing
        for start, stop in chunks(self.point_id.size):
            found[self.point_id[start:stop]] = values[start:stop]
        return found


def read_columns(
    clouds: Sequence[PointSource], bounds: Bounds | None, progress: Progress | None
) -> Points:
    """Read x, y, z, position and class of the points of files that are not classified as noise.

    Parameters
    ----------
    clouds : sequence of PointSource
    bounds : Bounds, optional
        Only the points inside or on the border.
    progress : callable, optional
        Called with a file, its rows so far and its rows in all.
    """
    n = sum(cloud.rows for cloud in clouds)
    space: dict[str, NDArray[Any]] = {axis: buffers.empty(n) for axis in AXES}
    space[POINT_ID] = buffers.empty(n, np.int64)
    classes = buffers.empty(n, np.uint8)
    classes[...] = 0
    keep = None if bounds is None else buffers.empty(n, np.bool_)
    if keep is not None:
        keep[...] = False
    found = Points(*space.values(), classes, keep, 0, {})
    starts, done, first = {}, 0, 0
    for cloud in clouds:
        starts[cloud.path] = first
        read = _read_whole if bounds is None else _read_within
        done = read(cloud, space, found, (first, done), bounds, progress)
        first += cloud.rows
    return replace(
        found, **{name: values[:done] for name, values in space.items()}, starts=starts
    )


def _read_whole(
    cloud: PointSource,
    space: "Mapping[str, NDArray[Any]]",
    found: Points,
    at: tuple[int, int],
    bounds: Bounds | None,
    progress: Progress | None,
) -> int:
    """Read a file into the arrays from a place on, and give the place behind its points."""
    del bounds
    first, done = at
    arrays = {name: values[done : done + cloud.rows] for name, values in space.items()}
    arrays[CLASS] = found.classes[first : first + cloud.rows]
    there = {name: values for name, values in arrays.items() if name in cloud.schema.names}
    came = cloud.read_into(there, progress)
    if came < cloud.rows:  # those that are no valid points have no class
        known = arrays[CLASS][:came].copy()
        arrays[CLASS][...] = 0
        arrays[CLASS][arrays[POINT_ID][:came]] = known
    found.count += came
    if first:
        arrays[POINT_ID][:came] += first
    for start, stop in chunks(came):
        part = {name: arrays[name][start:stop] for name in space}
        done = _keep(space, done, part, found.classes)
    return done


def _read_within(
    cloud: PointSource,
    space: "Mapping[str, NDArray[Any]]",
    found: Points,
    at: tuple[int, int],
    bounds: Bounds | None,
    progress: Progress | None,
) -> int:
    """Read what of a file is within bounds; as `_read_whole`."""
    assert bounds is not None
    assert found.keep is not None
    first, done = at
    xmin, ymin, xmax, ymax = bounds
    names = [name for name in (*space, CLASS) if name in cloud.schema.names]
    came = 0
    for batch in cloud.batches(names, (xmin, ymin, -inf, xmax, ymax, inf)):
        part = {
            name: numbers_of(
                cloud.path, name, batch[name], np.dtype(np.uint8) if name == CLASS else space[name].dtype
            )
            for name in names
        }
        x, y = part["x"], part["y"]
        inside = np.flatnonzero((x >= xmin) & (x <= xmax) & (y >= ymin) & (y <= ymax))
        part = {name: values[inside] for name, values in part.items()}
        part[POINT_ID] += first
        found.keep[part[POINT_ID]] = True
        if CLASS in part:
            found.classes[part[POINT_ID]] = part.pop(CLASS)
        found.count += inside.size
        done = _keep(space, done, part, found.classes)
        came += batch.num_rows
        if progress is not None:
            progress(cloud.path, came, cloud.rows)
    return done


def _keep(
    space: "Mapping[str, NDArray[Any]]",
    done: int,
    part: "Mapping[str, NDArray[Any]]",
    classes: "NDArray[np.uint8]",
) -> int:
    """Put some points that are no noise behind those that are there; they may lie there already."""
    ids = part[POINT_ID]
    rows = np.flatnonzero(~IS_NOISE[classes[ids]])
    for name, values in part.items():
        place = space[name][done : done + rows.size]
        if rows.size < ids.size:
            place[...] = values[rows]
        elif place.__array_interface__["data"] != values.__array_interface__["data"]:
            place[...] = values
    return done + rows.size


def are_las(clouds: Sequence[PointSource]) -> bool:
    """Whether points can be copied from files record by record."""
    from spatialq.io.las.source import LasSource

    return all(isinstance(cloud, LasSource) for cloud in clouds)


def write_with_columns(
    clouds: Sequence[PointSource],
    target: Path,
    added: "Mapping[str, NDArray[Any]]",
    progress: Progress | None,
    *,
    crs: str | None,
    keep: "NDArray[np.bool_] | None" = None,
) -> int:
    """Write clouds of any format as one LAS or LAZ, with columns added or in the place of others.

    Parameters
    ----------
    clouds : sequence of PointSource
        With the same columns.
    target : Path
    added : mapping of str to array
        A value for each row of the sources, one after the other.
    progress : callable, optional
        Called with the target, rows so far and rows in all.
    crs : str, optional
        PROJJSON.
    keep : bool[], optional
        The rows to write; by default all.

    Returns
    -------
    int
        Points written.

    Raises
    ------
    FileError
        As `spatialq.export.las_points.write_points`.
    """
    import pyarrow as pa

    from spatialq.export.las_points import write_points
    from spatialq.export.point_columns import sql_types

    first_schema = clouds[0].schema
    names = [name for name in first_schema.names if name.lower() not in {POINT_ID, *added}]
    types = [(name, pa.from_numpy_dtype(values.dtype)) for name, values in added.items()]
    schema = pa.schema([*(first_schema.field(name) for name in names), *types])
    rows_in_all = sum(cloud.rows for cloud in clouds)

    def batches() -> Iterator[pa.RecordBatch]:
        first = 0
        for cloud in clouds:
            for batch in cloud.batches([POINT_ID, *names]):
                rows = batch.column(0).to_numpy() + first
                new = (pa.array(values[rows]) for values in added.values())
                widened = pa.RecordBatch.from_arrays([*batch.columns[1:], *new], schema=schema)
                yield widened if keep is None else widened.filter(pa.array(keep[rows]))
                if progress is not None:
                    progress(target, int(rows[-1]) + 1 if rows.size else first, rows_in_all)
            first += cloud.rows

    return write_points(target, sql_types(schema), batches(), crs=crs, layout=clouds[0].layout)


def checked_bounds(command: str, bounds: Any) -> Bounds | None:
    """Check an argument `bounds`.

    Raises
    ------
    ValueError
        If it is not four finite numbers, of which the first two are not above the others.
    """
    if bounds is None:
        return None
    try:
        xmin, ymin, xmax, ymax = map(float, bounds)
    except (TypeError, ValueError):
        pass
    else:
        if xmin <= xmax and ymin <= ymax and all(map(isfinite, (xmin, ymin, xmax, ymax))):
            return xmin, ymin, xmax, ymax
    message = (
        f"{command}: bounds must be four finite numbers xmin, ymin, xmax, ymax with xmin <= xmax "
        f"and ymin <= ymax, got {bounds!r}"
    )
    raise ValueError(message)
