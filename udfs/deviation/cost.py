"""How much work a call of `deviation` is: bytes and steps, no machine constants."""

from dataclasses import replace
from math import ceil
from typing import Any

from spatialq.functions.declaration import TRIANGLES_PER_ELEMENT, Size, Work

BYTES_IN, BYTES_OUT = 3 * 8, 4 * 8 + 1
"""Of a point: its coordinates; element, face, distance, angle and orientation."""
BYTES_PER_TRIANGLE = 9 * 8 + 4 * 8 + 7 * 3 * 8 + 13 + 8 * 5
"""Corners, plane, pseudonormals, numbers; its share of the lists of cubes."""


def work(size: Size, _: object) -> Work:
    """Count the points, and the elements that are prepared for the search on the host."""
    elements = float(size.elements)
    # of elements that are not known, there may be any number beside the points: none is assumed
    known = sum(each.count for each in size.sets)
    index = BYTES_PER_TRIANGLE * TRIANGLES_PER_ELEMENT * known
    return Work(
        bytes_in=BYTES_IN * size.rows + index,
        bytes_out=BYTES_OUT * size.rows,
        steps={"points": size.rows, "elements": elements},
        bytes_kernel=(BYTES_IN + BYTES_OUT) * size.rows + index,
    )


def work_in_tiles(size: Size, options: Any, tiles: int) -> Work:
    """Count the same, with one run of points at a time on the device."""
    whole, rows = work(size, options), ceil(size.rows / tiles)
    kept = whole.bytes_kernel - (BYTES_IN + BYTES_OUT) * size.rows
    return replace(whole, bytes_kernel=kept + (BYTES_IN + BYTES_OUT) * rows)
