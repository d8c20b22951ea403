"""Lengths with units, as people write them."""

import re
from math import isfinite

METRES = {"mm": 0.001, "cm": 0.01, "m": 1.0, "in": 0.0254, "ft": 0.3048}


def metres(function: str, name: str, text: str) -> float:
    """Read a length such as '2mm', '0.5 in' or '0.002'; without a unit it is metres.

    Raises
    ------
    ValueError
        If it is not a length, or negative.
    """
    match = re.fullmatch(r"\s*([-+.\dEe]+?)\s*([A-Za-z]*)\s*", text)
    try:
        value = float(match[1]) * METRES[match[2].lower() or "m"] if match else float("nan")
    except (ValueError, KeyError):
        value = float("nan")
    if not (isfinite(value) and value >= 0):
        units = ", ".join(METRES)
        message = f"{function}: {name} must be a length >= 0 such as 2mm ({units}), got '{text}'"
        raise ValueError(message)
    return value
