"""Points as COPC, an octree in a LAZ file."""

from functools import partial

from spatialq.database.writers import Writer
from spatialq.functions.implementations import call

WRITER = Writer(
    name="COPC",
    suffixes=(".copc.laz",),
    takes="points",
    write=partial(call, "query_to_lod"),
    keeps="LAS dimensions, other numbers as extra bytes, scale and offset, CRS",
    loses="point_id, file_name",
)
