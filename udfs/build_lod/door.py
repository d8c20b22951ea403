"""What `build_lod` lets in: finite points in the order of their ids, with their colours."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from spatialq.runtime.compile_cache import njit
from spatialq.runtime.threads import in_threads

from .colours import colours, read_only
from .tree import Cube, Points

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_POINTS = 2**32 - 1
"""Of a tree: positions are 32 bits."""


@dataclass(frozen=True)
class Cloud:
    """Points as kernels take them, their classes (uint8[n]) and the cube around them."""

    points: Points
    classification: "NDArray[np.uint8]"
    cube: Cube


def enter(
    x: Any,
    y: Any,
    z: Any,
    point_id: Any,
    red: Any,
    green: Any,
    blue: Any,
    intensity: Any,
    classification: Any,
) -> Cloud:
    """Check points and put them in order.

    Parameters
    ----------
    x, y, z : float64[n], n >= 1
    point_id : int64[n]
    red, green, blue, intensity : uint16[n] or None
        None, or masked, where there is no value: see `colours`.
    classification : uint8[n] or None
        0 (never classified) where there is none.

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
    if n > MOST_POINTS:
        refuse(f"points must be at most {MOST_POINTS} in one tree, got {n}")
    cube = cube_around(*box(x, y, z, point_id))
    carried = [red, green, blue, intensity, classification]
    if not ascends(read_only(point_id)):
        order = np.argsort(point_id, kind="stable")  # of runs that ascend: they are merged
        x, y, z, point_id = (values[order] for values in (x, y, z, point_id))
        carried = [None if values is None else values[order] for values in carried]
        again = np.flatnonzero(point_id[1:] == point_id[:-1])
        if again.size:
            refuse(f"point_id must be unique, got {point_id[again[0]]} more than once")
    red, green, blue, intensity, classification = carried
    colour = colours(red, green, blue, intensity, n)
    if classification is None:
        classification = np.zeros(n, np.uint8)
    return Cloud(
        Points(read_only(x), read_only(y), read_only(z), colour, read_only(point_id)),
        read_only(np.ma.filled(classification, 0)),
        cube,
    )


def refuse(sentence: str) -> NoReturn:
    """Raise the sentence about the points."""
    message = f"build_lod: {sentence}"
    raise ValueError(message)


def box(x: Any, y: Any, z: Any, point_id: Any) -> tuple[Any, Any]:
    """Find the least and the greatest x, y, z of points, which must be finite."""
    views = tuple(map(read_only, (x, y, z)))
    boxes: list[tuple[float, ...]] = []
    in_threads(lambda span: boxes.append(_box(*views, *span)), x.size)
    least, greatest = np.min(boxes, axis=0)[:3], np.max(boxes, axis=0)[3:]
    if not np.isfinite([least, greatest]).all():
        refuse(_not_finite(x, y, z, point_id))
    return least, greatest


def cube_around(least: Any, greatest: Any) -> Cube:
    """Lay the cube around a box, unless that is too large."""
    with np.errstate(over="ignore"):
        cube = Cube.around(least, greatest)
    if not np.isfinite(cube.size):
        axis = int(np.argmax(greatest / 2 - least / 2))
        refuse(
            f"{'xyz'[axis]} must span less than {np.finfo(np.float64).max:.2g}, got {least[axis]} "
            f"to {greatest[axis]}"
        )
    return cube


def _not_finite(x: Any, y: Any, z: Any, point_id: Any) -> str:
    bad = ~(np.isfinite(x) & np.isfinite(y) & np.isfinite(z))
    return (
        f"x, y and z must be finite, got {np.count_nonzero(bad)} points with NaN or infinity, "
        f"the first with point_id {point_id[np.argmax(bad)]}"
    )


@njit(cache=True, nogil=True)
def _box(x: Any, y: Any, z: Any, first: int, stop: int) -> tuple[float, ...]:
    """Give least and greatest x, y, z; the first is NaN if a point is not finite."""
    x0, y0, z0 = x[first], y[first], z[first]
    x1, y1, z1 = x0, y0, z0
    finite = True
    for i in range(first, stop):
        a, b, c = x[i], y[i], z[i]
        x0, x1 = min(x0, a), max(x1, a)
        y0, y1 = min(y0, b), max(y1, b)
        z0, z1 = min(z0, c), max(z1, c)
        finite &= abs(a) < np.inf and abs(b) < np.inf and abs(c) < np.inf
    return x0 if finite else np.nan, y0, z0, x1, y1, z1


@njit(cache=True, nogil=True)
def ascends(point_id: Any) -> bool:
    """Whether each id is greater than the one before."""
    so_far = True
    for i in range(1, point_id.size):
        so_far &= point_id[i] > point_id[i - 1]
    return so_far
