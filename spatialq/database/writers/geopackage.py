"""GeoPackage: a layer of features in a database of SQLite, by GDAL."""

from functools import partial

from spatialq.database.vector_files import write_features
from spatialq.database.writers import Writer

WRITER = Writer(
    name="GeoPackage",
    suffixes=(".gpkg",),
    takes="geometries",
    write=partial(write_features, "GPKG"),
    keeps="geometries with their CRS, numbers, texts, dates",
    loses="lists and structs (JSON), NaN (NULL), microseconds",
    extra="vector",
)
