"""The functions that can be run as jobs, each divided so that its rows are those of one call."""

from collections.abc import Mapping

from spatialq.cluster.method import Method
from spatialq.cluster.methods import (
    detect_planes,
    owm_ground,
    pops_features,
)

METHODS: Mapping[str, Method] = {
    method.function: method
    for method in (
        *detect_planes.METHODS,
        owm_ground.METHOD,
        pops_features.METHOD,
    )
}
