"""The steps in which coordinates are written: scale and offset of LAS files."""

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from spatialq.io.crs import metres_per_unit
from spatialq.io.rounded import AXES, RoundedCloud
from spatialq.io.source import Layout, PointSource

DEGREE = 111_320.0
"""Metres in a degree of latitude, about."""
MOST = (1 << 31) - 1
"""Steps from the offset on, which are whole numbers of 32 bits."""


def in_steps(
    command: str,
    clouds: Sequence[PointSource],
    scale: float | Sequence[float] | None,
    offset: Sequence[float] | None,
) -> list[PointSource]:
    """Round the coordinates of clouds to steps, in which they are written.

    Parameters
    ----------
    command : str
        Whose errors they are.
    clouds : sequence of PointSource
    scale : float, or three of float, optional
        The steps of x, y and z, in the unit of the coordinates; by default those of the first file.
    offset : three of float, optional
        From where x, y and z are counted; by default the offset of the first file, or if it has
        none, or is too far away, the lowest coordinate, rounded down.

    Raises
    ------
    ValueError
        If they are no steps, or the points reach too far for them.
    """
    if scale is None and offset is None:
        return list(clouds)
    first = clouds[0].layout
    scales = _three(command, "scale", scale)
    if scales is None and first is not None:
        scales = first.scales
    if scales is None or min(scales) <= 0:
        said = "a number above 0 or three such, of x, y and z"
        message = f"{command}: scale must be {said}, got {scale!r}"
        raise ValueError(message)
    low, high = _extent(clouds)
    ends_of = list(zip(low, high, strict=True))
    offsets = _three(command, "offset", offset) or _offsets(ends_of, scales, first)
    for axis, step, start, ends in zip(AXES, scales, offsets, ends_of, strict=True):
        if not _reaches(ends, step, start):
            message = (
                f"{command}: scale {step:g} and offset {start:.15g} of {axis} must give whole "
                f"numbers of 32 bits, but {axis} reaches from {ends[0]:.15g} to {ends[1]:.15g}"
            )
            raise ValueError(message)
    rounded: Any = [RoundedCloud(cloud, Layout(scales, offsets)) for cloud in clouds]
    return cast("list[PointSource]", rounded)


def _reaches(ends: tuple[float, float], step: float, start: float) -> bool:
    return max(abs(end - start) for end in ends) <= MOST * step


def _offsets(
    ends_of: Sequence[tuple[float, float]], scales: Sequence[float], first: Layout | None
) -> tuple[float, float, float]:
    """Give the offset of the first file where it goes with the scale, else lowest coordinates."""
    if first is not None and all(map(_reaches, ends_of, scales, first.offsets)):
        return first.offsets
    x, y, z = (float(math.floor(low)) for low, _ in ends_of)
    return x, y, z


def steps_in(
    scales: Sequence[float], before: str | None, after: str | None
) -> tuple[float, float, float]:
    """Give the steps of clouds that were reprojected, about as long as they were before."""
    ours, theirs = (_lengths(each) for each in (before, after))
    x, y, z = (
        scale if ours[k] == theirs[k] else _power_of_ten(scale * ours[k] / theirs[k])
        for k, scale in enumerate(map(abs, scales))
    )
    return x, y, z


def _power_of_ten(step: float) -> float:
    """Give the greatest power of ten that is not longer than a step, or by a quarter at most."""
    return float(f"1e{math.floor(math.log10(step * 1.25))}")


def _lengths(crs: str | None) -> tuple[float, float, float]:
    """Give the metres of a step of 1 along x, y and z."""
    across, up = (crs and metres_per_unit(crs)) or (DEGREE, 1.0)
    return across, across, up


def _three(command: str, name: str, given: Any) -> tuple[float, float, float] | None:
    """Read three numbers, or one that stands for three."""
    if given is None:
        return None
    one = given if isinstance(given, Sequence) else [given]
    numbers = [*one] * 3 if name == "scale" and len(one) == 1 else given
    try:
        x, y, z = map(float, numbers)
    except (TypeError, ValueError):
        x = y = z = math.nan
    if not all(map(math.isfinite, (x, y, z))):
        said = "a number or three, of x, y and z" if name == "scale" else "three numbers, x, y, z"
        message = f"{command}: {name} must be {said}, got {given!r}"
        raise ValueError(message)
    return x, y, z


def _extent(clouds: Sequence[PointSource]) -> tuple[list[float], list[float]]:
    """Give the lowest and the highest coordinates, as headers have them, else as points do."""
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for cloud in clouds:
        if cloud.box is not None and np.isfinite(cloud.box).all():
            low, high = np.minimum(low, cloud.box[:3]), np.maximum(high, cloud.box[3:])
            continue
        for batch in cloud.batches(AXES):
            for k, axis in enumerate(AXES):
                values = batch.column(axis).to_numpy(zero_copy_only=False)
                low[k], high[k] = values.min(initial=low[k]), values.max(initial=high[k])
    if not (low <= high).all():  # no points
        return [0.0] * 3, [0.0] * 3
    return low.tolist(), high.tolist()
