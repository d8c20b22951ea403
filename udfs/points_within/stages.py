"""`points_within` in parts: the points of each core, and the polygons that may be around them."""

from dataclasses import replace

import numpy as np

from spatialq.data.polygons import Polygons
from spatialq.functions.stages import Columns, Part, PointAndPolygonWork, TaskResult

from . import Options

COLUMNS = ("x", "y", "point_id")


def points_within(work: PointAndPolygonWork[Options]) -> None:
    """Find the polygons that the points of each core are in."""
    work.rows(find, work.options, work.polygons)


def find(part: Part, options: Options, polygons: TaskResult) -> Columns:
    """Give the pairs of a core, in the order of its points; one that none touches is not read."""
    xmin, ymin, xmax, ymax = polygons.arrays["boxes"].T
    west, south, east, north = part.box
    near = np.flatnonzero((xmin <= east) & (xmax >= west) & (ymin <= north) & (ymax >= south))
    given = Polygons.named(polygons.arrays).take(near)
    found = [{name: np.empty(0) for name in ("x", "y")} | dict.fromkeys(
        ("point_id", "polygon_id"), np.empty(0, np.int64)
    )]  # fmt: skip
    for batch in part.batches() if near.size else ():
        own = part.own({name: batch[name] for name in COLUMNS})
        arguments = {"x": own["x"], "y": own["y"], "point_id": None, "polygons": given}
        pairs = part.call("points_within", arguments, replace(options, bounds=None))
        rows = {name: own[name][pairs["point_id"]] for name in COLUMNS}
        found.append(rows | {"polygon_id": near[pairs["polygon_id"]]})
    return {name: np.concatenate([each[name] for each in found]) for name in found[0]}
