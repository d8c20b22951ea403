"""The grids and options of `pops_features`, of which `pops_patches` gives the patches."""

from ..pops_features.cases import CASES

__all__ = ["CASES"]
