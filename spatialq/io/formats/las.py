"""LAS, LAZ and COPC: `spatialq.io.las`."""

from functools import partial

from spatialq.functions.implementations import call
from spatialq.io.formats import Reader
from spatialq.io.source import LAS

READER = Reader(
    name="LAS",
    suffixes=LAS,
    kind="points",
    open=partial(call, "spatialq.io.las.source:open_las"),
    skips="columns (point formats 6 to 8); parts outside of bounds (COPC)",
    keeps="all dimensions, extra bytes, CRS",
    loses="waveform data, other variable length records",
)
