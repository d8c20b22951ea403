"""The macro of `points_within`."""

from spatialq.functions.macros import CRS, TABLE, TABLE_OR_FILE, Argument, Macro, checked

MACROS = (
    Macro(
        "points_within",
        "The polygons that points are in, seen from above: one row for each point and polygon. "
        "Points on an edge or a corner are within, those in a hole are not.",
        (
            Argument(
                "points",
                "Name of a table or view with point_id, x and y; or what read_points reads: a file "
                "such as 'forest.laz', a pattern such as 'tiles/*.laz', or a folder such as "
                "'tiles/'.",
                rows="Points",
            ),
            Argument(
                "polygons",
                "Name of a table or view with polygon_id and geometry, a GEOMETRY of type POLYGON "
                "or MULTIPOLYGON, as read_vector gives it. NULL and empty ones have no points.",
                rows="Query",
            ),
            Argument(
                "crs",
                "Coordinate reference system of the points, such as 'EPSG:25832'; NULL takes what "
                "is known of the table or file.",
                "NULL",
            ),
        ),
        f"""FROM query(
    spatialq_points_within_sql(
        {checked("text", "points_within", "points", TABLE_OR_FILE)},
        {checked("name", "points_within", "polygons", TABLE)},
        {checked("text", "points_within", "crs", CRS)}
    )
)""",
        (
            "SELECT polygon_id, count(*) FROM points_within('points', 'plots') GROUP BY ALL",
            "FROM points JOIN points_within('points', 'plots') USING (point_id)",
        ),
        "point_id and polygon_id",
    ),
)
