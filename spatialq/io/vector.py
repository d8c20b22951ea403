"""Files of features, such as polygons: their layers, read by GDAL; GeoParquet by DuckDB."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.errors import FileError
from spatialq.io import crs as crs_text
from spatialq.io.files import require_file
from spatialq.runtime import extras

if TYPE_CHECKING:
    import pyarrow as pa

READER = "read_vector"
GEOMETRY, FID = "geometry", "fid"
"""The column of geometries; the number that a feature has in its file."""
PARQUET = (".parquet", ".geoparquet")
SIGNATURES: dict[str, tuple[str, Callable[[bytes], bool]]] = {
    ".gpkg": ("GPKG", lambda head: head.startswith(b"SQLite format 3\0")),
    ".shp": ("ESRI Shapefile", lambda head: head.startswith(b"\0\0\x27\x0a")),
    ".geojson": ("GeoJSON", lambda head: head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")),
    ".json": ("GeoJSON", lambda head: head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")),
    ".fgb": ("FlatGeobuf", lambda head: head.startswith(b"fgb")),
    ".dxf": ("DXF", lambda head: b"SECTION" in head or head.startswith(b"AutoCAD Binary DXF")),
}
"""By ending: the driver of GDAL, and how such a file begins. GDAL itself goes by the content, and a
file of other formats may name files and URLs that it then opens."""
GDAL_GEOMETRY = "wkb_geometry"
"""The column of geometries that have no name in the file."""
COLLECTION = 7
"""The last code of WKB that DuckDB knows."""
OTHERS = {
    8: "an arc", 9: "a curve", 10: "a polygon of curves", 11: "several curves", 12: "a surface of "
    "curves", 15: "a polyhedral surface", 16: "a TIN", 17: "a triangle",
}  # fmt: skip
HEAD = 65_536
OPENS_OTHERS = b"<OGRVRTDataSource"


@dataclass(frozen=True)
class Layer:
    """One layer of a file that GDAL reads."""

    path: Path
    name: str
    crs: str | None
    """PROJJSON."""
    schema: "pa.Schema"
    """Of the attributes, without `fid` and `geometry`."""


def open_layer(path: Path, layer: str | None = None) -> Layer:
    """Look at the columns and the CRS of a layer.

    Parameters
    ----------
    path : Path
    layer : str, optional
        Its name; needed where a file has several.

    Raises
    ------
    CrsError
        If PROJ cannot read its CRS.
    FileError
        If the file cannot be read, or has no such layer.
    """
    require_file(READER, path)
    driver, is_one = SIGNATURES.get(path.suffix.lower(), ("", bool))
    if not driver:
        endings = ", ".join(sorted([*SIGNATURES, *PARQUET]))
        reason = f"is no file of features: its name must end in one of {endings}"
        raise FileError.of(READER, path, reason)
    with path.open("rb") as file:
        head = file.read(HEAD)
    if not is_one(head) or OPENS_OTHERS in head:
        raise FileError.of(READER, path, f"is no {driver}, as its name says")
    extras.require("vector", READER, path)
    import pyogrio

    with _said_by_gdal(path):
        names = [str(name) for name, _ in pyogrio.list_layers(path)]
        chosen = _chosen(path, names, layer)
        with pyogrio.open_arrow(path, layer=chosen, use_pyarrow=True) as (found, rows):
            schema = rows.schema
    geometry = schema.get_field_index(found["geometry_name"] or GDAL_GEOMETRY)
    return Layer(
        path,
        chosen,
        found["crs"] and crs_text.from_text(found["crs"]),
        schema if geometry < 0 else schema.remove(geometry),
    )


def _chosen(path: Path, names: list[str], layer: str | None) -> str:
    """Choose a layer.

    Raises
    ------
    FileError
        If there is none of that name, or several and no name.
    """
    several = ", ".join(map(repr, names)) or "none"
    if layer is not None and layer not in names:
        raise FileError.of(READER, path, f"has no layer {layer!r}: its layers are {several}")
    if layer is None and len(names) != 1:
        reason = f"layer must be given, as the file has several: {several}"
        raise FileError.of(READER, path, reason if names else "has no layer")
    return names[0] if layer is None else layer


def read_layer(layer: Layer) -> "tuple[pa.Array, pa.Array, pa.Table]":
    """Read all features of a layer.

    Returns
    -------
    fid : int64[n]
    geometry : binary[n]
        WKB as ISO has it.
    attributes : pyarrow.Table

    Raises
    ------
    FileError
        If the file is damaged, or has geometries of curves or solids.
    """
    import pyarrow as pa
    import pyogrio

    path = layer.path
    with _said_by_gdal(path):
        found, rows = pyogrio.read_arrow(path, layer=layer.name, return_fids=True)
    name = found["geometry_name"] or GDAL_GEOMETRY
    has_shapes = name in rows.column_names
    shapes = rows.column(name) if has_shapes else pa.nulls(rows.num_rows, pa.binary())
    fid, geometry = _one(rows.column(0).cast(pa.int64())), _one(shapes.cast(pa.binary()))
    for number, each in zip(fid.to_pylist(), geometry.to_pylist(), strict=True):
        if each is not None and (code := int.from_bytes(each[1:5], "little") % 1000) > COLLECTION:
            kind = OTHERS.get(code, f"of type {code}")
            reason = f"feature {number} is {kind}, which DuckDB's GEOMETRY has not"
            raise FileError.of(READER, path, reason)
    rows = rows.remove_column(0)
    return fid, geometry, rows.drop_columns([name]) if has_shapes else rows


def _one(column: Any) -> "pa.Array":
    """Give a column as one array."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return column


@contextmanager
def _said_by_gdal(path: Path) -> Iterator[None]:
    """Turn the errors of GDAL into those about a file."""
    import pyogrio

    try:
        yield
    except (
        pyogrio.errors.DataSourceError,
        pyogrio.errors.DataLayerError,
        pyogrio.errors.FeatureError,
    ) as error:
        raise FileError.of(READER, path, f"cannot be read by GDAL: {error}") from error
