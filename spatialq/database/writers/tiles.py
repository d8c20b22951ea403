"""Points as 3D Tiles 1.1, a tileset with a folder of contents."""

from spatialq.database.writers import Writer, WrittenAbove

WRITER = Writer(
    name="3D Tiles",
    suffixes=("tileset.json",),
    takes="points",
    write=WrittenAbove("spatialq.workflows.lod_query:write_tiles"),
    keeps="colours, other columns of numbers as attributes, NULL, the place on the earth",
    loses="double precision, positions to 1 mm, point_id, file_name, stray points",
    options=("compress", "implicit", "colour_bits", "error_factor"),
)
