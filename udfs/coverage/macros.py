"""The macro of `coverage`: the rows of the kernel, in the order of the elements."""

from dataclasses import replace

from spatialq.functions.declaration import parameters_of
from spatialq.functions.macros import (
    CALL,
    CLOUD,
    TABLE,
    TABLE_OR_FILES,
    Argument,
    Macro,
    arguments_of,
    checked,
    indent,
    struct,
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
            Argument(
                "elements",
                "Name of a table or view with global_id and mesh; spatial_elements says which "
                "elements are considered.",
                rows="Elements",
            ),
            *arguments_of(PARAMETERS),
            *CALL,
        ),
        f"""SELECT c.*
FROM query(
    spatialq_coverage_sql(
        {checked("tables", "coverage", "points", TABLE_OR_FILES)},
        {checked("text", "coverage", "elements", TABLE)},
        to_json({indent(struct(PARAMETERS), 2)})
    )
) AS c
ORDER BY c.global_id, c.face""",
        tuple(OUTPUT.examples),
        "global_id face status seen visible offset tilt dx dy dz thickness spread points area: "
        "shares of the surface, metres, degrees, square metres; face is NULL for a whole element",
    ),
)
