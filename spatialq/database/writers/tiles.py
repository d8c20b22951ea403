"""Points as 3D Tiles 1.1, a tileset with a folder of contents."""

from functools import partial

from spatialq.database.writers import Writer
from spatialq.functions.implementations import call

WRITER = Writer(
    name="3D Tiles",
    suffixes=("tileset.json",),
    takes="points",
    write=partial(call, "query_to_tiles"),
    keeps="colours, other columns of numbers as attributes, NULL, the place on the earth",
    loses="double precision, positions to 1 mm, point_id, file_name, stray points",
    options=("compress", "implicit", "colour_bits", "error_factor"),
)
