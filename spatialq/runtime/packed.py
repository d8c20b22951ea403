"""Compiled code in files: compressed, with a digest by which damage is noticed."""

import zlib
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path

SMALL = partial(zlib.compress, level=9)
DIGEST = 32  # bytes before the compressed code


def pack(code: bytes, compress: Callable[[bytes], bytes] = SMALL) -> bytes:
    """Compress code, and put the digest of the result before it."""
    packed = compress(code)
    return sha256(packed).digest() + packed


def unpack(path: Path, decompress: Callable[[bytes], bytes] = zlib.decompress) -> bytes | None:
    """Give the code of a file; None if it is missing or damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    packed = content[DIGEST:]
    if sha256(packed).digest() != content[:DIGEST]:
        return None
    return decompress(packed)
