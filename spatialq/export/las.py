"""Points of a LAS or LAZ file to another one, through laspy."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spatialq.errors import FileError
from spatialq.export.atomic import WRITER, whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHUNK = 500_000
GROUND = 2  # ASPRS class


def write_ground(
    source: Path,
    target: Path,
    point_id: "NDArray[np.int64]",
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Write the points of these ids, classified as ground; all else as in the source.

    Parameters
    ----------
    source : path
        A LAS, LAZ or COPC file that `spatialq.io.las.LasSource` has opened without complaint.
    target : path
        Its ending, .las or .laz, tells whether it is compressed.
    point_id : int64[m]
        Positions in the source.
    progress : callable, optional
        Called with points read so far and points in all.

    Returns
    -------
    int
        Points written.

    Raises
    ------
    FileError
        If the target cannot be written.
    """
    import laspy
    import lazrs

    wanted = np.sort(point_id)
    try:
        with laspy.open(source, encoding_errors="replace") as reader, whole(target) as partial:
            header = copy.deepcopy(reader.header)
            # the octree of the source is not that of the result
            header.vlrs = [record for record in header.vlrs if record.user_id != "copc"]
            header.evlrs = None
            compressed = target.suffix.lower() == ".laz"
            with laspy.open(partial, "w", header=header, do_compress=compressed) as writer:
                first = 0
                for points in reader.chunk_iterator(CHUNK):
                    last = first + len(points)
                    inside = wanted[slice(*np.searchsorted(wanted, [first, last]))]
                    chosen = points[inside - first]
                    chosen.classification[:] = GROUND
                    writer.write_points(chosen)
                    first = last
                    if progress is not None:
                        progress(first, reader.header.point_count)
    except lazrs.LazrsError as error:  # a full disk, say
        raise FileError.of(WRITER, target, f"cannot be written: {error}") from error
    return int(wanted.size)
