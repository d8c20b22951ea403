"""The colours of points: red, green, blue and intensity side by side."""

from typing import Any

import numpy as np

from spatialq.data.points import read_only
from spatialq.runtime import buffers
from spatialq.runtime.arrays import Uint16s
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.threads import FEW_POINTS, in_threads

from . import CHANNELS

MID_GREY = 32768
"""The colour of a point that has neither colour nor intensity."""


def colours(
    red: Uint16s | None,
    green: Uint16s | None,
    blue: Uint16s | None,
    intensity: Uint16s | None,
    n: int,
) -> Uint16s:
    """Combine the colour channels of points into one array, grey where there are none.

    Parameters
    ----------
    red, green, blue, intensity : uint16[n] or None
        None or masked where there is no value.
    n : int

    Returns
    -------
    uint16[n, 4]
        A point without red, green or blue gets its intensity in all three channels. A point
        without intensity gets intensity 0, and mid-grey if it has no colour either.
    """
    if intensity is None:
        light, grey = buffers.zeros(n, np.uint16), buffers.full(n, MID_GREY, np.uint16)
    else:
        is_lost = np.ma.getmask(intensity)
        light, grey = (replaced(intensity, is_lost, none) for none in (0, MID_GREY))
    own = [grey] * 3 if red is None or green is None or blue is None else [red, green, blue]
    if any(_has_true(np.ma.getmask(each)) for each in own):
        lost = buffers.zeros(n, bool)
        for each in own:
            lost |= np.ma.getmask(each)
        own = [replaced(each, lost, grey) for each in own]
    side_by_side: Uint16s = buffers.empty((n, len(CHANNELS)), np.uint16)
    plain = [read_only(np.ma.getdata(each)) for each in (*own, light)]
    in_threads(lambda span: _lay(*plain, *span, side_by_side), n, worth=FEW_POINTS)
    return side_by_side


def replaced(values: Any, is_lost: Any, others: Any) -> Any:
    """Give values without a mask, with others in the place of those that are lost."""
    plain = np.ma.getdata(values)
    if not _has_true(is_lost):
        return plain
    result = buffers.empty_like(plain)
    np.copyto(result, plain)
    np.copyto(result, others, where=is_lost)
    return result


def _has_true(mask: Any) -> bool:
    """Whether a mask says that anything is lost; most arrays have none at all."""
    return mask is not np.ma.nomask and bool(mask.any())


@njit(cache=True, nogil=True)
def _lay(
    red: Any, green: Any, blue: Any, intensity: Any, first: int, stop: int, side_by_side: Any
) -> None:
    for i in range(first, stop):
        side_by_side[i, 0] = red[i]
        side_by_side[i, 1] = green[i]
        side_by_side[i, 2] = blue[i]
        side_by_side[i, 3] = intensity[i]
