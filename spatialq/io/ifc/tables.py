"""The tables of an IFC model, as Arrow, and how they are filled."""

from typing import Any

import numpy as np
import pyarrow as pa

from spatialq.data.arrow import ARROW_TYPES, arrow_fields
from spatialq.data.meshes import Meshes
from spatialq.io.ifc import columns
from spatialq.io.ifc.columns import BOX, TEXT
from spatialq.io.ifc.shapes import Shapes

MESH = ARROW_TYPES[columns.MESH]
SCHEMAS = {name: pa.schema(arrow_fields(each)) for name, each in columns.TABLES.items()}
ELEMENTS = SCHEMAS["elements"]
ERRORS = SCHEMAS["load_errors"]


def table(name: str, lists: dict[str, list[Any]], file_name: str) -> pa.Table:
    """Make a table of columns as lists, with the file's name in its last column."""
    schema = SCHEMAS[name]
    arrays = {name: pa.array(lists[name], schema.field(name).type) for name in lists}
    rows = len(next(iter(lists.values())))
    arrays["file_name"] = pa.array([file_name] * rows, pa.string())
    return pa.table([arrays[name] for name in schema.names], schema=schema)


def products(objects: dict[str, list[Any]], rows: list[int]) -> dict[str, list[Any]]:
    """Pick the columns that elements take from the objects with a representation."""
    names = [name for name in (*TEXT, "step_id") if name in objects]
    return {name: [objects[name][row] for row in rows] for name in names}


def elements(products: dict[str, list[Any]], shapes: Shapes, of_model: dict[str, Any]) -> pa.Table:
    """Make the table of elements.

    Parameters
    ----------
    products : dict of lists
        The attributes of all products with a representation.
    shapes : Shapes
        Those of some of them, in any order.
    of_model : dict
        The columns that are the same for all elements: `true_north`, `ifc_schema`, `file_name`.

    Returns
    -------
    pyarrow.Table
        See `ELEMENTS`, in the order of `products`.
    """
    row_of = {step_id: row for row, step_id in enumerate(products["step_id"])}
    rows = np.array([row_of[step_id] for step_id in shapes.step_ids.tolist()], np.int64)
    order = np.argsort(rows)
    shapes = shapes.take(order)
    measures = shapes.measures
    found = {
        **{name: [products[name][row] for row in rows[order].tolist()] for name in TEXT},
        **{name: [value] * len(rows) for name, value in of_model.items()},
        **dict(zip(BOX, (*measures.low.T, *measures.high.T), strict=True)),
        "mesh": mesh_array(shapes.meshes),
        "mesh_source": shapes.sources,
        "is_closed": measures.is_closed,
        "component_count": measures.component_count.astype(np.int32),
        "volume": pa.array(measures.volume, mask=~measures.is_closed),
        "area": measures.area,
        "step_id": shapes.step_ids,
    }
    arrays = [pa.array(found[name], ELEMENTS.field(name).type) for name in ELEMENTS.names]
    return pa.table(arrays, schema=ELEMENTS)


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
    rows: dict[str, list[Any]] = {name: [] for name in ERRORS.names}

    def add(*row: str | None) -> None:
        for name, value in zip(ERRORS.names, row, strict=True):
            rows[name].append(value)

    for note in notes:
        add(file_name, None, None, "file", note)
    for at, step_id in enumerate(products["step_id"]):
        if step_id in failures:
            named = products["global_id"][at], products["ifc_class"][at]
            add(file_name, *named, "geometry", failures[step_id])
    return pa.table(rows, schema=ERRORS)
