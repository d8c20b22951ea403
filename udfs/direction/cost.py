"""How much work a call of `direction` is: bytes and steps, no machine constants."""

from typing import Any

from spatialq.functions.declaration import Work

BYTES_PER_TRIANGLE = 12 + 12
"""Three indices; half a vertex, as closed meshes have."""

BYTES_PER_FACET = 8 * 16
"""A triangle as it is seen along the direction."""


def work(rows: int, options: Any) -> Work:
    """Count what the kernel moves, by the number of triangles of all elements.

    How many elements lie beyond each other depends on the building; a pair is mostly decided by
    its first triangles.
    """
    return Work(
        bytes_in=BYTES_PER_TRIANGLE * rows,
        bytes_out=rows,
        steps=rows,
        bytes_kernel=(BYTES_PER_TRIANGLE + 2 * BYTES_PER_FACET) * rows,
    )
