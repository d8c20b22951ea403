"""What of boxes can be seen from a point, by every place of a fine raster and every other box."""

import numpy as np


def visible(boxes, row, station, step=0.02):
    """Share of the surface of a box (low, high) that a straight line from the station reaches."""
    low, high = (np.asarray(each, float) for each in boxes[row])
    size, seen, total = high - low, 0.0, 0.0
    for axis in range(3):
        one, other = (k for k in range(3) if k != axis)
        for level, sign in ((low[axis], -1.0), (high[axis], 1.0)):
            a, b = (max(1, round(size[k] / step)) for k in (one, other))
            places = np.empty((a * b, 3))
            places[:, axis] = level
            s, t = np.meshgrid((np.arange(a) + 0.5) / a, (np.arange(b) + 0.5) / b)
            places[:, one] = low[one] + s.ravel() * size[one]
            places[:, other] = low[other] + t.ravel() * size[other]
            is_seen = sign * (station[axis] - level) > 0
            is_seen &= not_between(boxes, row, places, station)
            total += size[one] * size[other]
            seen += size[one] * size[other] * is_seen.mean()
    return seen / total


def not_between(boxes, row, places, station):
    """Whether no other box is between places and the station: its slabs share no part of a line."""
    way = np.asarray(station, float) - places
    free = np.ones(len(places), bool)
    for k, (low, high) in enumerate(boxes):
        if k == row:
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.stack([(np.asarray(each) - places) / way for each in (low, high)])
        near, far = np.nanmin(ends, axis=0).max(axis=1), np.nanmax(ends, axis=0).min(axis=1)
        free &= ~((near < far) & (far > 1e-6) & (near < 1 - 1e-6))
    return free
