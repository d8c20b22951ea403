"""Order statistics of many small sets at once: one vector lane per set, sorted by a network.

A sorting network compares and exchanges the same places whatever the values are. A vector
instruction therefore processes `WIDTH` sets in one step, without branches.
"""

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from spatialq.runtime.arrays import Ints
from spatialq.runtime.compile_cache import njit

WIDTH = 16
"""Sets that are sorted together: the number of float32 in a vector of 512 bits."""

MAX_NETWORK = 1024
"""Maximum size of a set for a network, whose number of comparisons grows as n log^2 n."""


@cache
def network(n: int) -> Ints:
    """List the exchanges that sort n values: Batcher's merge exchange (Knuth 5.2.2, M).

    Returns
    -------
    int64[exchanges, 2]
        The smaller value goes to the first place.
    """
    found = []
    top = 1 << max(n - 1, 1).bit_length() - 1
    p = top
    while p > 0:
        q, r, d = top, 0, p
        while True:
            found += [(i, i + d) for i in range(n - d) if i & p == r]
            if q == p:
                break
            d, q, r = q - p, q // 2, p
        p //= 2
    return np.array(found, np.int64).reshape(-1, 2)


@cache
def network_for(n: int, places: tuple[int, ...]) -> Ints:
    """List the exchanges of `network(n)` that some places of the sorted values depend on."""
    needed = set(places)
    kept = []
    for low, high in network(n)[::-1].tolist():
        if low in needed or high in needed:
            kept.append((low, high))
            needed |= {low, high}
    return np.array(kept[::-1], np.int64).reshape(-1, 2)


@intrinsic
def exchange(context: Any, sets: Any, low: Any, high: Any) -> Any:
    """Compare two rows of sets[n, WIDTH] and write the smaller values to the first row.

    LLVM does not vectorise this loop by itself, because it cannot know that the rows differ.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        data = context.make_array(kind)(context, builder, arguments[0]).data
        vector = ir.VectorType(context.get_data_type(kind.dtype), WIDTH).as_pointer()
        rows = []
        for row in arguments[1:]:
            start = builder.gep(data, [builder.mul(row, ir.Constant(row.type, WIDTH))])
            rows.append(builder.bitcast(start, vector))
        align = kind.dtype.bitwidth // 8
        a, b = (builder.load(row, align=align) for row in rows)
        smaller = builder.fcmp_ordered("<", a, b)
        builder.store(builder.select(smaller, a, b), rows[0], align=align)
        builder.store(builder.select(smaller, b, a), rows[1], align=align)
        return context.get_dummy_value()

    return types.void(sets, types.intp, types.intp), generate


@njit(cache=True, nogil=True, error_model="numpy")
def sort(sets, exchanges):
    """Apply the exchanges to each lane of sets[n, WIDTH]."""
    for k in range(exchanges.shape[0]):
        exchange(sets, exchanges[k, 0], exchanges[k, 1])
