"""How many random examples and combinations tests take."""

from collections.abc import Collection
from itertools import product
from typing import Any

import pytest
from hypothesis import settings


def examples(n: int) -> settings:
    """Take n random examples of a property: a third in `make test`, a tenth in `make check`."""
    return settings(max_examples=max(1, n * settings().max_examples // 100))


def combinations(*axes: Collection[Any]) -> list[Any]:
    """Combine values; only so many are not slow that each value is among them."""
    values = [list(axis) for axis in axes]
    longest = max(map(len, values))
    few = [tuple(axis[k % len(axis)] for axis in values) for k in range(longest)]
    return [
        pytest.param(*each, marks=[] if each in few else pytest.mark.slow)
        for each in product(*values)
    ]


def thinned(cases: Collection[Any]) -> list[Any]:
    """List cases, or tuples of values, which together take long; every fourth is not slow."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=pytest.mark.slow if k % 4 else [],
        )
        for k, case in enumerate(cases)
    ]
