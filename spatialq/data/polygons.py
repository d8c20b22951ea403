"""Many polygons, stored one after the other in the same arrays; and how one is written as WKB."""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from spatialq.runtime.arrays import Array, Bytes, Floats, Ints

POLYGON, MULTIPOLYGON, Z = 3, 6, 1000
"""Codes of geometry types; Z is added where corners have one."""


@dataclass(frozen=True)
class Polygons:
    """k polygons, in the memory of the host; iterating gives the WKB of each, None without one.

    Parameters
    ----------
    wkb : uint8[n]
        POLYGON and MULTIPOLYGON as WKB (ISO, little-endian), as DuckDB gives them.
    starts : int64[k + 1]
        First byte of each; the last entry is the end. A polygon without a byte is NULL.
    names : str[k] or object[k], optional
        What errors call them; by default their numbers from 0.
    """

    wkb: Bytes
    starts: Ints
    names: Array | None = None

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __iter__(self) -> Iterator[bytes | None]:
        data, starts = self.wkb.data, self.starts.tolist()
        for first, stop in pairwise(starts):
            yield bytes(data[first:stop]) or None

    @classmethod
    def of(cls, shapes: Sequence[bytes | None], names: Sequence[Any] | None = None) -> "Polygons":
        """Put single polygons one after the other, given as WKB.

        Examples
        --------
        >>> two = Polygons.of(shapely.to_wkb(shapes, flavor="iso"))  # doctest: +SKIP
        """
        starts = np.cumsum([0, *(len(each or b"") for each in shapes)], dtype=np.int64)
        wkb = np.frombuffer(b"".join(each or b"" for each in shapes), np.uint8)
        return cls(wkb, starts, None if names is None else np.array(names))

    @classmethod
    def named(cls, arrays: Mapping[str, Any]) -> "Polygons":
        """Take the arrays by their names; there may be others."""
        return cls(arrays["wkb"], arrays["starts"], arrays["names"])

    def take(self, rows: Any) -> "Polygons":
        """Give some of the polygons."""
        names = np.arange(len(self)) if self.names is None else self.names
        parts = [self.wkb[self.starts[row] : self.starts[row + 1]] for row in rows]
        return Polygons(
            np.concatenate([np.empty(0, np.uint8), *parts]),
            np.cumsum([0, *map(len, parts)], dtype=np.int64),
            names[rows],
        )


def wkb_of(parts: Iterable[Sequence[Floats]]) -> bytes:
    """Write a POLYGON, or a MULTIPOLYGON of several parts, as WKB (ISO 13249-3, little-endian).

    Parameters
    ----------
    parts : lists of rings
        At least one. The outer ring first; float64[corners, 2 or 3], not closed.
    """
    several = list(parts)
    dimensions = Z if several[0][0].shape[1] == 3 else 0
    written = [_polygon(POLYGON + dimensions, rings) for rings in several]
    if len(written) == 1:
        return written[0]
    return struct.pack("<BII", 1, MULTIPOLYGON + dimensions, len(written)) + b"".join(written)


def _polygon(kind: int, rings: Sequence[Floats]) -> bytes:
    written = [struct.pack("<BII", 1, kind, len(rings))]
    for ring in rings:
        closed = np.vstack([ring, ring[:1]])
        written += struct.pack("<I", len(closed)), closed.astype("<f8").tobytes()
    return b"".join(written)
