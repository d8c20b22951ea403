"""The points of clouds as workflows compute with them.

Several files are one cloud: the position of a point runs on from file to file. What is computed
goes back to the positions, and outputs are made by reading the files again, one after the other.
"""

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.data.boxes import in_box
from spatialq.errors import FileWarning
from spatialq.io.source import PointSource, Progress, numbers_of
from spatialq.runtime import buffers
from spatialq.runtime.arrays import Array, Bools, Bytes, Floats, Ints
from spatialq.runtime.threads import chunks

AXES = ("x", "y", "z")
CLASS, POINT_ID = "classification", "point_id"
NOISE = (7, 18)  # ASPRS classes
IS_NOISE = np.isin(np.arange(256), NOISE)
"""By class."""

Bounds = tuple[float, float, float, float]
"""xmin, ymin, xmax, ymax."""


@dataclass(frozen=True)
class Points:
    """The points of a cloud that are considered, and the class of every point."""

    columns: Mapping[str, Array]
    """x, y, z, and as `point_id` the positions, ascending."""
    classes: Bytes
    """By position, 0 where a file has none."""
    keep: Bools | None
    """By position: whether a point was read and is within the bounds; None where all are."""
    count: int
    """Points that were read and are within the bounds."""
    starts: Mapping[Path, int]
    """The first position of each file."""

    @property
    def xyz(self) -> list[Floats]:
        """The coordinates."""
        return [self.columns[axis] for axis in AXES]

    @property
    def point_id(self) -> Ints:
        """The positions."""
        return self.columns[POINT_ID]

    @property
    def noise(self) -> int:
        """Points that are not considered."""
        return self.count - self.point_id.size

    def rows_of(self, clouds: Sequence[PointSource]) -> slice:
        """Give the positions of the points of neighbouring files."""
        return slice(self.starts[clouds[0].path], self.starts[clouds[-1].path] + clouds[-1].rows)

    def by_position(self, values: Array, dtype: Any, *, missing: float) -> Array:
        """Give values of the points that are considered a place among those of all points."""
        found: Array = buffers.empty(self.classes.size, dtype)
        found[...] = missing
        for start, stop in chunks(self.point_id.size):
            found[self.point_id[start:stop]] = values[start:stop]
        return found


def read_points(
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
    is_cut = bounds is not None or not all(cloud.is_whole for cloud in clouds)
    reading = _Reading(sum(cloud.rows for cloud in clouds), is_cut=is_cut)
    starts, first = {}, 0
    for cloud in clouds:
        starts[cloud.path] = first
        if bounds is None:
            reading.take_all(cloud, first, progress)
        else:
            reading.take_within(cloud, first, bounds, progress)
        first += cloud.rows
    columns = {name: values[: reading.done] for name, values in reading.space.items()}
    return Points(columns, reading.classes, reading.keep, reading.count, starts)


def warn_of_nothing(
    command: str, clouds: Sequence[PointSource], bounds: Bounds | None, count: int
) -> None:
    """Warn if no point is within the bounds, and say where the headers of the files place them."""
    if bounds is None or count > 0:
        return
    message = f"{command}: no point is within the bounds {', '.join(f'{b:.15g}' for b in bounds)}"
    boxes = [cloud.box for cloud in clouds if cloud.box is not None]
    if boxes:
        low, high = np.array(boxes)[:, :2].min(axis=0), np.array(boxes)[:, 3:5].max(axis=0)
        there = ", ".join(f"{each:.15g}" for each in (*low, *high))
        message += f"; the points are within {there}"
    warnings.warn(message, FileWarning, stacklevel=3)


class _Reading:
    """Arrays that are filled from file to file; points that are left out are closed up on."""

    def __init__(self, n: int, *, is_cut: bool) -> None:
        self.space: dict[str, Array] = {axis: buffers.empty(n) for axis in AXES}
        self.space[POINT_ID] = buffers.empty(n, np.int64)
        self.classes: Bytes = buffers.empty(n, np.uint8)
        self.classes[...] = 0
        self.keep: Bools | None = buffers.empty(n, np.bool_) if is_cut else None
        if self.keep is not None:
            self.keep[...] = False
        self.count = self.done = 0

    def take_all(self, cloud: PointSource, first: int, progress: Progress | None) -> None:
        """Read a file whose points have positions from `first` on."""
        behind = slice(self.done, self.done + cloud.rows)
        arrays = {name: values[behind] for name, values in self.space.items()}
        classes = self.classes[first : first + cloud.rows]
        there = {
            name: values
            for name, values in (*arrays.items(), (CLASS, classes))
            if name in cloud.schema.names
        }
        came = cloud.read_into(there, progress)
        ids = arrays[POINT_ID][:came]
        if came < cloud.rows:  # those that are no valid points have no class
            known = classes[:came].copy()
            classes[...] = 0
            classes[ids] = known
        self.count += came
        for start, stop in chunks(came):
            ids[start:stop] += first
            if self.keep is not None:
                self.keep[ids[start:stop]] = True
            self._keep({name: values[start:stop] for name, values in arrays.items()})

    def take_within(
        self, cloud: PointSource, first: int, bounds: Bounds, progress: Progress | None
    ) -> None:
        """Read what of a file is within bounds."""
        assert self.keep is not None
        xmin, ymin, xmax, ymax = bounds
        kinds = {name: values.dtype for name, values in self.space.items()}
        kinds[CLASS] = self.classes.dtype
        names = [name for name in kinds if name in cloud.schema.names]
        came = 0
        for batch in cloud.batches(names, (xmin, ymin, -inf, xmax, ymax, inf)):
            part = {n: numbers_of(cloud.path, n, batch[n], kinds[n]) for n in names}
            inside = np.flatnonzero(in_box(part["x"], part["y"], bounds))
            part = {name: values[inside] for name, values in part.items()}
            part[POINT_ID] += first
            self.keep[part[POINT_ID]] = True
            if CLASS in part:
                self.classes[part[POINT_ID]] = part.pop(CLASS)
            self.count += inside.size
            self._keep(part)
            came += batch.num_rows
            if progress is not None:
                progress(cloud.path, came, cloud.rows)

    def _keep(self, part: Mapping[str, Array]) -> None:
        """Put points that are no noise behind those that are there; they may lie there already."""
        ids = part[POINT_ID]
        rows = np.flatnonzero(~IS_NOISE[self.classes[ids]])
        for name, values in part.items():
            place = self.space[name][self.done : self.done + rows.size]
            if rows.size < ids.size:
                place[...] = values[rows]
            elif place.ctypes.data != values.ctypes.data:
                place[...] = values
        self.done += rows.size


def checked_bounds(command: str, bounds: Any) -> Bounds | None:
    """Check an argument `bounds`.

    Raises
    ------
    ValueError
        If it is not four finite numbers, of which the first two are not above the others.
    """
    if bounds is None:
        return None
    from spatialq.functions.declaration import is_box

    with suppress(TypeError, ValueError):
        box = tuple(map(float, bounds))
        if is_box(box):
            xmin, ymin, xmax, ymax = box
            return xmin, ymin, xmax, ymax
    message = (
        f"{command}: bounds must be four finite numbers xmin, ymin, xmax, ymax with xmin <= xmax "
        f"and ymin <= ymax, got {bounds!r}"
    )
    raise ValueError(message)
