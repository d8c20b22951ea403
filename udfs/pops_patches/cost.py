"""How much work a call of `pops_patches` is: that of `pops_features`, and every patch back."""

from typing import Any

from spatialq.udf import Work

from ..pops_features.cost import work as features


def work(rows: int, options: Any) -> Work:
    """Count what the kernel moves."""
    return features(rows, options)
