"""Coordinates in any unit, as kernels take them: lengths, heights and degrees.

A kernel compares x, y and z, and gets lengths. Here the lengths that users give in metres are
converted to the unit of x and y, and heights in another unit than x and y to that one; coordinates
in degrees are refused where lengths mean something.
"""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from spatialq.data.frame import Frame
from spatialq.errors import CrsError, CrsWarning
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import CoordinateParameters
from spatialq.io import crs as crs_text

SAME_UNIT = 1e-5
"""Relative: survey feet and international feet count as one unit."""


@dataclass(frozen=True)
class Fitted:
    """A call whose arguments and parameters are as the kernel takes them."""

    arguments: dict[str, Any]
    options: Any
    level: float = 1.0
    """Units of x and y in one unit of z."""

    def results(self, function: Function, found: dict[str, Any]) -> dict[str, Any]:
        """Give heights in the result back in the unit of z."""
        if self.level == 1:
            return found
        return {
            name: values / self.level if name in function.output.heights else values
            for name, values in found.items()
        }


def fit(
    function: Function, arguments: Mapping[str, Any], options: Any, frame: Frame | None
) -> Fitted:
    """Make the arguments and parameters of a call as the kernel takes them.

    Parameters
    ----------
    function : Function
    arguments : mapping
        What the kernel gets, by name.
    options : Parameters
    frame : Frame, optional
        What is known of the coordinates; None for arrays, of which nothing can be known.

    Raises
    ------
    CrsError
        If the coordinates are in degrees and the function needs lengths, or their unit cannot be
        told, or `unit` or `crs` contradict what is known.

    Warns
    -----
    CrsWarning
        If metres are assumed, degrees are taken for lengths, or heights are converted.
    """
    if not isinstance(options, CoordinateParameters):
        return Fitted(dict(arguments), options)
    unit, height_unit = _units(function, options, frame)
    level = 1.0
    if function.declaration.is_spatial and not math.isclose(unit, height_unit, rel_tol=SAME_UNIT):
        level = height_unit / unit
        _warn(
            f"{options.function}: {_subject(frame)} has heights in units of {height_unit:g} m, and "
            f"x and y in units of {unit:g} m: heights were converted to the unit of x and y"
        )
    return Fitted(_with_heights(arguments, level), _with_lengths(function, options, unit), level)


def check(function: Function, options: Any, frame: Frame) -> None:
    """Refuse coordinates that `fit` would refuse, before they are read; warns of nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrsWarning)
        _units(function, options, frame)


def _units(
    function: Function, options: CoordinateParameters, frame: Frame | None
) -> tuple[float, float]:
    """Metres in a unit of x and y, and in one of z."""
    name, subject = options.function, _subject(frame)
    known = frame.crs if frame is not None else None
    given = None if options.crs is None else crs_text.from_argument(name, options.crs)
    if given is not None and known is not None and not crs_text.same(given, _read(known)):
        message = (
            f"{name}: crs is {crs_text.name(given)}, but that of {subject} is "
            f"{crs_text.name(_read(known))}: leave crs out, or correct that of {subject}"
        )
        raise CrsError(message)
    crs = given or (None if known is None else _read(known))
    if crs is not None:
        return _units_of(function, options, crs, subject)
    if options.unit is not None:
        return options.unit, options.unit
    needs_metres = function.declaration.takes_unit or _lengths(function)
    if frame is not None and needs_metres:
        if frame.doubt:
            message = f"{name}: {frame.doubt}: give unit, such as unit := 0.3048 for feet, or crs"
            raise CrsError(message)
        _warn(
            f"{name}: the CRS of {subject} is not known, so its coordinates are taken for metres; "
            "unit := 0.3048 is for feet, unit := 1 for metres, crs := 'EPSG:...' for any CRS"
        )
    return 1.0, 1.0


def _units_of(
    function: Function, options: CoordinateParameters, crs: str, subject: str
) -> tuple[float, float]:
    name = options.function
    units = crs_text.metres_per_unit(crs)
    if units is None:
        sentence = f"{name}: the CRS of {subject}, {crs_text.name(crs)}, is not projected"
        if not function.declaration.allows_degrees:
            message = (
                f"{sentence}, and lengths in degrees mean nothing: reproject the coordinates "
                "first, for example to their UTM zone, or correct the CRS if it is wrong"
            )
            raise CrsError(message)
        _warn(
            f"{sentence}: lengths are in degrees, and what compares z with x and y means little; "
            "reproject the coordinates first"
        )
        return 1.0, 1.0
    if options.unit is not None and not math.isclose(options.unit, units[0], rel_tol=SAME_UNIT):
        message = (
            f"{name}: unit is {options.unit:g}, but that of {subject} in {crs_text.name(crs)} is "
            f"{units[0]:g} m: leave unit out, or correct the CRS of {subject}"
        )
        raise CrsError(message)
    return units


def _with_lengths(function: Function, options: Any, unit: float) -> Any:
    """Convert the parameters of a call that are lengths in metres."""
    if unit == 1:
        return options
    if function.declaration.takes_unit:
        return replace(options, unit=unit)
    lengths = {name: getattr(options, name) / unit for name in _lengths(function)}
    return replace(options, **lengths) if lengths else options


def _lengths(function: Function) -> list[str]:
    """Name the parameters that are lengths in metres, and of which none is optional."""
    return [
        each.name
        for each in function.parameters
        if each.unit == "metres" and each.name != "unit" and not each.is_optional
    ]


def _with_heights(arguments: Mapping[str, Any], level: float) -> dict[str, Any]:
    if level == 1:
        return dict(arguments)
    if "grid" in arguments:
        grid = arguments["grid"]
        return {**arguments, "grid": replace(grid, z=grid.z * level)}
    return {**arguments, "z": arguments["z"] * level}


def _subject(frame: Frame | None) -> str:
    return "the cloud" if frame is None else frame.subject


def _read(crs: str) -> str:
    return crs if crs.startswith("{") else crs_text.from_text(crs)


def _warn(message: str) -> None:
    warnings.warn(message, CrsWarning, stacklevel=2)
