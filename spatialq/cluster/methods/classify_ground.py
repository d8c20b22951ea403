"""`classify_ground` of a survey: its grid is made of those of all cores, and one task works on it.

The stages are those of the kernel: the squares that have points, which say how large the cells are;
the lowest points of the cells, and the seeds; the terrain; the points.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from spatialq.cluster.folder import CALLER
from spatialq.cluster.job import Job, given
from spatialq.cluster.layout import Core, Layout
from spatialq.cluster.method import Method
from spatialq.cluster.methods.cloud_parts import LAZ, names_of_clouds, names_of_rasters
from spatialq.cluster.methods.ground_tasks import (
    FUNCTION,
    classify_cloud,
    classify_rows,
    count_squares,
    find_lowest,
    find_terrain,
    mark_squares,
)
from spatialq.cluster.methods.terrain_parts import (
    TIF,
    Window,
    surface_options,
    windows_of_files,
    windows_of_tiles,
    write_part,
    write_points,
    write_surface,
)
from spatialq.cluster.survey import Survey
from spatialq.cluster.task import Task
from spatialq.functions.declaration import parameters_of
from spatialq.udfs.classify_ground.grid import CloudRaster, lay_grid, windows
from spatialq.udfs.ground_surface import TerrainOptions
from spatialq.udfs.owm_ground.cost import halo
from spatialq.workflows.cloud_points import NOISE

SQUARES, COUNT, LOWEST, TERRAIN = "squares", "count", "lowest", "terrain"
POINTS, SURFACE = "ground", "surface"
"""Stages of a terrain in parts."""


def run(job: Job) -> None:
    """Classify the points of all cores.

    Raises
    ------
    ValueError
        If only ground points are wanted, but not in LAZ.
    """
    call = job.call
    if call.more["ground_only"] and call.part_format != LAZ:
        message = (
            f"{CALLER}: ground_only must be false with part_format {call.part_format!r}: it is "
            f"for {LAZ!r}"
        )
        raise ValueError(message)
    names = names_of_clouds(job, FUNCTION) if call.part_format == LAZ else []
    rasters = []
    if call.part_format == TIF and call.tile_size is None:
        rasters = names_of_rasters(job, FUNCTION, TIF)
    left_out = NOISE if call.part_format in (LAZ, TIF) or call.more["by_class"] else ()
    survey = job.survey(left_out)
    shared = {
        "caller": FUNCTION,
        "options": given(call.options),
        "bounds": call.options.bounds,
        "device": call.device,
        "left_out": left_out,
        "level": call.level,
    }
    if survey.total:
        stages = _Stages(job, survey, job.layout(survey), shared)
        shared |= stages.terrain()
    if call.part_format == TIF:
        if survey.total:
            stages.rasters(shared, rasters)
        else:
            job.parts([], 0)
        return
    if not names:
        layout = job.layout(survey)
        tasks = (
            Task(f"{core.name}.parquet", "ground rows", shared | layout.reading_alone(core))
            for core in layout.cores()
        )
        job.parts(tasks, sum(1 for _ in layout.cores()))
        return
    shared |= {"ground_only": call.more["ground_only"], "crs": call.crs}
    layout = job.layout(survey.whole)
    cloud_tasks = (
        Task(name, "ground cloud", shared | layout.reading_alone(core))
        for name, core in _cores(layout, call.tile_size, names)
    )
    job.parts(cloud_tasks, sum(1 for _ in _cores(layout, call.tile_size, names)))


@dataclass(frozen=True)
class _Stages:
    """The stages before the points are classified."""

    job: Job
    survey: Survey
    layout: Layout
    shared: dict[str, Any]
    """What all tasks get."""

    def terrain(self) -> dict[str, Any]:
        """Find the terrain; give what tasks need of it."""
        grid = self._grid()
        shared = self.shared | {"grid": asdict(grid)}
        asked = windows(grid, self.job.call.options)
        width = halo(asked) / self.job.call.options.metres
        self._files(LOWEST, "ground lowest", lambda core: shared | self.layout.reading(core, width))
        task = Task("terrain", "ground terrain", shared | {"folder": self.job.path(LOWEST, "")})
        (done,) = self.job.files(TERRAIN, [task], 1)
        return {
            "grid": asdict(grid),
            "terrain": self.job.path(TERRAIN, done.name),
            "terrain_level": done.facts["level"],
        }

    def rasters(self, shared: dict[str, Any], names: list[str]) -> None:
        """Make the terrain grid that users get, and its parts.

        Parameters
        ----------
        shared : dict
            What all tasks get, with what `terrain` has given.
        names : list of str
            Of the parts of all files, if parts are files.
        """
        call, side = self.job.call, self.job.call.tile_size
        self._files(POINTS, "ground points", lambda core: shared | self.layout.reading_alone(core))
        data = {
            "folder": self.job.path(POINTS, ""),
            "extent": self.survey.box,
            "more": call.more,
            "device": call.device,
            "by_file": side is None,
        }
        (done,) = self.job.files(SURFACE, [Task("surface", "ground surface", data)], 1)
        path = self.job.path(SURFACE, done.name)
        shared = done.facts | {"terrain": path, "crs": call.crs}

        def windows() -> Iterator[tuple[str, Window, int | None]]:
            if side is None:
                return windows_of_files(path, self.layout, names)
            return windows_of_tiles(done.facts, side)

        tasks = (
            Task(name, "ground raster", shared | {"window": window, "owner": owner})
            for name, window, owner in windows()
        )
        self.job.parts(tasks, sum(1 for _ in windows()))

    def _grid(self) -> CloudRaster:
        metres = self.job.call.options.metres
        xmin, ymin, xmax, ymax = (value * metres for value in self.survey.box)

        def count(west: float, south: float, side: float, shape: tuple[int, int]) -> int:
            shared = self.shared | {
                "squares": [west, south, side, shape],
                "ends": [[xmin, xmax], [ymin, ymax]],
            }
            self._files(
                SQUARES, "ground squares", lambda core: shared | self.layout.reading_alone(core)
            )
            data = {"shape": shape, "folder": self.job.path(SQUARES, "")}
            (done,) = self.job.facts(COUNT, [Task("count", "ground count", data)], 1)
            return int(done.facts["squares"])

        return lay_grid((xmin, xmax), (ymin, ymax), self.survey.total, count)

    def _files(self, stage: str, work: str, data: Callable[[Core], dict[str, Any]]) -> None:
        """Have a task done for each core that writes a file."""
        total = sum(1 for _ in self.layout.cores())
        tasks = (Task(core.name, work, data(core)) for core in self.layout.cores())
        for _ in self.job.files(stage, tasks, total):
            pass


def _cores(layout: Layout, tile_size: float | None, names: list[str]) -> Iterator[tuple[str, Core]]:
    """Give the name of each part and its core: all files, those without points, too."""
    if tile_size is None:
        for k, name in enumerate(names):
            yield name, layout.core_of(k)
        return
    for core in layout.cores():
        yield f"{core.name}.{LAZ}", core


def check(more: Mapping[str, Any], _: float | None, __: Any) -> None:
    """Refuse wrong options of the terrain.

    Raises
    ------
    ValueError
    """
    surface_options(more)


METHOD = Method(
    FUNCTION,
    run,
    {
        "ground squares": mark_squares,
        "ground count": count_squares,
        "ground lowest": find_lowest,
        "ground terrain": find_terrain,
        "ground rows": classify_rows,
        "ground cloud": classify_cloud,
        "ground points": write_points,
        "ground surface": write_surface,
        "ground raster": write_part,
    },
    formats=("parquet", LAZ, TIF),
    more={
        "by_class": False,
        "ground_only": False,
        **{each.name: each.default for each in parameters_of(TerrainOptions)},
    },
    check=check,
)
