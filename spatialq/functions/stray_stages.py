"""The stray points of a cloud, found in parts: those of `spatialq.data.strays`, to the point."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from spatialq.data.strays import Box, few, grow
from spatialq.functions.stages import Cloud, Columns, OfAll, Part, PointWork, TaskResult
from spatialq.runtime.arrays import Array, Floats

POINT = {"point_id": np.int64, "x": np.float64, "y": np.float64, "z": np.float64}


def find_strays(work: PointWork[Any]) -> tuple[OfAll | None, Cloud]:
    """Find the stray points of all cores, if there may be some.

    Returns
    -------
    strays : OfAll or None
        `point_id`, x, y, z of the stray points, in the order of their ids; None: there are none.
    cloud : Cloud
        All others.
    """
    cloud = work.cloud
    if not cloud.may_have_strays:
        return None, cloud
    most = few(cloud.size)
    core = work.once("core", find_core, work.each("outer", find_outer, most), most)
    found = work.once("strays", choose_strays, work.each("outside", find_outside, core), core)
    if not found.facts["strays"]:
        return None, cloud
    size, low, high = cloud.size - found.facts["strays"], found.facts["low"], found.facts["high"]
    return found, replace(cloud, size=size, low=tuple(low), high=tuple(high))


def without(points: Columns, strays: TaskResult | None) -> tuple[Columns, Columns]:
    """Give those of some points that are not stray, and those that are."""
    if strays is None:
        return points, {name: values[:0] for name, values in points.items()}
    is_stray = np.isin(points["point_id"], strays.arrays["point_id"])
    return (
        {name: values[~is_stray] for name, values in points.items()},
        {name: values[is_stray] for name, values in points.items()},
    )


def find_outer(part: Part, most: int) -> Columns:
    """Find the least and the greatest coordinates of a core, one more than may be stray."""
    xyz = _xyz(part.own(part.points()))
    return {"least": _least(np.concatenate([xyz, -xyz]), most)}


def find_core(outer: Iterator[TaskResult], most: int) -> TaskResult:
    """Cut the values off that may be of stray points: the core of the cloud."""
    least = np.empty((6, 0))
    for each in outer:
        least = _least(np.concatenate([least, each.arrays["least"]], axis=1), most)
    ends = least.max(axis=1)
    return TaskResult({}, {"low": ends[:3].tolist(), "high": (-ends[3:]).tolist()})


def find_outside(part: Part, core: TaskResult) -> Columns:
    """Find the points of a core of the division that the core of the cloud does not reach.

    `low` and `high` are the ends of the others.
    """
    points = part.own(part.points())
    xyz = _xyz(points)
    is_near = _box(core).reach.has(xyz.T)
    ends = {
        "low": xyz.min(axis=1, initial=np.inf, where=is_near),
        "high": xyz.max(axis=1, initial=-np.inf, where=is_near),
    }
    return {**{name: points[name][~is_near] for name in POINT}, **ends}


def choose_strays(outside: Iterator[TaskResult], core: TaskResult) -> TaskResult:
    """Let the points outside join the core, and give those that never do.

    Those that it reaches are within `low` and `high`. What grows from all these is what grows from
    the core: a larger box reaches farther.
    """
    box, parts = _box(core), []
    for each in outside:
        arrays = each.arrays
        box = box.around(Box(arrays["low"], arrays["high"], 1.0))
        parts.append({name: arrays[name] for name in POINT})
    points = {name: np.concatenate([each[name] for each in parts]) for name in POINT}
    box, strays = grow(box, _xyz(points).T)
    strays = strays[np.argsort(points["point_id"][strays])]
    facts = {"strays": strays.size, "low": box.low.tolist(), "high": box.high.tolist()}
    return TaskResult({name: points[name][strays] for name in POINT}, facts)


def _box(core: TaskResult) -> Box:
    return Box(np.array(core.facts["low"]), np.array(core.facts["high"]), 1.0)


def _xyz(points: Columns) -> Floats:
    return np.stack([points[axis] for axis in "xyz"])


def _least(values: Array, most: int) -> Array:
    """Give the least values of each row, one more than `most`."""
    if values.shape[1] <= most:
        return values
    return np.partition(values, most, axis=1)[:, : most + 1]
