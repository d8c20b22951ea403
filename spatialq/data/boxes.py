"""Boxes of x and y, such as the `bounds` of a function."""

from collections.abc import Sequence
from typing import Any

from spatialq.runtime.arrays import Floats


def in_box(x: Floats, y: Floats, box: Sequence[float]) -> Any:
    """Tell which points are inside of a box or on its border.

    Parameters
    ----------
    x, y : float64[n]
        In main memory or on a GPU.
    box : xmin, ymin, xmax, ymax

    Returns
    -------
    bool[n]
        False for NaN.
    """
    xmin, ymin, xmax, ymax = box
    return (x >= xmin) & (x <= xmax) & (y >= ymin) & (y <= ymax)
