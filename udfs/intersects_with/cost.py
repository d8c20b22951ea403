"""How much work a call of `intersects_with` is: bytes and steps, no machine constants."""

from typing import Any

from spatialq.functions.declaration import Size, Work

BYTES_PER_TRIANGLE = 12 + 12
"""Three indices; half a vertex, as closed meshes have."""


def work(size: Size, options: Any) -> Work:
    """Count triangles, elements, and the pairs of elements whose boxes meet.

    Which of their triangles are near each other depends on the building; each triangle of a pair
    is compared with few of the other's.
    """
    pairs = size.pairs(margin=options.tolerance)
    return Work(
        bytes_in=BYTES_PER_TRIANGLE * size.rows,
        bytes_out=size.rows,
        steps={"triangles": size.rows, "elements": size.elements, "pairs": pairs},
        bytes_kernel=8 * BYTES_PER_TRIANGLE * size.rows,
    )


def work_in_tiles(size: Size, options: Any, tiles: int) -> Work:
    """Count parts of the pairs, each with its elements."""
    return work(size, options).of_pairs_in(tiles)
