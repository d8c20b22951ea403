"""Integer places of points in the cube, and their Morton codes."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from spatialq.runtime.arrays import Floats
from spatialq.runtime.compile_cache import njit

from .tree import BITS

KEY_LEVELS = 21
"""Levels below the root that fit into a key of 63 bits."""
PLACES = 1 << BITS


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def place(value: float, low: float, size: float) -> Any:
    """Give the place of a coordinate in the cube: an integer of `BITS` bits."""
    if size == 0.0:
        return 0
    return min(np.int64((value - low) / size * float(PLACES)), np.int64(PLACES - 1))


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def digits(where: int, level: int, depth: int) -> Any:
    """Give the `depth` bits of a place after its first `level` bits; zeros past its last bit."""
    shift = BITS - level - depth
    taken = where >> shift if shift >= 0 else where << -shift
    return taken & ((np.int64(1) << depth) - 1)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def spread(value: int) -> Any:
    """Spread 21 bits: two zeros before each bit."""
    value = (value | value << 32) & 0x001F00000000FFFF
    value = (value | value << 16) & 0x001F0000FF0000FF
    value = (value | value << 8) & 0x100F00F00F00F00F
    value = (value | value << 4) & 0x10C30C30C30C30C3
    return (value | value << 2) & 0x1249249249249249


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def gather(code: int) -> Any:
    """Collect every third bit, from the lowest on; the inverse of `spread`."""
    value = code & 0x1249249249249249
    value = (value | value >> 2) & 0x10C30C30C30C30C3
    value = (value | value >> 4) & 0x100F00F00F00F00F
    value = (value | value >> 8) & 0x001F0000FF0000FF
    value = (value | value >> 16) & 0x001F00000000FFFF
    return (value | value >> 32) & 0x1FFFFF


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def morton(x: int, y: int, z: int) -> Any:
    """Interleave three numbers of 21 bits; x gets the highest bit of each three."""
    return spread(x) << 2 | spread(y) << 1 | spread(z)


@njit(cache=True, nogil=True, error_model="numpy")
def keys(
    x: Floats,
    y: Floats,
    z: Floats,
    x0: float,
    y0: float,
    z0: float,
    size: float,
    level: int,
    key: Any,
    start: int,
    stop: int,
) -> None:
    """Write the Morton codes of `KEY_LEVELS` levels below `level`."""
    for i in range(start, stop):
        key[i] = morton(
            digits(place(x[i], x0, size), level, KEY_LEVELS),
            digits(place(y[i], y0, size), level, KEY_LEVELS),
            digits(place(z[i], z0, size), level, KEY_LEVELS),
        )


@njit(cache=True, nogil=True, error_model="numpy")
def codes_of_keys(key: Any, shift: int, bits: int, start: int, stop: int, code: Any) -> None:
    """Extract `bits` bits of keys, above the `shift` lowest bits."""
    mask = (np.int64(1) << bits) - 1
    for i in range(start, stop):
        code[i - start] = (key[i] >> shift) & mask


@njit(cache=True, nogil=True, error_model="numpy")
def codes_of_places(
    x: Floats,
    y: Floats,
    z: Floats,
    x0: float,
    y0: float,
    z0: float,
    size: float,
    order: Any,
    level: int,
    depth: int,
    start: int,
    stop: int,
    code: Any,
) -> None:
    """Write the Morton codes of `depth` levels below `level`, for any level."""
    for i in range(start, stop):
        point = order[i]
        code[i - start] = morton(
            digits(place(x[point], x0, size), level, depth),
            digits(place(y[point], y0, size), level, depth),
            digits(place(z[point], z0, size), level, depth),
        )


@intrinsic
def bits_set(_: Any, word: Any) -> Any:
    """Count the set bits of a 64-bit word."""

    def body(__: Any, builder: Any, ___: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), body


@intrinsic
def lowest_bit(_: Any, word: Any) -> Any:
    """Give the index of the lowest set bit of a 64-bit word that is not 0."""

    def body(__: Any, builder: Any, ___: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), body
