"""Columns as fields of LAS point records: values are checked, and become what the field holds."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spatialq.errors import FileError, FileWarning
from spatialq.export.atomic import WRITER
from spatialq.export.las_dimensions import OLD, RANK
from spatialq.export.point_columns import Column
from spatialq.io.las.columns import SCAN_ANGLE_STEP, Dimension
from spatialq.runtime.arrays import Array, Bytes, DType, Floats

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

FULL = 65_535
"""The intensity that a fractional 1 becomes."""
STEPS = np.iinfo(np.int16)
"""What scan angles may be, in steps."""
WEEK = 7 * 24 * 3600


@dataclass(frozen=True)
class Field:
    """A field of point records, and the columns that it is made of."""

    name: str
    columns: tuple[Column, ...]
    encode: Callable[..., Array]
    """Makes the values of the field of those of the columns."""


def plain(column: Column, field: str, dtype: "DType") -> Field:
    """Make a field of one column."""
    return Field(field, (column,), lambda values: column.as_type(values, dtype))


def packed(field: str, parts: Sequence[tuple[Column, Dimension]], point_format: int) -> Field:
    """Make a field of which each column has some bits."""
    is_old = point_format in OLD

    def encode(*columns: Array) -> Bytes:
        found = np.zeros(columns[0].size, np.uint8)
        for (column, dimension), values in zip(parts, columns, strict=True):
            assert dimension.mask is not None
            lowest = dimension.mask & -dimension.mask
            highest = dimension.mask // lowest
            if is_old and highest > 1 and values.max(initial=0) > highest:
                _refuse_old(column, values.max(), highest)
            bits = column.whole(values, 0, highest).astype(np.uint8)
            found |= bits * np.uint8(lowest)
        return found

    return Field(field, tuple(column for column, _ in parts), encode)


def _refuse_old(column: Column, value: object, highest: int) -> None:
    reason = (
        f"column '{column.name}' has the value {value}, but points with {RANK} (formats 0 to 5) "
        f"hold 0 to {highest}; write {RANK}::FLOAT AS scan_angle"
    )
    raise FileError.of(WRITER, column.path, reason)


def angles(column: Column) -> Field:
    """Make the field of degrees in steps, with a warning if that rounds them."""
    is_told = False

    def encode(values: Array) -> "NDArray[np.int16]":
        nonlocal is_told
        steps = np.rint(values / SCAN_ANGLE_STEP)
        outside = (steps < STEPS.min) | (steps > STEPS.max)
        if outside.any():
            low, high = STEPS.min * SCAN_ANGLE_STEP, STEPS.max * SCAN_ANGLE_STEP
            reason = f"has the value {values[outside][0]}, but only {low} to {high} can be held"
            column.refuse(reason, f"greatest(least({column.quoted}, 180), -180)")
        units = column.as_type(steps, np.dtype("i2"))
        rounded = (units * SCAN_ANGLE_STEP).astype(np.float32)
        if not is_told and not np.array_equal(rounded, values.astype(np.float32)):
            _warn(column, f"is rounded to steps of {SCAN_ANGLE_STEP} degrees")
            is_told = True
        return units

    return Field("scan_angle", (column,), encode)


class Times:
    """What kind of times a column has: seconds of the week, or of adjusted standard GPS time."""

    def __init__(self, column: Column) -> None:
        self._column = column
        self.field = Field("gps_time", (column,), self._encode)
        self.are_standard = False

    def _encode(self, values: Array) -> Floats:
        times: Floats = self._column.as_type(values, np.dtype("f8"))
        if not self.are_standard:
            self.are_standard = bool(((times < 0) | (times > WEEK)).any())
        return times


class Intensities:
    """Intensities of a floating type: whole numbers, or fractions of the highest one."""

    def __init__(self, column: Column) -> None:
        self._column = column
        self._low, self._high = np.inf, -np.inf
        self._fraction: float | None = None

    def values(self, batch: "pa.RecordBatch") -> Array:
        """Give the values of rows, and take note of them.

        Raises
        ------
        FileError
            If one is NULL, NaN or infinite.
        """
        values = self._column.values(batch.column(self._column.name))
        if not np.isfinite(values).all():
            self._column.whole(values, 0, FULL)  # refuses them
        self._low = min(self._low, values.min(initial=np.inf))
        self._high = max(self._high, values.max(initial=-np.inf))
        if self._fraction is None:
            fractions = values[values != np.rint(values)]
            self._fraction = fractions[0] if fractions.size else None
        return values

    def factor(self) -> int:
        """Give what the values are to be multiplied by.

        Raises
        ------
        FileError
            If they are neither from 0 to 1 nor whole numbers of 16 bits.

        Warns
        -----
        FileWarning
            If it is not 1.
        """
        if self._low >= 0 and self._high <= 1:
            _warn(self._column, f"has fractions, written as round({FULL} * {self._column.quoted})")
            return FULL
        if self._high > -np.inf:
            found = [self._low, self._high, *([] if self._fraction is None else [self._fraction])]
            self._column.whole(np.array(found), 0, FULL)
        return 1


def _warn(column: Column, what: str) -> None:
    message = f"{WRITER}: '{column.path}': column '{column.name}' {what}"
    warnings.warn(message, FileWarning, stacklevel=2)
