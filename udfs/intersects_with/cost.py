"""How much work a call of `intersects_with` is: bytes and steps, no machine constants."""

from typing import Any

from spatialq.functions.declaration import Work

BYTES_PER_TRIANGLE = 12 + 12
"""Three indices; half a vertex, as closed meshes have."""


def work(rows: int, options: Any) -> Work:
    """Count what the kernel moves, by the number of triangles of all elements.

    How many pairs of triangles are near each other depends on the building; in real models it
    grows with the number of triangles.
    """
    return Work(
        bytes_in=BYTES_PER_TRIANGLE * rows,
        bytes_out=rows,
        steps=rows,
        bytes_kernel=8 * BYTES_PER_TRIANGLE * rows,
    )
