"""The macro of `coverage`: the rows of the kernel, in the order of the elements."""

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
        "coverage",
        OUTPUT.summary,
        (
            replace(CLOUD, doc=CLOUD.doc.format(attributes="")),
            ELEMENTS,
            *arguments_of(PARAMETERS),
            *CALL,
        ),
        f"""SELECT c.*
FROM {of_points_and_other("coverage", PARAMETERS)} AS c
ORDER BY c.global_id, c.face""",
        tuple(OUTPUT.examples),
        "global_id face status seen visible offset tilt dx dy dz thickness spread points area: "
        "shares of the surface, metres, degrees, square metres; face is NULL for a whole element",
    ),
)
