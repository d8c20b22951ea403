"""`point_features` in parts: neighbourhoods that are whole within a halo, or found in several."""

from dataclasses import replace

import numpy as np

from spatialq.functions.neighbour_stages import CoreSearch, NearestSearch, far_lists, search_cores
from spatialq.functions.stages import Columns, Part, PointWork, TaskResult

from . import FEATURES, Options
from .cpu import describes, named, room_for

FUNCTION = "point_features"
POINT = ("point_id", "x", "y")


def point_features(work: PointWork[Options]) -> None:
    """Describe the neighbourhoods of all points."""
    options = work.options
    if not work.cloud.size:
        return
    if options.radius is not None:
        # squared distances are rounded, so that a point a little farther away may be within
        work.rows(describe_within, options, halo=1.001 * options.radius)
        return
    search = NearestSearch.of(work.cloud, options.k + 1)
    found, far = search_cores(work, describe_nearest, search, options)
    work.rows(with_far, found, far, options)


def describe_within(part: Part, options: Options) -> Columns:
    """Describe the neighbourhoods with a radius of the points of a core."""
    rows = part.points()
    found = part.call(FUNCTION, rows, replace(options, bounds=None))
    return part.own(rows | found)


def describe_nearest(part: Part, search: NearestSearch, _: None, options: Options) -> Columns:
    """Describe the neighbourhoods of the points of a core."""
    core = CoreSearch(part, search)
    tree, near = core.tree, core.near
    count, features = room_for(tree.size)
    describe = describes(options, near.xyz, near.points[tree], core.places(tree), count, features)
    far = core.search(tree, describe)
    return {**{name: core.own[name] for name in POINT}, **named(count, features), **far}


def with_far(part: Part, found: TaskResult, far: TaskResult | None, options: Options) -> Columns:
    """Give the features of a core, those of far points included."""
    arrays = dict(found.arrays)
    if lists := far_lists(found, far):
        xyz, queries, places, some = lists
        count, features = room_for(places.size)
        describes(options, xyz, queries, np.arange(places.size), count, features)(some)
        for name, values in named(count, features).items():
            arrays[name][places] = values
    return {name: arrays[name] for name in (*POINT, "neighbours", *FEATURES)}
