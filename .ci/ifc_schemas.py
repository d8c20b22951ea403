"""Writes `schemas*.json`, what the project knows of the IFC schemas: `make generate`.

It comes from IfcOpenShell, which takes a third of a second to import; the files take milliseconds.
"""

import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "spatialq/io/ifc"
PATH = FOLDER / "schemas.json"
PROPERTY_SETS_PATH = FOLDER / "schemas_property_sets.json"
VALUES_PATH = FOLDER / "schemas_values.json"
SCHEMAS = ("IFC2X3", "IFC4", "IFC4X3_ADD2")


def generated() -> str:
    """Give the text of the file: for each schema a line for each class.

    A class has its supertype (``of``), the attributes that it declares itself, with what they
    hold, if it is an IfcRoot, and the inverse attributes that it declares, with what they are the
    inverse of.
    """
    parts = [
        f"{json.dumps(schema)}: {{\n"
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(facts)}" for name, facts in classes(schema))
        + "\n}"
        for schema in SCHEMAS
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def classes(schema: str) -> list[tuple[str, dict[str, Any]]]:
    """List the classes of a schema by name, with what they declare."""
    from ifcopenshell import ifcopenshell_wrapper

    entities = {
        entity.name(): entity
        for declaration in ifcopenshell_wrapper.schema_by_name(schema).declarations()
        if (entity := declaration.as_entity())
    }
    return [(name, declared(entities[name])) for name in sorted(entities)]


def declared(entity: Any) -> dict[str, Any]:
    """Say what a class declares itself; what there is none of is left out."""
    lineage = [entity]
    while lineage[-1].supertype():
        lineage.append(lineage[-1].supertype())
    is_root = lineage[-1].name() == "IfcRoot"
    facts = {
        "of": lineage[1].name() if len(lineage) > 1 else None,
        "attributes": {each.name(): kind(each.type_of_attribute()) for each in entity.attributes()}
        if is_root
        else {},
        "inverse": {
            each.name(): [each.entity_reference().name(), each.attribute_reference().name()]
            for each in sorted(entity.inverse_attributes(), key=lambda each: each.name())
        },
    }
    return {name: fact for name, fact in facts.items() if fact}


MEASURES = {"IfcLengthMeasure": "length", "IfcPlaneAngleMeasure": "angle"}
SIMPLE = {
    "string": "text", "boolean": "truth", "logical": "truth", "real": "number",
    "number": "number", "integer": "number",
}  # fmt: skip


def kind(declared_type: Any) -> str:
    """Say what an attribute holds: see `schemas.Declared`."""
    if (several := declared_type.as_aggregation_type()) is not None:
        held = kind(several.type_of_element())
        return held if held == "object" else ""
    if (simple := declared_type.as_simple_type()) is not None:
        return SIMPLE.get(simple.declared_type(), "")
    if (named := declared_type.as_named_type()) is None:
        return ""
    declaration = named.declared_type()
    if declaration.as_enumeration_type() is not None:
        return "text"
    if (entity := declaration.as_entity()) is not None:
        while entity.supertype() is not None:
            entity = entity.supertype()
        return "object" if entity.name() == "IfcRoot" else ""
    if (defined := declaration.as_type_declaration()) is not None:
        return MEASURES.get(defined.name()) or kind(defined.declared_type())
    return ""


def generated_property_sets() -> str:
    """Give the text of the file of property sets: a line for each set, with its properties.

    The sets are those of buildingSMART for any of the schemas, Pset_* and Qto_*, from the
    templates that IfcOpenShell has; a set of several schemas has the properties of all of them.
    """
    from ifcopenshell.util.pset import get_template

    sets: dict[str, set[str]] = {}
    for schema in SCHEMAS:
        for template in get_template(schema).get_applicable():
            properties = template.HasPropertyTemplates or ()
            sets.setdefault(template.Name, set()).update(each.Name for each in properties)
    lines = (f"{json.dumps(name)}: {json.dumps(sorted(sets[name]))}" for name in sorted(sets))
    return "{\n" + ",\n".join(lines) + "\n}\n"


BASES = {
    "string": "xs:string", "boolean": "xs:boolean", "logical": "xs:string", "real": "xs:double",
    "number": "xs:double", "integer": "xs:integer", "binary": "",
}  # fmt: skip
"""What XML calls the simple types of EXPRESS."""
NAMED_BASES = {
    "IfcCountMeasure": "xs:integer",
    "IfcDate": "xs:date",
    "IfcDateTime": "xs:dateTime",
    "IfcDuration": "xs:duration",
    "IfcTime": "xs:time",
    "IfcURIReference": "xs:anyURI",
}
"""Defined types that the table of data types of IDS 1.0 gives a type of their own."""
QUANTITIES = {
    "Q_LENGTH": "IfcLengthMeasure",
    "Q_AREA": "IfcAreaMeasure",
    "Q_VOLUME": "IfcVolumeMeasure",
    "Q_COUNT": "IfcCountMeasure",
    "Q_WEIGHT": "IfcMassMeasure",
    "Q_TIME": "IfcTimeMeasure",
}
"""What quantities of standard sets measure."""


def base(declared_type: Any) -> str:
    """Say which XML type the values of an EXPRESS type have; '' for entities, lists and selects."""
    if (simple := declared_type.as_simple_type()) is not None:
        return BASES[simple.declared_type()]
    named = declared_type.as_named_type()
    return "" if named is None else base_of(named.declared_type())


def base_of(declaration: Any) -> str:
    """Say which XML type the values of a declared type have."""
    if declaration.as_enumeration_type() is not None:
        return "xs:string"
    defined = declaration.as_type_declaration()
    if defined is None:
        return ""
    return NAMED_BASES.get(defined.name()) or base(defined.declared_type())


def generated_values() -> str:
    """Give the text of the file of what values may be: for each schema four tables, by lines.

    ``types``: the data types of properties in capitals, with the type of XML that their values
    have. ``attributes``: those that each class declares itself, alike. ``predefined``: the
    values of PredefinedType of each class that declares it. ``sets``: the standard property and
    quantity sets, each property with its data type.
    """
    from ifcopenshell import ifcopenshell_wrapper

    parts = []
    for name in SCHEMAS:
        declarations = ifcopenshell_wrapper.schema_by_name(name).declarations()
        entities = sorted(filter(None, (each.as_entity() for each in declarations)), key=named)
        tables: dict[str, dict[str, Any]] = {
            "types": {
                each.name().upper(): base_of(each)
                for each in sorted(declarations, key=named)
                if each.as_enumeration_type() is not None
                or (each.as_type_declaration() is not None and not is_list(each))
            },
            "attributes": {
                each.name(): {one.name(): base(one.type_of_attribute()) for one in own}
                for each in entities
                if (own := each.attributes())
            },
            "predefined": {
                each.name(): list(enumeration.enumeration_items())
                for each in entities
                for one in each.attributes()
                if one.name() == "PredefinedType"
                and (holds := one.type_of_attribute().as_named_type()) is not None
                and (enumeration := holds.declared_type().as_enumeration_type()) is not None
            },
            "sets": standard_sets(name),
        }
        lines = ",\n".join(
            f"{json.dumps(table)}: {{\n"
            + ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in rows.items())
            + "\n}"
            for table, rows in tables.items()
        )
        parts.append(f"{json.dumps(name)}: {{\n{lines}\n}}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def named(declaration: Any) -> str:
    """Give the name of a declaration, to sort by."""
    return str(declaration.name())


def is_list(declaration: Any) -> bool:
    """Whether a defined type is a list, such as IfcComplexNumber: no data type of a property."""
    return declaration.as_type_declaration().declared_type().as_aggregation_type() is not None


def standard_sets(schema: str) -> dict[str, dict[str, str]]:
    """Give the standard sets of a schema: each property with its data type, '' if it has none."""
    from ifcopenshell.util.pset import get_template

    sets: dict[str, dict[str, str]] = {}
    for template in get_template(schema).get_applicable():
        found = sets.setdefault(template.Name, {})
        for each in template.HasPropertyTemplates or ():
            kind = getattr(each, "TemplateType", None)
            measure = getattr(each, "PrimaryMeasureType", None) or QUANTITIES.get(kind or "")
            found[each.Name] = "" if kind == "P_REFERENCEVALUE" else (measure or "").strip().upper()
    return dict(sorted(sets.items()))


def main() -> None:
    """Write the files that differ."""
    for path, text in (
        (PATH, generated()),
        (PROPERTY_SETS_PATH, generated_property_sets()),
        (VALUES_PATH, generated_values()),
    ):
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{path.name}\n")


if __name__ == "__main__":
    main()
