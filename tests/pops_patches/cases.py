"""The grids and options of `pops_features`, of which `pops_patches` gives the patches."""

from ..pops_features.cases import CASES, arguments

__all__ = ["CASES", "PARITY", "arguments"]

PARITY = [
    "terrain",
    "terrain, each method alone",
    "terrain, methods the other way round",
    "holes, float64",
    "the paper's scales, with holes",
    "overlapping examples",
    "gaps between patches",
    "scales in no order",
    "seventeen scales",
    "cells that are no squares",
    "a narrow grid",
]
"""Patches come of the same kernels as features, and only go to other places."""
