"""The macro of `deviation`."""

from spatialq.functions.macros import of_points_and_other

from . import DECLARATION

MACROS = (
    of_points_and_other(
        DECLARATION, "point_id global_id face distance angle orientation; distance is in metres"
    ),
)
