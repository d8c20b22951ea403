"""Lengths as people give them to commands, such as '2mm', in the units of parameters."""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from spatialq.data.units import METRES, OF_FILE, factor_of, split
from spatialq.errors import CrsError, CrsWarning
from spatialq.functions.declaration import Parameter
from spatialq.io import crs as crs_text


def with_numbers(
    command: str,
    options: Mapping[str, Any],
    parameters: Iterable[Parameter],
    path: Path,
    crs: str | None,
    remedy: str = "reproject it first",
    *,
    is_sought: bool = False,
) -> dict[str, Any]:
    """Convert options that are lengths with a unit to numbers; numbers stay as they are.

    Parameters
    ----------
    command : str
    options : mapping
        By name; texts such as '2mm', or lists of them, where the parameter is a length. '2u' is
        two units of x and y of the file.
    parameters : iterable of Parameter
        Of all functions that the options are for.
    path : Path
        The file that the command reads.
    crs : str, optional
        Its CRS as PROJJSON.
    remedy : str
        What to do about a file in degrees.
    is_sought : bool
        Whether the command finds the unit of the file itself where the CRS does not say it.

    Raises
    ------
    ValueError
        If a text is no length, or does not say its unit.
    CrsError
        If a length cannot be converted, since x and y are degrees.

    Warns
    -----
    CrsWarning
        If there is no CRS, and metres are assumed where it matters.
    """
    unit = _FileUnit(command, path, crs, remedy)
    lengths = [each for each in parameters if each.is_length]
    converted = {
        each.name: unit.converted(each, options[each.name])
        for each in lengths
        if each.name in options
    }
    needs_unit = not is_sought and any(each.in_metres for each in lengths)
    if crs is None and (unit.is_assumed or needs_unit):
        message = (
            f"{command}: the CRS of '{path}' is not known, so its coordinates are taken for "
            "metres; --crs, or crs in Python, says what it is, such as EPSG:25832"
        )
        warnings.warn(message, CrsWarning, stacklevel=3)
    return {**options, **converted}


@dataclass
class _FileUnit:
    """The unit of x and y of a file."""

    command: str
    path: Path
    crs: str | None
    remedy: str
    is_assumed: bool = False
    """Whether a length was converted by taking the unit for metres, though there is no CRS."""

    @cached_property
    def metres(self) -> float | None:
        """Metres in it; None for degrees."""
        if self.crs is None:
            return 1.0
        known = crs_text.metres_per_unit(self.crs)
        return None if known is None else known[0]

    @property
    def name(self) -> str:
        """Name it for people."""
        if self.crs is None:
            return "whose CRS is not known"
        return f"which are {f'{self.metres:.7g} m' if self.metres else 'degrees'}"

    def converted(self, parameter: Parameter, given: object) -> Any:
        """Convert a text, or each in a list."""
        if isinstance(given, str):
            return self.number(parameter, given)
        if isinstance(given, list | tuple):
            return tuple(self.converted(parameter, each) for each in given)
        return given

    def number(self, parameter: Parameter, text: str) -> float:
        """Convert a text to a number in the unit of a parameter."""
        number, unit = split(self.command, parameter.name, text, (*METRES, OF_FILE))
        if number == 0:
            return number
        if not unit:
            message = (
                f"{self.command}: {parameter.name} must say its unit, got '{text}': {number:g}m is "
                f"{number:g} metres, {number:g}{OF_FILE} is {number:g} units of x and y of "
                f"'{self.path}', {self.name}"
            )
            raise ValueError(message)
        is_of_file = unit.lower() == OF_FILE
        if is_of_file != parameter.in_metres:
            return number if is_of_file else number * factor_of(unit)
        if self.metres is None:
            message = (
                f"{self.command}: {parameter.name} cannot be {text}, since x and y of "
                f"'{self.path}' are degrees: {self.remedy}, or give degrees, such as "
                f"0.003{OF_FILE}"
            )
            raise CrsError(message)
        self.is_assumed |= self.crs is None
        return number * self.metres if is_of_file else number * (factor_of(unit) / self.metres)
