"""The constants of the method, and values derived from them, for the kernels of all devices.

Lengths are in metres and slopes in metres per metre. Numbers that are combined with heights on
the grid have single precision, so that all devices round alike.
"""

from functools import cache, lru_cache
from math import floor, frexp, inf, ldexp, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]

BLOCK = 10.0
SPACINGS_PER_BLOCK = 3.0
"""Side of the squares in which the occupied area is counted: the larger one of so many metres and
so many mean spacings of the points in their bounding box."""
MIN_CELL = 1.0
SPACINGS_PER_CELL = 0.5
RUNGS = 5
"""Equal steps between a power of two and the next one: the spacings that count."""
FARTHEST = 1e5
"""Heights on the grid are cut at this distance from their median."""

SWEEPS = 8
RELAXATION = np.float32(0.8)
"""Jacobi sweeps at each level of a fill, and the damping factor of each step."""

PIT_SLOPE = np.float32(5.0)
"""A single cell this much lower than all around it is a low outlier."""

OBJECT_SLOPE = np.float32(0.08)
"""A cell that an opening lowers by more than this times the radius is an object."""
OUTSIDE = 0.1
"""Distance from the border at which the centre of a disc may lie outside, in radii."""
CELLS_PER_WINDOW = 8.0
BASE_RADIUS = 15.0
"""Half side of the square over which the seeds' surface is averaged, twice."""

GROWTHS = 5
SMOOTH = np.float32(0.15)
"""Maximum rms of a smooth cell, and its maximum distance from the slope of its neighbour."""
SMOOTH_NEIGHBOURS = 2

CRESTS = 4
CREST_RADIUS = 6.0
CREST_HEIGHT = np.float32(1.0)
CREST_DISTANCE = np.float32(0.2)
CREST_SLOPE = np.float32(0.15)
"""A plane meets a cell whose vertical distance from it is at most CREST_DISTANCE plus this slope
times the horizontal distance."""
CREST_CELLS = np.float32(3.0)
CREST_GROUND = np.float32(0.9)
CREST_KNOWN = np.float32(0.25)
"""Planes of a half disc that must meet the cell: number, share of its ground cells, share of its
known cells."""

CLIFF_REACH = 6.0
CLIFF_HEIGHT = np.float32(2.0)
CLIFF_SLOPE = np.float32(1.0)
CLIFF_DISTANCE = np.float32(0.1)
CLIFF_TOP_SLOPE = np.float32(0.05)

DENSIFICATIONS = 6

COLUMNS = {"height": np.float64, "is_ground": np.bool_, "margin": np.float32}
"""What is found for points, in the order in which loops over points take it."""


def rung(spacing: float) -> float:
    """Round the spacing of points so that a few points more or less do not move the cells."""
    if not 0 < spacing < inf:
        return spacing
    step = ldexp(0.5, frexp(spacing)[1]) / RUNGS
    return round(spacing / step) * step


def places_in_pairs(shape: tuple[int, int], first: tuple[int, int]) -> list[tuple[int, int]]:
    """Pair the rows and columns of a grid, then those pairs, and so on, until one is left.

    Pairs begin at even numbers, wherever the grid begins, as long as there are more than two.

    Returns
    -------
    list of (row, column)
        For each step 0, or 1 where the first row or column is the second one of its pair.
    """
    sizes, numbers, places = list(shape), list(first), []
    while max(sizes) > 1:
        place = [number & 1 if n > 2 else 0 for n, number in zip(sizes, numbers, strict=True)]
        sizes = [(n + p + 1) // 2 for n, p in zip(sizes, place, strict=True)]
        numbers = [number >> 1 for number in numbers]
        places.append((place[0], place[1]))
    return places


class Neighbours(NamedTuple):
    """The cells within `CREST_RADIUS` of a cell, without the cell itself, row by row."""

    rows: Ints
    columns: Ints
    x: Floats
    y: Floats
    most: Floats
    """Maximum distance at which a plane from there meets the cell."""
    octant: Ints
    """Eighth of the disc, counted from the x axis towards the y axis."""

    @property
    def reach(self) -> int:
        """Radius in cells of a disc that contains them all."""
        return int(self.rows.max(initial=0)) + 1


@lru_cache(maxsize=64)  # of many clouds of about one density
def neighbours(cell: float) -> Neighbours:
    """List the cells of the disc for cells of this size."""
    reach = floor(CREST_RADIUS / cell)
    rows, columns = (a.ravel() for a in np.mgrid[-reach : reach + 1, -reach : reach + 1])
    squares = rows**2 + columns**2
    inside = (squares > 0) & (squares * cell**2 <= CREST_RADIUS**2)
    rows, columns = rows[inside].astype(np.int32), columns[inside].astype(np.int32)
    x, y = (columns * cell).astype(np.float32), (rows * cell).astype(np.float32)
    most = CREST_DISTANCE + CREST_SLOPE * np.sqrt(x * x + y * y)
    upper = (rows > 0) | ((rows == 0) & (columns > 0))
    c, r = np.where(upper, columns, -columns), np.where(upper, rows, -rows)
    octant = np.where(c > 0, np.where(r < c, 0, 1), np.where(-c < r, 2, 3)) + 4 * ~upper
    return Neighbours(rows, columns, x, y, most, octant.astype(np.int32))


@cache  # a call asks for each of them several times
def half_widths(radius: int) -> Ints:
    """Half widths in cells of a disc, in the rows 0, 1, ... `radius` away from its centre."""
    return np.array([floor(sqrt(radius**2 - d**2)) for d in range(radius + 1)], np.int32)


@cache
def half_widths_to(radius: int) -> Ints:
    """Half widths of the discs of radius 1, 2, 3 ... `radius`, one behind the other."""
    return np.concatenate([np.empty(0, np.int32), *map(half_widths, range(1, radius + 1))])


def table_levels(half_widths: Ints) -> Ints:
    """For each row of a disc the largest k such that a run of 2^k cells fits into it."""
    return np.array([int(2 * w + 1).bit_length() - 1 for w in half_widths], np.int32)
