"""Elements that clash, for viewers."""

from functools import partial

from spatialq.database.writers import Writer
from spatialq.functions.implementations import call

WRITER = Writer(
    name="glTF",
    suffixes=(".glb",),
    takes="clashes",
    write=partial(call, "query_to_clash_model"),
    keeps="a node for each element that clashes, named by its GlobalId, coloured by side or group",
    loses="columns; properties of elements",
)
