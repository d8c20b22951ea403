"""Compression of vertices and indices as the glTF extension EXT_meshopt_compression defines it.

Vertices: the bytes of blocks of vertices, one byte position after the other, each as its difference
to that of the vertex before, in groups of 16 of 0, 2, 4 or 8 bits. Indices: the differences to one
of the last two, as numbers of variable length.
"""

from typing import Any

import numpy as np

from spatialq.runtime.arrays import Bytes, Uint32s
from spatialq.runtime.compile_cache import njit

VERTICES, INDICES = 0xA0, 0xD1
"""First bytes of the streams: kind and version."""
GROUP = 16
BLOCK_BYTES, BLOCK = 8192, 256
"""Bytes and vertices of a block at most."""
TAIL = 32
"""Bytes behind the last block at least, so that decoders may read ahead."""
INDEX_TAIL = 4
INDEX_BYTES = 5
"""Of an index at most."""


def encode_vertices(vertices: Bytes) -> bytes:
    """Compress vertices without loss.

    Parameters
    ----------
    vertices : uint8[n, stride]
        The bytes of each; at least one vertex, and a stride that is a multiple of 4 up to 256.
    """
    count, stride = vertices.shape
    block = min(BLOCK_BYTES // stride // GROUP * GROUP, BLOCK)
    blocks = -(-count // block)
    # a group takes as many bytes as it has at most, and a quarter of a byte in the header
    room = 1 + stride * (count + blocks * (GROUP + block // GROUP)) + max(TAIL, stride)
    out = np.empty(room, np.uint8)
    out[0] = VERTICES
    deltas = np.empty(BLOCK, np.uint8)
    stop = int(_encode_blocks(np.ascontiguousarray(vertices).ravel(), stride, block, deltas, out))
    end = stop + max(TAIL, stride)
    out[stop:end] = 0
    out[end - stride : end] = vertices[0]
    return out[:end].tobytes()


def encode_indices(indices: Uint32s) -> bytes:
    """Compress indices of vertices, a sequence in any order, without loss.

    Parameters
    ----------
    indices : uint32[n]
        Below 2**30, since a difference has 31 bits.
    """
    out = np.empty(1 + INDEX_BYTES * indices.size + INDEX_TAIL, np.uint8)
    out[0] = INDICES
    stop = int(_encode_sequence(indices, out))
    out[stop : stop + INDEX_TAIL] = 0
    return out[: stop + INDEX_TAIL].tobytes()


@njit(cache=True, nogil=True, error_model="numpy")
def _encode_blocks(vertices: Any, stride: int, block: int, deltas: Any, out: Any) -> Any:
    """Write the blocks behind the first byte; give the position behind them."""
    count = vertices.size // stride
    at = 1
    for first in range(0, count, block):
        n = min(block, count - first)
        groups = (n + 15) // 16
        for k in range(stride):
            before = np.int64(vertices[max(first - 1, 0) * stride + k])
            for i in range(n):
                value = np.int64(vertices[(first + i) * stride + k])
                delta = (value - before) & 255
                deltas[i] = delta << 1 if delta < 128 else ((delta << 1) & 255) ^ 255
                before = value
            for i in range(n, groups * 16):
                deltas[i] = 0
            header = at
            at += (groups + 3) // 4
            for i in range(header, at):
                out[i] = 0
            for g in range(groups):
                at = _encode_group(deltas, g, header, out, at)
    return at


@njit(cache=True, nogil=True, error_model="numpy")
def _encode_group(deltas: Any, g: int, header: int, out: Any, at: int) -> Any:
    """Write 16 bytes with the bits that take least room: values too large follow as bytes."""
    above_zero, above_two, above_four = 0, 0, 0
    for i in range(16 * g, 16 * g + 16):
        value = deltas[i]
        above_zero += value > 0
        above_two += value >= 3
        above_four += value >= 15
    if above_zero == 0:
        return at
    mode, bits = 3, 8
    if 4 + above_two < min(16, 8 + above_four):
        mode, bits = 1, 2
    elif 8 + above_four < 16:
        mode, bits = 2, 4
    out[header + g // 4] |= mode << (g % 4 * 2)
    if mode == 3:
        for i in range(16):
            out[at + i] = deltas[16 * g + i]
        return at + 16
    most = (1 << bits) - 1
    for i in range(0, 16, 8 // bits):
        packed = 0
        for j in range(i, i + 8 // bits):
            packed = packed << bits | min(int(deltas[16 * g + j]), most)
        out[at] = packed
        at += 1
    for i in range(16 * g, 16 * g + 16):
        if deltas[i] >= most:
            out[at] = deltas[i]
            at += 1
    return at


@njit(cache=True, nogil=True, error_model="numpy")
def _encode_sequence(indices: Any, out: Any) -> Any:
    """Write the indices behind the first byte; give the position behind them."""
    at = 1
    older, newer = np.int64(0), np.int64(0)
    which = 0  # of the two that `newer` is
    for i in range(indices.size):
        index = np.int64(indices[i])
        if abs(index - older) < abs(index - newer):
            older, newer, which = newer, older, 1 - which
        delta = index - newer
        rest = (delta << 1 if delta >= 0 else ~(delta << 1)) << 1 | which
        newer = index
        while rest > 127:
            out[at] = rest & 127 | 128
            rest >>= 7
            at += 1
        out[at] = rest
        at += 1
    return at
