"""Issues of building models: `spatialq.io.bcf`."""

from spatialq.io.formats import Reader

READER = Reader(
    name="BCF",
    suffixes=(".bcf", ".bcfzip"),
    kind="bcf",
    open=None,
    skips="",
    keeps="topics, comments, viewpoints, components; BCF 2.0, 2.1 and 3.0",
    loses="snapshots, coordinates of lines and clipping planes, documents, snippets",
)
