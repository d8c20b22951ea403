"""Clashes as issues that others open."""

from functools import partial

from spatialq.database.writers import Writer
from spatialq.functions.implementations import call

WRITER = Writer(
    name="BCF",
    suffixes=(".bcf", ".bcfzip"),
    takes="clashes",
    write=partial(call, "query_to_bcf"),
    keeps="a topic per clash or group: elements, camera, picture, status, comments, labels",
    loses="other columns; meshes",
    options=("author", "bcf_version", "date"),
)
