"""Statistics of an input before a call: rows, extent, boxes, and the device that it is on.

They come from samples, since planning must cost less than the smallest call.
"""

from collections.abc import Sized
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.functions.declaration import (
    Boxes,
    Device,
    GridInput,
    Inputs,
    PointsAndOtherInput,
    PointsInput,
    Size,
)
from spatialq.runtime import buffers
from spatialq.runtime.cuda import on_gpu

POINTS_SAMPLED = 4096
"""Of so many points, the bounding box lacks a thousandth of each side. A single stray point far
away is mostly missed: kernels reject the grids that it makes, or take longer."""
ELEMENTS_SAMPLED = 256
ABSURD = 1e100
"""A side of a cloud that is no length in any unit."""


def size_of(inputs: Inputs, arguments: dict[str, Any]) -> Size:
    """Give the size of what a kernel gets.

    Parameters
    ----------
    inputs : Inputs
        Of the function's declaration.
    arguments : dict
        What its kernel gets, by name. Of arrays of a GPU only the number of rows is looked at.
    """
    match inputs:
        case GridInput():
            grid = arguments["grid"]
            rows, columns = grid.z.shape
            extent = (columns * grid.dx, rows * grid.dy, 0.0)
            return Size(int(grid.z.size), extent, device=_device(grid.z))
        case PointsInput() | PointsAndOtherInput():
            xyz = [arguments[axis] for axis in inputs.columns]
            given = arguments.get(inputs.other)
            return Size(
                len(xyz[0]),
                _extent(xyz),
                () if given is None else (_boxes(given),),
                _device(xyz[0]),
            )
    sets = [arguments[name] for name in "ab" if arguments.get(name) is not None]
    return Size(
        sum(len(each.faces) for each in sets),
        sets=tuple(map(_boxes, sets)),
        device=_device(sets[0].faces),
    )


def _device(array: object) -> Device:
    return "gpu" if on_gpu(array) else "cpu"


def _extent(xyz: list[Any]) -> tuple[float, float, float] | None:
    n = len(xyz[0])
    if n == 0 or any(map(on_gpu, xyz)):
        return None
    part = np.arange(0, n, -(-n // POINTS_SAMPLED))
    with np.errstate(over="ignore", invalid="ignore"):
        sides = [float(np.ptp(buffers.take(values, part))) for values in xyz]
    if not all(side < ABSURD for side in sides):  # NaN is not less, either
        return None  # the kernel says which point is wrong
    width, depth, *height = sides
    return width, depth, sum(height)


def _boxes(meshes: Sized) -> Boxes:
    """Look at the boxes of some elements, evenly spread; those without vertices have none.

    Of rows that are no elements only the number is known.
    """
    k = len(meshes)
    if not isinstance(meshes, Meshes) or on_gpu(meshes.vertices):
        return Boxes(k, np.empty((0, 6)))
    boxes = []
    for row in range(0, k, -(-k // ELEMENTS_SAMPLED) or 1):
        part = meshes.vertices[meshes.vertex_starts[row] : meshes.vertex_starts[row + 1]]
        if len(part):
            boxes.append(np.concatenate([part.min(axis=0), part.max(axis=0)]))
    return Boxes(k, np.array(boxes).reshape(-1, 6))
