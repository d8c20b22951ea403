"""How much work a call of `classify_noise` is."""

from typing import Any

from spatialq.functions.declaration import Size, Work


def work(size: Size, options: Any) -> Work:
    """Count the points, which are put in order, and the neighbours that are found."""
    rows = float(size.rows)
    neighbours = rows * (options.mean_k if options.method == "statistical" else 1)
    return Work(
        bytes_in=24 * size.rows,
        bytes_out=size.rows,
        steps={"points": rows, "neighbours": neighbours},
        bytes_kernel=80 * size.rows,
    )
