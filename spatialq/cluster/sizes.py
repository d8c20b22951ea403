"""The side of tiles, with or without a unit."""

from typing import Any

from spatialq.cluster.folder import CALLER
from spatialq.data.units import METRES, OF_FILE, factor_of, split
from spatialq.errors import CrsError
from spatialq.execution.validation import is_finite
from spatialq.io import crs as crs_text


def side_of(tile_size: Any, crs: str | None) -> float | None:
    """Give the side of tiles in the unit of x and y; None where there are none.

    Parameters
    ----------
    tile_size : float or str, optional
        A number in that unit, or a text such as '500m', '1000ft' or '2000u', which is the unit
        of x and y.
    crs : str, optional
        PROJJSON of x and y; without one they are taken for metres.

    Raises
    ------
    CrsError
        If it is given in metres or feet, and x and y are degrees.
    ValueError
        If it is no length above 0.
    """
    if tile_size is None:
        return None
    side, unit = tile_size, ""
    if isinstance(tile_size, str):
        side, unit = split(CALLER, "tile_size", tile_size, (*METRES, OF_FILE))
    if isinstance(side, bool) or not (_is_float(side) and side > 0):
        message = (
            f"{CALLER}: tile_size must be a number above 0, or a length such as 500m, got "
            f"{tile_size!r}"
        )
        raise ValueError(message)
    if unit.lower() in ("", OF_FILE):
        return float(side)
    known = (1.0, 1.0) if crs is None else crs_text.metres_per_unit(crs)
    if known is None:
        message = f"{CALLER}: tile_size cannot be {tile_size}, since x and y are degrees"
        raise CrsError(message)
    return float(side * (factor_of(unit) / known[0]))


def _is_float(value: object) -> bool:
    """Whether a value is a finite number that a float can hold."""
    try:
        return is_finite(value)
    except OverflowError:
        return False
