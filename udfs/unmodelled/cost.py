"""How much work a call of `unmodelled` is."""

from spatialq.functions.declaration import Size, Work


def work(size: Size, _: object) -> Work:
    """Count the points, and the elements that are prepared for the search."""
    steps = {"points": float(size.rows), "elements": float(size.elements)}
    return Work(24 * size.rows, 0, steps, 24 * size.rows)
