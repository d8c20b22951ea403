"""Compiled code in files: compressed, with a digest by which damage is noticed."""

import zlib
from hashlib import sha256
from pathlib import Path

DIGEST = 32  # bytes before the compressed code


def pack(code: bytes) -> bytes:
    """Compress code, and put the digest of the result before it."""
    packed = zlib.compress(code, 9)
    return sha256(packed).digest() + packed


def unpack(path: Path) -> bytes | None:
    """Give the code of a file; None if it is missing or damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    packed = content[DIGEST:]
    if sha256(packed).digest() != content[:DIGEST]:
        return None
    return zlib.decompress(packed)
