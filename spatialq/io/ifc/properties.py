"""Property sets and quantities of an IFC model: each read once, inherited from types, with units.

Most objects of a file have sets of their own, but these consist of few different properties. So
what leaves the worker process is packed: properties once, sets as lists of them, groups of sets as
lists of sets, and for each object its group. `spatialq.io.ifc.property_table` unpacks it.
"""

from typing import Any

from spatialq.io.ifc.entities import attribute, entities, plain, text
from spatialq.io.ifc.units import project_units, si_conversion, unit_name

QUANTITY_UNITS = {
    "IfcQuantityLength": "LENGTHUNIT",
    "IfcQuantityArea": "AREAUNIT",
    "IfcQuantityVolume": "VOLUMEUNIT",
    "IfcQuantityWeight": "MASSUNIT",
    "IfcQuantityTime": "TIMEUNIT",
}

SIGNS = ("Positive", "Negative", "Non")
"""IfcPositiveLengthMeasure and IfcNonNegativeLengthMeasure are in the unit of IfcLengthMeasure."""

MAX_DEPTH = 20
"""How deep complex properties may lie in each other: in damaged files they form circles."""


class PropertyReader:
    """The property sets of all objects of a model.

    A set of an object hides the properties of the same set and name of its type. Of several
    properties with one name in a set, or in several sets with one name, the last counts.

    Parameters
    ----------
    model : ifcopenshell.file
    types : dict from int to int
        The type of each typed object, by step id.
    """

    def __init__(self, model: Any, types: dict[int, int]) -> None:
        self.model = model
        self.types = types
        self.units = project_units(model)
        self._schema: Any = None
        self._units: dict[str, list[Any]] = {"name": [], "factor": [], "offset": []}
        self._unit_at: dict[int, int] = {}
        self._project_unit_at: dict[str, int | None] = {}
        self._values: dict[str, list[Any]] = {"property": [], "value": [], "unit": []}
        self._value_at: dict[int, int] = {}
        self._parts_of: dict[int, dict[str, Any] | None] = {}
        self._sets: dict[str, list[Any]] = {"pset": [], "values": []}
        self._set_at: dict[int, int] = {}
        self._groups: dict[str, list[list[int]]] = {"own": [], "inherited": []}
        self._group_at: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        self._attached: dict[int, list[int]] = {}
        for relation in model.by_type("IfcRelDefinesByProperties"):
            sets = self._read_sets(relation.get_argument(5))
            for owner in entities(relation.get_argument(4)):
                self._attached.setdefault(owner.id(), []).extend(sets)
        for kind in model.by_type("IfcTypeObject"):
            sets = self._read_sets(kind.get_argument(5))
            self._attached.setdefault(kind.id(), []).extend(sets)

    def of(self, step_id: int) -> dict[str, dict[str, Any]]:
        """Give the properties that hold for an object as JSON values: set, property, value."""
        group = self._group(step_id)
        found: dict[str, dict[str, Any]] = {}
        for at in (*self._groups["inherited"][group], *self._groups["own"][group]):
            values = found.setdefault(self._sets["pset"][at], {})
            for row in self._sets["values"][at]:
                values[self._values["property"][row]] = self._values["value"][row]
        return found

    def packed(self) -> dict[str, dict[str, list[Any]]]:
        """Give the properties of all objects, types and the project.

        Returns
        -------
        dict
            ``owners``: ``step_id global_id group``. ``groups``: ``own inherited``, lists of sets.
            ``sets``: ``pset values``, the values as a list. ``values``: ``property value unit``;
            ``units``: ``name factor offset``, see `si_conversion`. Groups, sets, values and units
            are numbers of rows; a value without a unit has None.
        """
        owners: dict[str, list[Any]] = {"step_id": [], "global_id": [], "group": []}
        for owner in self.model.by_type("IfcObjectDefinition"):
            step_id = owner.id()
            owners["step_id"].append(step_id)
            owners["global_id"].append(text(owner.get_argument(0)))
            owners["group"].append(self._group(step_id))
        return {
            "owners": owners,
            "groups": self._groups,
            "sets": self._sets,
            "values": self._values,
            "units": self._units,
        }

    def _group(self, step_id: int) -> int:
        """Find the sets that hold for an object, its own and those of its type."""
        own = tuple(self._attached.get(step_id, ()))
        inherited = tuple(self._attached.get(self.types.get(step_id, 0), ()))
        key = own, inherited
        if key not in self._group_at:
            by_name, of_type = self._by_name(own), self._by_name(inherited)
            for name in by_name.keys() & of_type.keys():
                of_type[name] = self._without(of_type[name], by_name[name])
            self._group_at[key] = len(self._groups["own"])
            self._groups["own"].append(list(by_name.values()))
            self._groups["inherited"].append(list(of_type.values()))
        return self._group_at[key]

    def _by_name(self, sets: tuple[int, ...]) -> dict[str, int]:
        found: dict[str, int] = {}
        for at in sets:
            name = self._sets["pset"][at]
            if name in found and found[name] != at:
                rows = (*self._sets["values"][found[name]], *self._sets["values"][at])
                found[name] = self._add_set(name, rows)
            else:
                found[name] = at
        return found

    def _without(self, at: int, hiding: int) -> int:
        """Give a set without the properties that another one has."""
        names, rows = self._values["property"], self._sets["values"][at]
        hidden = {names[row] for row in self._sets["values"][hiding]}
        return self._add_set(
            self._sets["pset"][at], tuple(row for row in rows if names[row] not in hidden)
        )

    def _add_set(self, name: str, rows: Any) -> int:
        names = self._values["property"]
        self._sets["pset"].append(name)
        self._sets["values"].append(list({names[row]: row for row in rows}.values()))
        return len(self._sets["pset"]) - 1

    def _read_sets(self, definitions: Any) -> list[int]:
        """Read one set or several."""
        sets = (self._read_set(each) for each in entities(definitions))
        return [at for at in sets if at is not None]

    def _read_set(self, definition: Any) -> int | None:
        key = definition.id()
        if key not in self._set_at:
            kind = definition.is_a()
            if kind == "IfcPropertySet":
                rows = self._members(definition.get_argument(4))
            elif kind == "IfcElementQuantity":
                rows = self._members(definition.get_argument(5))
            elif definition.is_a("IfcPropertySetDefinition"):
                rows = self._attributes(definition, kind)
            else:
                return None
            self._set_at[key] = self._add_set(text(definition.get_argument(2)) or kind, rows)
        return self._set_at[key]

    def _members(self, members: Any) -> list[int]:
        known = self._value_at
        return [
            known[key] if (key := member.id()) in known else self._member(member)
            for member in entities(members)
        ]

    def _member(self, member: Any) -> int:
        name = name_of(member)
        at = self._add_value(name, *self._read(member, 0))
        self._value_at[member.id()] = at
        return at

    def _attributes(self, definition: Any, kind: str) -> list[int]:
        """Read a set of fixed attributes, such as IfcDoorLiningProperties."""
        if self._schema is None:
            from ifcopenshell.ifcopenshell_wrapper import schema_by_name

            self._schema = schema_by_name(self.model.schema_identifier)
        declared = self._schema.declaration_by_name(kind).as_entity().all_attributes()
        rows = []
        for index in range(4, len(declared)):
            value = plain(definition.get_argument(index))
            if value is not None:
                measure = declared[index].type_of_attribute().as_named_type()
                unit = self._project_unit(measure.declared_type().name()) if measure else None
                rows.append(self._add_value(declared[index].name(), value, unit))
        return rows

    def _add_value(self, name: str, value: object, unit: int | None) -> int:
        self._values["property"].append(name)
        self._values["value"].append(value)
        self._values["unit"].append(unit)
        return len(self._values["property"]) - 1

    def _read(self, member: Any, depth: int) -> tuple[Any, int | None]:
        """Read one property or quantity of any class: a JSON value, and its unit."""
        kind = member.is_a()
        if kind == "IfcPropertySingleValue":
            value = member.get_argument(2)
            return plain(value), self._unit(member.get_argument(3), value)
        if kind in ("IfcPropertyEnumeratedValue", "IfcPropertyListValue"):
            values = member.get_argument(2) or ()
            unit = member.get_argument(3)
            if kind == "IfcPropertyEnumeratedValue":
                unit = attribute(unit, "Unit") if unit is not None else None
            first = values[0] if isinstance(values, tuple) and values else None
            return plain(values), self._unit(unit, first)
        if kind == "IfcPropertyBoundedValue":
            bounds = {"lower": member.get_argument(3), "upper": member.get_argument(2)}
            bounds["set_point"] = attribute(member, "SetPointValue")
            given = {name: value for name, value in bounds.items() if value is not None}
            unit = self._unit(member.get_argument(4), next(iter(given.values()), None))
            return {name: plain(value) for name, value in given.items()}, unit
        if kind == "IfcPropertyTableValue":
            columns = {"defining": member.get_argument(2), "defined": member.get_argument(3)}
            return {name: plain(values or ()) for name, values in columns.items()}, None
        if kind == "IfcPropertyReferenceValue":
            return plain(member.get_argument(3)), None
        if member.is_a("IfcPhysicalSimpleQuantity"):
            return plain(member.get_argument(3)), self._quantity_unit(member.get_argument(2), kind)
        return self._parts(member, depth), None

    def _parts(self, member: Any, depth: int) -> dict[str, Any] | None:
        """Read the parts of a complex property or quantity."""
        if depth == MAX_DEPTH:
            return None
        key = member.id()
        if key not in self._parts_of:
            self._parts_of[key] = None  # circles of damaged files end here
            parts = attribute(member, "HasProperties") or attribute(member, "HasQuantities") or ()
            self._parts_of[key] = {
                name_of(part): self._read(part, depth + 1)[0] for part in entities(parts)
            }
        return self._parts_of[key]

    def _unit(self, unit: Any, measure: Any) -> int | None:
        """Give the number of a typed value's unit; without one of its own it is the project's."""
        for own in entities(unit):
            return self._number(own)
        return self._project_unit(measure.is_a()) if hasattr(measure, "is_a") else None

    def _quantity_unit(self, unit: Any, kind: str) -> int | None:
        for known in entities(unit or self.units.get(QUANTITY_UNITS.get(kind, ""))):
            return self._number(known)
        return None

    def _project_unit(self, measure: str) -> int | None:
        """Give the number of the project's unit of a measure: IfcAreaMeasure has the AREAUNIT."""
        if measure not in self._project_unit_at:
            stem = measure.removeprefix("Ifc").removesuffix("Measure")
            for sign in SIGNS:
                stem = stem.replace(sign, "")
            unit = self.units.get(f"{stem.upper()}UNIT")
            self._project_unit_at[measure] = None if unit is None else self._number(unit)
        return self._project_unit_at[measure]

    def _number(self, unit: Any) -> int:
        key = unit.id()
        if key not in self._unit_at:
            self._unit_at[key] = len(self._unit_at)
            self._units["name"].append(unit_name(unit))
            factor, offset = si_conversion(unit) or (None, None)
            self._units["factor"].append(factor)
            self._units["offset"].append(offset)
        return self._unit_at[key]


def name_of(member: Any) -> str:
    """Name a property or quantity; one without a name is called by its class."""
    return text(attribute(member, "Name")) or str(member.is_a())
