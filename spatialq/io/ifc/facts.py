"""What an IFC file says beside geometry: products, relations, where in the world it is.

Runs in the worker process (`spatialq.io.ifc.worker`) and gives plain lists and dictionaries, a
list a column, which travel as JSON.
"""

from typing import Any

from spatialq.io.ifc.attributes import Layouts
from spatialq.io.ifc.columns import CLASSIFICATIONS, GEOREFERENCE, MATERIALS
from spatialq.io.ifc.objects import read_objects
from spatialq.io.ifc.properties import PropertyReader, unit_name
from spatialq.io.ifc.relations import Columns, read_relations


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
        None), ``products``: the rows of the table of objects that have a representation, and
        ``tables``: the columns of tables by name, see `spatialq.io.ifc.columns`.
    """
    layouts = Layouts(model.schema_identifier)
    relations = read_relations(model, layouts)
    types = {step_id: model.by_id(kind) for step_id, kind in relations.types.items()}
    reader = PropertyReader(model, types)
    length = reader.units.get("LENGTHUNIT")
    objects = read_objects(
        model,
        layouts,
        relations,
        properties=reader.as_json,
        materials=read_materials(model),
        metres=metres(length) or 1.0,
    )
    return {
        "schema": model.schema_identifier,
        "entities": len(model.entity_names()),
        "length_unit": unit_name(length) if length is not None else None,
        "length_unit_metres": metres(length),
        "georeference": georeference(model, reader),
        "products": [row for row, drawn in enumerate(objects["has_geometry"]) if drawn],
        "tables": {
            "objects": objects,
            "relations": relations.columns,
            "properties": reader.long_table(),
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
