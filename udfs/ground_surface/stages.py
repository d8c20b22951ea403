"""`ground_surface` in parts: ground points of all cores, between which one task interpolates."""

from collections.abc import Iterator
from dataclasses import fields

import numpy as np

from spatialq.functions.stages import Box, Columns, Part, PointWork, TaskResult

from ..owm_ground import Options as SeedOptions
from ..owm_ground.cost import halo
from ..owm_ground.stages import find_seeds, for_parts
from . import Options, cpu
from .grid import cover

AXES = ("x", "y", "z")


def ground_surface(work: PointWork[Options]) -> None:
    """Make the terrain grid of all points."""
    options, cloud = work.options, work.cloud
    if cloud.size == 0:
        return
    if options.source == "seeds":
        given = {each.name: getattr(options, each.name) for each in fields(SeedOptions)}
        chosen = for_parts(SeedOptions(**given), cloud)
        ground = work.each("ground", find_seeds, chosen, halo=halo(chosen))
    else:
        ground = work.each("ground", read_own)
    work.table("surface", interpolate, options, cloud.box, ground)


def read_own(part: Part) -> Columns:
    """Give the points of a core, which are ground."""
    points = part.own(part.points())
    return {axis: points[axis] for axis in AXES}


def interpolate(options: Options, box: Box, ground: Iterator[TaskResult]) -> Columns:
    """Give the cells of the grid over a box, between the ground points of all cores."""
    parts = [[each.arrays[axis] for axis in AXES] for each in ground]
    x, y, z = (np.concatenate(axis) for axis in zip(*parts, strict=True))
    xmin, ymin, xmax, ymax = box
    grid = cover(np.array([xmin, xmax]), np.array([ymin, ymax]), options)
    return cpu.interpolate(x, y, z, grid, options)
