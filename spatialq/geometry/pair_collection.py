"""Collects the pairs that several threads find, in ascending order."""

from collections.abc import Callable

import numpy as np

from spatialq.runtime.arrays import Ints
from spatialq.runtime.threads import n_threads, spans, workers

Rows = Ints
Pairs = tuple[Rows, Rows]
Search = Callable[[int, int, Rows, Rows], int]
"""Finds the pairs of the queries start .. stop: writes those that fit, returns their number."""

QUERIES_PER_SPAN = 4096
PAIRS_PER_QUERY = 4  # room at first; where there are more, the span is searched again


def gather(search: Search, queries: int) -> Pairs:
    """Search for all queries in several threads; pairs in ascending order.

    Parameters
    ----------
    search : Search
        Finds every pair once.
    queries : int

    Returns
    -------
    i, j : int64[n]
        Sorted by (i, j).
    """

    def part(span: tuple[int, int]) -> Pairs:
        room = PAIRS_PER_QUERY * (span[1] - span[0])
        while True:
            i, j = np.empty(room, np.int64), np.empty(room, np.int64)
            n = search(*span, i, j)
            if n <= room:
                return i[:n], j[:n]
            room = n

    parts = spans(queries, max(1, -(-queries // QUERIES_PER_SPAN)))
    with workers(min(len(parts), n_threads())) as pool:
        found = pool.map(part, parts)
    return in_order(*(np.concatenate(column) for column in zip(*found, strict=True)))


def in_order(i: Rows, j: Rows) -> Pairs:
    """Sort pairs of rows below 2^31 by (i, j)."""
    keys = i << 32 | j
    keys.sort()
    return keys >> 32, keys & 0xFFFFFFFF
