"""Entwine Point Tiles: `spatialq.io.ept`."""

from functools import partial

from spatialq.functions.implementations import call
from spatialq.io.formats import Reader

READER = Reader(
    name="EPT",
    suffixes=("ept.json",),
    kind="points",
    open=partial(call, "spatialq.io.ept:EptSource"),
    skips="parts outside of bounds, nodes finer than resolution",
    keeps="all dimensions, CRS",
    loses="addresses of other machines",
)
