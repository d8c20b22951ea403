"""EXT_structural_metadata: what the values of points and of elements are called and mean."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from spatialq.runtime.arrays import Array

from .gltf import Glb

METADATA = "EXT_structural_metadata"
NO_DATA = float(np.finfo(np.float32).min)
"""The value of a property of FLOAT32 where there is none."""


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """Give each name an identifier as the extension wants it, no two alike."""
    given: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"\W", "_", name, flags=re.ASCII)
        plain = plain if re.match(r"[A-Za-z_]", plain) else f"_{plain}"
        taken = {each.upper() for each in given.values()}
        free = plain
        number = 2
        while free.upper() in taken:
            free, number = f"{plain}_{number}", number + 1
        given[name] = free
    return given


def add_point_values(glb: Glb, values: Mapping[str, Array]) -> dict[str, int]:
    """Add columns of points: attributes `_NAME`, and a property attribute that describes them.

    Parameters
    ----------
    glb : Glb
    values : mapping of str to array[n]
        Of 8 or 16 bits, or float32 with `NO_DATA` where there is no value.

    Returns
    -------
    dict of str to int
        Attributes of the primitive.
    """
    names = identifiers(values)
    attributes = {f"_{names[each].upper()}": glb.attribute(values[each]) for each in values}
    properties = {}
    for name, column in values.items():
        kind: dict[str, Any] = {"type": "SCALAR", "componentType": column.dtype.name.upper()}
        if column.dtype == np.float32:
            kind["noData"] = NO_DATA
        properties[names[name]] = kind | ({"name": name} if names[name] != name else {})
    described = {names[each]: {"attribute": f"_{names[each].upper()}"} for each in values}
    glb.extension(
        METADATA,
        {
            "schema": {"id": "points", "classes": {"point": {"properties": properties}}},
            "propertyAttributes": [{"class": "point", "properties": described}],
        },
    )
    return attributes


def add_table(glb: Glb, name: str, columns: Mapping[str, Sequence[str]]) -> None:
    """Add a property table of text; '' is NULL.

    Parameters
    ----------
    glb : Glb
    name : str
        Of the class of its rows, such as 'element'.
    columns : mapping of str to sequence of str
        All of one length, which is at least 1.
    """
    names = identifiers(columns)
    kinds, places = {}, {}
    for column, texts in columns.items():
        encoded = [text.encode() for text in texts]
        offsets = np.cumsum([0, *map(len, encoded)]).astype("<u4")
        kind: dict[str, Any] = {"type": "STRING", "noData": ""}
        kinds[names[column]] = kind | ({"name": column} if names[column] != column else {})
        places[names[column]] = {
            # a buffer view has at least one byte
            "values": glb.table_column(b"".join(encoded) or b"\0"),
            "stringOffsets": glb.table_column(offsets.tobytes()),
            "stringOffsetType": "UINT32",
        }
    count = len(next(iter(columns.values())))
    glb.extension(
        METADATA,
        {
            "schema": {"id": f"{name}s", "classes": {name: {"properties": kinds}}},
            "propertyTables": [{"class": name, "count": count, "properties": places}],
        },
    )
