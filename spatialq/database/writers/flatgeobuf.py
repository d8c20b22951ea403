"""FlatGeobuf: a layer of features with a spatial index, by GDAL."""

from functools import partial

from spatialq.database.vector_files import write_features
from spatialq.database.writers import Writer

WRITER = Writer(
    name="FlatGeobuf",
    suffixes=(".fgb",),
    takes="geometries",
    write=partial(write_features, "FlatGeobuf"),
    keeps="geometries with their CRS, numbers, texts, dates",
    loses="order of rows, lists and structs (JSON), microseconds",
    extra="vector",
)
