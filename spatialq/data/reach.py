"""How far from the origin coordinates may be.

Beyond, the places that double precision tells apart are more than a millimetre apart: distances and
planes would be those of rounded coordinates, without a word of it. All functions refuse them alike.
"""

from collections.abc import Iterable
from math import isfinite

FARTHEST = 8e12
"""Metres, along each axis."""


def require_reach(
    caller: str, low: Iterable[float], high: Iterable[float], units: Iterable[float] = (1, 1, 1)
) -> None:
    """Reject coordinates that are too far away.

    Parameters
    ----------
    caller : str
        Whose error it is.
    low, high : numbers
        Ends of x, y and, if it counts, z. Those that are not finite are for others to reject.
    units : numbers
        Metres in one unit of each.

    Raises
    ------
    ValueError
        If one is.
    """
    for axis, ends, unit in zip("xyz", zip(low, high, strict=True), units, strict=False):
        for value in map(float, ends):
            if isfinite(value) and abs(value) * unit > FARTHEST:
                raise ValueError(too_far(caller, axis, value, unit))


def too_far(caller: str, axis: str, value: float, unit: float = 1.0, where: str = "") -> str:
    """Write the sentence about a coordinate that is too far away."""
    limit = f"{FARTHEST / unit:.2g}"
    return (
        f"{caller}: {axis} must be from -{limit} to {limit}, where double precision tells apart a "
        f"millimetre, got {value:.10g}{where}"
    )
