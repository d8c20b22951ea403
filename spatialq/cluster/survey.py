"""The survey: the first tasks of a job find out what its files hold, which all later tasks need."""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.cluster import row_index
from spatialq.cluster.task import Done, Task, name_of
from spatialq.data.boxes import in_box
from spatialq.data.strays import Box, few
from spatialq.errors import FileError, JobError
from spatialq.io.crs import require_same
from spatialq.io.files import warn_about
from spatialq.io.filters import check_bounds
from spatialq.io.formats import open_source
from spatialq.io.storage import ObjectPath, as_path
from spatialq.runtime.arrays import Array, Floats, Ints

SURVEY = "survey"
AXES, CLASS = ("x", "y", "z"), "classification"
HEADER = 1 << 16
"""Bytes at the beginning of a file whose digest, beside size and time, tells it from another."""
OUTER = 32
"""The share of a file's points that is beyond the values with which stray points are sought."""


class MayBeStrayError(JobError):
    """There may be stray points: the job is refused."""


Stamp = list[int | str]
"""Time, size, and a digest of what the file begins with or the ETag of an object."""


def stamp_of(path: Path) -> Stamp:
    """Give what tells one state of a file from another: time, size, digest of its beginning."""
    status = path.stat()
    if isinstance(path, ObjectPath):
        return [status.st_mtime_ns, status.st_size, path.found().etag]
    with path.open("rb") as file:
        digest = blake2b(file.read(HEADER), digest_size=16).hexdigest()
    return [status.st_mtime_ns, status.st_size, digest]


def read_stamp(caller: str, path: Path) -> Stamp:
    """Give the stamp of a file that a task is about to read.

    Raises
    ------
    FileError
        If it cannot be read.
    """
    try:
        return stamp_of(path)
    except OSError as error:
        raise FileError.of(caller, path, f"cannot be read: {error.strerror or error}") from None


def task_of(
    caller: str,
    path: str,
    first: tuple[str, str | None],
    bounds: Sequence[float] | None,
    left_out: Sequence[int] = (),
) -> Task:
    """Make the task that looks at a file.

    `first` is the path of the first one, and its CRS; `left_out` are classes of points that are not
    considered.
    """
    data = {"caller": caller, "path": path, "first": first, "bounds": bounds, "left_out": left_out}
    return Task(path, name_of(perform), data)


def perform(data: dict[str, Any], _: Path) -> dict[str, Any]:
    """Look at all points of a file.

    Returns
    -------
    dict
        `stamp`; `rows` of the file; `points` inside of the bounds; `low` and `high`, their extent
        [3], and `inner_low` and `inner_high` [3]: one of OUTER points, at least one, is at or
        beyond each. No extent where there are no points. These are without the classes that are
        left out; `whole` is the same with them, where some points have one. Of a file that can be
        read in parts, `run`, how many rows are a run, and `boxes` of these with all classes, see
        `spatialq.cluster.row_index`.

    Raises
    ------
    FileError
        If the file cannot be read.
    CrsError
        If its CRS is another one than that of the first.
    """
    path = as_path(data["path"])
    stamp = read_stamp(data["caller"], path)
    cloud = open_source(data["caller"], path, ["points"])
    require_same(data["caller"], [data["first"], (path, cloud.crs)])
    warn_about(data["caller"], cloud)
    bounds = data["bounds"]
    hint = check_bounds(data["caller"], bounds)
    run = row_index.rows_of_run(cloud)
    boxes = None if run is None else row_index.Boxes(run, cloud.rows)
    names = [*AXES, *([CLASS] if data["left_out"] and CLASS in cloud.schema.names else [])]
    parts: list[list[Array]] = [[] for _ in names]
    for batch in cloud.batches([*names, "point_id"], hint):
        *columns, ids = (values.to_numpy(zero_copy_only=False) for values in batch.columns)
        if bounds is not None:
            inside = in_box(columns[0], columns[1], bounds)
            *columns, ids = (values[inside] for values in (*columns, ids))
        if boxes is not None:
            boxes.add(ids, columns[0], columns[1])
        for part, values in zip(parts, columns, strict=True):
            part.append(values)
    columns = [np.concatenate([np.empty(0), *part]) for part in parts]
    facts = {"stamp": stamp, "rows": cloud.rows}
    xyz = columns[:3]
    if len(columns) > len(xyz):
        considered = ~np.isin(columns[3], data["left_out"])
        if not considered.all():
            facts["whole"] = _extent(data["caller"], path, xyz)
            xyz = [values[considered] for values in xyz]
    facts |= _extent(data["caller"], path, xyz)
    if boxes is not None and columns[0].size:
        facts |= {"run": run, "boxes": boxes.text()}
    return facts


def _extent(caller: str, path: Path, columns: list[Any]) -> dict[str, Any]:
    n = columns[0].size
    if n == 0:
        return {"points": 0}
    if not all(np.isfinite(values).all() for values in columns):
        raise FileError.of(caller, path, "x, y and z must be finite")
    outer = max(1, n // OUTER)
    places = [outer - 1, n - outer]
    inner = [np.partition(values, places)[places].tolist() for values in columns]
    return {
        "points": n,
        "low": [float(values.min()) for values in columns],
        "high": [float(values.max()) for values in columns],
        "inner_low": [low for low, _ in inner],
        "inner_high": [high for _, high in inner],
    }


@dataclass(frozen=True)
class Survey:
    """All files of a job, in their order; arrays have a row for each file."""

    paths: list[str]
    stamps: Ints
    """int64[n, 2]: times of the last change and sizes."""
    rows: Ints
    points: Ints
    first: Ints
    """`point_id` of the first row of each file."""
    low: Floats
    high: Floats
    """float64[n, 3]: the extents; NaN where a file has no points."""
    inner: Floats
    """float64[n, 2, 3]: `inner_low` and `inner_high`."""
    run: Ints
    """Rows of the runs of each file; 0 where none are known."""
    boxes: list[bytes]
    """Of the runs of each file, see `spatialq.cluster.row_index`; without Base64."""
    left_out: "Survey | None" = None
    """The survey with the points whose classes are left out; None where it is this one."""

    @classmethod
    def of(cls, paths: list[str], done: Iterable[Done]) -> "Survey":
        """Put together what the tasks found out, in the order of the files."""
        n = len(paths)
        number = {path: k for k, path in enumerate(paths)}
        rows, stamps = np.zeros(n, np.int64), np.zeros((n, 2), np.int64)
        run, boxes = np.zeros(n, np.int64), [b""] * n
        considered, whole = _Extents(n), None  # the same, but where classes are left out
        for each in done:
            k, facts = number[each.name], each.facts
            rows[k], stamps[k] = facts["rows"], facts["stamp"][:2]
            run[k], boxes[k] = facts.get("run", 0), b64decode(facts.get("boxes", ""))
            considered.set(k, facts)
            if whole is None and "whole" in facts:
                whole = deepcopy(considered)
            if whole is not None:
                whole.set(k, facts.get("whole", facts))
        first = np.concatenate([[0], np.cumsum(rows)[:-1]])

        def survey(extents: _Extents, left_out: Survey | None = None) -> Survey:
            counts = rows, extents.points, first
            return cls(paths, stamps, *counts, *extents.boxes, run, boxes, left_out)

        return survey(considered, None if whole is None else survey(whole))

    @property
    def whole(self) -> "Survey":
        """The survey with the points whose classes are left out."""
        return self.left_out or self

    def runs(self, k: int) -> dict[str, Any] | None:
        """Say where in a file its points are, as `ranges_in` takes it; None: not known."""
        if not self.boxes[k]:
            return None
        extent = [*self.whole.low[k, :2].tolist(), *self.whole.high[k, :2].tolist()]
        text = b64encode(self.boxes[k]).decode()
        return {"rows": int(self.run[k]), "extent": extent, "boxes": text}

    @property
    def total(self) -> int:
        """Points inside of the bounds."""
        return int(self.points.sum())

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Extent of all points: xmin, ymin, xmax, ymax."""
        low, high = self.ends
        return float(low[0]), float(low[1]), float(high[0]), float(high[1])

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """The least x, y and z of all points, and the greatest."""
        return np.nanmin(self.low, axis=0), np.nanmax(self.high, axis=0)

    def file_of_strays(self, z_to_xy_scale: float = 1.0) -> str | None:
        """Name the file with the points farthest from all others.

        Returns
        -------
        str or None
            None where no point can be stray, as `spatialq.data.strays` says.
        """
        most = few(self.total)
        if most == 0:
            return None
        inside = self.points > 0
        counts = np.maximum(1, self.points[inside] // OUTER)
        low, high = np.empty(3), np.empty(3)
        for axis in range(3):
            low[axis] = _beyond(self.inner[inside, 0, axis], counts, most)
            high[axis] = -_beyond(-self.inner[inside, 1, axis], counts, most)
        if Box(low, high, z_to_xy_scale).reach.holds(Box(*self.ends, z_to_xy_scale)):
            return None
        away = np.maximum(low - self.low, self.high - high).max(axis=1)
        return self.paths[int(np.nanargmax(away))]

    def require_no_strays(self, caller: str, z_to_xy_scale: float = 1.0) -> None:
        """Refuse a survey of which a few points may be far from all others.

        They would be left out by a call on all files at once; no task sees all points.

        Raises
        ------
        MayBeStrayError
            If there may be stray points.
        """
        farthest = self.file_of_strays(z_to_xy_scale)
        if farthest is None:
            return
        message = (
            f"{caller}: '{farthest}' has points that may be far from all others, which no tile can "
            "tell: give bounds without them, or leave the file out"
        )
        raise MayBeStrayError(message)


class _Extents:
    """Arrays of what tasks found out about files, which are filled in any order."""

    def __init__(self, n: int) -> None:
        self.points = np.zeros(n, np.int64)
        self._ends = np.full((n, 4, 3), np.nan)

    def set(self, k: int, facts: Mapping[str, Any]) -> None:
        """Fill in a file."""
        self.points[k] = facts["points"]
        for j, name in enumerate(("low", "high", "inner_low", "inner_high")):
            self._ends[k, j] = facts.get(name, np.nan)

    @property
    def boxes(self) -> tuple[Floats, Floats, Floats]:
        """The arrays `low`, `high` and `inner` of a survey."""
        return self._ends[:, 0], self._ends[:, 1], self._ends[:, 2:]


def _beyond(values: Floats, counts: Ints, most: int) -> float:
    """Give the least value at or below which more than `most` points are, as far as is known."""
    order = np.argsort(values)
    at = int(np.searchsorted(np.cumsum(counts[order]), most, side="right"))
    return float(values[order[min(at, order.size - 1)]])
