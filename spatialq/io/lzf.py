"""LZF, the compression of binary PCD files."""

import numpy as np

from spatialq.runtime.arrays import Bytes
from spatialq.runtime.compile_cache import njit


@njit(cache=True, nogil=True)
def decode(packed: Bytes, plain: Bytes) -> bool:
    """Decode a block.

    It is a sequence of literal bytes, behind a byte n < 32 that means n + 1 of them, and of copies
    of what was decoded before: 3 bits of length, 13 bits of distance, and between the two a byte
    of more length if the 3 bits are all set.

    Parameters
    ----------
    packed : uint8[]
    plain : uint8[]
        Gets what was packed.

    Returns
    -------
    bool
        Whether the block is whole: all of it was used, and it filled `plain`.
    """
    i = done = np.int64(0)
    size = packed.size
    while i < size:
        control = np.int64(packed[i])
        i += 1
        if control < 32:
            length = control + np.int64(1)
            if i + length > size or done + length > plain.size:
                return False
            for k in range(length):
                plain[done + k] = packed[i + k]
            i += length
        else:
            length = (control >> 5) + 2
            if length == 9 and i < size:
                length += np.int64(packed[i])
                i += 1
            if i >= size:
                return False
            begin = done - ((control & 31) << 8) - np.int64(packed[i]) - 1
            i += 1
            if begin < 0 or done + length > plain.size:
                return False
            for k in range(length):  # one by one: what is copied may be what was just written
                plain[done + k] = plain[begin + k]
        done += length
    return bool(done == plain.size)
