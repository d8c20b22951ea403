"""The scale and offset with which whole numbers give coordinates back."""

import math
import warnings
from collections.abc import Sequence

import numpy as np

from spatialq.errors import FileWarning
from spatialq.export.atomic import WRITER
from spatialq.export.point_columns import Column
from spatialq.io.source import Layout
from spatialq.runtime.arrays import Floats

SCALES = (1.0, 0.1, 0.01, 0.001, 0.0005, 0.00025, 0.0001, 1e-5, 1e-6, 1e-7)
"""Tried in this order."""
LENGTH, ANGLE = 0.001, 1e-7
"""Scales of coordinates that none of those gives back, in the unit of the CRS and in degrees."""
STEPS = 1_000_000
"""A small cloud gets a finer scale, so that its extent has at least so many steps."""
MAX_STEPS = (1 << 31) - 1
ROUNDING = 4 * float(np.finfo(np.float64).eps)
"""Relative error of a product and a sum, and of the text of a number that was read."""


class Axis:
    """What is known of the values of one coordinate.

    Parameters
    ----------
    column : Column
    given : (float, float), optional
        Scale and offset that are taken if they give all values back.
    """

    def __init__(self, column: Column, given: tuple[float, float] | None) -> None:
        self._column = column
        self._given = given
        self._scales: Sequence[float] = SCALES
        self._low, self._high = math.inf, -math.inf

    def add(self, values: Floats) -> None:
        """Take note of values."""
        if not values.size:
            return
        self._low = min(self._low, float(values.min()))
        self._high = max(self._high, float(values.max()))
        if self._given is not None:
            numbers = steps(values, *self._given)
            if not _gives_back(values, numbers, *self._given):
                self._given = None
        error = max(abs(self._low), abs(self._high)) * ROUNDING
        self._scales = _narrowed(self._scales, values, error)

    def choose(self, coarse: float) -> tuple[float, float]:
        """Choose scale and offset.

        Parameters
        ----------
        coarse : float
            The scale of values that need a finer one than can be found.

        Raises
        ------
        FileError
            If the values reach too far for this scale.

        Warns
        -----
        FileWarning
            If values are rounded.
        """
        if self._given is not None:
            return self._given
        if self._low > self._high:
            return coarse, 0.0
        offset = math.floor(self._low)
        extent = self._high - offset
        if self._scales and extent / self._scales[0] <= MAX_STEPS:
            return self._scales[0], float(offset)
        scale = coarse
        while extent < STEPS * scale and scale > SCALES[-1]:
            scale = float(f"{scale / 10:.0e}")
        if extent / scale > MAX_STEPS:
            name = self._column.quoted
            self._column.refuse(
                f"reaches from {self._low} to {self._high}, too far for steps of {scale}; add "
                f"WHERE {name} BETWEEN ... AND ..."
            )
        message = (
            f"{WRITER}: '{self._column.path}': column '{self._column.name}' is rounded to steps of "
            f"{scale:g}: no coarser scale gives its values back"
        )
        warnings.warn(message, FileWarning, stacklevel=2)
        return scale, float(offset)


def steps(values: Floats, scale: float, offset: float) -> Floats:
    """Give the whole numbers that stand for coordinates, as float64."""
    numbers: Floats = np.subtract(values, offset)
    numbers /= scale
    return np.rint(numbers, out=numbers)


def exact_steps(xyz: Sequence[Floats], layout: Layout) -> list[Floats] | None:
    """Give the whole numbers that stand for x, y and z, or None if they do not give them back."""
    found = []
    for values, scale, offset in zip(xyz, layout.scales, layout.offsets, strict=True):
        numbers = steps(values, scale, offset)
        if not _gives_back(values, numbers, scale, offset):
            return None
        found.append(numbers)
    return found


def _gives_back(values: Floats, numbers: Floats, scale: float, offset: float) -> bool:
    """Whether values are exactly what a reader makes of whole numbers of 32 bits."""
    if numbers.min(initial=0) < -MAX_STEPS - 1 or numbers.max(initial=0) > MAX_STEPS:
        return False
    again = numbers * scale
    again += offset
    return bool(np.array_equal(again, values))


def _narrowed(scales: Sequence[float], values: Floats, error: float) -> Sequence[float]:
    """Keep the scales of which values are multiples, to within an error."""
    kept = []
    for k, scale in enumerate(scales):
        difference = np.abs(steps(values, scale, 0.0) * scale - values)
        if difference.max(initial=0.0) <= error:
            kept.append(scale)
            finer = scales[k:]
            if all(_is_multiple(scale, each) for each in finer):
                return [*kept, *finer[1:]]
    return kept


def _is_multiple(scale: float, finer: float) -> bool:
    ratio = scale / finer
    return math.isclose(ratio, round(ratio))
