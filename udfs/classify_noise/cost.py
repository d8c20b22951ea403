"""How much work a call of `classify_noise` is."""

from typing import Any

from spatialq.functions.declaration import Size, Work

BYTES_KERNEL = 130
"""Of a point: its coordinates, three lists of rows while the tree is made, and these divided; later
the tree, distance and class."""


def work(size: Size, options: Any) -> Work:
    """Count the points, which are put in order, and the neighbours that are found."""
    rows = float(size.rows)
    neighbours = rows * (options.mean_k if options.method == "statistical" else 1)
    return Work(
        bytes_in=24 * size.rows,
        bytes_out=size.rows,
        steps={"points": rows, "neighbours": neighbours},
        bytes_kernel=BYTES_KERNEL * size.rows,
    )
