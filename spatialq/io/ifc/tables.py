"""The tables of an IFC model, as Arrow: their columns, and how they are filled."""

from typing import Any

import numpy as np
import pyarrow as pa

from spatialq.data.meshes import Meshes
from spatialq.io.ifc import mesh

MESH = pa.struct([("vertices", pa.list_(pa.float64())), ("faces", pa.list_(pa.int32()))])
"""Flat x y z in metres, and flat vertex indices, three a triangle, outside counter-clockwise."""

TEXT = (
    "global_id", "ifc_class", "name", "description", "type_name", "storey", "building",
    "material", "properties",
)  # fmt: skip
BOX = ("xmin", "ymin", "zmin", "xmax", "ymax", "zmax")

ELEMENTS = pa.schema(
    [
        *((name, pa.string()) for name in TEXT),
        *((name, pa.float64()) for name in BOX),
        ("mesh", MESH),
        ("is_closed", pa.bool_()),
        ("component_count", pa.int32()),
        ("volume", pa.float64()),
        ("area", pa.float64()),
        ("step_id", pa.int64()),
        ("file_name", pa.string()),
    ]
)
"""One row a product that has a mesh. `properties` is JSON: property set, property, value."""

RELATIONS = pa.schema(
    [
        (name, pa.string())
        for name in (
            "child", "parent", "kind", "child_class", "child_name", "parent_class",
            "parent_name", "file_name",
        )
    ]
)  # fmt: skip
"""One row a pair of related objects, by GlobalId; kinds: `spatialq.io.ifc.facts.RELATIONS`."""

PROPERTIES = pa.schema(
    [
        ("global_id", pa.string()),
        ("pset", pa.string()),
        ("property", pa.string()),
        ("value", pa.string()),
        ("number", pa.float64()),
        ("unit", pa.string()),
        ("source", pa.string()),
        ("file_name", pa.string()),
    ]
)
"""One row a property of an object; `source` is instance or type, an instance hides its type."""

ERRORS = pa.schema(
    [(name, pa.string()) for name in ("file_name", "global_id", "ifc_class", "stage", "message")]
)
"""Stage ``geometry``: a product without the mesh it should have. Stage ``file``: a warning about
the whole file; the product columns are NULL."""

GEOREFERENCE = {
    "eastings": pa.float64(),
    "northings": pa.float64(),
    "orthogonal_height": pa.float64(),
    "x_axis_abscissa": pa.float64(),
    "x_axis_ordinate": pa.float64(),
    "scale": pa.float64(),
    "crs_name": pa.string(),
    "map_unit": pa.string(),
}

MODELS = pa.schema(
    [
        ("file_name", pa.string()),
        ("ifc_schema", pa.string()),
        ("length_unit", pa.string()),
        ("length_unit_metres", pa.float64()),
        *GEOREFERENCE.items(),
    ]
)
"""One row a file. The map conversion is as the file gives it, and not applied to the meshes."""


def table(schema: pa.Schema, columns: dict[str, list[Any]], file_name: str) -> pa.Table:
    """Make a table of columns as lists, with the file's name in its last column."""
    arrays = {name: pa.array(columns[name], schema.field(name).type) for name in columns}
    rows = len(next(iter(columns.values())))
    arrays["file_name"] = pa.array([file_name] * rows, pa.string())
    return pa.table([arrays[name] for name in schema.names], schema=schema)


def elements(
    products: dict[str, list[Any]], meshes: dict[int, tuple[bytes, bytes]], file_name: str
) -> tuple[pa.Table, dict[int, str]]:
    """Make the table of elements.

    Parameters
    ----------
    products : dict of lists
        The attributes of all products with a representation.
    meshes : dict from int to (bytes, bytes)
        Vertices (float64) and faces (int32) by step id.
    file_name : str

    Returns
    -------
    table : pyarrow.Table
        See `ELEMENTS`, in the order of `products`.
    unusable : dict from int to str
        The meshes that were left out, and why, by step id.
    """
    shapes = {}
    unusable = {}
    for row, step_id in enumerate(products["step_id"]):
        if step_id in meshes:
            vertices, faces = meshes[step_id]
            at = np.frombuffer(vertices).reshape(-1, 3)
            if np.isfinite(at).all():
                shapes[row] = at, np.frombuffer(faces, np.int32).reshape(-1, 3)
            else:
                unusable[step_id] = "the mesh has coordinates that are not finite"
    rows = list(shapes)
    cleaned, measures = mesh.clean(Meshes.of(list(shapes.values())))
    filled = np.diff(cleaned.face_starts) > 0
    for row in np.flatnonzero(~filled).tolist():
        unusable[products["step_id"][rows[row]]] = "all triangles of the mesh have no area"
    columns = {
        **{name: [products[name][row] for row in rows] for name in (*TEXT, "step_id")},
        **dict(zip(BOX, (*measures.low.T, *measures.high.T), strict=True)),
        "mesh": mesh_array(cleaned),
        "is_closed": measures.is_closed,
        "component_count": measures.component_count.astype(np.int32),
        "volume": pa.array(measures.volume, mask=~measures.is_closed),
        "area": measures.area,
        "file_name": [file_name] * len(rows),
    }
    arrays = [pa.array(columns[name], ELEMENTS.field(name).type) for name in ELEMENTS.names]
    return pa.table(arrays, schema=ELEMENTS).filter(pa.array(filled)), unusable


def mesh_array(meshes: Meshes) -> pa.StructArray:
    """Give meshes as an Arrow column."""
    vertices = pa.ListArray.from_arrays(
        pa.array(3 * meshes.vertex_starts, pa.int32()), pa.array(meshes.vertices.reshape(-1))
    )
    faces = pa.ListArray.from_arrays(
        pa.array(3 * meshes.face_starts, pa.int32()),
        pa.array(meshes.faces.reshape(-1)),
    )
    return pa.StructArray.from_arrays([vertices, faces], fields=list(MESH))


def load_errors(
    products: dict[str, list[Any]], failures: dict[int, str], notes: list[str], file_name: str
) -> pa.Table:
    """Make the table of errors: the warnings about the file, then the failed products."""
    columns: dict[str, list[Any]] = {name: [] for name in ERRORS.names}

    def add(*row: str | None) -> None:
        for name, value in zip(ERRORS.names, row, strict=True):
            columns[name].append(value)

    for note in notes:
        add(file_name, None, None, "file", note)
    for row, step_id in enumerate(products["step_id"]):
        if step_id in failures:
            named = products["global_id"][row], products["ifc_class"][row]
            add(file_name, *named, "geometry", failures[step_id])
    return pa.table(columns, schema=ERRORS)
