"""The number of tiles of a call on a GPU that has no room for the whole.

What a function needs around a tile is in its `Output.work_in_tiles`; its kernel cuts, runs and
joins the tiles.
"""

from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import Parameters, Size, Work

MIN_ROWS = 1 << 16
"""Points, or triangles of elements, of a tile at least: smaller ones save no memory worth having,
and cost a start each."""


def most(function: Function, size: Size, options: Parameters) -> int:
    """Give the largest number of tiles that a call may be divided into.

    It is 1 for arrays that are on the GPU already, and where tiles need as much as the whole.
    """
    output, limit = function.output, size.rows // MIN_ROWS
    if output.work_in_tiles is None or size.device == "gpu" or limit < 2:
        return 1
    needed = output.work_in_tiles(size, options, limit).bytes_kernel
    return limit if needed < output.work(size, options).bytes_kernel else 1


def fitting(
    function: Function, size: Size, options: Parameters, room: int
) -> tuple[int, Work] | None:
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


def shared(
    function: Function, size: Size, options: Parameters, room: int, gpus: int
) -> tuple[int, Work] | None:
    """Find tiles that several GPUs share: one for each, or as few more as make them fit.

    Parameters
    ----------
    function : Function
    size : Size
    options : Parameters
    room : int
        Bytes of the memory of the GPU that has least.
    gpus : int

    Returns
    -------
    tiles, work
        None if a tile needs what others found, or no number of tiles fits.
    """
    output, limit = function.output, most(function, size, options)
    if output.work_in_tiles is None or output.are_apart is None or limit < gpus:
        return None
    count, work = gpus, output.work_in_tiles(size, options, gpus)
    if work.bytes_kernel > room:
        fits = fitting(function, size, options, room)
        if fits is None:
            return None
        count = min(limit, gpus * -(-fits[0] // gpus))
        work = output.work_in_tiles(size, options, count)
    return (count, work) if output.are_apart(size, options, count) else None
