"""Writes terrain grids as Cloud Optimized GeoTIFF, and their hillshade as PNG."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil, floor
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from spatialq.errors import FileError
from spatialq.export.atomic import WRITER, whole
from spatialq.io import crs as crs_text
from spatialq.runtime.arrays import Array, Bytes, Floats, Ints
from spatialq.runtime.extras import require

NODATA = -9999.0  # old programs do not accept NaN for "no value"
MAX_CELLS = 1 << 28
WEIGHTS = ((-1, 1.0), (0, 2.0), (1, 1.0))  # weights of neighbours by their offset across the slope
PRECISION = 1e-3  # tolerance of a centre's position, in cells: coordinates are rounded


@dataclass(frozen=True)
class Raster:
    """Heights on square cells.

    Parameters
    ----------
    z : float64[rows, columns]
        Row 0 in the north; NaN where there is no height.
    west, north : float
        The outer corner of the first cell, units of the CRS.
    resolution : float, > 0
        Side of a cell, same units.
    crs : str, optional
        PROJJSON, WKT or a code such as ``EPSG:25832``.
    """

    z: Array
    west: float
    north: float
    resolution: float
    crs: str | None = None


def from_cells(x: ArrayLike, y: ArrayLike, z: ArrayLike, crs: str | None = None) -> Raster:
    """Make a raster of cells in any order, such as the columns of a query.

    Parameters
    ----------
    x, y : float64[n]
        Centres of cells of a regular grid; cells may be absent.
    z : float64[n]
        NaN, or masked, where there is no height.
    crs : str, optional

    Raises
    ------
    ValueError
        If there are fewer than two cells, a centre is NULL, the cells are not on a regular grid of
        square cells, or a cell occurs twice.
    """
    heights = np.ma.filled(np.ma.asarray(z, np.float64), np.nan)
    centres = [np.ma.filled(np.ma.asarray(each, np.float64), np.nan) for each in (x, y)]
    if not all(np.isfinite(each).all() for each in centres):
        message = f"{WRITER}: x and y of a raster must be finite, got NULL, NaN or infinity"
        raise ValueError(message)
    steps = [step for each in centres if (step := _step(each)) is not None]
    if not steps:
        message = f"{WRITER}: a raster must have two cells or more, got {heights.size}"
        raise ValueError(message)
    resolution = min(steps)
    column, row = (_places(each, resolution) for each in centres)
    columns, rows = int(column.max()) + 1, int(row.max()) + 1
    if columns * rows > MAX_CELLS:
        message = (
            f"{WRITER}: a raster must have at most {MAX_CELLS:,} cells, got {columns:,} x {rows:,} "
            f"of {resolution:g}: is it a grid?"
        )
        raise ValueError(message)
    cell = (rows - 1 - row) * columns + column
    if np.bincount(cell, minlength=1).max() > 1:
        message = f"{WRITER}: a raster must have each cell once, got {cell.size} rows with repeats"
        raise ValueError(message)
    grid = np.full(rows * columns, np.nan)
    grid[cell] = heights
    west, south = (float(each.min()) - resolution / 2 for each in centres)
    return Raster(grid.reshape(rows, columns), west, south + rows * resolution, resolution, crs)


def covering(raster: Raster, x_ends: tuple[float, float], y_ends: tuple[float, float]) -> Raster:
    """Extend a raster, whose cell edges are multiples of the resolution, to cover a box.

    A raster without any height is replaced by one over the box.
    """
    size = raster.resolution
    west, south = (floor(low / size) for low, _ in (x_ends, y_ends))
    east, north = (max(low + 1, ceil(high / size)) for low, (_, high) in
                   zip((west, south), (x_ends, y_ends), strict=True))  # fmt: skip
    z = np.full((north - south, east - west), np.nan)
    if not np.isnan(raster.z).all():
        rows, columns = raster.z.shape
        top, left = north - round(raster.north / size), round(raster.west / size) - west
        z[top : top + rows, left : left + columns] = raster.z
    return Raster(z, west * size, north * size, size, raster.crs)


def _step(centres: Floats) -> float | None:
    """Distance of neighbouring centres along an axis; None if all are in one line."""
    values = np.unique(centres)
    apart = np.diff(values)
    apart = apart[apart > 1e-9 * np.abs(values[-1:]).max(initial=0)]  # smaller gaps are rounding
    if apart.size == 0:
        return None
    extent = values[-1] - values[0]
    return float(f"{extent / round(extent / apart.min()):.10g}")


def _places(centres: Floats, resolution: float) -> Ints:
    place = (centres - centres.min()) / resolution
    nearest = np.rint(place)
    if np.abs(place - nearest).max() > PRECISION:
        message = (
            f"{WRITER}: x and y of a raster must be centres of square cells in regular rows, got "
            f"some off a grid of {resolution:g}"
        )
        raise ValueError(message)
    places: Ints = nearest.astype(np.int64)
    return places


def write_terrain(target: Path, raster: Raster) -> None:
    """Write a Cloud Optimized GeoTIFF: single precision, deflated, with overviews.

    Raises
    ------
    FileError
        If the file cannot be written.
    CrsError
        If the CRS cannot be read.
    """
    step = raster.resolution
    corner = (step, 0.0, raster.west, 0.0, -step, raster.north)
    write_bands(target, {"": np.asarray(raster.z, np.float32)}, corner, raster.crs)


def write_bands(
    target: Path,
    bands: Mapping[str, Array],
    corner: Sequence[float],
    crs: str | None,
) -> None:
    """Write a Cloud Optimized GeoTIFF with one band per entry, deflated, with overviews.

    Parameters
    ----------
    target : path
    bands : mapping of str to float32 or float64 [rows, columns], one or more
        Bands by description, all of one shape and type; row 0 in the north; NaN where there is no
        value.
    corner : six floats
        a to f of the affine transform: x = a column + b row + c, y = d column + e row + f.
    crs : str or None

    Raises
    ------
    FileError
        If the file cannot be written.
    CrsError
        If the CRS cannot be read.
    """
    require("raster", WRITER, target)
    import rasterio
    from rasterio.io import MemoryFile

    wkt = crs_text.to_wkt(crs_text.from_text(crs)) if crs else None
    values = np.stack(list(bands.values()))
    values[np.isnan(values)] = NODATA
    # in memory: libtiff does not tell GDAL of all bytes that it could not write to a disk
    with whole(target) as partial, MemoryFile() as memory:
        with (
            _said_by_gdal(target),
            rasterio.Env(),
            # cells of 1 x 1 at 0, 0 are a valid georeference
            warnings.catch_warnings(
                action="ignore", category=rasterio.errors.NotGeoreferencedWarning
            ),
            memory.open(
                driver="COG",
                height=values.shape[1],
                width=values.shape[2],
                count=values.shape[0],
                dtype=values.dtype,
                crs=rasterio.crs.CRS.from_wkt(wkt) if wkt else None,
                transform=rasterio.Affine(*corner),
                nodata=NODATA,
                compress="DEFLATE",
                predictor="YES",
                overview_resampling="AVERAGE",
            ) as file,
        ):
            file.write(values)
            file.descriptions = tuple(bands)
        partial.write_bytes(memory.getbuffer())


@contextmanager
def _said_by_gdal(target: Path) -> Iterator[None]:
    import rasterio
    from rasterio._err import CPLE_BaseError  # what closing a file raises

    try:
        yield
    except (rasterio.errors.RasterioError, CPLE_BaseError) as error:
        raise FileError.of(WRITER, target, f"cannot be written by GDAL: {error}") from error


def hillshade(raster: Raster, azimuth: float = 315.0, altitude: float = 45.0) -> Bytes:
    """Shade a terrain, by default lit from the north-west, 45 degrees above the horizon.

    Parameters
    ----------
    raster : Raster
    azimuth, altitude : float, degrees
        Where the light comes from, clockwise from north, and its height above the horizon.

    Returns
    -------
    uint8[rows, columns]
        0 for no height, else 1 (dark) to 255 (full light); level ground is 181.

    Notes
    -----
    A neighbour that is missing or beyond the border gets the height of the cell itself.

    References
    ----------
    B. K. P. Horn: Hill shading and the reflectance map, Proc. IEEE 69 (1981), with the weights
    and the range of grey values of ``gdaldem hillshade -az 315 -alt 45``.
    """
    z = np.asarray(raster.z, np.float64)
    rows, columns = z.shape
    padded = np.pad(z, 1, constant_values=np.nan)

    def at(down: int, right: int) -> Floats:
        shifted = padded[1 + down : 1 + down + rows, 1 + right : 1 + right + columns]
        return np.where(np.isnan(shifted), z, shifted)

    def slope(weighted: Callable[[int, int], Floats]) -> Floats:
        rise = sum(weight * weighted(k, 1) - weight * weighted(k, -1) for k, weight in WEIGHTS)
        return np.asarray(rise / (8 * raster.resolution))

    east, south = slope(at), slope(lambda k, way: at(way, k))
    around, above = np.radians((azimuth, altitude))
    # the normal is (-east, -south, 1)
    level = np.cos(above) * (np.cos(around) * south - np.sin(around) * east)
    light = (level + np.sin(above)) / np.sqrt(east**2 + south**2 + 1)
    grey = np.floor(1.5 + 254 * np.clip(light, 0, 1))
    shade: Bytes = np.where(np.isnan(z), 0, grey).astype(np.uint8)
    return shade
