"""The process that reads from one IFC file what some specifications ask about.

It runs IfcOpenShell, which may crash, so it is a process of its own
(`python -m spatialq.io.ids.worker FILE`), started by `spatialq.io.ids.facts`. It reads one line of
JSON, which says what is needed (`spatialq.io.ids.facts.Needs`), and answers with frames, see
`spatialq.io.ifc.mesh_stream`: ``O`` when the file is open, then ``J`` with the facts, or with an
``error``.

The facts are tables by columns. Texts, values, sets of properties, references and materials are
each written once, and rows name them by their numbers.
"""

import gc
import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from spatialq.io.ids.schemas import BY_TYPE
from spatialq.io.ifc.entities import attribute, entities, text
from spatialq.io.ifc.layouts import Layouts
from spatialq.io.ifc.mesh_stream import private_stdout, send
from spatialq.io.ifc.units import project_units, si_conversion

EMPTY, OBJECT, TEXT, FLOAT, INTEGER, TRUTH = range(6)
"""What a value is: nothing, such as an empty text; an entity or list; or something to compare."""
ALONE, LOWER, UPPER, SET_POINT = range(4)
"""What a value is of its property."""

USER_DEFINED = ("ObjectType", "ElementType", "ProcessType", "ResourceType")
UNITS = {"THERMALCONDUCTIVITYUNIT": "THERMALCONDUCTANCEUNIT"}
"""Kinds of units that are not called as their measure is."""
SIGNS = ("Positive", "Negative", "Non")
RELATIONS = {
    "IFCRELAGGREGATES": ("IfcRelAggregates", 4, 5),
    "IFCRELASSIGNSTOGROUP": ("IfcRelAssignsToGroup", 6, 4),
    "IFCRELCONTAINEDINSPATIALSTRUCTURE": ("IfcRelContainedInSpatialStructure", 5, 4),
    "IFCRELNESTS": ("IfcRelNests", 4, 5),
    "IFCRELVOIDSELEMENT": ("IfcRelVoidsElement", 4, 5),
    "IFCRELFILLSELEMENT": ("IfcRelFillsElement", 4, 5),
}
"""Each with its class, and where it names the whole and the parts."""
RESOURCES = ("IfcMaterial", "IfcMaterialDefinition", "IfcProfileDef")
"""Classes without GlobalId that have properties or classifications."""
EXTENDED = ("IfcExtendedProperties", "IfcExtendedMaterialProperties")
"""Property sets of materials and profiles."""
MAX_DEPTH = 32
"""How many references or materials may be named by each other: damaged files hold circles."""


class Interned(dict[Any, int]):
    """Numbers things in the order in which they come."""

    def __missing__(self, key: Any) -> int:
        self[key] = len(self)
        return self[key]


class Facts:
    """What is read of one open model."""

    def __init__(self, model: Any, needs: dict[str, Any]) -> None:
        from ifcopenshell.ifcopenshell_wrapper import schema_by_name

        self.model, self.needs = model, needs
        self.schema = schema_by_name(model.schema_identifier)
        self.layouts = Layouts(model.schema_identifier)
        self.units = project_units(model)
        self.conversions: dict[str, tuple[float, float]] = {}
        self.values = Interned()
        self.texts = Interned()
        self.kinds = Interned()
        self.declared: dict[str, list[tuple[str, str]]] = {}
        self.types: dict[int, Any] = {}
        for relation in self.of("IfcRelDefinesByType"):
            for kind in entities(relation.get_argument(5)):
                for each in entities(relation.get_argument(4)):
                    self.types[each.id()] = kind

    def of(self, ifc_class: str) -> list[Any]:
        """List the entities of a class and its subtypes; none if the schema lacks it."""
        return list(self.model.by_type(ifc_class)) if ifc_class in self.layouts else []

    def read(self) -> dict[str, Any]:
        """Read all that is needed."""
        needs = self.needs
        rows = {each.id(): each for each in self.chosen()}
        edges: list[tuple[int, int, int]] = []
        if needs["parts"]:
            for number, (ifc_class, whole, part) in enumerate(RELATIONS.values()):
                for relation in self.of(ifc_class):
                    for one in entities(relation.get_argument(whole)):
                        rows.setdefault(one.id(), one)
                        for each in entities(relation.get_argument(part)):
                            rows.setdefault(each.id(), each)
                            edges.append((each.id(), one.id(), number))
        self.at = {step_id: row for row, step_id in enumerate(rows)}
        found: dict[str, Any] = {
            "schema": self.model.schema_identifier,
            "entities": len(self.model.entity_names()),
        }
        found["objects"] = self.objects(rows.values())
        found["attributes"] = columns(("owner", "name", "value"), self.attributes(rows.values()))
        found |= self.properties() if needs["properties"] else {}
        found |= self.classifications() if needs["classifications"] else {}
        found |= self.materials() if needs["materials"] else {}
        found["parts"] = columns(
            ("part", "whole", "relation"), ((self.at[a], self.at[b], n) for a, b, n in edges)
        )
        found["texts"] = list(self.texts)
        found["kinds"] = list(self.kinds)
        found["values"] = list(self.values)
        return found

    def chosen(self) -> Iterator[Any]:
        """Give the entities that specifications may apply to."""
        for name in self.needs["classes"]:
            occurrence = BY_TYPE.get(name, (name,))[0] if name not in self.layouts else name
            if occurrence in self.layouts:
                yield from self.model.by_type(occurrence, include_subtypes=False)
        if self.needs["objects"]:
            for name in ("IfcObjectDefinition", *RESOURCES):
                yield from self.of(name)

    def objects(self, rows: Iterable[Any]) -> dict[str, list[Any]]:
        """Say what each entity is."""
        found = []
        for entity in rows:
            ifc_class = entity.is_a()
            layout = self.layouts[ifc_class]
            kind = self.types.get(entity.id())
            as_type = None if kind is None else kind.is_a().removesuffix("Type")
            is_by_type = BY_TYPE.get(as_type or "", ("",))[0] == ifc_class
            found.append(
                (
                    entity.id(),
                    self.texts[ifc_class],
                    self.texts[as_type] if is_by_type and as_type not in self.layouts else -1,
                    text(entity.get_argument(0)) if layout.is_root else None,
                    None if layout.name_at is None else text(entity.get_argument(layout.name_at)),
                    self.kinds[self.predefined(entity, kind)],
                )
            )
        return columns(("step_id", "class", "as_class", "global_id", "name", "kinds"), found)

    def predefined(self, entity: Any, kind: Any) -> tuple[str, ...]:
        """Give what the predefined type may be called: by the type, if it says so."""
        if kind is not None:
            of_type = self.own_predefined(kind)
            if of_type and of_type != ("NOTDEFINED",):
                return of_type
            return (*of_type, *self.own_predefined(entity))
        return self.own_predefined(entity)

    def own_predefined(self, entity: Any) -> tuple[str, ...]:
        """Give what the predefined type of an object or type itself may be called."""
        layout = self.layouts[entity.is_a()]
        at = layout.at.get("PredefinedType")
        found = None if at is None else text(entity.get_argument(at))
        if found == "USERDEFINED":
            for name in USER_DEFINED:
                if name in layout.at:
                    said = text(entity.get_argument(layout.at[name]))
                    return (found, said) if said else (found,)
        return (found,) if found else ()

    def value(self, value: Any, measure: str, unit: Any = None) -> int | None:
        """Give the number of a value; None for null."""
        if value is None:
            return None
        if isinstance(value, tuple):
            return self.values[(OBJECT if value else EMPTY, None)]
        if hasattr(value, "is_a"):
            if value.id():
                return self.values[(OBJECT, None)]
            return self.value(value.get_argument(0), value.is_a(), unit)
        if isinstance(value, bool):
            return self.values[(TRUTH, value)]
        if isinstance(value, str):
            is_unknown = value == "UNKNOWN" and measure in ("IfcLogical", "logical")
            return self.values[(EMPTY if is_unknown or not value else TEXT, value)]
        if isinstance(value, int | float):
            factor, offset = self.conversion(measure, unit)
            if isinstance(value, int) and (factor, offset) == (1.0, 0.0):
                return self.values[(INTEGER, value)]
            number = value * factor + offset
            return self.values[(FLOAT, number) if math.isfinite(number) else (OBJECT, None)]
        return self.values[(OBJECT, None)]

    def conversion(self, measure: str, unit: Any) -> tuple[float, float]:
        """Say how a number becomes one in SI units."""
        for own in entities(unit):
            return si_conversion(own) or (1.0, 0.0)
        if measure not in self.conversions:
            stem = measure.removeprefix("Ifc").removesuffix("Measure")
            for sign in SIGNS:
                stem = stem.replace(sign, "")
            kind = f"{stem.upper()}UNIT"
            of_project = self.units.get(UNITS.get(kind, kind))
            found = None if of_project is None else si_conversion(of_project)
            self.conversions[measure] = found or (1.0, 0.0)
        return self.conversions[measure]

    def declarations(self, ifc_class: str) -> list[tuple[str, str]]:
        """List the attributes of a class in order, each with the name of its type."""
        if ifc_class not in self.declared:
            entity: Any = self.schema.declaration_by_name(ifc_class).as_entity()
            self.declared[ifc_class] = [
                (each.name(), type_name(each.type_of_attribute()))
                for each in entity.all_attributes()
            ]
        return self.declared[ifc_class]

    def attributes(self, rows: Iterable[Any]) -> Iterator[tuple[int, int, int]]:
        """Give the attributes that are asked about, where they are set."""
        wanted = set(self.needs["attributes"])
        if not wanted:
            return
        read: dict[str, list[tuple[int, int, str]]] = {}
        for owner, entity in enumerate(rows):
            ifc_class = entity.is_a()
            if ifc_class not in read:
                read[ifc_class] = [
                    (self.texts[name], at, measure)
                    for at, (name, measure) in enumerate(self.declarations(ifc_class))
                    if name in wanted
                ]
            for name, at, measure in read[ifc_class]:
                number = self.value(entity.get_argument(at), measure)
                if number is not None:
                    yield owner, name, number

    def properties(self) -> dict[str, Any]:
        """Read the sets of properties: of objects and types, of materials and profiles."""
        sets = SetReader(self)
        attached: dict[int, list[int]] = defaultdict(list)
        pairs = (
            ("IfcRelDefinesByProperties", 4, 5),
            ("IfcMaterialProperties", 3, None),
            ("IfcProfileProperties", 3, None),
            ("IfcExtendedMaterialProperties", 0, None),
        )
        for ifc_class, owner_at, set_at in pairs:
            for relation in self.of(ifc_class):
                of_it = (relation,) if set_at is None else entities(relation.get_argument(set_at))
                if set_at is None and not any(map(relation.is_a, EXTENDED)):
                    continue  # of IFC2X3: sets of fixed attributes without a name
                numbers = [number for each in of_it if (number := sets.number(each)) is not None]
                for owner in entities(relation.get_argument(owner_at)) if numbers else ():
                    attached[owner.id()] += numbers
        for kind in self.of("IfcTypeObject"):
            for each in entities(kind.get_argument(5)):
                number = sets.number(each)
                if number is not None:
                    attached[kind.id()].append(number)
        owners = []
        for step_id, owner in self.at.items():
            owners += [(owner, number, 0) for number in attached.get(step_id, ())]
            kind = self.types.get(step_id)
            if kind is not None:
                owners += [(owner, number, 1) for number in attached.get(kind.id(), ())]
        return {
            "sets": [self.texts[name] for name in sets.names],
            "set_owners": columns(("owner", "set", "inherited"), owners),
            "properties": columns(("set", "name", "property"), sets.members),
            "property_values": columns(("property", "role", "type", "value"), sets.values),
        }

    def classifications(self) -> dict[str, Any]:
        """Read references to classifications: those of types, if there is none of the system."""
        of_owner: dict[int, list[int]] = defaultdict(list)
        references = Interned()
        pairs = (
            ("IfcRelAssociatesClassification", 5, 4),
            ("IfcExternalReferenceRelationship", 2, 3),
            ("IfcMaterialClassificationRelationship", 0, 1),
        )
        for ifc_class, reference_at, owner_at in pairs:
            for relation in self.of(ifc_class):
                for reference in entities(relation.get_argument(reference_at)):
                    found = reference_of(reference)
                    if found is not None:
                        for owner in entities(relation.get_argument(owner_at)):
                            of_owner[owner.id()].append(references[found])
        listed = list(references)
        owners = []
        for step_id, owner in self.at.items():
            own = of_owner.get(step_id, [])
            systems = {listed[each][0] for each in own}
            kind = self.types.get(step_id)
            inherited = [] if kind is None else of_owner.get(kind.id(), [])
            of_it = [*own, *(each for each in inherited if listed[each][0] not in systems)]
            owners += [(owner, each) for each in of_it]
        return {
            "reference_owners": columns(("owner", "reference"), owners),
            "references": columns(
                ("reference", "system", "code"),
                (
                    (number, -1 if system is None else self.texts[system],
                     -1 if code is None else self.texts[code])
                    for number, (system, codes) in enumerate(listed)
                    for code in codes or (None,)
                ),
            ),
        }  # fmt: skip

    def materials(self) -> dict[str, Any]:
        """Read materials: those of types, if there is none."""
        of_owner: dict[int, list[int]] = defaultdict(list)
        numbers: dict[int, int] = {}
        names: list[tuple[int, int]] = []
        for relation in self.of("IfcRelAssociatesMaterial"):
            for material in entities(relation.get_argument(5)):
                if material.id() not in numbers:
                    number = numbers[material.id()] = len(numbers)
                    names += [(number, self.texts[each]) for each in material_names(material)]
                for owner in entities(relation.get_argument(4)):
                    of_owner[owner.id()].append(numbers[material.id()])
        owners = []
        for step_id, owner in self.at.items():
            kind = self.types.get(step_id)
            of_type = [] if kind is None else of_owner.get(kind.id(), [])
            owners += [(owner, each) for each in of_owner.get(step_id) or of_type]
        return {
            "material_owners": columns(("owner", "material"), owners),
            "material_names": columns(("material", "name"), names),
        }


class SetReader:
    """Reads each set of properties once."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        needs = facts.needs
        self.set_names = None if needs["sets"] is None else set(needs["sets"])
        self.property_names = None if needs["names"] is None else set(needs["names"])
        self.names: list[str] = []
        self.members: list[tuple[int, int, int]] = []
        self.values: list[tuple[int, int, int, int]] = []
        self.numbers: dict[int, int | None] = {}
        self.properties: dict[int, int] = {}
        self.count = 0

    def number(self, definition: Any) -> int | None:
        """Give the number of a set; None for one that nobody asks about, or that is none."""
        key = definition.id()
        if key not in self.numbers:
            self.numbers[key] = self.read(definition)
        return self.numbers[key]

    def read(self, definition: Any) -> int | None:
        """Read a set, unless nobody asks about it."""
        name = text(attribute(definition, "Name")) or ""
        if self.set_names is not None and name not in self.set_names:
            return None
        number = len(self.names)
        if definition.is_a("IfcPropertySet"):
            members = entities(definition.get_argument(4))
        elif definition.is_a("IfcElementQuantity"):
            members = entities(definition.get_argument(5))
        elif definition.is_a("IfcExtendedMaterialProperties"):
            members = entities(definition.get_argument(1))
        elif definition.is_a("IfcPropertySetDefinition"):
            members = []
        else:  # IfcExtendedProperties
            members = entities(attribute(definition, "Properties"))
        self.names.append(name)
        for each in members:
            self.member(number, each)
        if not members and definition.is_a("IfcPropertySetDefinition"):
            self.fixed(number, definition)
        return number

    def member(self, number: int, member: Any) -> None:
        """Read a property or quantity of a set."""
        name = text(attribute(member, "Name")) or ""
        if self.property_names is not None and name not in self.property_names:
            return
        key = member.id()
        if key not in self.properties:
            self.properties[key] = self.count
            self.count += 1
            for role, value, measure, unit in typed(member):
                self.add(self.properties[key], role, value, measure, unit)
        self.members.append((number, self.facts.texts[name], self.properties[key]))

    def fixed(self, number: int, definition: Any) -> None:
        """Read a set of fixed attributes, such as IfcDoorPanelProperties."""
        declared = self.facts.declarations(definition.is_a())
        for at, (name, measure) in enumerate(declared[4:], 4):
            if self.property_names is None or name in self.property_names:
                self.add(self.count, ALONE, definition.get_argument(at), measure, None)
                self.members.append((number, self.facts.texts[name], self.count))
                self.count += 1

    def add(self, prop: int, role: int, value: Any, measure: str, unit: Any) -> None:
        """Keep a value of a property."""
        number = self.facts.value(value, measure, unit)
        if number is not None:
            self.values.append((prop, role, self.facts.texts[measure.upper()], number))


def typed(member: Any) -> Iterator[tuple[int, Any, str, Any]]:
    """Give the values of a property or quantity: role, value, data type, unit of its own.

    Of what IDS does not support, which are complex properties and references, there is none.
    """
    kind = member.is_a()
    if kind in ("IfcPropertySingleValue", "IfcPropertyListValue"):
        yield from each_typed(ALONE, member.get_argument(2), member.get_argument(3))
    elif kind == "IfcPropertyEnumeratedValue":
        unit = None
        for enumeration in entities(member.get_argument(3)):
            unit = attribute(enumeration, "Unit")
        yield from each_typed(ALONE, member.get_argument(2), unit)
    elif kind == "IfcPropertyBoundedValue":
        unit = member.get_argument(4)
        yield from each_typed(UPPER, member.get_argument(2), unit)
        yield from each_typed(LOWER, member.get_argument(3), unit)
        yield from each_typed(SET_POINT, attribute(member, "SetPointValue"), unit)
    elif kind == "IfcPropertyTableValue":
        defining, defined = (attribute(member, f"Defin{end}Unit") for end in ("ing", "ed"))
        yield from each_typed(ALONE, member.get_argument(2), defining)
        yield from each_typed(ALONE, member.get_argument(3), defined)
    elif member.is_a("IfcPhysicalSimpleQuantity"):
        measure = QUANTITIES.get(kind)
        if measure is not None:
            yield ALONE, member.get_argument(3), measure, member.get_argument(2)


QUANTITIES = {
    "IfcQuantityLength": "IfcLengthMeasure",
    "IfcQuantityArea": "IfcAreaMeasure",
    "IfcQuantityVolume": "IfcVolumeMeasure",
    "IfcQuantityCount": "IfcCountMeasure",
    "IfcQuantityWeight": "IfcMassMeasure",
    "IfcQuantityTime": "IfcTimeMeasure",
    "IfcQuantityNumber": "IfcNumericMeasure",
}


def each_typed(role: int, values: Any, unit: Any) -> Iterator[tuple[int, Any, str, Any]]:
    """Give typed values, one or several, with their data types."""
    for value in values if isinstance(values, tuple) else (values,):
        if hasattr(value, "is_a") and not value.id():
            yield role, value.get_argument(0), value.is_a(), unit


def type_name(declared: Any) -> str:
    """Name the type of an attribute: that of a defined type, else of a simple one."""
    if (named := declared.as_named_type()) is not None:
        return str(named.declared_type().name())
    simple = declared.as_simple_type()
    return "" if simple is None else str(simple.declared_type())


def reference_of(reference: Any) -> tuple[str | None, tuple[str, ...]] | None:
    """Give the system of a classification, and the codes of a reference and of all above it."""
    codes: list[str] = []
    for _ in range(MAX_DEPTH):
        if reference is None:
            break
        if reference.is_a("IfcClassification"):
            return text(attribute(reference, "Name")), tuple(codes)
        if not reference.is_a("IfcClassificationReference"):
            return None
        code = text(attribute(reference, "Identification")) or text(
            attribute(reference, "ItemReference")
        )
        if code:
            codes.append(code)
        reference = attribute(reference, "ReferencedSource")
    return None, tuple(codes)


OF_MATERIALS = (
    "ForLayerSet", "ForProfileSet", "MaterialLayers", "MaterialProfiles", "MaterialConstituents",
    "Materials", "Material",
)  # fmt: skip
"""Attributes that lead from a material to those that it is made of."""


def material_names(material: Any, depth: int = 0) -> Iterator[str]:
    """Give the names and categories of a material and of all that it is made of."""
    if depth == MAX_DEPTH:
        return
    for name in ("Name", "LayerSetName", "Category"):
        said = text(attribute(material, name))
        if said:
            yield said
    for name in OF_MATERIALS:
        for each in entities(attribute(material, name)):
            yield from material_names(each, depth + 1)


def columns(names: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> dict[str, list[Any]]:
    """Turn rows into columns."""
    found = list(zip(*rows, strict=True)) or [()] * len(names)
    return {name: list(column) for name, column in zip(names, found, strict=True)}


def main(path: str) -> None:
    """Open the file, then answer one command."""
    gc.disable()  # as in the process that reads models: many small objects without cycles
    out = private_stdout()
    import ifcopenshell

    try:
        model = ifcopenshell.open(path, format=".ifc")
        send(out, b"O")
        needs = json.loads(sys.stdin.readline())
        answer = json.dumps(Facts(model, needs).read(), ensure_ascii=False)
        send(out, b"J", answer.encode(errors="replace"))
    except Exception as error:
        reason = str(error).strip() or type(error).__name__
        if not isinstance(error, ifcopenshell.SchemaError):
            reason = f"IfcOpenShell cannot read it | {reason}"
        send(out, b"J", json.dumps({"error": reason}).encode())


if __name__ == "__main__":
    main(sys.argv[1])
