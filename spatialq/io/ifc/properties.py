"""Property sets and quantities of an IFC model: merged over instance and type, with units."""

import json
import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Value:
    """One property: a JSON value, and the unit of its number as text."""

    value: Any
    unit: str | None


Properties = dict[str, dict[str, Value]]
"""Property set, property, value."""

QUANTITY_UNITS = {
    "IfcQuantityLength": "LENGTHUNIT",
    "IfcQuantityArea": "AREAUNIT",
    "IfcQuantityVolume": "VOLUMEUNIT",
    "IfcQuantityWeight": "MASSUNIT",
    "IfcQuantityTime": "TIMEUNIT",
}

MEASURE_UNITS = {
    "IfcPositiveLengthMeasure": "LENGTHUNIT",
    "IfcNonNegativeLengthMeasure": "LENGTHUNIT",
    "IfcPositivePlaneAngleMeasure": "PLANEANGLEUNIT",
}
"""Measures whose unit does not follow from their name; IfcAreaMeasure gives AREAUNIT."""


class PropertyReader:
    """The property sets of all objects of a model, each set read once.

    Parameters
    ----------
    model : ifcopenshell.file
    types : dict from int to entity
        The type of each typed object, by step id.
    """

    def __init__(self, model: Any, types: dict[int, Any]) -> None:
        self.model = model
        self.types = types
        self.units = project_units(model)
        self._sets: dict[int, dict[str, Value]] = {}
        self._json: dict[tuple[tuple[int, ...], int | None], str] = {}
        self._of_type: dict[int, Properties] = {}
        self._attached: dict[int, list[Any]] = {}
        for relation in model.by_type("IfcRelDefinesByProperties"):
            definition = relation.RelatingPropertyDefinition
            if definition is None:
                continue
            # IFC4 allows a set of property sets here, as a wrapped list.
            wrapped = definition.is_a("IfcPropertySetDefinitionSet")
            for owner in relation.RelatedObjects or ():
                found = self._attached.setdefault(owner.id(), [])
                found += definition.wrappedValue if wrapped else (definition,)

    def of_instance(self, step_id: int) -> Properties:
        """Give the properties that are attached to an object itself."""
        return self._collect(self._attached.get(step_id, ()))

    def of_type(self, step_id: int) -> Properties:
        """Give the properties of an object's type."""
        kind = self.types.get(step_id)
        if kind is None:
            return {}
        if kind.id() not in self._of_type:
            sets = getattr(kind, "HasPropertySets", None) or ()
            self._of_type[kind.id()] = self._collect(sets)
        return self._of_type[kind.id()]

    def merged(self, step_id: int) -> Properties:
        """Give the properties that hold for an object: its own, else those of its type."""
        own = self.of_instance(step_id)
        inherited = self.of_type(step_id)
        names = dict.fromkeys((*inherited, *own))
        return {name: inherited.get(name, {}) | own.get(name, {}) for name in names}

    def as_json(self, step_id: int) -> str:
        """Give the merged properties as a JSON object of JSON objects."""
        kind = self.types.get(step_id)
        attached = tuple(definition.id() for definition in self._attached.get(step_id, ()))
        key = attached, kind.id() if kind is not None else None
        if key not in self._json:
            plain = {
                pset: {name: value.value for name, value in values.items()}
                for pset, values in self.merged(step_id).items()
            }
            self._json[key] = json.dumps(plain, ensure_ascii=False)
        return self._json[key]

    def long_table(self) -> dict[str, list[Any]]:
        """Give one row per property of every object, as columns."""
        names = (
            "global_id",
            "pset",
            "property",
            "value",
            "number",
            "unit",
            "unit_si",
            "number_si",
            "source",
        )
        columns: dict[str, list[Any]] = {name: [] for name in names}
        for owner in (*self.model.by_type("IfcObject"), *self._projects()):
            own = self.of_instance(owner.id())
            for pset, values in self.merged(owner.id()).items():
                for name, value in values.items():
                    instance = name in own.get(pset, ())
                    columns["global_id"].append(owner.GlobalId)
                    columns["pset"].append(pset)
                    columns["property"].append(name)
                    columns["value"].append(as_text(value.value))
                    columns["number"].append(as_number(value.value))
                    columns["unit"].append(value.unit)
                    columns["unit_si"].append(None)
                    columns["number_si"].append(None)
                    columns["source"].append("instance" if instance else "type")
        return columns

    def _projects(self) -> tuple[Any, ...]:
        # From IFC4 on a project is no IfcObject.
        return () if self.model.schema == "IFC2X3" else self.model.by_type("IfcContext")

    def _collect(self, definitions: Any) -> Properties:
        found: Properties = {}
        for definition in definitions:
            name = definition.Name or definition.is_a()
            found[name] = found.get(name, {}) | self._read_set(definition)
        return found

    def _read_set(self, definition: Any) -> dict[str, Value]:
        key = definition.id()
        if key not in self._sets:
            if definition.is_a("IfcPropertySet"):
                members = definition.HasProperties or ()
            elif definition.is_a("IfcElementQuantity"):
                members = definition.Quantities or ()
            else:
                self._sets[key] = self._read_attributes(definition)
                return self._sets[key]
            self._sets[key] = {member.Name: self._read(member) for member in members}
        return self._sets[key]

    def _read_attributes(self, definition: Any) -> dict[str, Value]:
        """Read a set of fixed attributes, such as IfcDoorLiningProperties."""
        skip = {"id", "type", "GlobalId", "OwnerHistory", "Name", "Description"}
        return {
            name: Value(plain(value), None)
            for name, value in definition.get_info(recursive=False).items()
            if name not in skip and value is not None and plain(value) is not None
        }

    def _read(self, member: Any) -> Value:
        """Read one property or quantity of any class."""
        kind = member.is_a()
        unit = getattr(member, "Unit", None)
        if kind == "IfcPropertySingleValue":
            return self._measure(member.NominalValue, unit)
        if member.is_a("IfcPhysicalSimpleQuantity"):
            if unit is None:
                unit = self.units.get(QUANTITY_UNITS.get(kind, ""))
            return Value(plain(member[3]), unit_name(unit) if unit is not None else None)
        if kind == "IfcPropertyEnumeratedValue":
            values = member.EnumerationValues or ()
            unit = getattr(member.EnumerationReference, "Unit", None)
        elif kind == "IfcPropertyListValue":
            values = member.ListValues or ()
        elif kind == "IfcPropertyBoundedValue":
            return self._bounded(member)
        elif kind == "IfcPropertyTableValue":
            defining, defined = member.DefiningValues or (), member.DefinedValues or ()
            return Value({"defining": plain(defining), "defined": plain(defined)}, None)
        elif kind == "IfcPropertyReferenceValue":
            target = member.PropertyReference
            return Value(getattr(target, "Name", None) or (target and target.is_a()), None)
        else:
            members = getattr(member, "HasProperties", None) or getattr(member, "HasQuantities", ())
            return Value({part.Name: self._read(part).value for part in members or ()}, None)
        return Value(plain(values), self._measure(values[0], unit).unit if values else None)

    def _bounded(self, member: Any) -> Value:
        bounds = {
            "lower": member.LowerBoundValue,
            "upper": member.UpperBoundValue,
            "set_point": getattr(member, "SetPointValue", None),
        }
        given = {name: value for name, value in bounds.items() if value is not None}
        unit = self._measure(next(iter(given.values())), member.Unit).unit if given else None
        return Value({name: plain(value) for name, value in given.items()}, unit)

    def _measure(self, measure: Any, unit: Any) -> Value:
        """Read a typed value; without a unit of its own it is in the project's unit."""
        if measure is None:
            return Value(None, None)
        if unit is None:
            kind = measure.is_a()
            stem = kind.removeprefix("Ifc").removesuffix("Measure").upper()
            unit = self.units.get(MEASURE_UNITS.get(kind, f"{stem}UNIT"))
        return Value(plain(measure), unit_name(unit) if unit is not None else None)


def plain(value: Any) -> Any:
    """Turn an IFC value into a JSON value: unknown logicals and NaN are null."""
    if hasattr(value, "wrappedValue"):
        return plain(value.wrappedValue)
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if hasattr(value, "is_a"):
        return getattr(value, "Name", None) or value.is_a()
    return str(value)


def as_text(value: Any) -> str | None:
    """Give a JSON value as the text of a VARCHAR column: strings as they are."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def as_number(value: Any) -> float | None:
    """Give a JSON value as a number, where it is one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value)


def project_units(model: Any) -> dict[str, Any]:
    """Find the unit of each kind, such as LENGTHUNIT, that a project assigns."""
    found: dict[str, Any] = {}
    for project in model.by_type("IfcProject"):
        assignment = project.UnitsInContext
        for unit in (assignment.Units or ()) if assignment is not None else ():
            kind = getattr(unit, "UnitType", None)
            if kind is not None:
                found.setdefault(kind, unit)
    return found


def unit_name(unit: Any) -> str:
    """Name a unit in lower case: ``millimetre``, ``square_metre``, ``watt metre^-2 kelvin^-1``."""
    if unit.is_a("IfcSIUnit"):
        return f"{unit.Prefix or ''}{unit.Name or ''}".lower()
    if unit.is_a("IfcDerivedUnit"):
        parts = [
            unit_name(element.Unit) + (f"^{element.Exponent}" if element.Exponent != 1 else "")
            for element in unit.Elements or ()
        ]
        return " ".join(parts)
    if unit.is_a("IfcMonetaryUnit"):
        return str(unit.Currency)
    return str(unit.Name or unit.is_a()).lower()
