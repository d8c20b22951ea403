"""The tables of an IFC model: column -> SQL type."""

from collections.abc import Iterable
from typing import Any, Literal, get_args

Geometry = Literal["auto", "exact", "none"]
GEOMETRIES = get_args(Geometry)

MESH = "STRUCT(vertices DOUBLE[], faces INTEGER[])"
"""Flat x y z in metres, and flat vertex indices, three per triangle, outside counter-clockwise."""

TEXT = (
    "global_id", "ifc_class", "name", "description", "type_name", "storey", "building",
    "material", "properties",
)  # fmt: skip
BOX = ("xmin", "ymin", "zmin", "xmax", "ymax", "zmax")

ELEMENTS = {
    **dict.fromkeys(TEXT, "VARCHAR"),
    **dict.fromkeys(BOX, "DOUBLE"),
    "mesh": MESH,
    "mesh_source": "VARCHAR",
    "is_closed": "BOOLEAN",
    "component_count": "INTEGER",
    "volume": "DOUBLE",
    "area": "DOUBLE",
    "true_north": "DOUBLE",
    "ifc_schema": "VARCHAR",
    "step_id": "BIGINT",
    "file_name": "VARCHAR",
}
"""One row per product that has a mesh. `properties` is JSON: property set, property, value.
`true_north` is that of the model, so that it stays with the rows, whatever is made of them."""

OBJECTS = {
    **dict.fromkeys(
        (
            "global_id", "ifc_class", "name", "description", "object_type", "predefined_type",
            "tag", "long_name", "type_id", "type_name", "container_id", "parent_id", "storey_id",
            "storey", "building", "material",
        ),
        "VARCHAR",
    ),
    "elevation": "DOUBLE",
    "attributes": "VARCHAR",
    "properties": "VARCHAR",
    "has_geometry": "BOOLEAN",
    "ifc_schema": "VARCHAR",
    "step_id": "BIGINT",
    "file_name": "VARCHAR",
}  # fmt: skip
"""One row per IfcObjectDefinition, with or without geometry: elements, spaces, storeys, groups,
systems, types, tasks, the project. `attributes` is JSON: attribute, value."""

RELATIONS = dict.fromkeys(
    (
        "child", "parent", "kind", "child_class", "child_name", "parent_class", "parent_name",
        "relation_class", "relation_id", "relation_name", "child_attribute", "parent_attribute",
        "file_name",
    ),
    "VARCHAR",
)  # fmt: skip
"""One row per pair of related objects, by GlobalId; kinds: `spatialq.io.ifc.relations.RULES`.
The attributes are those of the relationship that name the child and the parent."""

PROPERTIES = {
    "global_id": "VARCHAR",
    "pset": "VARCHAR",
    "property": "VARCHAR",
    "value": "VARCHAR",
    "number": "DOUBLE",
    "unit": "VARCHAR",
    "unit_si": "DOUBLE",
    "number_si": "DOUBLE",
    "source": "VARCHAR",
    "file_name": "VARCHAR",
}
"""One row per property of an object; `source` is instance or type, an instance hides its type.
`number_si` is the number in the SI unit of its kind, `unit_si` the factor that leads there."""

MATERIALS = {
    "global_id": "VARCHAR",
    "position": "INTEGER",
    **dict.fromkeys(("kind", "set_name", "name", "material", "category"), "VARCHAR"),
    "thickness": "DOUBLE",
    "fraction": "DOUBLE",
    "layer_direction": "VARCHAR",
    "sense": "VARCHAR",
    "offset": "DOUBLE",
    "profile": "VARCHAR",
    "source": "VARCHAR",
    "file_name": "VARCHAR",
}
"""One row per material, layer, profile or constituent of an object or type; lengths in metres."""

CLASSIFICATIONS = dict.fromkeys(
    ("global_id", "system", "identification", "name", "location", "source", "file_name"), "VARCHAR"
)
"""One row per classification reference of an object or type."""

ERRORS = dict.fromkeys(("file_name", "global_id", "ifc_class", "stage", "message"), "VARCHAR")
"""Stage ``geometry``: a product without the mesh it should have. Stage ``file``: a warning about
the whole file; the product columns are NULL."""

GEOREFERENCE = {
    "eastings": "DOUBLE",
    "northings": "DOUBLE",
    "orthogonal_height": "DOUBLE",
    "x_axis_abscissa": "DOUBLE",
    "x_axis_ordinate": "DOUBLE",
    "scale": "DOUBLE",
    "crs_name": "VARCHAR",
    "map_unit": "VARCHAR",
}

MODELS = {
    "file_name": "VARCHAR",
    "name": "VARCHAR",
    "ifc_schema": "VARCHAR",
    "length_unit": "VARCHAR",
    "length_unit_metres": "DOUBLE",
    "true_north": "DOUBLE",
    **GEOREFERENCE,
}
"""One row per file. The map conversion is as the file gives it, and not applied to the meshes;
`true_north` is the angle from +Y to true north in degrees, clockwise seen from above."""

TABLES = {
    "elements": ELEMENTS,
    "objects": OBJECTS,
    "relations": RELATIONS,
    "properties": PROPERTIES,
    "materials": MATERIALS,
    "classifications": CLASSIFICATIONS,
    "models": MODELS,
    "load_errors": ERRORS,
}
"""All tables by name, in the order in which they are documented."""

LINEAGE = dict.fromkeys(("ifc_class", "supertype", "ifc_schema"), "VARCHAR")
"""One row per class of a schema and each of its supertypes, itself included."""

INVERSE_ATTRIBUTES = dict.fromkeys(
    ("ifc_schema", "ifc_class", "inverse_attribute", "relation_class", "relation_attribute"),
    "VARCHAR",
)
"""One row per inverse attribute, with the class that declares it."""

CHANGES = {
    "status": "VARCHAR",
    "changes": "VARCHAR[]",
    **dict.fromkeys(("ifc_class", "name", "storey", "global_id"), "VARCHAR"),
    **dict.fromkeys(("dx", "dy", "dz", "turn"), "DOUBLE"),
    "axis": "DOUBLE[]",
    "details": "STRUCT(property VARCHAR, old VARCHAR, new VARCHAR)[]",
    "matched_by": "VARCHAR",
    "old_global_id": "VARCHAR",
    "step_id": "BIGINT",
    "old_step_id": "BIGINT",
}
"""One row per object of two states of a model. The shift is that of the centre of the surface in
metres, `turn` in degrees, counter-clockwise about `axis`."""

STATE = {
    "step_id": "BIGINT",
    **dict.fromkeys(
        ("file_name", "global_id", "ifc_class", "name", "storey", "predefined_type", "type_id",
         "storey_id", "container_id", "parent_id", "description", "object_type", "tag",
         "long_name", "material", "attributes", "properties"),
        "VARCHAR",
    ),
    "mesh": MESH,
}  # fmt: skip
"""What two states of a model are compared by: one row per object, with or without a mesh."""

Columns = dict[str, list[Any]]

ADDED = ("properties", "file_name")
"""Columns that are filled in the parent process."""


def by_column(table: str, rows: Iterable[dict[str, Any]]) -> Columns:
    """Turn the rows of a table into its columns, without those of `ADDED`."""
    rows = list(rows)
    return {name: [row[name] for row in rows] for name in TABLES[table] if name not in ADDED}
