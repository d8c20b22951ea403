"""How much work a call of `registration` is."""

from typing import Any

from spatialq.functions.declaration import Size, Work


def work(size: Size, options: Any) -> Work:
    """Count the points, which enter cells, and the directions in which the vertical is looked for.

    The search itself, in grids of limited size, does not depend on the number of points.
    """
    steps = {"points": float(size.rows), "searches": 6.0 if options.tilt else 1.0}
    return Work(24 * size.rows, 0, steps, 24 * size.rows)
