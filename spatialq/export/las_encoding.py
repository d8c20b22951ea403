"""Columns as fields of LAS point records: a function each, that checks values and stores them."""

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.errors import FileError, FileWarning
from spatialq.export.atomic import WRITER
from spatialq.export.las_dimensions import OLD, RANK, Dimension
from spatialq.export.point_columns import Column
from spatialq.io.las.columns import SCAN_ANGLE_STEP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Records = NDArray[np.void]
    Store = Callable[[Records, NDArray[Any]], None]
    """Stores the values of a column in as many records."""

FULL = 65_535
"""The intensity that a fractional 1 becomes."""
WEEK = 7 * 24 * 3600


def bits(column: Column, dimension: Dimension, point_format: int) -> "Store":
    """Store whole numbers in some bits of a field, which are 0 before."""
    assert dimension.mask is not None
    shift = (dimension.mask & -dimension.mask).bit_length() - 1
    highest = dimension.mask >> shift

    def store(records: "Records", values: "NDArray[Any]") -> None:
        if point_format in OLD and highest > 1 and values.max(initial=0) > highest:
            reason = (
                f"column '{column.name}' has the value {values.max()}, but points with {RANK} "
                f"(formats 0 to 5) hold 0 to {highest}; write {RANK}::FLOAT AS scan_angle"
            )
            raise FileError.of(WRITER, column.path, reason)
        whole = column.whole(values, 0, highest).astype(np.uint8)
        records[dimension.field] |= whole << shift

    return store


def plain(column: Column, field: str, dtype: "np.dtype[Any]") -> "Store":
    """Store values in a field of their own."""

    def store(records: "Records", values: "NDArray[Any]") -> None:
        records[field] = column.as_type(values, dtype)

    return store


def angles(column: Column) -> "Store":
    """Store degrees in the steps that LAS has, with a warning if that rounds them."""
    is_told = False

    def store(records: "Records", values: "NDArray[Any]") -> None:
        nonlocal is_told
        units = values / SCAN_ANGLE_STEP
        units = column.as_type(np.rint(units), np.dtype("i2"))
        rounded = (units * SCAN_ANGLE_STEP).astype(np.float32)
        if not is_told and not np.array_equal(rounded, values.astype(np.float32)):
            _warn(column, f"is rounded to steps of {SCAN_ANGLE_STEP} degrees")
            is_told = True
        records["scan_angle"] = units

    return store


class Times:
    """What kind of times a column has: seconds of the week, or of adjusted standard GPS time."""

    def __init__(self, column: Column) -> None:
        self._column = column
        self.are_standard = False

    def store(self, records: "Records", values: "NDArray[Any]") -> None:
        """Store values."""
        times = self._column.as_type(values, np.dtype("f8"))
        self.are_standard |= bool(((times < 0) | (times > WEEK)).any())
        records["gps_time"] = times


class Intensities:
    """Intensities of a floating type: whole numbers, or fractions of the highest one."""

    def __init__(self, column: Column) -> None:
        self._column = column
        self._low, self._high = np.inf, -np.inf
        self._fraction: float | None = None

    def add(self, values: "NDArray[Any]") -> None:
        """Take note of values."""
        if not np.isfinite(values).all():
            self._column.whole(values, 0, FULL)  # refuses them
        self._low = min(self._low, values.min(initial=np.inf))
        self._high = max(self._high, values.max(initial=-np.inf))
        if self._fraction is None:
            fractions = values[values != np.rint(values)]
            self._fraction = fractions[0] if fractions.size else None

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
