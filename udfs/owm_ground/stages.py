"""`owm_ground` in parts: windows that overlap a core are whole within its halo."""

from dataclasses import replace

from spatialq.functions.stages import Cloud, Columns, Part, PointWork

from . import Options
from .cost import halo
from .windows import Box, default_min_points

FUNCTION = "owm_ground"


def owm_ground(work: PointWork[Options]) -> None:
    """Find the seeds of all cores."""
    if work.cloud.size:
        chosen = for_parts(work.options, work.cloud)
        work.rows(find_seeds, chosen, halo=halo(chosen))


def for_parts(options: Options, cloud: Cloud) -> Options:
    """Add to options what a call on all points finds out itself.

    It is the extent that windows divide, and how many points they need.
    """
    box = options.bounds or cloud.box
    least = options.min_points or default_min_points(cloud.size, Box.of(box), options.window_size)
    return replace(options, bounds=tuple(box), min_points=least)


def find_seeds(part: Part, options: Options) -> Columns:
    """Find the seeds of a core."""
    return part.own(part.call(FUNCTION, part.points(), options))
