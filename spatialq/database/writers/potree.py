"""Points as Potree 2.0, three files in a folder."""

from functools import partial

from spatialq.database.writers import Writer
from spatialq.functions.implementations import call

WRITER = Writer(
    name="Potree",
    suffixes=("metadata.json",),
    takes="points",
    write=partial(call, "query_to_lod"),
    keeps="LAS dimensions, other numbers as attributes, scale and offset, CRS",
    loses="point_id, file_name",
)
