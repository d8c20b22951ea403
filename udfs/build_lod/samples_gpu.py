"""The table of a tree whose points are on the GPU: its samples are collected there; samples.cu."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.columns import NUMPY_TYPES
from spatialq.runtime import buffers, cuda

from . import CHANNELS, SAMPLE
from .colours import MID_GREY
from .table import Places, of_nodes
from .tree import Cube, Nodes, Points, Tree

if TYPE_CHECKING:
    from . import Options

SOURCE = Path(__file__).parent / "samples.cu"
THREADS = 256
BLOCKS = 32  # per multiprocessor


def colours(device: cuda.Device, channels: Sequence[Any], n: int) -> Any:
    """Combine the colour channels of points as `colours.colours` does: uint16[n, 4] on the device.

    Parameters
    ----------
    device : Device
    channels : four of uint16[n] or None
        Red, green, blue and intensity, on the device.
    n : int
    """
    unused = device.filled(0, 2).view(np.uint16)
    has_colour = all(each is not None for each in channels[:3])
    there = [unused if each is None else each for each in channels]
    result = device.xp.empty((n, len(CHANNELS)), np.uint16)
    flags = int(has_colour), int(channels[3] is not None), MID_GREY
    _over(device, "lod_colours", n, *there, *flags, n, result)
    return result


def columns(
    device: cuda.Device, tree: Tree, points: Points, classification: Any, cube: Cube,
    options: "Options",
) -> dict[str, Any]:  # fmt: skip
    """Give the columns of the result, as `table.columns` does, in main memory.

    Parameters
    ----------
    device : Device
    tree : Tree
        On the device, with points of each leaf ascending.
    points : Points
        On the device; `point_id` is None where ids are positions.
    classification : uint8[n]
        On the device.
    cube : Cube
    options : Options

    Notes
    -----
    Samples take 41 bytes on the device.
    """
    names = [*Nodes.__dataclass_fields__, "voxel_first"]
    names.remove("level_first")
    nodes = replace(tree, **{name: device.download(getattr(tree, name)) for name in names})
    places = Places.of(nodes, cube, options)
    n, empty = int(places.offsets[-1]), device.xp.empty
    offsets, low, spacing = device.upload([places.offsets, places.low, places.spacing])
    found = {name: empty(n, NUMPY_TYPES[kind]) for name, kind in SAMPLE.items()}
    ids = device.filled(0, 8).view(np.int64) if points.point_id is None else points.point_id
    _over(
        device, "lod_samples", n, offsets, tree.first, tree.voxel_first, low, spacing,
        len(nodes.level), tree.order, tree.representative, tree.code, tree.colour, points.x,
        points.y, points.z, points.colour, classification, ids, int(points.point_id is not None),
        int(options.full_precision), n, *found.values(),
    )  # fmt: skip
    samples = {}
    for name in SAMPLE:
        there = found.pop(name)  # whose memory is free when it is downloaded
        samples[name] = device.download(there, buffers.empty(n, there.dtype))
    return of_nodes(nodes, places, samples)


def _over(device: cuda.Device, kernel: str, n: int, *arguments: Any) -> None:
    """Launch a loop over n points or samples."""
    blocks = max(1, min(-(-n // THREADS), BLOCKS * device.multiprocessors))
    device.launch(SOURCE, kernel, (blocks,), THREADS, *arguments)
