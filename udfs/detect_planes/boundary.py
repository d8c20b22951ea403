"""Boundary polygons of planes, as WKB."""

import struct
from typing import Any

import numpy as np

from .assign import PLACES, SIDES

POLYGON_Z = 1003
"""Code of the geometry type, ISO 13249-3."""

MASK = (1 << PLACES) - 1


def sides() -> Any:
    """Directions in a plane for which the farthest point is kept: float64[SIDES, 2]."""
    # pairs are exactly opposite, and some are exactly along the axes
    angles = np.arange(SIDES) * (2 * np.pi / SIDES)
    return np.round(np.column_stack([np.cos(angles), np.sin(angles)]), 15)


def corners(keys: Any) -> Any:
    """Positions of the distinct farthest points: float64[corners, 2], as parts of the longer side.

    Parameters
    ----------
    keys : int64[SIDES]
        See `assign.keep_farthest`; -1 if there is no point.
    """
    keys = keys[keys >= 0]
    places = np.column_stack([keys >> PLACES & MASK, keys & MASK])
    new = np.any(places != np.roll(places, 1, axis=0), axis=1)
    return (places[new] if new.any() else places[:1]) / MASK


def polygon(ring: Any) -> bytes:
    """Write a POLYGON Z of one ring, float64[corners, 3], which need not be closed."""
    closed = np.vstack([ring, ring[:1]])
    head = struct.pack("<BIII", 1, POLYGON_Z, 1, len(closed))
    return head + np.ascontiguousarray(closed, "<f8").tobytes()
