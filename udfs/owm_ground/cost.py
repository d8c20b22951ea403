"""How much work a call of `owm_ground` is: bytes and steps, no machine constants."""

from typing import Any

from spatialq.functions.declaration import Work


def work(rows: int, options: Any) -> Work:
    """Count what the kernel moves.

    Every point is read twice (x and y for the extent, x, y and z for its cell), and its cell
    is touched once; the table of cells is small beside the points unless the cloud is sparser
    than a few points a window, which `rows` alone cannot tell.
    """
    del options  # the windows are swept cell by cell: no option changes the order of the work
    return Work(bytes_in=24 * rows, bytes_out=0, steps=rows, bytes_kernel=40 * rows)
