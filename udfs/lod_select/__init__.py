"""`lod_select`: the nodes of a level-of-detail tree that a view needs. It is written in SQL alone.

`sql/lod_select.sql` is the function; what it asks Python is where the camera's planes are.
"""

from spatialq.functions.sql_function import SqlFunction, struct_type

PLANE = dict.fromkeys(("a", "b", "c", "d", "reach"), "DOUBLE")
VIEW = {
    **dict.fromkeys("xyz", "DOUBLE"),
    "planes": f"{struct_type(PLANE)}[]",
    "scale": "DOUBLE",
    "parallel": "BOOLEAN",
    "pixels": "DOUBLE",
    "max_samples": "BIGINT",
}

SQL_FUNCTIONS = (
    SqlFunction(
        "spatialq_lod_select_udf",
        ("VARCHAR",),
        struct_type(VIEW),
        "lod_view",
        by_rows=True,
    ),
)
