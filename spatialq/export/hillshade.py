"""The hillshade of a terrain as a picture that other programs put in its place on the map."""

import math
from collections.abc import Iterable
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np

from spatialq.export.atomic import together, whole
from spatialq.export.raster import Raster, hillshade
from spatialq.io import crs as crs_text
from spatialq.runtime.arrays import Floats

SMALL, LARGE = 1000, 4000
"""Pixels of the longer side: of a smaller one a cell is several pixels, of a larger one a pixel is
the mean of several cells."""

BLACK = 1
"""0 is transparent."""


@together()
def write_hillshade(
    target: Path,
    raster: Raster,
    lines: Iterable[Floats] = (),
    **light: float,
) -> None:
    """Write the hillshade as a grey PNG, transparent without a height, and where it lies.

    A world file with the ending .pgw says where the pixels are, and a file with .aux.xml after the
    picture's name, as GDAL writes it, in which CRS, if it is known.

    Parameters
    ----------
    target : Path
    raster : Raster
    lines : iterable of float64[n, 2]
        x and y of lines, such as contours, which are drawn black.
    **light : float
        azimuth and altitude of `hillshade`.

    Raises
    ------
    FileError
        If a file cannot be written.
    """
    from PIL import Image, ImageDraw

    coarse = coarser(raster, math.ceil(max(raster.z.shape) / LARGE))
    times = max(1, SMALL // max(coarse.z.shape))
    pixels = hillshade(coarse, **light).repeat(times, axis=0).repeat(times, axis=1)
    size = coarse.resolution / times
    picture = Image.fromarray(pixels)
    draw = ImageDraw.Draw(picture)
    for line in lines:
        places = np.rint((line - (raster.west, raster.north)) / (size, -size) - 0.5)
        draw.line(places.ravel().tolist(), fill=BLACK)
    with whole(target) as partial:
        picture.save(partial, format="PNG", transparency=0)
    centre = raster.west + size / 2, raster.north - size / 2
    numbers = (size, 0.0, 0.0, -size, *centre)
    _write(target.with_suffix(".pgw"), "".join(f"{each!r}\n" for each in numbers))
    sidecar = target.with_name(f"{target.name}.aux.xml")
    if raster.crs is not None:
        wkt = escape(crs_text.to_wkt(crs_text.from_text(raster.crs)), quote=False)
        _write(sidecar, f"<PAMDataset><SRS>{wkt}</SRS></PAMDataset>\n")
    elif sidecar.exists():  # of another terrain
        _write(sidecar, "<PAMDataset></PAMDataset>\n")


def _write(path: Path, text: str) -> None:
    with whole(path) as partial:
        partial.write_text(text, encoding="utf-8")


def coarser(raster: Raster, cells: int) -> Raster:
    """Make a raster whose cells are the means of the heights in squares of so many cells.

    Parameters
    ----------
    raster : Raster
    cells : int, >= 1
        Per side. The last row and column may have fewer.
    """
    if cells == 1:
        return raster
    total = _sums(np.nan_to_num(raster.z, nan=0.0), cells)
    there = _sums((~np.isnan(raster.z)).astype(np.float64), cells)
    means = np.divide(total, there, out=np.full(total.shape, np.nan), where=there > 0)
    return replace(raster, z=means, resolution=raster.resolution * cells)


def _sums(values: Floats, cells: int) -> Floats:
    rows, columns = (range(0, length, cells) for length in values.shape)
    summed: Floats = np.add.reduceat(np.add.reduceat(values, rows), columns, axis=1)
    return summed
