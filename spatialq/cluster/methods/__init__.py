"""The functions that can be run as jobs, each divided so that its rows are those of one call."""

from collections.abc import Mapping

from spatialq.cluster.method import Method
from spatialq.cluster.methods import (
    build_lod,
    classify_ground,
    detect_planes,
    intersects_with,
    pops_features,
)
from spatialq.cluster.staged import method_of
from spatialq.udfs.owm_ground import stages as owm_ground

METHODS: Mapping[str, Method] = {
    method.function: method
    for method in (
        build_lod.METHOD,
        classify_ground.METHOD,
        *detect_planes.METHODS,
        intersects_with.METHOD,
        method_of("owm_ground", owm_ground.run),
        *pops_features.METHODS,
    )
}
