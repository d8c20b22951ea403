"""`build_lod` of a survey: chunks of its octree, and the nodes above them from those of chunks.

Points are counted in cells, file by file, until each chunk, a cell, has few enough points. The task
of a chunk reads its points, writes the rows of its nodes, and beside them its first node. From such
first nodes the tasks of nodes above, some levels at once, make theirs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.cluster.folder import CALLER
from spatialq.cluster.job import Job, given
from spatialq.cluster.layout import Core, Layout
from spatialq.cluster.method import Method
from spatialq.cluster.methods.lod_tasks import build, count, divide, join, look, read_divided
from spatialq.cluster.survey import Survey
from spatialq.cluster.task import Task, name_of
from spatialq.workflows.lod_table import metadata_of, own_options

if TYPE_CHECKING:
    from spatialq.udfs.build_lod.chunks import Divided
    from spatialq.udfs.build_lod.split import Leaves
    from spatialq.udfs.build_lod.tree import Cube, Root

FUNCTION = "build_lod"
CHUNK_POINTS = 2_000_000
ATTRIBUTES, COUNTS, CHUNKS, ROOTS = "attributes", "counts", "chunks", "roots"
"""Stages beside those that all jobs have; those of counts and chunks are numbered."""
DIVIDED = "chunks.npz"


def run(job: Job) -> None:
    """Build the tree of a survey."""
    survey = job.survey()
    if survey.total == 0:
        job.parts([], 0)
        return
    tree = _Tree(job, survey, job.layout(survey))
    tree.build()


def check(more: Mapping[str, Any], tile_size: float | None, options: Any) -> None:
    """Refuse tiles, which the tree does not have, and chunks that are no whole number of points.

    Raises
    ------
    ValueError
    """
    from spatialq.udfs.build_lod.validation import MAX_POINTS

    if tile_size is not None:
        message = (
            f"{CALLER}: tile_size must be left out for build_lod, whose parts are cells of its "
            f"octree with at most chunk_points points, got {tile_size!r}"
        )
        raise ValueError(message)
    points = more["chunk_points"]
    is_whole = isinstance(points, int) and not isinstance(points, bool)
    if not (is_whole and options.max_points <= points <= MAX_POINTS):
        message = (
            f"{CALLER}: chunk_points must be a whole number from max_points, {options.max_points}, "
            f"to {MAX_POINTS}, got {points!r}"
        )
        raise ValueError(message)


@dataclass(frozen=True)
class _Tree:
    """The tree of a survey that has points."""

    job: Job
    survey: Survey
    layout: Layout

    @property
    def most(self) -> int:
        """Points of a chunk at most."""
        return int(self.job.call.more["chunk_points"])

    @property
    def cube(self) -> "Cube":
        """The cube around all points, with heights as the kernel gets them."""
        from spatialq.udfs.build_lod.validation import cube_around

        level = np.array([1.0, 1.0, self.job.call.level])
        low, high = np.nanmin(self.survey.low, axis=0), np.nanmax(self.survey.high, axis=0)
        return cube_around(low * level, high * level)

    @property
    def reading(self) -> dict[str, Any]:
        """What all tasks get that read points."""
        call = self.job.call
        cube = asdict(self.cube)
        return {"bounds": call.options.bounds, "level": call.level, "cube": cube}

    def build(self) -> None:
        """Do all stages after the survey."""
        from spatialq.udfs.build_lod.chunks import bands, in_order

        types = self._types()
        brightest, divided = self._divided()
        chunks = in_order(divided)
        shared = self._shared(types, brightest)
        rounds = [band for band in bands(chunks) if band]
        later = [self._joins(band, shared) for band in rounds]
        total = len(chunks.level) + sum(map(len, rounds))
        self.job.parts(self._builds(chunks, shared), total, *later, seconds=ROOTS)

    def _types(self) -> "dict[str, str]":
        """Find the types of attributes, which any file may lack.

        Raises
        ------
        ValueError
            If no file has one of them as numbers.
        """
        from spatialq.database.transport.cloud_columns import common_types

        job, names = self.job, self.job.call.options.more_columns
        if not names:
            return {}
        paths = job.call.paths
        tasks = (Task(path, name_of(look), {"path": path, "names": names}) for path in paths)
        files = (
            {name: np.dtype(kind) for name, kind in done.facts["types"].items()}
            for done in job.facts(ATTRIBUTES, tasks, len(paths))
        )
        found = common_types(FUNCTION, files, names)
        return {name: dtype.str for name, dtype in found.items()}

    def _divided(self) -> "tuple[int, list[Divided]]":
        """Find the chunks, step by step; give the greatest red, green or blue of points, too."""
        from spatialq.udfs.build_lod.chunks import first_depth, next_depth

        sides = (self.survey.high - self.survey.low)[:, :2]
        area = float(np.nansum(sides[:, 0] * sides[:, 1]))
        level, depth = 0, first_depth(self.survey.total, area, self.cube.size, self.most)
        files = np.flatnonzero(self.survey.points > 0)
        found: list[Divided] = []
        steps: list[list[Any]] = []
        brightest = 0
        while True:
            steps.append([level, depth, self._path(CHUNKS, len(found), DIVIDED)])
            brightest = max(brightest, self._count(len(found), files, steps))
            found.append(self._divide(len(found), steps))
            last = found[-1]
            if last.full.size == 0:
                return brightest, found
            level += depth
            depth = next_depth(int(last.full_points.max()), level, self.most)
            boxes = (self._core(level, cell).box for cell in last.full_cell)
            files = np.unique(np.concatenate([self.layout.files(box) for box in boxes]))

    def _path(self, stage: str, number: int, name: str) -> str:
        return self.job.path(f"{stage}-{number}", name)

    def _count(self, number: int, files: Any, steps: Sequence[Any]) -> int:
        """Count the points of files in cells; give the greatest red, green or blue."""
        whole = {"read": [-np.inf, -np.inf, np.inf, np.inf]}
        shared = self.reading | {"steps": steps, "is_bright": number == 0}

        def tasks() -> Iterator[Task]:
            for k in files.tolist():
                stamp = self.survey.stamps[k].tolist()
                source = [self.survey.paths[k], int(self.survey.first[k]), *stamp]
                yield Task(f"{k:07}.npz", name_of(count), shared | whole | {"sources": [source]})

        done = self.job.files(f"{COUNTS}-{number}", tasks(), len(files))
        return max((each.facts["brightest"] for each in done), default=0)

    def _divide(self, number: int, steps: Sequence[Any]) -> "Divided":
        """Make chunks of all counts."""
        counts = self._path(COUNTS, number, "")
        data = {"counts": counts, "steps": steps, "most": self.most}
        task = Task(DIVIDED, name_of(divide), data)
        for _ in self.job.files(f"{CHUNKS}-{number}", [task], 1):
            pass
        return read_divided(steps[-1][2])

    def _core(self, level: int, cell: Any) -> Core:
        from spatialq.udfs.build_lod.chunks import box_of

        return Core("", box_of(self.cube, level, cell))

    def _shared(self, types: "dict[str, str]", brightest: int) -> dict[str, Any]:
        """Give what all tasks of parts get."""
        call = self.job.call
        known = metadata_of(own_options(call.options, call.options.bounds), call.crs)
        return {
            "options": given(call.options),
            "types": types,
            "known": known,
            "brightest": brightest,
            "device": call.device,
            "cube": asdict(self.cube),
        }

    def _builds(self, chunks: "Leaves", shared: dict[str, Any]) -> Iterator[Task]:
        """Give the task of each chunk."""
        shared = shared | self.reading
        for k in range(len(chunks.level)):
            root = chunks.root(k)
            sources = self.layout.reading(self._core(root.level, root.cell), 0.0)
            own = {"root": [root.level, root.cell], "points": int(chunks.points[k])}
            yield _task(build, root, shared | sources | own)

    def _joins(self, band: "list[tuple[Root, Leaves]]", shared: dict[str, Any]) -> Iterator[Task]:
        """Give the tasks of nodes above."""
        roots = f"{self.job.path(ROOTS, '')}/"
        for root, below in band:
            leaves = {name: values.tolist() for name, values in vars(below).items()}
            own = {"root": [root.level, root.cell], "leaves": leaves, "roots": roots}
            yield _task(join, root, shared | own)


def _task(work: Callable[..., Any], root: "Root", data: dict[str, Any]) -> Task:
    """Make a task that gives its first node to that of the nodes above, if there are any."""
    second = f"{ROOTS}/{root.name}.npz" if root.level else ""
    return Task(f"{root.name}.parquet", name_of(work), data, second=second)


METHOD = Method(
    FUNCTION,
    run,
    more={"chunk_points": CHUNK_POINTS},
    check=check,
)
