"""Where models lie on the map: their map conversions, compared."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from spatialq.errors import CrsError

SAME_PLACE = 1e-3
"""Units of the map, and thousandths of degrees, by which two map conversions may differ."""


def require_same(function: str, models: Sequence[tuple[str, Mapping[str, Any] | None]]) -> None:
    """Refuse models whose coordinates mean different places on the map.

    Parameters
    ----------
    function : str
        Who asks, for the sentence.
    models : sequence of (str, mapping or None)
        What to call each, and its `IfcModel.georeference`; one without goes with any.

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
    turn = math.degrees(math.atan2(y, x)) if x is not None and y is not None else 0.0
    return said["crs_name"], [*place, 1000 * turn]


def _text(crs: str | None, place: list[float]) -> str:
    east, north, height, turn = place
    return f"{crs or 'no CRS'} {east:.3f} {north:.3f} {height:.3f} turned {turn / 1000:.4f}°"
