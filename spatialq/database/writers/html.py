"""Clashes as a page that anybody can open."""

from functools import partial

from spatialq.database.writers import Writer
from spatialq.functions.implementations import call

WRITER = Writer(
    name="HTML",
    suffixes=(".html",),
    takes="clashes",
    write=partial(call, "query_to_page"),
    keeps="one page without network: a table that is sorted and filtered, groups, pictures",
    loses="types of columns; meshes",
)
