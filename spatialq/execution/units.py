"""Coordinates in any unit, as kernels take them: lengths, heights and degrees.

A kernel compares x, y and z, and gets lengths. Here the lengths that users give in metres are
converted to the unit of x and y, and heights in another unit than x and y to that one; coordinates
in degrees are refused where lengths mean something.
"""

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spatialq.data.cloud import Cloud
from spatialq.data.frame import Frame
from spatialq.errors import CrsError, CrsWarning
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import COORDINATES, CoordinateParameters, Parameters
from spatialq.io import crs as crs_text
from spatialq.io.crs import SAME_UNIT
from spatialq.runtime import buffers


@dataclass(frozen=True)
class Units:
    """The units of coordinates."""

    across: float
    """Metres in a unit of x and y."""
    up: float
    """Metres in a unit of z."""
    note: str = ""
    """What the user should be warned of."""
    is_known: bool = True
    """Whether a CRS or the user says it, or metres are assumed."""

    @property
    def level(self) -> float:
        """Units of x and y in one unit of z; 1 where they differ less than feet of two kinds."""
        is_one = math.isclose(self.across, self.up, rel_tol=SAME_UNIT)
        return 1.0 if is_one else self.up / self.across


@dataclass(frozen=True)
class Fitted:
    """A call whose arguments and parameters are as the kernel takes them."""

    arguments: dict[str, Any]
    options: Parameters
    level: float = 1.0
    """Units of x and y in one unit of the z that was given, if z was converted."""
    z_to_xy_scale: float = 1.0
    """Units of x and y in one unit of the z that the kernel gets."""
    across: float = 1.0
    """Metres in one unit of x and y, as far as it is known."""

    @property
    def units(self) -> tuple[float, float, float]:
        """Metres in one unit of x, y and the z that was given."""
        return self.across, self.across, self.across * self.z_to_xy_scale * self.level

    def results(self, function: Function, found: dict[str, Any]) -> dict[str, Any]:
        """Give heights in the result, and what multiplies them, back for the unit of z."""
        if self.level == 1:
            return found
        output = function.output

        def converted(name: str, values: Any) -> Any:
            if name in output.heights:
                return values / self.level
            return values * self.level if name in output.of_heights else values

        return {name: converted(name, values) for name, values in found.items()}


def fit(
    function: Function, arguments: Mapping[str, Any], options: Parameters, frame: Frame | None
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
    units = units_for(function, options, frame)
    if units.note and not (frame is not None and frame.is_announced):
        _warn(units.note)
    level = units.level if function.declaration.is_spatial else 1.0
    lengths = _with_lengths(function, options, units)
    heights = _with_heights(arguments, level)
    return Fitted(heights, lengths, level, units.level / level, units.across)


def announce(function: Function, options: CoordinateParameters, frames: Iterable[Frame]) -> None:
    """Warn of what `fit` would warn of, once for several files, and raise what it would raise."""
    notes = [units_for(function, options, frame).note for frame in frames]
    for note in filter(None, notes):
        _warn(note)
        return


def units_for(function: Function, options: CoordinateParameters, frame: Frame | None) -> Units:
    """Find the units of the coordinates of a call.

    Raises
    ------
    CrsError
        As `fit`.
    """
    declared = function.declaration
    units = units_of(
        options.function,
        options,
        frame,
        needs_metres=not declared.finds_unit and (declared.takes_unit or bool(_lengths(function))),
        allows_degrees=declared.allows_degrees,
    )
    if "z" not in function.inputs.columns and not declared.takes_unit and not _lengths(function):
        return replace(units, note="")  # nothing is a length, and degrees are as good
    if units.level == 1 or not declared.is_spatial:
        return units
    note = (
        f"{options.function}: heights of {_subject(frame)} are in units of {units.up:g} m, x and y "
        f"in units of {units.across:g} m: heights were converted to the unit of x and y"
    )
    return replace(units, note=note)


def units_of(
    name: str,
    options: CoordinateParameters,
    frame: Frame | None,
    *,
    needs_metres: bool,
    allows_degrees: bool,
) -> Units:
    """Find the units of the coordinates of a call of any function.

    Parameters
    ----------
    name : str
        Of the function.
    options, frame
        As for `fit`.
    needs_metres : bool
        Whether some of its lengths are in metres.
    allows_degrees : bool
        Whether the user is only warned of coordinates in degrees.

    Raises
    ------
    CrsError
        As `fit`.
    """
    subject = _subject(frame)
    if frame is not None and frame.conflict:
        message = f"{name}: {frame.conflict}"
        raise CrsError(message)
    known = None if frame is None or frame.crs is None else crs_text.from_text(frame.crs)
    given = None if options.crs is None else crs_text.from_argument(name, options.crs)
    if given is not None and known is not None and not crs_text.same(given, known):
        message = (
            f"{name}: crs is {crs_text.name(given)}, but that of {subject} is "
            f"{crs_text.name(known)}: leave crs out, or correct that of {subject}"
        )
        raise CrsError(message)
    crs = given or known
    if crs is not None:
        remedy = frame.remedy if frame is not None else ""
        return _of_crs(name, crs, subject, options.unit, remedy, allows_degrees=allows_degrees)
    if options.unit is not None:
        return Units(options.unit, options.unit)
    if frame is None or not needs_metres:
        return Units(1.0, 1.0, is_known=False)
    if frame.doubt:
        message = f"{name}: {frame.doubt}: give unit, such as unit := 0.3048 for feet, or crs"
        raise CrsError(message)
    note = (
        f"{name}: the CRS of {subject} is not known, so its coordinates are taken for metres; "
        "unit := 0.3048 is for feet, unit := 1 for metres, crs := 'EPSG:...' for any CRS"
    )
    return Units(1.0, 1.0, note)


def _of_crs(
    name: str, crs: str, subject: str, unit: float | None, remedy: str, *, allows_degrees: bool
) -> Units:
    known = crs_text.metres_per_unit(crs)
    if known is None:
        remedy = remedy or (
            f"reproject {subject} by spatialq_transform, or read its file with to_crs, to a "
            "projected CRS such as its UTM zone"
        )
        sentence = f"{name}: the CRS of {subject}, {crs_text.name(crs)}, is not projected"
        if not allows_degrees:
            message = (
                f"{sentence}, and lengths in degrees mean nothing: {remedy}; or correct the CRS if "
                "it is wrong"
            )
            raise CrsError(message)
        note = (
            f"{sentence}: lengths are in degrees, and what compares z with x and y means little; "
            f"{remedy}"
        )
        return Units(1.0, 1.0, note)
    if unit is not None and not math.isclose(unit, known[0], rel_tol=SAME_UNIT):
        message = (
            f"{name}: unit is {unit:g}, but that of {subject} in {crs_text.name(crs)} is "
            f"{known[0]:g} m: leave unit out, or correct the CRS of {subject}"
        )
        raise CrsError(message)
    return Units(*known)


def _with_lengths(
    function: Function, options: CoordinateParameters, units: Units
) -> CoordinateParameters:
    """Convert the parameters of a call that are lengths in metres."""
    unit, declared = units.across, function.declaration
    if unit == 1 and not (declared.finds_unit and units.is_known):
        return options
    if declared.takes_unit:
        return replace(options, unit=unit)
    given = {name: getattr(options, name) for name in _lengths(function)}
    lengths = {name: value / unit for name, value in given.items() if value is not None}
    return replace(options, **lengths) if lengths else options


def _lengths(function: Function) -> list[str]:
    """Name the parameters that are lengths in metres."""
    known = (each for each in function.parameters if each.name not in COORDINATES)
    return [each.name for each in known if each.unit == "metres"]


def _with_heights(arguments: Mapping[str, Any], level: float) -> dict[str, Any]:
    if level == 1 or not arguments:  # a job fits its parameters before it reads
        return dict(arguments)
    if "grid" in arguments:
        grid = arguments["grid"]
        return {**arguments, "grid": replace(grid, z=grid.z * level)}
    arguments = {
        name: each.lifted(level) if isinstance(each, Cloud) else each
        for name, each in arguments.items()
    }
    z = arguments["z"]
    if isinstance(z, np.ndarray):
        z = np.multiply(z, level, out=buffers.empty(z.shape))
    else:
        z = z * level
    return {**arguments, "z": z}


def _subject(frame: Frame | None) -> str:
    return "the cloud" if frame is None else frame.subject


def _warn(message: str) -> None:
    warnings.warn(message, CrsWarning, stacklevel=3)
