"""Zip archives that may be damaged."""

import lzma
import struct
import zipfile
import zlib

DAMAGED = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError, RuntimeError, EOFError,
    OSError, ValueError, struct.error,
)  # fmt: skip
"""What zipfile raises about a zip that is damaged, encrypted, or of a kind that it cannot read."""
