"""The macro of `deviation`."""

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
        "deviation",
        OUTPUT.summary,
        (
            replace(CLOUD, doc=CLOUD.doc.format(attributes=", and nx ny nz where it has them")),
            ELEMENTS,
            *arguments_of(PARAMETERS),
            *CALL,
        ),
        f"""FROM {of_points_and_other("deviation", PARAMETERS)}""",
        tuple(OUTPUT.examples),
        "point_id global_id face distance angle orientation; distance is in metres",
    ),
)
