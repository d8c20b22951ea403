"""What objects and types of an IFC model are made of: layers, profiles, constituents, materials."""

from collections.abc import Iterator
from typing import Any

from spatialq.io.ifc.columns import MATERIALS, Columns, by_column
from spatialq.io.ifc.entities import attribute, entities, number, plain, text

Part = dict[str, Any]
"""A row of the table of materials, without what it belongs to."""

SETS = {
    "IfcMaterialLayerSet": ("layer", "LayerSetName", "MaterialLayers"),
    "IfcMaterialProfileSet": ("profile", "Name", "MaterialProfiles"),
    "IfcMaterialConstituentSet": ("constituent", "Name", "MaterialConstituents"),
    "IfcMaterialList": ("list", "Name", "Materials"),
}
"""Sets: the kind of their parts, and the attributes of the name and of the parts."""

SINGLE = {
    "IfcMaterialLayer": "layer",
    "IfcMaterialProfile": "profile",
    "IfcMaterialConstituent": "constituent",
    "IfcMaterial": "material",
}


def material_names(model: Any) -> dict[int, str]:
    """Name the materials of each object and type: layers, profiles, constituents by comma."""
    found: dict[int, str] = {}
    names: dict[int, str] = {}
    for step_id, materials in associated(model).items():
        for material in materials:
            key = material.id()
            if key not in names:
                parts = (part["material"] for part in parts_of(material, 1.0))
                names[key] = ", ".join(dict.fromkeys(filter(None, parts)))
        known = (names[material.id()] for material in materials)
        if together := ", ".join(dict.fromkeys(filter(None, known))):
            found[step_id] = together
    return found


def read_materials(model: Any, types: dict[int, int], metres: float) -> Columns:
    """Give the parts that objects and types are made of, as columns.

    Parameters
    ----------
    model : ifcopenshell.file
    types : dict from int to int
        The type of each typed object, by step id; its materials count for the objects that have
        none of their own.
    metres : float
        The unit of length.
    """
    rows = []
    materials = associated(model)
    parts: dict[int, list[Part]] = {}
    for owner in model.by_type("IfcObjectDefinition"):
        found, source = materials.get(owner.id()), "instance"
        if found is None and owner.id() in types:
            found, source = materials.get(types[owner.id()]), "type"
        consists_of = []
        for material in found or ():
            if material.id() not in parts:
                parts[material.id()] = list(parts_of(material, metres))
            consists_of += parts[material.id()]
        whose = {"global_id": text(owner.get_argument(0)), "source": source}
        rows += [part | whose | {"position": n} for n, part in enumerate(consists_of, 1)]
    return by_column("materials", rows)


def associated(model: Any) -> dict[int, list[Any]]:
    """Find the material definitions of each object and type, by step id."""
    found: dict[int, list[Any]] = {}
    for relation in model.by_type("IfcRelAssociatesMaterial"):
        materials = entities(relation.get_argument(5))
        for related in entities(relation.get_argument(4)):
            found.setdefault(related.id(), []).extend(materials)
    return found


def parts_of(definition: Any, metres: float) -> Iterator[Part]:
    """List the parts that a material definition of any class consists of.

    Parameters
    ----------
    definition : entity
        An IfcMaterialSelect.
    metres : float
        The unit of length.
    """
    if definition.is_a("IfcMaterialLayerSetUsage"):
        usage = {
            "layer_direction": plain(attribute(definition, "LayerSetDirection")),
            "sense": plain(attribute(definition, "DirectionSense")),
            "offset": length(attribute(definition, "OffsetFromReferenceLine"), metres),
        }
        for layers in entities(attribute(definition, "ForLayerSet")):
            yield from (part | usage for part in _parts_of_set(layers, metres))
    elif definition.is_a().startswith("IfcMaterialProfileSetUsage"):
        for name in ("ForProfileSet", "ForProfileEndSet"):  # a tapering one has both
            for profiles in entities(attribute(definition, name)):
                yield from _parts_of_set(profiles, metres)
    else:
        yield from _parts_of_set(definition, metres)


def _parts_of_set(definition: Any, metres: float) -> Iterator[Part]:
    for ifc_class, (kind, name, members) in SETS.items():
        if definition.is_a(ifc_class):
            set_name = text(attribute(definition, name))
            for member in entities(attribute(definition, members)):
                yield _part(member, kind, metres) | {"set_name": set_name}
    for ifc_class, kind in SINGLE.items():
        if definition.is_a(ifc_class):
            yield _part(definition, kind, metres)


def _part(member: Any, kind: str, metres: float) -> Part:
    """Describe a layer, profile, constituent or material."""
    if member.is_a("IfcMaterial"):
        name, material, profile = None, member, None
    else:
        name = text(attribute(member, "Name"))
        material, profile = (
            next(iter(entities(attribute(member, each))), None) for each in ("Material", "Profile")
        )
    categories = (text(attribute(each, "Category")) for each in (member, material) if each)
    return dict.fromkeys(MATERIALS) | {
        "kind": kind,
        "name": name,
        "material": text(attribute(material, "Name")) if material else None,
        "category": next(filter(None, categories), None),
        "thickness": length(attribute(member, "LayerThickness"), metres),
        "fraction": number(attribute(member, "Fraction")),
        "profile": text(attribute(profile, "ProfileName")) if profile else None,
    }


def length(value: object, metres: float) -> float | None:
    """Give a length of the file in metres."""
    found = number(value)
    return None if found is None else found * metres
