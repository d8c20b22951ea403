"""`deviation` in parts: each point by itself, and the elements near its core."""

from dataclasses import replace

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.functions.stages import Columns, Part, PointAndElementWork, TaskResult
from spatialq.geometry import boxes

from . import NO_FACE, Options


def deviation(work: PointAndElementWork[Options]) -> None:
    """Find the nearest faces of the points of each core."""
    work.rows(find_faces, work.options, work.elements)


def find_faces(part: Part, options: Options, elements: TaskResult) -> Columns:
    """Give the rows of the points of a core, in their order."""
    points = part.own(part.points())
    xyz = [points[axis] for axis in "xyz"]
    everything = Meshes.named(elements.arrays)
    rows = np.empty(0, np.int64)
    if len(xyz[0]):
        reach = options.max_distance * (1 + 1e-9)
        limits = boxes.of(everything)
        near = np.ones(len(limits), np.bool_)
        for axis, values in enumerate(xyz):
            low, high = values.min() * options.metres, values.max() * options.metres
            near &= (limits[:, axis] <= high + reach) & (limits[:, axis + 3] >= low - reach)
        rows = np.flatnonzero(near)
    columns = dict(zip("xyz", xyz, strict=True))
    given = {**columns, "point_id": points["point_id"], "elements": everything.take(rows)}
    found = part.call("deviation", given, replace(options, bounds=None))
    element = found["element"]
    is_near = element != NO_FACE
    named = np.full(len(element), NO_FACE, np.int64)
    named[is_near] = rows[element[is_near]]
    return {**columns, **found, "element": named}
