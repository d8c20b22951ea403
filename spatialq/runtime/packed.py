"""Compiled code in files: compressed, with a digest by which damage is noticed."""

import zlib
from hashlib import sha256

DIGEST = 32  # bytes before the compressed code


def pack(code: bytes) -> bytes:
    """Compress code, and put the digest of the result before it."""
    packed = zlib.compress(code, 9)
    return sha256(packed).digest() + packed


def unpack(content: bytes) -> bytes:
    """Give the code of a file.

    Raises
    ------
    ValueError
        If the file is damaged.
    """
    packed = content[DIGEST:]
    if sha256(packed).digest() != content[:DIGEST]:
        message = "the file is damaged"
        raise ValueError(message)
    return zlib.decompress(packed)
