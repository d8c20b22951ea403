"""The macro of `coverage`: the rows of the kernel, in the order of the elements."""

from spatialq.functions.macros import of_points_and_other

from . import DECLARATION

MACROS = (
    of_points_and_other(
        DECLARATION,
        "global_id face status seen visible offset tilt dx dy dz thickness spread points area: "
        "shares of the surface, metres, degrees, square metres; face is NULL for a whole element",
        "SELECT c.*\nFROM {rows} AS c\nORDER BY c.global_id, c.face",
    ),
)
