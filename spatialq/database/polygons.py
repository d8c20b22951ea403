"""`points_within` in SQL: points stream past the polygons, which are indexed once.

The query is written while it is bound. It collects the polygons and indexes them, and asks for the
polygons of each run of points that DuckDB reads, of whatever table or files.
"""

import hashlib
import json
from collections import OrderedDict
from typing import Any

import numpy as np
import pyarrow as pa

from spatialq.data.frame import Frame
from spatialq.errors import CrsError
from spatialq.functions.sql_text import literal
from spatialq.geometry.polygon_index import CALLER, PolygonIndex
from spatialq.io import crs as crs_text
from spatialq.io.formats import means_files
from spatialq.runtime import forks

KEPT = 16
"""Indexes that are kept, for queries that run at the same time and the next of equal polygons."""

_indexes: OrderedDict[int, PolygonIndex] = OrderedDict()
_lock = forks.lock()


def query(points: Any, polygons: Any, systems: Any) -> pa.Array:
    """Write the queries of calls.

    Raises
    ------
    ValueError
        If no points are named.
    """
    calls = zip(*(each.to_pylist() for each in (points, polygons, systems)), strict=True)
    return pa.array([_query(*call) for call in calls], pa.string())


def _query(points: str | None, polygons: str, crs: str | None) -> str:
    if not points:
        got = "NULL" if points is None else repr(points)
        message = f"{CALLER}: points must be the name of a table or a file, got {got}"
        raise ValueError(message)
    is_file = means_files(points)
    rows = f"read_points({literal(points)})" if is_file else f"query_table({literal(points)})"
    given = literal(crs)
    return f"""
        WITH "spatialq polygons" AS MATERIALIZED (
            SELECT row_number() OVER () - 1 AS place, polygon_id, geometry
            FROM query_table({literal(polygons)})
        ), "spatialq index" AS MATERIALIZED (
            SELECT spatialq_polygon_index(
                of_polygons.shapes, of_polygons.crs, frame, {given}
            ) AS number
            FROM (
                SELECT coalesce(list({{
                    place: place,
                    name: polygon_id::VARCHAR,
                    shape: ST_AsWKB(geometry::GEOMETRY)
                }}), []) AS shapes, any_value(ST_CRS(geometry)) AS crs
                FROM "spatialq polygons"
            ) AS of_polygons, spatialq_frame_of({literal(points)}, {str(crs is not None).lower()})
        )
        SELECT pairs.point_id, of_pairs.polygon_id
        FROM (
            SELECT p.point_id, unnest(
                spatialq_polygons_of_points(i.number, p.x::DOUBLE, p.y::DOUBLE)
            ) AS place
            FROM {rows} AS p, "spatialq index" AS i
        ) AS pairs JOIN "spatialq polygons" AS of_pairs USING (place)"""


def index(shapes: Any, systems: Any, frames: Any, given: Any) -> pa.Array:
    """Index the polygons of each call, and give the number of the index.

    Raises
    ------
    CrsError
        If the polygons are in another CRS than the points, or that of the points is not one.
    ValueError
        As `PolygonIndex.of`.
    """
    calls = zip(*(each.to_pylist() for each in (shapes, systems, frames, given)), strict=True)
    return pa.array([_index(*call) for call in calls], pa.int64())


def _index(shapes: list[dict[str, Any]], system: str | None, text: str, given: str | None) -> int:
    _require_one_crs(Frame(**json.loads(text)), system, given)
    shapes.sort(key=lambda each: each["place"])
    digest = hashlib.blake2b(digest_size=8)
    for each in shapes:
        shape = each["shape"] or b""
        digest.update(len(shape).to_bytes(8, "little") + shape)
    number = int.from_bytes(digest.digest(), "little", signed=True)
    with _lock:
        found = _indexes.get(number)
    if found is None:
        found = PolygonIndex.of(
            [each["shape"] for each in shapes], [each["name"] for each in shapes]
        )
    with _lock:
        _indexes[number] = found
        _indexes.move_to_end(number)
        while len(_indexes) > KEPT:
            _indexes.popitem(last=False)
    return number


def _require_one_crs(frame: Frame, system: str | None, given: str | None) -> None:
    """Reject points and polygons of different CRS; an unknown one goes with any."""
    if given is None and frame.conflict:
        message = f"{CALLER}: {frame.conflict}"
        raise CrsError(message)
    known = frame.crs if given is None else crs_text.from_argument(CALLER, given)
    if known is None or system is None:
        return
    of_points, of_polygons = (
        crs_text.horizontal(crs_text.from_text(each)) for each in (known, system)
    )
    if not crs_text.same(of_points, of_polygons):
        message = (
            f"{CALLER}: points {frame.subject} are in {crs_text.name(of_points)} but polygons are "
            f"in {crs_text.name(of_polygons)}; reproject one of them first"
        )
        raise CrsError(message)


def places(numbers: Any, x: Any, y: Any) -> pa.Array:
    """Give the polygons that each point is in.

    Raises
    ------
    ValueError
        If a coordinate is NULL, NaN or infinite.
    """
    if not len(numbers):
        return pa.array([], pa.list_(pa.int32()))
    number = numbers[0].as_py()
    with _lock:
        found = _indexes.get(number)
    if found is None:
        message = f"{CALLER}: at most {KEPT} calls with different polygons may run at the same time"
        raise ValueError(message)
    columns = [np.ascontiguousarray(each.to_numpy()) for each in (x, y)]
    wrong = ~(np.isfinite(columns[0]) & np.isfinite(columns[1]))
    if wrong.any():
        at = int(np.argmax(wrong))
        got = ", ".join(
            "NULL" if each is None else str(each) for each in (x[at].as_py(), y[at].as_py())
        )
        message = f"{CALLER}: x and y of points must be finite, got {got}"
        raise ValueError(message)
    rows, within = found.find_some(columns[0], columns[1], 0, len(wrong))
    starts = np.searchsorted(rows, np.arange(len(wrong) + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(starts), pa.array(within))
