"""Points as COPC, an octree in a LAZ file."""

from spatialq.database.writers import Writer, WrittenAbove

WRITER = Writer(
    name="COPC",
    suffixes=(".copc.laz",),
    takes="points",
    write=WrittenAbove("spatialq.workflows.lod_query:write"),
    keeps="LAS dimensions, other numbers as extra bytes, scale and offset, CRS",
    loses="point_id, file_name",
)
