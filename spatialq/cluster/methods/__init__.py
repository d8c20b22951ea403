"""The functions that can be run as jobs, each divided so that its rows are those of one call."""

from collections.abc import Mapping
from functools import cache

from spatialq.cluster.method import Method
from spatialq.cluster.methods import (
    build_lod,
    classify_ground,
    detect_planes,
    elements,
    intersects_with,
    point_choice,
    polygons,
    pops_features,
    terrain_derivatives,
)
from spatialq.cluster.staged import method_of
from spatialq.functions.catalogue import divisible

OWN = (
    build_lod.METHOD,
    classify_ground.METHOD,
    *detect_planes.METHODS,
    method_of("ground_surface", devices=("auto", "cpu")),
    *point_choice.METHODS,
    method_of("point_features", devices=("auto", "cpu")),
    *elements.METHODS,
    *intersects_with.METHODS,
    polygons.METHOD,
    *pops_features.METHODS,
    terrain_derivatives.METHOD,
)
"""Methods of functions that have options, or forms of parts, of their own."""


@cache
def methods() -> Mapping[str, Method]:
    """All methods, by the names of their functions: `OWN`, and those of all other programs."""
    found = {method.function: method for method in OWN}
    for name, function in divisible().items():
        if name not in found and function.program() is not None:
            found[name] = method_of(name)
    return dict(sorted(found.items()))
