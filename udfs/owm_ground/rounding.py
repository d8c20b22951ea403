"""Rounding to hundredths of a unit, as in the reference program."""

from math import floor


def round_half_away(value: float) -> float:
    """Round a number >= 0 as C's round does; Python's rounds halves to even."""
    return float(floor(value + 0.5))


def window_step(window_size: float, overlap: float) -> float:
    """Distance between two windows, rounded to hundredths of a unit as in the reference."""
    return round_half_away(100.0 * window_size * (1.0 - overlap)) / 100.0
