"""The tables of an IFC model: column -> SQL type."""

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
    "is_closed": "BOOLEAN",
    "component_count": "INTEGER",
    "volume": "DOUBLE",
    "area": "DOUBLE",
    "step_id": "BIGINT",
    "file_name": "VARCHAR",
}
"""One row per product that has a mesh. `properties` is JSON: property set, property, value."""

RELATIONS = dict.fromkeys(
    (
        "child", "parent", "kind", "child_class", "child_name", "parent_class", "parent_name",
        "file_name",
    ),
    "VARCHAR",
)  # fmt: skip
"""One row per pair of related objects, by GlobalId; kinds: `spatialq.io.ifc.facts.RELATIONS`."""

PROPERTIES = {
    "global_id": "VARCHAR",
    "pset": "VARCHAR",
    "property": "VARCHAR",
    "value": "VARCHAR",
    "number": "DOUBLE",
    "unit": "VARCHAR",
    "source": "VARCHAR",
    "file_name": "VARCHAR",
}
"""One row per property of an object; `source` is instance or type, an instance hides its type."""

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
    "ifc_schema": "VARCHAR",
    "length_unit": "VARCHAR",
    "length_unit_metres": "DOUBLE",
    **GEOREFERENCE,
}
"""One row per file. The map conversion is as the file gives it, and not applied to the meshes."""
