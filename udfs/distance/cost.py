"""How much work a call of `distance` is: bytes and steps, no machine constants."""

from typing import Any

from spatialq.functions.declaration import Size, Work

BYTES_PER_TRIANGLE = 12 + 12
"""Three indices; half a vertex, as closed meshes have."""

BOXES_PER_NEIGHBOUR = 4
"""Elements that are measured for each of the k nearest ones."""


def work(size: Size, options: Any) -> Work:
    """Count triangles, elements, and the pairs that are measured."""
    pairs = size.all_pairs
    if options.max_distance is not None:
        pairs = size.pairs(margin=options.max_distance)
    if options.k is not None:
        pairs = min(pairs, float(BOXES_PER_NEIGHBOUR * options.k * size.elements))
    return Work(
        bytes_in=BYTES_PER_TRIANGLE * size.rows,
        bytes_out=round(72 * pairs),
        steps={"triangles": size.rows, "elements": size.elements, "pairs": pairs},
        bytes_kernel=12 * BYTES_PER_TRIANGLE * size.rows,
    )


def work_in_tiles(size: Size, options: Any, tiles: int) -> Work:
    """Count parts of the pairs, each with its elements."""
    return work(size, options).of_pairs_in(tiles)
