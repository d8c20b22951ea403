"""The macro of `unmodelled`: the rows of the kernel."""

from dataclasses import replace

from spatialq.functions.declaration import parameters_of
from spatialq.functions.macros import (
    CALL,
    CLOUD,
    ELEMENTS,
    Macro,
    arguments_of,
    of_points_and_other,
)

from . import DECLARATION, Options

PARAMETERS = parameters_of(Options)
OUTPUT = DECLARATION.outputs[0]

MACROS = (
    Macro(
        "unmodelled",
        OUTPUT.summary,
        (
            replace(CLOUD, doc=CLOUD.doc.format(attributes="")),
            ELEMENTS,
            *arguments_of(PARAMETERS),
            *CALL,
        ),
        f"""SELECT u.*
FROM {of_points_and_other("unmodelled", PARAMETERS)} AS u
ORDER BY u.cluster_id""",
        tuple(OUTPUT.examples),
        "cluster_id: 1 for the cluster with the most points; point_count; cx cy cz: mean of the "
        "points; xmin ymin zmin xmax ymax zmax: their box; size: its longest side in metres; "
        "is_plane; nx ny nz d: of the plane, NULL if it is none; rmse: metres, of the points from "
        "the best plane",
    ),
)
