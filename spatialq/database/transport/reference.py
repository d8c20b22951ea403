"""A second cloud beside points: to a kernel, and the ids of its points into the result."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from spatialq.data.cloud import Cloud
from spatialq.data.frame import Frame
from spatialq.database import frames
from spatialq.database.pins import Lookup
from spatialq.database.transport import points
from spatialq.database.transport.arrow import Columns
from spatialq.database.transport.columns import REFERENCE
from spatialq.database.transport.queries import Source, table_of
from spatialq.database.transport.request import Request
from spatialq.functions.catalogue import Function

NAME = "reference_id"
"""The column of a result that names a point of the reference."""


def beside_points(function: Function, table: str) -> Source:
    """Say how a function gets the points of another table or file.

    Raises
    ------
    ValueError
        If the text names neither.
    """
    columns = ("point_id", *"xyz")
    source = table_of(function, table, columns, Request({}), argument=function.inputs.other)
    name = '"spatialq system"'
    frame = frames.lookup(table, is_given=False)
    system = f"{name} AS MATERIALIZED (WITH {frame.parts} SELECT frame AS system FROM {frame.name})"
    named = dict(zip(REFERENCE, source.columns.values(), strict=True))
    return replace(source, columns=named, part=1, frame=None, system=Lookup(name, system))


def read(function: Function, request: Request, columns: Columns) -> Cloud:
    """Make the cloud that a kernel gets of the columns of a table, by ascending ids.

    Raises
    ------
    ValueError
        If a value is NULL.
    CrsError
        If it is in another CRS than the points, or heights are in another unit; a CRS that is not
        known goes with any.
    """
    frame = Frame(**request.source["other"])
    other = f"those of the reference {frame.subject} are"
    request.require_one_crs(function, other, frame.crs, with_heights=True)
    given = {name.removeprefix("reference_"): columns[name] for name in REFERENCE}
    given["point_id"] = given.pop("id")
    arrays = points.arrays_of(f"{function.name}: reference", given)
    ids = arrays["point_id"]
    if ids is None or (ids[1:] >= ids[:-1]).all():
        return Cloud(**arrays)
    order = np.argsort(ids, kind="stable")  # DuckDB reads a table by several threads
    return Cloud(**{name: values[order] for name, values in arrays.items()})


def named(result: Mapping[str, Any], reference: Cloud) -> dict[str, Any]:
    """Give a result whose `reference_id`, a row, is the id of the point."""
    rows = pa.array(result[NAME], mask=result[NAME] < 0)
    ids = reference.point_id
    return {**result, NAME: rows if ids is None else pa.array(ids).take(rows)}
