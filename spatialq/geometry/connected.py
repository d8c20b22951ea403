"""Which of several things are connected by pairs of them."""

import numpy as np

from spatialq.runtime.arrays import Ints


def connected(n: int, one: Ints, other: Ints) -> Ints:
    """Tell which of n things are connected: give the lowest one that each leads to.

    Parameters
    ----------
    n : int
    one, other : int64[m]
        The pairs.

    Returns
    -------
    int64[n]
    """
    # Each thing points to a lower one of its part, in the end to the lowest.
    root = np.arange(n)
    while True:
        here, there = root[one], root[other]
        if (here == there).all():
            return root
        np.minimum.at(root, np.maximum(here, there), np.minimum(here, there))
        while True:
            further = root[root]
            if (further == root).all():
                break
            root = further
