"""The accumulator ball: directions that divide the sphere evenly, and their neighbours."""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

RADIUS = 2
"""Steps around a cell within which a peak must be the maximum."""

BEYOND = 4
"""Steps of rho below 0, so that planes through the centroid have complete peaks."""


@dataclass(frozen=True)
class Ball:
    """Directions in the order of phi, then theta; phi_num + 1 rows from pole to pole."""

    step: float
    """Angle between two rows, radians."""
    directions: "NDArray[np.float64]"
    """float64[n, 3]: unit vectors."""
    phi: "NDArray[np.float64]"
    theta: "NDArray[np.float64]"
    """float64[n], radians."""
    rows: "NDArray[np.int32]"
    """int32[phi_num + 2]: the first direction of each row, then n."""
    beside: "NDArray[np.int32]"
    """int32[n, 4]: the neighbours in theta on both sides, and in phi towards both poles."""
    near: "NDArray[np.int32]"
    near_starts: "NDArray[np.int32]"
    """Directions within RADIUS steps of each direction, itself included."""


@cache
def ball(phi_num: int) -> Ball:
    """Compute the directions of a ball.

    References
    ----------
    Limberger, Oliveira (2015), section 3.3, after Borrmann et al. (2011).
    """
    step = np.pi / phi_num
    sizes = [max(1, round(2 * phi_num * float(np.sin(p * step)))) for p in range(phi_num + 1)]
    rows = np.concatenate([[0], np.cumsum(sizes)])
    phi = np.repeat(np.arange(phi_num + 1) * step, sizes)
    theta = np.concatenate([np.arange(size) * (2 * np.pi / size) for size in sizes])
    flat = np.sin(phi)
    directions = np.column_stack([flat * np.cos(theta), flat * np.sin(theta), np.cos(phi)])
    row = np.repeat(np.arange(phi_num + 1), sizes)
    beside = np.column_stack(
        [_at(rows, sizes, row, np.arange(rows[-1]) - rows[row] + shift) for shift in (-1, 1)]
        + [_across(rows, sizes, row, theta, phi_num, by) for by in (-1, 1)]
    )
    poles = {0: 1, int(rows[-1]) - 1: phi_num - 1}
    for pole, ring in poles.items():  # a pole has four neighbours on the ring around it
        quarter = np.arange(4) * sizes[ring] // 4
        beside[pole] = rows[ring] + quarter
    near = [_near(directions, rows, k, row[k], phi_num, step) for k in range(rows[-1])]
    starts = np.concatenate([[0], np.cumsum([each.size for each in near])])
    return Ball(
        step, directions, phi, theta, rows.astype(np.int32), beside.astype(np.int32),
        np.concatenate(near).astype(np.int32), starts.astype(np.int32),
    )  # fmt: skip


def _at(rows: Any, sizes: list[int], row: Any, shift: Any) -> Any:
    return rows[row] + shift % np.array(sizes)[row]


def _across(rows: Any, sizes: list[int], row: Any, theta: Any, phi_num: int, by: int) -> Any:
    """Find the direction of the next row nearest in theta; past a pole, one on its own ring."""
    other = np.clip(row + by, 0, phi_num)
    shift = np.rint(theta / (2 * np.pi) * np.array(sizes)[other]).astype(np.int64)
    return _at(rows, sizes, other, shift)


def _near(directions: Any, rows: Any, k: int, row: int, phi_num: int, step: float) -> Any:
    first, last = max(row - RADIUS, 0), min(row + RADIUS, phi_num)
    # past a pole follow the opposite sides of its rings, which are in these rows
    around = np.arange(rows[first], rows[last + 1])
    close = directions[around] @ directions[k] >= np.cos((RADIUS + 0.5) * step)
    return around[close]
