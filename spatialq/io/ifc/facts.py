"""What an IFC file says beside geometry: products, relations, where in the world it is.

Runs in the worker process (`spatialq.io.ifc.worker`) and gives plain lists and dictionaries, a
list a column, which travel as JSON.
"""

from typing import Any

from spatialq.io.ifc.columns import CLASSIFICATIONS, GEOREFERENCE, MATERIALS, OBJECTS
from spatialq.io.ifc.properties import PropertyReader, unit_name

Columns = dict[str, list[Any]]

# class: (attribute of the children, attribute of the parents, kind)
RELATIONS: dict[str, tuple[str, str | tuple[str, ...], str]] = {
    "IfcRelContainedInSpatialStructure": ("RelatedElements", "RelatingStructure", "contained_in"),
    "IfcRelReferencedInSpatialStructure": ("RelatedElements", "RelatingStructure", "referenced_in"),
    "IfcRelAggregates": ("RelatedObjects", "RelatingObject", "aggregates"),
    "IfcRelNests": ("RelatedObjects", "RelatingObject", "nests"),
    "IfcRelVoidsElement": ("RelatedOpeningElement", "RelatingBuildingElement", "voids"),
    "IfcRelFillsElement": ("RelatedBuildingElement", "RelatingOpeningElement", "fills"),
    "IfcRelProjectsElement": ("RelatedFeatureElement", "RelatingElement", "projects"),
    "IfcRelAdheresToElement": ("RelatedSurfaceFeatures", "RelatingElement", "adheres_to"),
    "IfcRelConnectsElements": ("RelatedElement", "RelatingElement", "connects"),
    "IfcRelConnectsPathElements": ("RelatedElement", "RelatingElement", "connects"),
    "IfcRelConnectsWithRealizingElements": ("RelatedElement", "RelatingElement", "connects"),
    "IfcRelConnectsPorts": ("RelatedPort", "RelatingPort", "connects_ports"),
    "IfcRelConnectsPortToElement": ("RelatingPort", "RelatedElement", "port_of"),
    "IfcRelConnectsStructuralActivity": ("RelatedStructuralActivity", "RelatingElement", "acts_on"),
    "IfcRelConnectsStructuralElement": (
        "RelatedStructuralMember", "RelatingElement", "connects_structural",
    ),
    "IfcRelConnectsStructuralMember": (
        "RelatedStructuralConnection", "RelatingStructuralMember", "connects_structural",
    ),
    "IfcRelConnectsWithEccentricity": (
        "RelatedStructuralConnection", "RelatingStructuralMember", "connects_structural",
    ),
    "IfcRelCoversBldgElements": ("RelatedCoverings", "RelatingBuildingElement", "covers"),
    "IfcRelCoversSpaces": ("RelatedCoverings", ("RelatingSpace", "RelatedSpace"), "covers_space"),
    "IfcRelSpaceBoundary": ("RelatedBuildingElement", "RelatingSpace", "bounds_space"),
    "IfcRelSpaceBoundary1stLevel": ("RelatedBuildingElement", "RelatingSpace", "bounds_space"),
    "IfcRelSpaceBoundary2ndLevel": ("RelatedBuildingElement", "RelatingSpace", "bounds_space"),
    "IfcRelInterferesElements": ("RelatedElement", "RelatingElement", "interferes"),
    "IfcRelFlowControlElements": ("RelatedControlElements", "RelatingFlowElement", "controls_flow"),
    "IfcRelPositions": ("RelatedProducts", "RelatingPositioningElement", "positioned_by"),
    "IfcRelServicesBuildings": ("RelatingSystem", "RelatedBuildings", "services"),
    "IfcRelAssignsToGroup": ("RelatedObjects", "RelatingGroup", "assigned_to_group"),
    "IfcRelAssignsToGroupByFactor": ("RelatedObjects", "RelatingGroup", "assigned_to_group"),
    "IfcRelAssignsToProduct": ("RelatedObjects", "RelatingProduct", "assigned_to_product"),
    "IfcRelAssignsToProcess": ("RelatedObjects", "RelatingProcess", "assigned_to_process"),
    "IfcRelAssignsToControl": ("RelatedObjects", "RelatingControl", "assigned_to_control"),
    "IfcRelAssignsToActor": ("RelatedObjects", "RelatingActor", "assigned_to_actor"),
    "IfcRelAssignsToResource": ("RelatedObjects", "RelatingResource", "assigned_to_resource"),
    "IfcRelDefinesByType": ("RelatedObjects", "RelatingType", "defined_by_type"),
    "IfcRelDefinesByObject": ("RelatedObjects", "RelatingObject", "defined_by_object"),
    "IfcRelDeclares": ("RelatedDefinitions", "RelatingContext", "declared_in"),
}  # fmt: skip
"""How each relationship class becomes rows; many-to-many ones give every pair."""

UPWARD = ("contained_in", "aggregates", "nests", "fills", "voids", "projects", "adheres_to")
"""The kinds that lead from an element to its storey and building, the most direct first."""


def describe(model: Any) -> dict[str, Any]:
    """Give the facts of an open model.

    Parameters
    ----------
    model : ifcopenshell.file

    Returns
    -------
    dict
        ``schema``, ``entities`` (how many were parsed), ``length_unit`` and
        ``length_unit_metres`` (None when the file does not say), ``georeference`` (a dict or
        None), the columns of ``products``, every IfcProduct that has a representation, and
        ``tables``: the columns of tables by name, see `spatialq.io.ifc.columns`.
    """
    relations, up, types = read_relations(model)
    reader = PropertyReader(model, types)
    length = reader.units.get("LENGTHUNIT")
    return {
        "schema": model.schema_identifier,
        "entities": len(model.entity_names()),
        "length_unit": unit_name(length) if length is not None else None,
        "length_unit_metres": metres(length),
        "georeference": georeference(model, reader),
        "products": read_products(model, up, types, reader),
        "tables": {
            "relations": relations,
            "properties": reader.long_table(),
            "objects": {name: [] for name in OBJECTS if name != "file_name"},
            "materials": {name: [] for name in MATERIALS if name != "file_name"},
            "classifications": {name: [] for name in CLASSIFICATIONS if name != "file_name"},
            "models": project(model, reader),
        },
    }


def project(model: Any, reader: PropertyReader) -> Columns:
    """Describe the model itself: the one row of the table of models."""
    length = reader.units.get("LENGTHUNIT")
    row = {
        "name": next((project.Name for project in model.by_type("IfcProject")), None),
        "ifc_schema": model.schema_identifier,
        "length_unit": unit_name(length) if length is not None else None,
        "length_unit_metres": metres(length),
        "true_north": None,
        **(georeference(model, reader) or dict.fromkeys(GEOREFERENCE)),
    }
    return {name: [value] for name, value in row.items()}


def listed(value: Any) -> tuple[Any, ...]:
    """Turn an attribute that holds one entity, several or none into a tuple."""
    if value is None:
        return ()
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def ends(relation: Any, names: str | tuple[str, ...]) -> tuple[Any, ...]:
    """Give the entities at one side of a relationship; attributes differ between schemas."""
    for name in (names,) if isinstance(names, str) else names:
        value = getattr(relation, name, None)
        if value is not None:
            return listed(value)
    return ()


def read_relations(model: Any) -> tuple[Columns, dict[int, Any], dict[int, Any]]:
    """Read all relationships in one pass.

    Returns
    -------
    columns of the table of relations
    up : dict from a step id to the entity above it, by the most direct kind
    types : dict from a step id to its type entity
    """
    names = (
        "child", "parent", "kind", "child_class", "child_name", "parent_class", "parent_name",
        "relation_class", "relation_id", "relation_name", "child_attribute", "parent_attribute",
    )  # fmt: skip
    columns: Columns = {name: [] for name in names}
    above: dict[int, tuple[int, Any]] = {}
    types: dict[int, Any] = {}
    labels: dict[int, tuple[Any, str, Any]] = {}

    def label(entity: Any) -> tuple[Any, str, Any]:
        key = entity.id()
        if key not in labels:
            found = getattr(entity, "GlobalId", None), entity.is_a(), getattr(entity, "Name", None)
            labels[key] = found
        return labels[key]

    def add(child: Any, parent: Any, kind: str) -> None:
        child_id, child_class, child_name = label(child)
        parent_id, parent_class, parent_name = label(parent)
        if child_id is None or parent_id is None:  # persons and calendars have no GlobalId
            return
        row = (
            child_id, parent_id, kind, child_class, child_name, parent_class, parent_name,
            None, None, None, None, None,
        )  # fmt: skip
        for name, value in zip(names, row, strict=True):
            columns[name].append(value)

    for relation in model.by_type("IfcRelationship"):
        rule = RELATIONS.get(relation.is_a())
        if rule is None:
            continue
        child_names, parent_names, kind = rule
        for parent in ends(relation, parent_names):
            if kind == "assigned_to_group" and parent.is_a("IfcSystem"):
                kind = "assigned_to_system"
            for child in ends(relation, child_names):
                add(child, parent, kind)
                if kind in UPWARD:
                    rank = UPWARD.index(kind)
                    if child.id() not in above or rank < above[child.id()][0]:
                        above[child.id()] = rank, parent
                elif kind == "defined_by_type":
                    types[child.id()] = parent
            if relation.is_a("IfcRelConnectsWithRealizingElements"):
                for child in listed(relation.RealizingElements):
                    add(child, parent, "realizes_connection")
    return columns, {child: parent for child, (_, parent) in above.items()}, types


def read_products(
    model: Any, up: dict[int, Any], types: dict[int, Any], reader: PropertyReader
) -> Columns:
    """Read the attributes of every product that has a representation."""
    names = (
        "step_id", "global_id", "ifc_class", "name", "description", "type_name", "storey",
        "building", "material", "properties",
    )  # fmt: skip
    columns: Columns = {name: [] for name in names}
    materials = read_materials(model)
    for product in model.by_type("IfcProduct"):
        if product.Representation is None:
            continue
        step_id = product.id()
        kind = types.get(step_id)
        storey, building = locate(step_id, up)
        row = (
            step_id,
            product.GlobalId,
            product.is_a(),
            product.Name,
            product.Description,
            kind.Name if kind is not None else None,
            storey,
            building,
            materials.get(step_id) or (materials.get(kind.id()) if kind is not None else None),
            reader.as_json(step_id),
        )
        for name, value in zip(names, row, strict=True):
            columns[name].append(value)
    return columns


def locate(step_id: int, up: dict[int, Any]) -> tuple[Any, Any]:
    """Name the storey and the building (in IFC4x3 also the road, bridge ...) of a product."""
    storey = building = None
    seen = {step_id}
    above = up.get(step_id)
    while above is not None and above.id() not in seen:  # broken files hold circles
        seen.add(above.id())
        if storey is None and above.is_a("IfcBuildingStorey"):
            storey = above.Name
        if building is None and (above.is_a("IfcBuilding") or above.is_a("IfcFacility")):
            building = above.Name
        above = up.get(above.id())
    return storey, building


def read_materials(model: Any) -> dict[int, str]:
    """Name the materials of each object and type: layers, profiles, constituents by comma."""
    found: dict[int, str] = {}
    names: dict[int, str] = {}
    for relation in model.by_type("IfcRelAssociatesMaterial"):
        material = relation.RelatingMaterial
        if material is None:
            continue
        if material.id() not in names:
            names[material.id()] = ", ".join(dict.fromkeys(material_names(material)))
        for related in listed(relation.RelatedObjects):
            if names[material.id()]:
                found[related.id()] = names[material.id()]
    return found


def material_names(material: Any) -> list[str]:
    """List the names of the single materials that a material definition is made of."""
    if material.is_a("IfcMaterial"):
        return [material.Name] if material.Name else []
    for attribute in (
        "ForLayerSet", "ForProfileSet", "MaterialLayers", "MaterialProfiles",
        "MaterialConstituents", "Materials", "Material",
    ):  # fmt: skip
        parts = listed(getattr(material, attribute, None))
        if parts:
            return [name for part in parts for name in material_names(part)]
    return []


def metres(unit: Any) -> float | None:
    """Give the length of a unit of length in metres."""
    if unit is None:
        return None
    import ifcopenshell.util.unit as units

    factor = 1.0
    while unit.is_a("IfcConversionBasedUnit"):
        factor *= unit.ConversionFactor.ValueComponent.wrappedValue
        unit = unit.ConversionFactor.UnitComponent
    return float(factor * units.get_prefix_multiplier(getattr(unit, "Prefix", None)))


def georeference(model: Any, reader: PropertyReader) -> dict[str, Any] | None:
    """Read where the model's origin lies on the map; the meshes are not moved there.

    IFC4 and later say it in IfcMapConversion and IfcProjectedCRS, IFC2x3 by convention in the
    property sets ePSet_MapConversion and ePSet_ProjectedCRS of the project or site.
    """
    keys = {
        "eastings": "Eastings",
        "northings": "Northings",
        "orthogonal_height": "OrthogonalHeight",
        "x_axis_abscissa": "XAxisAbscissa",
        "x_axis_ordinate": "XAxisOrdinate",
        "scale": "Scale",
    }
    if model.schema != "IFC2X3":
        for conversion in model.by_type("IfcMapConversion"):
            crs = conversion.TargetCRS
            unit = getattr(crs, "MapUnit", None)
            found = {key: getattr(conversion, name) for key, name in keys.items()}
            return found | {
                "crs_name": crs.Name if crs is not None else None,
                "map_unit": unit_name(unit) if unit is not None else None,
            }
        return None
    for owner in (*model.by_type("IfcProject"), *model.by_type("IfcSite")):
        sets = {name.lower(): values for name, values in reader.merged(owner.id()).items()}
        conversion = sets.get("epset_mapconversion")
        if conversion is not None:
            crs = sets.get("epset_projectedcrs", {})
            found = {key: number(conversion.get(name)) for key, name in keys.items()}
            return found | {"crs_name": text(crs.get("Name")), "map_unit": text(crs.get("MapUnit"))}
    return None


def number(value: Any) -> float | None:
    """Give the number of a property, which may be text in IFC2x3 files."""
    try:
        return float(value.value)
    except (AttributeError, TypeError, ValueError):
        return None


def text(value: Any) -> str | None:
    """Give a property as text."""
    return None if value is None or value.value is None else str(value.value)
