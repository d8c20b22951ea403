"""Rounding to hundredths of a unit, as in the reference program."""

from math import floor


def round_half_away(value: float) -> float:
    """Round a number >= 0 as C's round does; Python's rounds halves to even."""
    return float(floor(value + 0.5))


def window_step(window_size: float, overlap: float) -> float:
    """Distance between two windows, rounded to hundredths of a unit as in the reference."""
    return round_half_away(100.0 * window_size * (1.0 - overlap)) / 100.0


def whole_half(size: float) -> float:
    """Half the size of a window or cell.

    The reference divides whole sizes as integers: a window of size 15 is 14 wide. Sizes with a
    fraction, and size 1, do not occur there and are halved exactly.
    """
    return float(size // 2) if size >= 2 and size == floor(size) else size / 2
