"""How much work a call of `direction` is: bytes and steps, no machine constants."""

from typing import Any

from spatialq.functions.declaration import Size, Work

BYTES_PER_TRIANGLE = 12 + 12
"""Three indices; half a vertex, as closed meshes have."""

BYTES_PER_FACET = 8 * 16
"""A triangle as it is seen along the direction."""

ACROSS = {"above": (0, 1), "below": (0, 1), "north": (0, 2), "south": (0, 2)}
"""The axes of the plane in which the projections of two elements must meet; (1, 2) for the rest."""


def work(size: Size, options: Any) -> Work:
    """Count triangles, elements, and the pairs whose boxes have common lines along the direction.

    In both orders; with `strict` a pair that passes is looked at again, triangle by triangle.
    """
    pairs = 2 * size.pairs(ACROSS.get(options.direction, (1, 2)))
    if options.model == "halfspace":
        pairs = size.all_pairs
    looks = 2 if options.strict and options.model == "projection" else 1
    return Work(
        bytes_in=BYTES_PER_TRIANGLE * size.rows,
        bytes_out=round(16 * pairs),
        steps={
            "triangles": size.rows,
            "elements": size.elements,
            "pairs": looks * pairs,
        },
        bytes_kernel=(BYTES_PER_TRIANGLE + 2 * BYTES_PER_FACET) * size.rows,
    )
