"""`classify_ground` of a survey: rows, clouds with new classes, or a terrain in parts."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.cluster.job import Job
from spatialq.cluster.methods.cloud_parts import LAZ, CloudWork, names_of_rasters, require_laz
from spatialq.cluster.methods.terrain_parts import (
    TIF,
    cut_window,
    make_surface,
    surface_options,
    windows_of_tiles,
    write_ground,
    write_raster,
)
from spatialq.cluster.points import CLASS, CorePart, OwnPart, open_cloud
from spatialq.cluster.staged import Make, StagedWork, method_of, write_part
from spatialq.functions.declaration import parameters_of
from spatialq.udfs.ground_surface import TerrainOptions
from spatialq.workflows import cloud_points
from spatialq.workflows.cloud_points import NOISE
from spatialq.workflows.ground import IS_KEPT, mark_ground, write_cloud

FUNCTION = "classify_ground"


class RowWork(StagedWork):
    """The stages of a job whose parts are rows."""

    def __init__(self, job: Job) -> None:
        super().__init__(job, NOISE if job.call.more["by_class"] else ())
        self.write = write_by_class


class TerrainWork(StagedWork):
    """The stages of a job whose parts are windows of the terrain."""

    def __init__(self, job: Job) -> None:
        self.names: list[str] = []
        if job.call.tile_size is None:
            self.names = names_of_rasters(job, FUNCTION, TIF)
        super().__init__(job, NOISE)

    def rows(self, do: Callable[..., Any], *inputs: Any, halo: float = 0.0) -> None:
        """Make the terrain of the ground points of all cores, and write its windows."""
        if self.cloud.size == 0:
            return
        call = self.job.call
        side = call.tile_size
        ground = self.write_each("ground", write_ground, do, inputs, halo)
        options = surface_options(call.more)
        surface = self.once(
            "surface", make_surface, ground, self.cloud.box, options, call.device, side is None
        )

        def windows() -> Iterator[tuple[Any, ...]]:
            if side is not None:
                yield from windows_of_tiles(surface.facts, side)
                return
            for k, core in enumerate(self.layout.cores()):
                assert core.file is not None
                top, bottom, *columns = surface.facts["windows"][k]
                if top < bottom:
                    yield self.names[core.file], (top, bottom, *columns), k

        tasks = (
            self.task(name, write_raster, cut_window, (surface, window, owner))
            for name, window, owner in windows()
        )
        self.parts(tasks, sum(1 for _ in windows()))


def write_by_class(part: CorePart, make: Make, path: Path) -> dict[str, Any]:
    """Write rows of a core; where classes are considered, some are never ground."""

    def rows(part: CorePart) -> Any:
        found = make(part)
        if CLASS in found:
            is_kept = IS_KEPT[found[CLASS]]
            found["is_ground"] &= ~is_kept
            found["margin"][is_kept] = np.nan
        return found

    return write_part(part, rows, path)


def write_classes(part: CorePart, make: Make, path: Path) -> dict[str, Any]:
    """Write all points of a core with their new classes to LAS or LAZ."""
    data = part.data
    clouds = [open_cloud(data["caller"], path, stamp) for path, _, *stamp in data["sources"]]
    found = cloud_points.read_points(clouds, _box(data), None)
    is_ground = make(OwnPart(part, found.columns))["is_ground"]
    is_ground &= ~IS_KEPT[found.classes[found.point_id]]
    mark_ground(found, is_ground)
    keep = found.keep
    if data["ground_only"]:
        keep = found.by_position(is_ground, np.bool_, missing=False)
    return {"rows": write_cloud(clouds, path, found, keep, lambda *_: None, data["crs"])}


class GroundCloudWork(CloudWork):
    """The stages of a job whose parts are clouds with classified ground, or of ground only."""

    writes = staticmethod(write_classes)

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.shared["ground_only"] = job.call.more["ground_only"]


def _box(data: dict[str, Any]) -> cloud_points.Bounds | None:
    """Give the box that the points of a core are in, or on whose border they are."""
    bounds = data["bounds"]
    if "box" not in data["own"]:
        return cloud_points.checked_bounds(data["caller"], bounds)
    xmin, ymin, xmax, ymax = data["own"]["box"]
    # the eastern and northern sides belong to the neighbours
    xmax, ymax = float(np.nextafter(xmax, -np.inf)), float(np.nextafter(ymax, -np.inf))
    if bounds is not None:
        xmin, ymin = max(xmin, bounds[0]), max(ymin, bounds[1])
        xmax, ymax = min(xmax, bounds[2]), min(ymax, bounds[3])
    return xmin, ymin, xmax, ymax


def check(more: Mapping[str, Any], _: float | None, __: Any, part_format: str) -> None:
    """Refuse wrong options of the terrain, and parts of ground points only that are no clouds.

    Raises
    ------
    ValueError
    """
    surface_options(more)
    require_laz("ground_only", more, part_format)


METHOD = method_of(
    FUNCTION,
    {"parquet": RowWork, LAZ: GroundCloudWork, TIF: TerrainWork},
    more={
        "by_class": False,
        "ground_only": False,
        **{each.name: each.default for each in parameters_of(TerrainOptions)},
    },
    check=check,
)
