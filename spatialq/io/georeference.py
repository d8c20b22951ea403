"""Comparison of the map conversions of models."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from spatialq.errors import CrsError

SAME_PLACE = 1e-3
"""Tolerance between two map conversions, in units of the map and in thousandths of degrees."""


def require_same(function: str, models: Sequence[tuple[str, Mapping[str, Any] | None]]) -> None:
    """Reject models whose coordinates refer to different places on the map.

    Parameters
    ----------
    function : str
        The function that was called, for the error sentence.
    models : sequence of (str, mapping or None)
        Name and `IfcModel.georeference` of each model; None matches any other.

    Raises
    ------
    CrsError
        If two differ.
    """
    placed = [(name, _place(said)) for name, said in models if said is not None]
    for (name, (crs, place)), (other, (other_crs, other_place)) in pairwise(placed):
        same_crs = None in (crs, other_crs) or crs == other_crs
        if not same_crs or any(
            abs(p - q) > SAME_PLACE for p, q in zip(place, other_place, strict=True)
        ):
            message = (
                f"{function}: {name} and {other} lie at different places on the map: "
                f"{_text(crs, place)} against {_text(other_crs, other_place)}; export them with "
                "the same map conversion"
            )
            raise CrsError(message)


def _place(said: Mapping[str, Any]) -> tuple[str | None, list[float]]:
    """Give the CRS; eastings, northings and height of the origin; thousandths of degrees."""
    place = [float(said[name] or 0.0) for name in ("eastings", "northings", "orthogonal_height")]
    x, y = said["x_axis_abscissa"], said["x_axis_ordinate"]
    angle = math.degrees(math.atan2(y, x)) if x is not None and y is not None else 0.0
    return said["crs_name"], [*place, 1000 * angle]


def _text(crs: str | None, place: list[float]) -> str:
    east, north, height, angle = place
    return f"{crs or 'no CRS'} {east:.3f} {north:.3f} {height:.3f} turned {angle / 1000:.4f}°"
