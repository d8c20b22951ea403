"""Files of compiled code: compressed, with a digest that reveals damage."""

import zlib
from hashlib import sha256
from pathlib import Path

DIGEST = 32  # bytes before the compressed code
XZ = b"\xfd7zXZ\x00"


def pack(code: bytes) -> bytes:
    """Compress code fast, for the cache of this machine; a digest stands before it."""
    return _with_digest(zlib.compress(code, level=9))


def pack_small(code: bytes) -> bytes:
    """Compress code as small as it gets, for a wheel: zlib needs up to half as much again."""
    import lzma

    return _with_digest(lzma.compress(code))


def unpack(path: Path) -> bytes | None:
    """Give the code of a file; None if it is missing or damaged, or this Python has no lzma."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    packed = content[DIGEST:]
    if sha256(packed).digest() != content[:DIGEST]:
        return None
    if not packed.startswith(XZ):
        return zlib.decompress(packed)
    try:
        import lzma
    except ImportError:  # a Python that was built without it
        return None
    return lzma.decompress(packed)


def _with_digest(packed: bytes) -> bytes:
    return sha256(packed).digest() + packed
