"""Validation of the points of `build_lod`: finite, in the order of their ids, with colours."""

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from spatialq.data.points import ascends, ids_of, not_finite, read_only
from spatialq.data.strays import ends_of
from spatialq.runtime import buffers
from spatialq.runtime.arrays import Bytes, Floats, Ints, Uint16s

from .colours import colours, replaced
from .tree import Cube, Points

MAX_POINTS = 2**32 - 1
"""Points of one tree at most: a position has 32 bits."""


@dataclass(frozen=True)
class Cloud:
    """Validated points, their classes (uint8[n]) and the cube around them; in one memory."""

    points: Points
    classification: Bytes
    cube: Cube


def validate(
    x: Floats,
    y: Floats,
    z: Floats,
    point_id: Ints | None,
    red: Uint16s | None,
    green: Uint16s | None,
    blue: Uint16s | None,
    intensity: Uint16s | None,
    classification: Bytes | None,
) -> Cloud:
    """Check points and sort them by their ids.

    Parameters
    ----------
    x, y, z : float64[n], n >= 1
    point_id : int64[n] or None
        None for 0, 1, 2 ...
    red, green, blue, intensity : uint16[n] or None
        None or masked where there is no value; see `colours`.
    classification : uint8[n] or None
        Points without a class get 0 (never classified).

    Returns
    -------
    Cloud

    Raises
    ------
    ValueError
        If there are too many points for one tree, a coordinate is not finite, the points are
        farther apart than a float64 says, or a `point_id` is not unique.
    """
    n = x.size
    if n > MAX_POINTS:
        reject(f"points must be at most {MAX_POINTS} in one tree, got {n}")
    cube = cube_around(*box(x, y, z, point_id))
    attributes: list[Any] = [red, green, blue, intensity, classification]
    if point_id is None:
        point_id = ids_of(None, n)
    elif not ascends(point_id):
        order = np.argsort(point_id, kind="stable")  # the ids are ascending runs, which this merges
        x, y, z, point_id = (buffers.take(values, order) for values in (x, y, z, point_id))
        attributes = [None if values is None else values[order] for values in attributes]
        again = np.flatnonzero(point_id[1:] == point_id[:-1])
        if again.size:
            reject(f"point_id must be unique, got {point_id[again[0]]} more than once")
    red, green, blue, intensity, classification = attributes
    colour = colours(red, green, blue, intensity, n)
    if classification is None:
        classification = buffers.zeros(n, np.uint8)
    return Cloud(
        Points(read_only(x), read_only(y), read_only(z), colour, read_only(point_id)),
        read_only(replaced(classification, np.ma.getmask(classification), 0)),
        cube,
    )


def reject(sentence: str) -> NoReturn:
    """Raise a ValueError with a sentence about the points."""
    message = f"build_lod: {sentence}"
    raise ValueError(message)


def box(x: Any, y: Any, z: Any, point_id: Any) -> tuple[Any, Any]:
    """Find the minimum and maximum x, y, z of points, which must be finite."""
    low, high = ends_of((x, y, z))
    if not np.isfinite([low, high]).all():
        raise ValueError(not_finite("build_lod", x, y, z, point_id))
    return low, high


def cube_around(low: Any, high: Any) -> Cube:
    """Make the cube around a box; reject a box that is too large."""
    with np.errstate(over="ignore"):
        cube = Cube.around(low, high)
    if not np.isfinite(cube.size):
        axis = int(np.argmax(high / 2 - low / 2))
        reject(
            f"{'xyz'[axis]} must span less than {np.finfo(np.float64).max:.2g}, got {low[axis]} "
            f"to {high[axis]}"
        )
    return cube
