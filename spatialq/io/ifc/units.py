"""Units of an IFC file: what they are called, and how their numbers become those of SI units."""

import math
from typing import Any

from spatialq.io.ifc.entities import attribute, entities

PREFIXES = {
    "EXA": 1e18, "PETA": 1e15, "TERA": 1e12, "GIGA": 1e9, "MEGA": 1e6, "KILO": 1e3, "HECTO": 1e2,
    "DECA": 1e1, "DECI": 1e-1, "CENTI": 1e-2, "MILLI": 1e-3, "MICRO": 1e-6, "NANO": 1e-9,
    "PICO": 1e-12, "FEMTO": 1e-15, "ATTO": 1e-18,
}  # fmt: skip

POWERS = {"SQUARE_METRE": 2, "CUBIC_METRE": 3}
"""A prefix belongs to the metre: a square millimetre is a millionth of a square metre."""

TEMPERATURES = {"celsius": (1.0, 273.15), "fahrenheit": (5 / 9, 459.67 * 5 / 9)}
"""How a number becomes kelvin: factor and offset. Files do not agree on how a conversion with an
offset is written (IfcOpenShell's own Fahrenheit has 1.8 and -459.67), so the name decides."""

MAX_DEPTH = 8
"""How many units may be defined by each other: damaged files hold circles."""


def project_units(model: Any) -> dict[str, Any]:
    """Find the unit of each kind, such as LENGTHUNIT, that a project assigns."""
    found: dict[str, Any] = {}
    for project in model.by_type("IfcProject"):
        for assignment in entities(project.UnitsInContext):
            for unit in entities(attribute(assignment, "Units")):
                kind = attribute(unit, "UnitType")
                if kind is not None:
                    found.setdefault(kind, unit)
    return found


def unit_name(unit: Any, depth: int = 0) -> str:
    """Name a unit in lower case: ``millimetre``, ``square_metre``, ``watt metre^-2 kelvin^-1``."""
    if unit.is_a("IfcSIUnit"):
        return f"{attribute(unit, 'Prefix') or ''}{attribute(unit, 'Name') or ''}".lower()
    if unit.is_a("IfcDerivedUnit") and depth < MAX_DEPTH:
        parts = []
        for element in entities(attribute(unit, "Elements")):
            exponent = attribute(element, "Exponent")
            for base in entities(attribute(element, "Unit")):
                power = f"^{exponent}" if exponent != 1 else ""
                parts.append(unit_name(base, depth + 1) + power)
        return " ".join(parts)
    if unit.is_a("IfcMonetaryUnit"):
        return str(attribute(unit, "Currency"))
    return str(attribute(unit, "Name") or unit.is_a()).lower()


def si_conversion(unit: Any) -> tuple[float, float] | None:
    """Say how a number in a unit becomes one in the SI unit of its kind.

    Parameters
    ----------
    unit : entity
        IfcSIUnit, IfcConversionBasedUnit, IfcDerivedUnit or another.

    Returns
    -------
    (float, float) or None
        Factor and offset: the SI number is factor * number + offset. The SI unit of mass is the
        kilogram, that of temperature the kelvin. None where no such unit follows: currencies,
        units that depend on the context, and broken ones.

    Examples
    --------
    A millimetre gives (0.001, 0), a kilogram (1, 0), a degree Celsius (1, 273.15).
    """
    try:
        factor, offset = _conversion(unit, 0)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None
    return (factor, offset) if math.isfinite(factor) and math.isfinite(offset) else None


def metres(unit: Any) -> float | None:
    """Give the length of a unit of length in metres."""
    conversion = None if unit is None else si_conversion(unit)
    return None if conversion is None else conversion[0]


def _conversion(unit: Any, depth: int) -> tuple[float, float]:
    if depth == MAX_DEPTH:
        message = "units are defined by each other"
        raise ValueError(message)
    if unit.is_a("IfcSIUnit"):
        return _of_si_unit(attribute(unit, "Prefix"), attribute(unit, "Name"))
    if unit.is_a("IfcDerivedUnit"):
        product = 1.0
        for element in attribute(unit, "Elements"):  # a difference of temperatures has no offset
            factor, _ = _conversion(attribute(element, "Unit"), depth + 1)
            product *= factor ** attribute(element, "Exponent")
        return product, 0.0
    name = str(attribute(unit, "Name")).lower()
    for temperature, conversion in TEMPERATURES.items():
        if temperature in name:
            return conversion
    measure = attribute(unit, "ConversionFactor")
    factor = float(attribute(measure, "ValueComponent").get_argument(0))
    offset = float(attribute(unit, "ConversionOffset") or 0)
    base, base_offset = _conversion(attribute(measure, "UnitComponent"), depth + 1)
    return factor * base, offset * base + base_offset


def _of_si_unit(prefix: str | None, name: str | None) -> tuple[float, float]:
    if name is None:
        message = "the unit has no name"
        raise ValueError(message)
    factor = PREFIXES[prefix] if prefix else 1.0
    if name == "GRAM":
        return factor / 1000, 0.0
    offset = 273.15 if name == "DEGREE_CELSIUS" else 0.0
    return float(factor ** POWERS.get(name, 1)), offset
