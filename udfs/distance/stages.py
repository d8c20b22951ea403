"""`point_elements` in parts: each point by itself, and the elements near it."""

from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.functions.stages import Columns, Part, PointAndElementWork, TaskResult
from spatialq.geometry import boxes

from . import Options, PointOptions
from .candidates import box_distance

POINTS = 1 << 16
"""Points that are compared at once; their meshes take about a kilobyte each."""


def point_elements(work: PointAndElementWork[PointOptions]) -> None:
    """Find the elements near the points of each core."""
    limit = work.options.max_distance
    assert limit is not None  # see `PointOptions.check`
    work.rows(find_near, limit, work.options.metres, work.elements)


def find_near(part: Part, limit: float, metres: float, elements: TaskResult) -> Columns:
    """Give the elements near the points of a core, in the order of the points."""
    meshes = Meshes.named(elements.arrays)
    limits = boxes.of(meshes)
    found = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
    for batch in part.batches():
        own = part.own(batch)
        xyz = np.column_stack([own[axis] for axis in "xyz"]) * metres
        for start in range(0, len(xyz), POINTS):
            ids = own["point_id"][start : start + POINTS]
            found.append(_near(part, xyz[start : start + POINTS], ids, meshes, limits, limit))
    point_id, element, distance = map(np.concatenate, zip(*found, strict=True))
    return {"point_id": point_id, "element": element, "distance": distance}


def _near(
    part: Part, xyz: Any, ids: Any, meshes: Meshes, limits: boxes.Boxes, limit: float
) -> tuple[Any, Any, Any]:
    """Compare some points with the elements that may be near one of them."""
    around = np.concatenate([xyz.min(axis=0), xyz.max(axis=0)])
    apart = box_distance(np.vstack([limits, around]), limit)
    there = _touching(limits, around, apart)
    if there.size:  # of most clouds, most points are beside the model
        both = np.concatenate([limits[there, :3].min(axis=0), limits[there, 3:].max(axis=0)])
        here = _touching(np.hstack([xyz, xyz]), both, apart)
        if here.size:
            given = {"a": _meshes_of(xyz[here]), "b": meshes.take(there)}
            pairs = part.call("distance", given, Options(limit))
            return ids[here[pairs["a"]]], there[pairs["b"]], pairs["distance"]
    return ids[:0], there[:0], np.empty(0)


def _touching(limits: Any, box: Any, apart: float) -> Any:
    """Rows of the boxes that are at most so far from a box along each axis."""
    near = (limits[:, :3] <= box[3:] + apart) & (limits[:, 3:] >= box[:3] - apart)
    return np.flatnonzero(near.all(axis=1))


def _meshes_of(xyz: Any) -> Meshes:
    """Make a mesh of one triangle without area of each point, as the macro does."""
    starts = np.arange(len(xyz) + 1)
    return Meshes(xyz, np.zeros((len(xyz), 3), np.int32), starts, starts)
