"""Points as Potree 2.0, three files in a folder."""

from spatialq.database.writers import Writer, WrittenAbove

WRITER = Writer(
    name="Potree",
    suffixes=("metadata.json",),
    takes="points",
    write=WrittenAbove("spatialq.workflows.lod_query:write"),
    keeps="LAS dimensions, other numbers as attributes, scale and offset, CRS",
    loses="point_id, file_name",
)
