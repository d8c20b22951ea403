"""How many tiles a call takes on a GPU that has no room for the whole.

What a function needs around a tile is in its `Output.work_in_tiles`; its kernel cuts, runs and
joins the tiles.
"""

from typing import Any

from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import Size, Work

MIN_POINTS = 1 << 16
"""Points of a tile at least: smaller ones save no memory worth having, and cost a start each."""


def most(function: Function, size: Size, options: Any) -> int:
    """Give the largest number of tiles that a call may be divided into.

    It is 1 for arrays that are on the GPU already, and where tiles need as much as the whole.
    """
    output, limit = function.output, size.rows // MIN_POINTS
    if output.work_in_tiles is None or size.device == "gpu" or limit < 2:
        return 1
    needed = output.work_in_tiles(size, options, limit).bytes_kernel
    return limit if needed < output.work(size, options).bytes_kernel else 1


def fitting(function: Function, size: Size, options: Any, room: int) -> tuple[int, Work] | None:
    """Find the smallest number of tiles of which each fits, and the work of a call in these.

    Parameters
    ----------
    function : Function
    size : Size
        Of a call that does not fit as a whole.
    options : Parameters
    room : int
        Bytes of the GPU's memory.

    Returns
    -------
    tiles, work
        None if no number of tiles fits.
    """
    work, limit = function.output.work_in_tiles, most(function, size, options)
    if work is None or limit < 2 or work(size, options, limit).bytes_kernel > room:
        return None
    low, high = 1, limit
    while high - low > 1:
        middle = (low + high) // 2
        fits = work(size, options, middle).bytes_kernel <= room
        low, high = (low, middle) if fits else (middle, high)
    return high, work(size, options, high)
