"""The macro of `write_bcf`, which gets rows instead of a file."""

from spatialq.functions.file_macros import OVERWRITE
from spatialq.functions.macros import (
    TRUTH,
    Argument,
    Macro,
    arguments_of,
    checked,
    rows_of,
)

from . import WRITE_BCF

NAME = WRITE_BCF.name
OPTIONS = ", ".join(f"{each.name}: {each.name}" for each in WRITE_BCF.parameters)
MACROS = (
    Macro(
        NAME,
        WRITE_BCF.summary,
        (
            Argument(
                "clashes", "Name of a table or view with the GlobalIds a and b; see the page."
            ),
            Argument("output", WRITE_BCF.writes),
            *arguments_of(WRITE_BCF.parameters),
            OVERWRITE,
        ),
        f"""SELECT unnest(
    spatialq_{NAME}_udf(
        (
            SELECT coalesce(to_json(list(row ORDER BY n)), '[]')::VARCHAR
            FROM (
                SELECT t AS row, row_number() OVER () AS n
                FROM {rows_of(NAME, "clashes", "a", "b")} AS t
            )
        ),
        {checked("text", NAME, "output", "a file")},
        to_json({{{OPTIONS}}})::VARCHAR,
        {checked("truth", NAME, OVERWRITE.name, TRUTH)}
    ),
    recursive := true
)""",
        (WRITE_BCF.example,),
        " ".join(WRITE_BCF.result),
    ),
)
