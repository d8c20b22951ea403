"""How a process that makes meshes answers: frames of bytes on its standard output."""

import os
import struct
import sys
from typing import BinaryIO

FRAME = struct.Struct("<cQ")
"""Kind and number of bytes that follow."""

MESH = struct.Struct("<qq16d")
"""Step id, bytes of the vertices, and a matrix by rows that leads from them to world metres. The
vertices, float64 x y z, and the faces, int32 indices of vertices, three a triangle, follow."""

ORIGIN = struct.Struct("<3d")
"""A place in world metres."""

IDENTITY = (1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0)


def send(out: BinaryIO, kind: bytes, *parts: bytes | memoryview) -> None:
    """Write one frame and flush it: what was sent survives a crash."""
    out.write(FRAME.pack(kind, sum(map(len, parts))))
    for part in parts:
        out.write(part)
    out.flush()


def private_stdout() -> BinaryIO:
    """Take standard output for the frames; what C++ code prints goes nowhere from now on."""
    sys.stdout.flush()
    out = os.fdopen(os.dup(1), "wb", buffering=1 << 20)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    return out
