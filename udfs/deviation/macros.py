"""The macro of `deviation`."""

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
        "deviation",
        OUTPUT.summary,
        (
            replace(CLOUD, doc=CLOUD.doc.format(attributes=", and nx ny nz where it has them")),
            Argument(
                "elements",
                "Name of a table or view with global_id and mesh; spatial_elements says which "
                "elements are considered.",
                rows="Elements",
            ),
            *arguments_of(PARAMETERS),
            *CALL,
        ),
        f"""FROM query(
    spatialq_deviation_sql(
        {checked("tables", "deviation", "points", TABLE_OR_FILES)},
        {checked("text", "deviation", "elements", TABLE)},
        to_json({indent(struct(PARAMETERS), 2)})
    )
)""",
        tuple(OUTPUT.examples),
        "point_id global_id face distance angle orientation; distance is in metres",
    ),
)
