"""Footprints of elements: the outlines of their meshes, seen from above."""

from spatialq.functions.sql_function import SqlFunction

MESH_TYPE = "STRUCT(vertices DOUBLE[], faces INTEGER[])"

SQL_FUNCTIONS = (
    SqlFunction(
        "spatialq_mesh_footprint",
        (MESH_TYPE,),
        "BLOB",
        "spatialq.udfs.element_footprints.footprint:footprint",
        volatile=False,
        by_rows=True,
    ),
)
