"""The columns that a function of SQL gets, and those that it gives."""

from collections.abc import Mapping

from spatialq.data.arrow import MESH
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import (
    ElementsInput,
    GridInput,
    PointsAndElementsInput,
    PointsAndOtherInput,
    PointsAndTableInput,
    PointsInput,
)
from spatialq.functions.sql_function import struct_type

ELEMENTS = {
    "global_id": "VARCHAR",
    "identity": "UBIGINT",
    "vertices": "DOUBLE[]",
    "faces": "INTEGER[]",
}
"""Of an element: its name, a number that is the same for the same element, and its mesh."""
IN_ORDER = {"place": "BIGINT", **ELEMENTS}
"""The same, and before them which row of its table an element is: of pairs within one table, the
element that comes first is `a`, and DuckDB may read a table by several threads."""
POLYGONS = {"place": "BIGINT", "name": "VARCHAR", "shape": "VARCHAR"}
"""Of a polygon: its row, what errors call it, and its WKB in base64."""
REFERENCE = {
    "reference_id": "BIGINT",
    "reference_x": "DOUBLE",
    "reference_y": "DOUBLE",
    "reference_z": "DOUBLE",
}
"""Of a point of a second cloud."""
TABLES = {"polygons": POLYGONS, "cloud": REFERENCE}
"""Columns of a table beside points, by its kind."""
ELEMENT = f"STRUCT(place BIGINT, global_id VARCHAR, identity UBIGINT, mesh {MESH})"


def points_of(function: Function) -> dict[str, str]:
    """Give the columns of a table of points that a function gets, and their SQL types."""
    return {
        "point_id": "BIGINT",
        **dict.fromkeys(function.inputs.columns, "DOUBLE"),
        **attributes_of(function),
    }


def attributes_of(function: Function) -> Mapping[str, str]:
    """Give the attributes that a function of points may get."""
    inputs = function.inputs
    return inputs.attributes if isinstance(inputs, PointsInput | PointsAndOtherInput) else {}


def given_to(function: Function) -> dict[str, str]:
    """Give all columns that a function gets, of whatever tables, and their SQL types."""
    match function.inputs:
        case PointsInput():
            return points_of(function)
        case GridInput():
            return dict.fromkeys(function.inputs.columns, "DOUBLE")
        case ElementsInput():
            return IN_ORDER
        case PointsAndElementsInput():
            return {**points_of(function), **ELEMENTS}
        case PointsAndTableInput(kind=kind):
            return {**points_of(function), **TABLES[kind]}


def row_of(inputs: PointsAndOtherInput) -> str:
    """Give the SQL type of a row of the table beside points."""
    if isinstance(inputs, PointsAndTableInput):
        return struct_type(TABLES[inputs.kind])
    return ELEMENT


def given_by(function: Function) -> dict[str, str]:
    """Give the columns of a function's result, and their SQL types."""
    flags = {"flags": "VARCHAR[]"} if isinstance(function.inputs, ElementsInput) else {}
    return {**function.output.columns, **flags}
