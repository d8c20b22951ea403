"""Minimum, quartiles and maximum of sets of numbers, exactly."""

import numpy as np

from spatialq.runtime.arrays import Ints
from spatialq.runtime.compile_cache import njit

from .lanes import MAX_NETWORK, WIDTH, network, network_for, sort

FIVE = 5
"""Minimum, first quartile, median, third quartile, maximum."""

BUCKETS = 1024


@njit(cache=True, nogil=True, error_model="numpy")
def quartile(j, n, linear):
    """Locate the j-th quartile among n sorted values.

    Position j / 4 of type 7 (`linear`) or 8 of Hyndman and Fan 1996, as a fraction of integers.

    Returns
    -------
    place : int
        From 0; the quartile is values[place] + share * (values[place + 1] - values[place]).
    share : float
    """
    if linear:
        numerator, denominator = 4 + (n - 1) * j, 4
    else:
        numerator, denominator = j * (3 * n + 1) + 4, 12
    place = numerator // denominator
    if place < 1:
        return 0, 0.0
    if place >= n:
        return n - 1, 0.0
    return place - 1, (numerator - place * denominator) / denominator


def exchanges(n: int, linear: bool) -> tuple[Ints, Ints]:  # noqa: FBT001
    """Give the networks for complete sets of n values, and for sets with missing values."""
    if n > MAX_NETWORK:
        return np.empty((0, 2), np.int64), np.empty((0, 2), np.int64)
    places = {0, n - 1}
    for j in (1, 2, 3):
        place, _ = quartile.py_func(j, n, linear)
        places |= {place, min(place + 1, n - 1)}
    return network_for(n, tuple(sorted(places))), network(n)


@njit(cache=True, nogil=True, error_model="numpy")
def five_of_lanes(sets, counts, lanes, complete, whole, linear, five, first):
    """Compute five[:, first : first + lanes] for the sets in sets[n, WIDTH], which are sorted.

    Parameters
    ----------
    sets : float[n, WIDTH]
        NaN where a value is missing.
    counts : int64[WIDTH]
        Number of values of each set.
    lanes : int
        Number of sets.
    complete, whole : int64[exchanges, 2]
        Networks for sets without and with missing values.
    linear : bool
    five : float64[5, sets]
    first : int
    """
    n = sets.shape[0]
    holes = False
    for lane in range(lanes):
        holes |= counts[lane] < n
    if holes:
        for k in range(n):
            for lane in range(WIDTH):
                value = sets[k, lane]
                sets[k, lane] = value if value == value else np.inf
    sort(sets, whole if holes else complete)
    places, shares = np.empty(4, np.int64), np.empty(4)
    known = -1
    for lane in range(lanes):
        m, at = counts[lane], first + lane
        if m == 0:
            five[:, at] = np.nan
            continue
        if m != known:  # usually equal for all lanes; integer division is slow
            known = m
            for j in range(1, 4):
                places[j], shares[j] = quartile(j, m, linear)
        five[0, at] = sets[0, lane]
        five[4, at] = sets[m - 1, lane]
        for j in range(1, 4):
            quarter = np.float64(sets[places[j], lane])
            if shares[j] > 0.0:
                quarter += shares[j] * (np.float64(sets[places[j] + 1, lane]) - quarter)
            five[j, at] = quarter


@njit(cache=True, nogil=True, error_model="numpy")
def five_of_many(values, n, linear, counts, rest, five, at):
    """Compute five[:, at] for values[:n], of which none is missing.

    The values are counted in equal intervals between minimum and maximum; only the values in the
    intervals that contain quartiles are sorted.

    Parameters
    ----------
    values, rest : float64[>= n]
        `rest` is scratch.
    n : int, >= 1
    linear : bool
    counts : int64[BUCKETS]
        Scratch.
    five : float64[5, sets]
    at : int
    """
    low, high = values[0], values[0]
    for k in range(n):
        low = min(values[k], low)
        high = max(values[k], high)
    five[0, at], five[4, at] = low, high
    # halves, since the maximum minus the minimum may overflow
    base = 0.5 * low
    scale = (BUCKETS - 1) / (0.5 * high - base)
    places, shares, skipped = np.empty(4, np.int64), np.empty(4), np.zeros(4, np.int64)
    for j in range(1, 4):
        places[j], shares[j] = quartile(j, n, linear)
    m = n
    if scale < np.inf:
        counts[:] = 0
        for k in range(n):
            counts[np.int64((0.5 * values[k] - base) * scale)] += 1
        total, out = 0, 0
        for bucket in range(BUCKETS):
            size = counts[bucket]
            wanted = False
            for j in range(1, 4):
                if total <= places[j] + 1 and places[j] < total + size:
                    wanted = True
                    skipped[j] = out if total <= places[j] else skipped[j]
            total += size
            if not wanted:
                out += size
                counts[bucket] = 0
        m = 0
        for k in range(n):
            if counts[np.int64((0.5 * values[k] - base) * scale)] > 0:
                rest[m] = values[k]
                m += 1
    else:
        rest[:n] = values[:n]
    rest[:m].sort()
    for j in range(1, 4):
        place = places[j] - skipped[j]
        quarter = rest[place]
        if shares[j] > 0.0:
            quarter += shares[j] * (rest[place + 1] - quarter)
        five[j, at] = quarter
