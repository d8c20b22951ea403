"""Writes `schemas*.json`, what the project knows of the IFC schemas: `make generate`.

It comes from IfcOpenShell, which takes a third of a second to import; the files take milliseconds.
"""

import json
import sys
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("schemas.json")
PROPERTY_SETS_PATH = Path(__file__).with_name("schemas_property_sets.json")
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


def main() -> None:
    """Write the files that differ."""
    for path, text in ((PATH, generated()), (PROPERTY_SETS_PATH, generated_property_sets())):
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{path.name}\n")


if __name__ == "__main__":
    main()
