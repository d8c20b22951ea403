"""`terrain_derivatives` on the CPU: runs of rows, each with a border of its neighbours."""

from math import atan, atan2, cos, degrees, floor, isnan, nan, radians, sin, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.points import read_only
from spatialq.runtime import buffers, progress
from spatialq.runtime.arrays import Floats
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.threads import in_threads

from . import Options

if TYPE_CHECKING:
    from spatialq.data.grid import Grid


DERIVATIVES = (
    "slope", "aspect", "hillshade", "profile_curvature", "plan_curvature", "tpi", "tri",
    "roughness",
)  # fmt: skip
RUN = 1 << 20
"""Cells of a run of rows, more or less."""


def run(grid: "Grid", options: Options) -> dict[str, Any]:
    """Compute what the neighbours of each cell say of the terrain.

    Parameters
    ----------
    grid : Grid
        In main memory. Of a window, the cells at its edge are left out where the whole grid goes
        on: they are some other window's.
    options : Options

    Returns
    -------
    dict of float64[cells]
        The columns of the function, from south to north and from west to east; NaN where a
        neighbour is missing, and for aspect and curvatures where the cell is level.
    """
    rows, columns = (
        range(first > 0, int(n) - (first + int(n) < whole))
        for first, n, whole in zip(
            (grid.first_row, grid.first_column), grid.z.shape, (grid.rows, grid.columns),
            strict=True,
        )
    )  # fmt: skip
    shape = len(rows), len(columns)
    x, y, z = (buffers.empty(shape) for _ in range(3))
    found = buffers.empty((len(DERIVATIVES), *shape))
    x[:] = grid.x0 + (grid.first_column + np.array(columns)) * grid.dx
    y[:] = grid.y0 + (grid.first_row + np.array(rows))[:, None] * grid.dy
    z[:] = grid.z[rows.start : rows.stop, columns.start : columns.stop]
    azimuth, altitude = radians(options.azimuth), radians(options.altitude)
    light = np.array([
        sin(azimuth) * cos(altitude), cos(azimuth) * cos(altitude), sin(altitude)
    ])  # fmt: skip
    given = (
        float(grid.dx),
        float(grid.dy),
        options.z_factor,
        options.gradient == "horn",
        options.slope_unit == "percent",
        options.ruggedness == "wilson",
        options.edges,
    )

    def some(span: tuple[int, int]) -> None:
        """Compute some rows of the result."""
        progress.check()
        first, stop = (rows.start + each for each in span)
        south, north = max(first - 1, 0), min(stop + 1, int(grid.z.shape[0]))
        bordered = np.full((stop - first + 2, grid.z.shape[1] + 2), np.nan)
        bordered[1 + south - first : 1 + north - first, 1:-1] = grid.z[south:north]
        derive(read_only(bordered), columns.start, light, *given, found[:, slice(*span)])

    progress.stage("derivatives", 1.0)
    in_threads(some, len(rows), max(1, RUN // max(1, len(columns))))
    named = zip(DERIVATIVES, found, strict=True)
    return {"x": x.ravel(), "y": y.ravel(), "z": z.ravel()} | {
        name: values.ravel() for name, values in named
    }


@njit(cache=True, nogil=True, error_model="numpy")
def derive(
    z: Floats, left: int, light: Floats, dx: float, dy: float, z_factor: float, is_horn: Any,
    is_percent: Any, is_wilson: Any, edges: Any, found: Floats,
) -> None:  # fmt: skip
    """Fill rows of all derivatives.

    Parameters
    ----------
    z : float64[rows + 2, cells + 2]
        With a border on each side, NaN where a height is missing; row 0 is the southernmost.
    left : int
        The first column of the result among those without the border.
    light : float64[3]
        East, north and up of the direction to the light.
    dx, dy : float
    z_factor : float
        Of the heights for all but the last three derivatives.
    found : float64[8, rows, columns]
        Out: in the order of `DERIVATIVES`.
    """
    _, rows, columns = found.shape
    for r in range(rows):
        for c in range(columns):
            k = left + c  # a b c, d e f, g h i: from the north-west
            a, b, cc = z[r + 2, k], z[r + 2, k + 1], z[r + 2, k + 2]
            d, e, f = z[r + 1, k], z[r + 1, k + 1], z[r + 1, k + 2]
            g, h, i = z[r, k], z[r, k + 1], z[r, k + 2]
            if isnan((a + b + cc) + (d + e + f) + (g + h + i)):
                if isnan(e) or not edges:
                    for k in range(found.shape[0]):
                        found[k, r, c] = nan
                    continue
                a, b, cc = or_else(a, e), or_else(b, e), or_else(cc, e)
                d, f = or_else(d, e), or_else(f, e)
                g, h, i = or_else(g, e), or_else(h, e), or_else(i, e)
            # Zevenbergen & Thorne (1987): G and H are the gradient of the partial quartic
            east, north = z_factor * (f - d) / (2 * dx), z_factor * (b - h) / (2 * dy)
            steep = east * east + north * north
            xx = z_factor * (d - 2 * e + f) / (dx * dx)
            yy = z_factor * (h - 2 * e + b) / (dy * dy)
            xy = z_factor * (cc - a + g - i) / (4 * dx * dy)
            if steep > 0:
                mixed = 2 * xy * east * north
                found[3, r, c] = (xx * east * east + mixed + yy * north * north) / steep
                found[4, r, c] = -(xx * north * north - mixed + yy * east * east) / steep
            else:
                found[3, r, c] = found[4, r, c] = nan
            if is_horn:  # Horn (1981)
                east = z_factor * ((cc + 2 * f + i) - (a + 2 * d + g)) / (8 * dx)
                north = z_factor * ((a + 2 * b + cc) - (g + 2 * h + i)) / (8 * dy)
                steep = east * east + north * north
            rise = sqrt(steep)
            found[0, r, c] = 100 * rise if is_percent else degrees(atan(rise))
            found[1, r, c] = nan
            if steep > 0:
                aspect = degrees(atan2(-east, -north))
                aspect = aspect + 360 if aspect < 0 else aspect
                found[1, r, c] = 0.0 if aspect >= 360 else aspect + 0.0
            lit = (light[2] - east * light[0] - north * light[1]) / sqrt(1 + steep)
            found[2, r, c] = floor(1.5 + 254 * lit) if lit > 0 else 1.0
            a, b, cc, d, f = a - e, b - e, cc - e, d - e, f - e
            g, h, i = g - e, h - e, i - e
            found[5, r, c] = -((a + b + cc) + (d + f) + (g + h + i)) / 8
            if is_wilson:
                apart = (abs(a) + abs(b) + abs(cc)) + (abs(d) + abs(f))
                found[6, r, c] = (apart + (abs(g) + abs(h) + abs(i))) / 8
            else:
                squares = (a * a + b * b + cc * cc) + (d * d + f * f)
                found[6, r, c] = sqrt(squares + (g * g + h * h + i * i))
            low = min(0.0, a, b, cc, d, f, g, h, i)
            found[7, r, c] = max(0.0, a, b, cc, d, f, g, h, i) - low


@njit(cache=True, nogil=True, error_model="numpy")
def or_else(height: float, other: float) -> float:
    """Give a height, or the other where it is missing."""
    return other if isnan(height) else height
