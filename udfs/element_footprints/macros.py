"""The macros of footprints."""

from spatialq.functions.macros import (
    MESH,
    Argument,
    Macro,
    checked,
    rows_of,
)

MACROS = (
    Macro(
        "mesh_footprint",
        "The outline of a mesh seen from above, as POLYGON or MULTIPOLYGON in the coordinates of "
        "the model; NULL where it has no area.",
        (Argument("mesh", "STRUCT(vertices DOUBLE[], faces INTEGER[]) in metres.", kind="mesh"),),
        f"""ST_GeomFromWKB(
    spatialq_mesh_footprint({checked("mesh", "mesh_footprint", "mesh", MESH)})
)""",
        ("SELECT name, mesh_footprint(mesh) AS footprint FROM elements",),
        is_table=False,
    ),
    Macro(
        "element_footprints",
        "The elements of a table with their outlines seen from above.",
        (
            Argument(
                "elements",
                "Name of a table or view with global_id and mesh, as read_ifc and load give them.",
                rows="Elements",
            ),
        ),
        f"""SELECT e.* EXCLUDE (mesh), mesh_footprint(e.mesh) AS footprint
FROM {rows_of("element_footprints", "elements", "mesh")} AS e""",
        ("FROM element_footprints('elements') WHERE ifc_class LIKE 'IfcWall%'",),
        "the columns of elements but mesh, and footprint: a polygon or several, with holes, in x "
        "and y of the model; NULL where a mesh has no area from above",
    ),
)
