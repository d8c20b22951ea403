"""Pictures of clashes with a digest of what they show: unchanged ones are not drawn again."""

import hashlib
import json
import struct
import zlib
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.export import camera, clash_view, rasteriser
from spatialq.export.camera import Camera
from spatialq.export.clash_view import see
from spatialq.runtime.arrays import Floats, Ints

KEYWORD = b"spatialq\0"
"""Of the text in a PNG."""
HEAD = 33
"""Bytes of a PNG before its second chunk: the signature and the header."""


@dataclass(frozen=True)
class Snapshot:
    """A `ClashView` with its picture as PNG."""

    camera: Camera
    others: Ints
    is_cut: bool
    veil: int | None
    png: bytes


def snapshot(point: Floats, pair: Meshes, others: Meshes, before: bytes | None = None) -> Snapshot:
    """See a clash as `see` does, and draw it, unless it was drawn before.

    Parameters
    ----------
    point, pair, others
        Of `see`.
    before : bytes, optional
        A picture that may be the same one. It is taken if it is what this function made of the same
        arguments, to the byte.
    """
    digest = _digest(point, pair, others)
    if before is not None and (known := _taken(before, digest)) is not None:
        return known
    seen = see(point, pair, others)
    about = {
        "camera": seen.camera.values(),
        "others": seen.others.tolist(),
        "is_cut": seen.is_cut,
        "veil": seen.veil,
    }
    png = _with_text(seen.picture.png(), json.dumps(about).encode(), digest)
    return Snapshot(seen.camera, seen.others, seen.is_cut, seen.veil, png)


def _digest(point: Floats, *meshes: Meshes) -> bytes:
    """Tell by which arguments and by which sources a picture is made."""
    digest = hashlib.sha256(_drawing())
    digest.update(np.asarray(point, np.float64).tobytes())
    for each in meshes:
        digest.update(struct.pack("<2q", len(each), len(each.vertices)))
        for values, kind in zip(
            (each.vertex_starts, each.face_starts, each.vertices, each.faces),
            (np.int64, np.int64, np.float64, np.int32),
            strict=True,
        ):
            digest.update(np.asarray(values, kind).tobytes())
    return digest.digest()


@cache
def _drawing() -> bytes:
    """Give the digest of the sources that draw, and of the libraries that they need."""
    sources = (__file__, *(str(each.__file__) for each in (camera, clash_view, rasteriser)))
    versions = [metadata.version(name) for name in ("numpy", "numba")]
    parts = [Path(each).read_bytes() for each in sources]
    text = "\n".join([*versions, zlib.ZLIB_RUNTIME_VERSION])
    return hashlib.sha256(text.encode() + b"".join(parts)).digest()


def _with_text(png: bytes, about: bytes, digest: bytes) -> bytes:
    """Put a text into a PNG, behind a digest of both and of what is drawn.

    A picture that was changed has another one, and so has one of something else, or one whose text
    other sources wrote.
    """
    seal = hashlib.sha256(digest + about + png).hexdigest().encode()
    text = b"tEXt" + KEYWORD + seal + b" " + about
    chunk = struct.pack(">I", len(text) - 4) + text + struct.pack(">I", zlib.crc32(text))
    return png[:HEAD] + chunk + png[HEAD:]


def _taken(png: bytes, digest: bytes) -> Snapshot | None:
    """Take a picture that was drawn before, if it is of the same."""
    end = HEAD + 12 + int.from_bytes(png[HEAD : HEAD + 4], "big")
    about = png[HEAD:end][8 + len(KEYWORD) + 65 : -4]
    if png != _with_text(png[:HEAD] + png[end:], about, digest):
        return None
    known: dict[str, Any] = json.loads(about)
    return Snapshot(
        Camera.of("snapshot", known["camera"]),
        np.array(known["others"], np.int64),
        known["is_cut"],
        known["veil"],
        png,
    )
