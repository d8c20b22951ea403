"""Parts of jobs that are files of clouds, or have their names."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.cluster.folder import CALLER, PARTS
from spatialq.cluster.job import Job
from spatialq.cluster.layout import Core
from spatialq.cluster.points import CorePart, open_cloud
from spatialq.cluster.staged import StagedWork, Write
from spatialq.cluster.task import Task
from spatialq.data.columns import NUMPY_TYPES
from spatialq.errors import FileError
from spatialq.functions.catalogue import divisible
from spatialq.functions.stages import Columns
from spatialq.io.storage import as_path
from spatialq.runtime.arrays import Array, Ints
from spatialq.workflows.cloud_points import NOISE
from spatialq.workflows.outputs import Outputs

LAZ = "laz"
MORE = {"noise": True}
"""An option of jobs: whether points that are classified as noise are considered."""


class ConsideredWork(StagedWork):
    """The stages of a job, in which noise may be left out; without such an option, it is."""

    def __init__(self, job: Job) -> None:
        super().__init__(job, () if job.call.more.get("noise") else NOISE)


class CloudWork(ConsideredWork):
    """The stages of such a job whose parts are clouds: all points, those of all classes, too."""

    writes: Write
    """Writes a part."""

    def __init__(self, job: Job) -> None:
        self.names = names_of_clouds(job, job.call.function)
        super().__init__(job)
        self.write = type(self).writes

    def rows(self, do: Callable[..., Any], *inputs: Any, halo: float = 0.0) -> None:
        """Have a task done for each part, also where no point is considered."""
        considered, self.layout = self.layout, self.job.layout(self.survey.whole)

        def task(name: str, core: Core) -> Task:
            if considered.has(core):
                return self.task(name, self.write, do, inputs, core, halo)
            return self.task(name, self.write, no_rows, (), core)

        tasks = (task(name, core) for name, core in self.named_cores())
        self.parts(tasks, sum(1 for _ in self.named_cores()))

    def end(self) -> None:
        """Write all points of a result without rows."""
        self.rows(no_rows)

    def named_cores(self) -> Iterator[tuple[str, Core]]:
        """Give the name of each part, and its core: all files, those without points, too."""
        if self.job.call.tile_size is None:
            for k, name in enumerate(self.names):
                yield name, self.layout.core_of(k)
            return
        for core in self.layout.cores():
            yield f"{core.name}.{LAZ}", core


def no_rows(part: CorePart) -> Columns:
    """Give the columns of a function, without a row."""
    columns = divisible()[part.data["caller"]].output.columns
    return {name: np.empty(0, NUMPY_TYPES[kind]) for name, kind in columns.items()}


class OwnPoints:
    """All points of a core, those that are not considered, too, and the files that they are in.

    Attributes
    ----------
    columns : dict of arrays
        As of `CorePart.read`.
    files : list of Path
    n : int
        Points of these files.
    """

    def __init__(self, part: CorePart) -> None:
        data = part.data
        self._crs = data["crs"]
        every = CorePart(data | {"left_out": []})
        self.columns: dict[str, Array] = every.own(every.read())
        ids = np.sort(self.columns["point_id"])
        clouds = [(open_cloud(data["caller"], path, stamp), first)
                  for path, first, *stamp in data["sources"]]  # fmt: skip
        ends = [np.searchsorted(ids, [first, first + cloud.rows]) for cloud, first in clouds]
        chosen = [k for k, (low, high) in enumerate(ends) if low < high] or [0]
        self.files = [clouds[k][0].path for k in chosen]
        self._firsts = np.array([clouds[k][1] for k in chosen])
        rows = [clouds[k][0].rows for k in chosen]
        self._starts = np.concatenate([[0], np.cumsum(rows)])
        self.n = int(self._starts[-1])

    def positions(self, ids: Any) -> Ints:
        """Say which rows of all files, one after the other, points with these ids are."""
        file = np.searchsorted(self._firsts, ids, side="right") - 1
        found: Ints = ids - self._firsts[file] + self._starts[file]
        return found

    def by_position(self, ids: Any, values: Any, missing: Any = 0) -> Array:
        """Give each row of all files the value of the point with its id, or what is missing."""
        found = np.full(self.n, missing, np.asarray(values).dtype)
        found[self.positions(ids)] = values
        return found

    def write(self, path: Path, ids: Any, **changes: Any) -> dict[str, Any]:
        """Write the points with some ids as their files have them, but for changes.

        Parameters
        ----------
        path : Path
        ids : int64[m]
        **changes
            `classes` or `fields`, as `write_copy` takes them.

        Returns
        -------
        dict
            `rows` written.
        """
        from spatialq.export.las import write_copy

        keep = self.by_position(ids, values=True)
        return {"rows": write_copy(self.files, path, keep=keep, crs=self._crs, **changes)}


def require_laz(option: str, more: Mapping[str, Any], part_format: str) -> None:
    """Refuse an option that only parts in LAZ have, where it is not false.

    Raises
    ------
    ValueError
    """
    if more[option] and part_format != LAZ:
        message = (
            f"{CALLER}: {option} must be false with part_format {part_format!r}: it is for {LAZ!r}"
        )
        raise ValueError(message)


def names_of_clouds(job: Job, caller: str) -> list[str]:
    """Name the part of each file as commands name their outputs in a folder.

    Raises
    ------
    FileError
        If two would have one name.
    """
    paths, folder = [as_path(path) for path in job.call.paths], Path(job.path(PARTS, ""))
    targets = Outputs(caller, [], [folder])
    if job.call.tile_size is None:
        targets.require_names(folder, paths)
    return [path.name for path in targets.in_folder(folder, paths)]


def names_of_rasters(job: Job, caller: str, ending: str) -> list[str]:
    """Name a raster of each file by the file's name without its ending.

    Raises
    ------
    FileError
        If two would have one name.
    """
    there: dict[str, str] = {}
    for path in job.call.paths:
        name = f"{as_path(path).stem}.{ending}"
        if one := there.get(name):
            reason = f"'{one}' and '{path}' would both be '{name}' in it: rename one of them"
            raise FileError.of(caller, job.path(PARTS, ""), reason)
        there[name] = path
    return list(there)
