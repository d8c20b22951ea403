"""The macro of `unmodelled`: the rows of the kernel."""

from spatialq.functions.macros import of_points_and_other

from . import DECLARATION

MACROS = (
    of_points_and_other(
        DECLARATION,
        "cluster_id: 1 for the cluster with the most points; point_count; cx cy cz: mean of the "
        "points; xmin ymin zmin xmax ymax zmax: their box; size: its longest side in metres; "
        "is_plane; nx ny nz d: of the plane, NULL if it is none; rmse: metres, of the points from "
        "the best plane",
        "SELECT u.*\nFROM {rows} AS u\nORDER BY u.cluster_id",
    ),
)
