"""The functions that can be run as jobs, each divided so that its rows are those of one call."""

from collections.abc import Mapping

from spatialq.cluster.method import Method
from spatialq.cluster.methods import classify_ground, detect_planes, owm_ground

METHODS: Mapping[str, Method] = {
    method.function: method
    for method in (owm_ground.METHOD, classify_ground.METHOD, *detect_planes.METHODS)
}
