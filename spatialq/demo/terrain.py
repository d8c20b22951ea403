"""The terrain of the demo village: one closed formula, so that every point has a known truth.

Hills, a valley with a stream between steep banks, a terrace with a sharp edge, a pond and a
levelled yard around the house of the building model. Positions are u, v: metres east and north of
the tile's south-west corner.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from spatialq.runtime.arrays import Floats
from spatialq.runtime.compile_cache import njit

ORIGIN = (652_000.0, 5_606_000.0)  # easting, northing of the tile's south-west corner
SIZE = 400.0
CRS = "EPSG:25832+7837"  # ETRS89 / UTM zone 32N, DHHN2016 height

POND = (310.0, 112.0, 26.0, 17.0)  # centre u, v and semi-axes
POND_SHORE = 0.96  # water inside this share of the ellipse
POND_LEVEL = 409.2
STREAM_HALF_WIDTH = 2.8  # of the water surface
STREAM_DEPTH = 0.5
YARD = (232.0, 238.0, 413.0)  # centre u, v and height of the levelled ground
YARD_FLAT, YARD_END = 10.0, 19.0  # flat up to the first radius, natural from the second


@njit(cache=True)
def stream_distance(u, v):  # type: ignore[no-untyped-def]
    """Distance from the stream's centre line, to first order."""
    slope = 22.0 / 48.0 * math.cos(v / 48.0)
    return abs(u - 95.0 - 22.0 * math.sin(v / 48.0)) / math.sqrt(1.0 + slope * slope)


@njit(cache=True)
def stream_bed(v):  # type: ignore[no-untyped-def]
    """Height of the stream's bed: it falls from north to south."""
    return 405.5 + 0.008 * v


@njit(cache=True)
def pond_radius(u, v):  # type: ignore[no-untyped-def]
    """Distance from the pond's centre in its own semi-axes: 1 on the ellipse."""
    return math.hypot((u - POND[0]) / POND[2], (v - POND[1]) / POND[3])


@njit(cache=True)
def _fade(value, near, far):  # type: ignore[no-untyped-def]
    """Fall smoothly from 1 at `near` to 0 at `far`."""
    t = min(max((far - value) / (far - near), 0.0), 1.0)
    return t * t * (3.0 - 2.0 * t)


@njit(cache=True)
def height(u, v):  # type: ignore[no-untyped-def]
    """Height of the ground (under water: of the bed) at one position of the tile."""
    hills = (
        414.0
        + 7.0 * math.sin(u / 87.0 + 0.4) * math.cos(v / 101.0 - 0.3)
        + 2.0 * math.sin(u / 43.0 + v / 59.0)
        + 0.12 * math.sin(u / 8.7) * math.cos(v / 7.3)
    )
    edge = 318.0 + 16.0 * math.sin(u / 55.0)
    hills += 4.5 * min(max((v - edge) / 3.5, 0.0), 1.0)

    aside = stream_distance(u, v)
    bed = stream_bed(v)
    valley = math.exp(-((aside / 30.0) ** 2))
    z = (1.0 - valley) * hills + valley * (bed + 2.4)
    z = min(z, bed + 1.6 * max(0.0, aside - 2.5))

    radius = pond_radius(u, v)
    shore = _fade(radius, 1.1, 2.2)
    z = (1.0 - shore) * z + shore * (POND_LEVEL + 0.7)
    z = min(z, POND_LEVEL - 1.0 + 17.0 * max(0.0, radius - 0.9))

    yard = _fade(math.hypot(u - YARD[0], v - YARD[1]), YARD_FLAT, YARD_END)
    return (1.0 - yard) * z + yard * YARD[2]


@njit(cache=True)
def road_distance(u, v):  # type: ignore[no-untyped-def]
    """Distance from the centre line of the nearest of the two roads, to first order."""
    east_west = abs(v - 190.0 - 14.0 * math.sin(u / 70.0)) / math.hypot(
        1.0, 0.2 * math.cos(u / 70.0)
    )
    north_south = abs(u - 196.0 - 10.0 * math.sin(v / 55.0)) / math.hypot(
        1.0, 10.0 / 55.0 * math.cos(v / 55.0)
    )
    return min(east_west, north_south)


@njit(cache=True)
def _heights(u, v, z):  # type: ignore[no-untyped-def]
    for i in range(u.size):
        z[i] = height(u[i], v[i])


def ground(x: ArrayLike, y: ArrayLike) -> Floats:
    """Give the true height of the ground.

    Parameters
    ----------
    x, y : float64, any shape (broadcast against each other), metres
        Easting and northing in `CRS`.

    Returns
    -------
    float64 of the broadcast shape, metres
        Under water the height of the bed. The formula goes on beyond the tile.
    """
    u, v = np.broadcast_arrays(
        np.asarray(x, np.float64) - ORIGIN[0], np.asarray(y, np.float64) - ORIGIN[1]
    )
    z = np.empty(u.shape)
    _heights(u.ravel(), v.ravel(), z.reshape(-1))
    return z
