"""`owm_ground` in strips: the points of one at a time, with the windows of the whole.

Windows and fill cells lie where those of the whole cloud lie, and `min_points` is that of the
whole, so that a point has in its strip the hits that it has in the whole.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from spatialq.data.points import all_finite, not_finite, read_only
from spatialq.data.tiles import Strip, gather, members, strips
from spatialq.runtime import gpus, progress
from spatialq.runtime.arrays import Ints
from spatialq.runtime.threads import workers

from . import Options
from .cost import halo
from .cpu import extent
from .windows import Box, default_min_points

Columns = dict[str, Any]
Kernel = Callable[..., Columns]


def in_tiles(
    kernel: Kernel,
    cloud: tuple[Any, ...],
    options: Options,
    tiles: int,
    box: Box | None = None,
) -> Columns:
    """Find the seeds of a cloud in so many strips.

    Parameters
    ----------
    kernel : callable
        `run` of cpu.py or gpu.py.
    cloud : tuple of x, y, z, point_id
        NumPy arrays; None for the ids is their positions.
    options : Options
    tiles : int
    box : Box, optional
        As for the kernel.

    Returns
    -------
    dict of columns
        As from the kernel for the whole cloud, to the bit.

    Raises
    ------
    ValueError
        As from the kernel.
    """
    x, y, z, _ = cloud
    if x.size == 0:
        return kernel(*cloud, options, box)
    if not all_finite(x, y, z):
        raise ValueError(not_finite(options.function, *cloud))
    if box is None:
        box = extent_of(cloud, options)
    return in_strips(kernel, cloud, options, strips(x, y, tiles, halo(options)), box)


def extent_of(cloud: tuple[Any, ...], options: Options) -> Box:
    """Give the bounds, or the extent of a cloud of at least one point.

    Raises
    ------
    ValueError
        If x or y is not finite somewhere.
    """
    if options.bounds is not None:
        return Box.of(options.bounds)
    x, y, z, point_id = cloud
    with workers() as pool:
        return extent(pool, (read_only(x), read_only(y), z, point_id), options.function)


def in_strips(
    kernel: Kernel, cloud: tuple[Any, ...], options: Options, tiles: list[Strip], box: Box
) -> Columns:
    """Run the kernel for each strip, keep the rows of the strip's own points, and join them.

    Strips need nothing of each other: the GPUs of a call share them.

    Parameters
    ----------
    kernel, cloud, options
        As for `in_tiles`; at least one point.
    tiles : list of Strip
        With a halo of at least `cost.halo`; together they have all points.
    box : Box
        The extent of the whole cloud.
    """
    n = cloud[0].size
    enough = options.min_points or default_min_points(n, box, options.window_size)
    options = replace(options, min_points=enough)
    x, y, *_ = cloud
    found = members(x if tiles[0].axis == "x" else y, tiles)

    def of_strip(tile: tuple[Strip, Ints]) -> Columns:
        with progress.nested():
            return _of_strip(kernel, cloud, options, *tile, box)

    def numbered() -> Iterator[tuple[Strip, Ints]]:
        for k, tile in enumerate(zip(tiles, found, strict=True), 1):
            progress.stage(f"tile {k} of {len(tiles)}", k / len(tiles))
            yield tile

    return _join([*gpus.each(of_strip, numbered())])


def _of_strip(
    kernel: Kernel, cloud: tuple[Any, ...], options: Options, strip: Strip,
    at: Ints, box: Box,
) -> Columns:  # fmt: skip
    x, y, z, point_id = cloud
    ids = at if point_id is None else gather(point_id, at)
    found = kernel(*(gather(values, at) for values in (x, y, z)), ids, options, box, strip)
    own = strip.core(found[strip.axis])
    return {name: values[own] for name, values in found.items()}


def _join(parts: list[Columns]) -> Columns:
    """Put rows of strips together: seeds, then filled points, each by ascending point_id."""
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.lexsort((columns["point_id"], columns["filled"]))
    return {name: values[order] for name, values in columns.items()}
