"""Lengths with units, as people write them."""

import re
from collections.abc import Iterable
from math import isfinite

METRES = {
    "mm": 0.001,
    "cm": 0.01,
    "m": 1.0,
    "in": 0.0254,
    "ft": 0.3048,
    "ftUS": 1200 / 3937,
    "us-ft": 1200 / 3937,
}
"""Metres in a unit; ft is the international foot, ftUS the US survey foot."""
OF_FILE = "u"
"""Stands for the unit of a file's x and y, whatever it is."""
_UNITS = {unit.lower(): factor for unit, factor in METRES.items()}


def metres(function: str, name: str, text: str) -> float:
    """Read a length such as '2mm' or '0.5 in'; 0 needs no unit.

    Raises
    ------
    ValueError
        If it is not a length, negative, or without a unit.
    """
    number, unit = split(function, name, text, METRES)
    if not unit and number:
        message = (
            f"{function}: {name} must say its unit, got '{text}': {number:g}mm is {number:g} "
            f"millimetres, {number:g}m is {number:g} metres"
        )
        raise ValueError(message)
    return number * factor_of(unit) if unit else 0.0


def factor_of(unit: str) -> float:
    """Give the metres in a unit, in whatever case it is written."""
    return _UNITS[unit.lower()]


def split(function: str, name: str, text: str, units: Iterable[str]) -> tuple[float, str]:
    """Divide a length such as '2mm' into number and unit, which is empty where there is none.

    Raises
    ------
    ValueError
        If it is not a length, negative, or in none of the units.
    """
    units = tuple(units)
    match = re.fullmatch(r"\s*([-+.\dEe]+?)\s*([A-Za-z-]*)\s*", text)
    try:
        number = float(match[1]) if match else float("nan")
    except ValueError:
        number = float("nan")
    unit = match[2] if match else ""
    known = {"", *(each.lower() for each in units)}
    if not (isfinite(number) and number >= 0 and unit.lower() in known):
        there = ", ".join(units)
        message = f"{function}: {name} must be a length >= 0 such as 2mm ({there}), got '{text}'"
        raise ValueError(message)
    return number, unit


def as_text(value: float) -> str:
    """Write a length in metres as `metres` reads it."""
    return f"{value:g}m" if value >= 0.1 else f"{1000 * value:g}mm"
