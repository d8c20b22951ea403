"""The parameter `bounds` of functions of points: what is outside does not reach a kernel."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from spatialq.data.boxes import in_box
from spatialq.functions.declaration import BOUNDS, Parameters
from spatialq.runtime import buffers, cuda
from spatialq.runtime.cuda import on_gpu
from spatialq.runtime.threads import chunks, workers

POINT_ID = "point_id"


def within(arguments: Mapping[str, Any], options: Parameters, other: str = "") -> dict[str, Any]:
    """Give the arguments of a call without the points outside of its bounds.

    Parameters
    ----------
    arguments : mapping
        What a kernel gets, by name: of points x, y, z, `point_id` (None for the positions) and
        attributes (None for absent ones), each of n values, in main memory or on a GPU; and
        those of another table, which stay as they are.
    options : Parameters
        With `bounds` (xmin, ymin, xmax, ymax), or None for all points; or of no function of points.
    other : str
        The argument that is another table, such as "elements".

    Returns
    -------
    dict
        The same arrays where all points are inside or on the border. Otherwise copies, and the
        positions as ids of points that had none.
    """
    box = getattr(options, BOUNDS, None)
    given = dict(arguments)
    if box is None:
        return given
    columns = {
        name: values for name, values in given.items() if name != other and values is not None
    }
    if on_gpu(columns["x"]):
        return given | _on_gpu(columns, box)
    n = len(columns["x"])

    def inside(first: int, stop: int) -> Any:
        return in_box(columns["x"][first:stop], columns["y"][first:stop], box)

    with workers() as pool:
        parts = chunks(n)
        counts = pool.map(lambda part: int(np.count_nonzero(inside(*part))), parts)
        starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        total = int(starts[-1])
        if total == n:
            return given
        found = {name: _room(values, total) for name, values in columns.items()}
        ids = found.setdefault(POINT_ID, buffers.empty(total, np.int64))

        def take(part: tuple[int, int], start: int) -> None:
            chosen = inside(*part)
            rows = slice(start, start + np.count_nonzero(chosen))
            for name, values in columns.items():
                found[name][rows] = values[slice(*part)][chosen]
            if POINT_ID not in columns:
                ids[rows] = np.flatnonzero(chosen) + part[0]

        pool.map(take, parts, starts[:-1].tolist())
    return given | found


def _room(values: Any, n: int) -> Any:
    """Make an array for n values of a column."""
    room = buffers.empty(n, values.dtype)
    if not np.ma.isMaskedArray(values):
        return room
    return np.ma.MaskedArray(room, buffers.zeros(n, np.bool_))


def _on_gpu(columns: Mapping[str, Any], box: tuple[float, ...]) -> dict[str, Any]:
    """Choose points of arrays of the GPU."""
    device = cuda.device()
    chosen = in_box(device.view(columns["x"]), device.view(columns["y"]), box)
    if cuda.count(chosen) == chosen.size:
        return dict(columns)
    here = device.download(chosen)  # for masked attributes, which are in main memory
    found = {
        name: device.view(values)[chosen] if on_gpu(values) else values[here]
        for name, values in columns.items()
    }
    found.setdefault(POINT_ID, device.xp.flatnonzero(chosen))
    return found
