"""A picture of a cloud's ground: shaded terrain with the ground points over it."""

import math
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw, ImageFont

FloatArray = NDArray[np.float64]
Scalar = TypeVar("Scalar", np.bool_, np.float64)

WIDTH, MAP_SIDE, MARGIN, TITLE = 1200, 900, 24, 56
FINE = 2  # the map is drawn this much larger and reduced: smooth dots without an extra library
INK, FAINT, PAPER, EMPTY = (38, 42, 48), (112, 118, 126), (252, 252, 250), (226, 230, 235)
DOT = (196, 22, 84)
# low to high: meadow, sand, rock, snow
TINTS = np.array(
    [(112, 158, 118), (176, 192, 128), (224, 208, 150), (192, 150, 112), (238, 234, 228)]
)


class _Raster(NamedTuple):
    """Heights on a grid, row 0 in the north; `known` cells hold a point or adjoin one."""

    z: FloatArray
    known: NDArray[np.bool_]
    cell: float
    west: float
    north: float


def hillshade(z: ArrayLike, cell: float, *, exaggeration: float = 1.5) -> NDArray[np.uint8]:
    """Shade a terrain as if lit from the north-west, 45 degrees above the horizon.

    Parameters
    ----------
    z : float64[rows, columns], metres
        Heights, row 0 in the north. NaN shades as flat ground.
    cell : float, metres, > 0
        Side of a cell.
    exaggeration : float
        Factor on the heights.

    Returns
    -------
    uint8[rows, columns]
        0 is dark, 255 is full light; flat ground is 180.
    """
    heights = np.asarray(z, np.float64) * exaggeration
    padded = np.pad(heights, 1, mode="edge") if heights.size else np.zeros((3, 3))
    east = (padded[1:-1, 2:] - padded[1:-1, :-2]) / (2 * cell)
    north = (padded[:-2, 1:-1] - padded[2:, 1:-1]) / (2 * cell)
    # the unit vector to the light is (-1/2, 1/2, 1/sqrt 2), the surface's normal (-east, -north, 1)
    light = (east / 2 - north / 2 + math.sqrt(0.5)) / np.sqrt(east**2 + north**2 + 1.0)
    light = np.where(np.isfinite(light), light, math.sqrt(0.5))
    shade: NDArray[np.uint8] = np.rint(255 * np.clip(light, 0.0, 1.0)).astype(np.uint8)
    return shade if heights.size else np.zeros(heights.shape, np.uint8)


def write_ground_picture(
    path: str | Path,
    x: ArrayLike,
    y: ArrayLike,
    z: ArrayLike,
    seeds_xyz: ArrayLike,
    title: str = "Ground points",
) -> None:
    """Write a PNG of a cloud's terrain with ground points drawn over it.

    The terrain is the lowest point of each cell; single pits are raised to the median of their
    neighbours, and cells without points are filled from coarser grids. Cells away from any point
    are left blank. Cells are about as wide as the points are apart, at least a 900th of the
    longer side of the cloud.

    Parameters
    ----------
    path
        File to write; about 1200 pixels wide.
    x, y, z : float64[n], metres
        The cloud. Points with a NaN or infinite coordinate are left out; n may be 0.
    seeds_xyz : float64[m, 3], metres
        The points to draw as dots; m may be 0.
    title
        First line of the picture.
    """
    cloud = np.column_stack([np.asarray(each, np.float64).ravel() for each in (x, y, z)])
    cloud = cloud[np.isfinite(cloud).all(axis=1)]
    seeds = np.asarray(seeds_xyz, np.float64).reshape(-1, 3)
    seeds = seeds[np.isfinite(seeds).all(axis=1)]
    raster = _grid(cloud)
    rows, columns = raster.z.shape
    scale = MAP_SIDE / (max(rows, columns) * raster.cell)  # pixels a metre
    width, height = (max(1, round(k * raster.cell * scale)) for k in (columns, rows))

    low, high = _height_range(raster)
    big = (FINE * width, FINE * height)
    image = Image.fromarray(_paint(raster, low, high)).resize(big, Image.Resampling.BICUBIC)
    pixels = np.array(image)
    _dots(pixels, seeds, raster, FINE * scale)
    picture = Image.fromarray(pixels).resize((width, height), Image.Resampling.LANCZOS)

    panel = max(height, 560)
    canvas = Image.new("RGB", (WIDTH, TITLE + panel + 2 * MARGIN), PAPER)
    left, top = MARGIN + (MAP_SIDE - width) // 2, TITLE + MARGIN + (panel - height) // 2
    canvas.paste(picture, (left, top))
    draw = ImageDraw.Draw(canvas)
    draw.rectangle((left - 1, top - 1, left + width, top + height), outline=FAINT)
    draw.text((MARGIN, MARGIN), title, INK, ImageFont.load_default(30))
    _legend(draw, raster, (low, high), (len(cloud), len(seeds)), scale)
    canvas.save(path)


def _grid(cloud: FloatArray) -> _Raster:
    if not len(cloud):
        return _Raster(np.zeros((1, 1)), np.zeros((1, 1), np.bool_), 1.0, 0.0, 0.0)
    low, high = cloud[:, :2].min(axis=0), cloud[:, :2].max(axis=0)
    size = high - low
    # a single line of points still gets a map one eighth as wide as it is long
    longest = float(size.max()) or 1.0
    pad = np.maximum(longest / 8 - size, 0.0) / 2 + longest * 1e-6
    low, high = low - pad, high + pad
    size = high - low
    spacing = math.sqrt(float(size.prod()) / len(cloud))
    cell = max(longest / MAP_SIDE, min(spacing, longest / 40))
    columns, rows = (max(1, math.ceil(extent / cell)) for extent in size)
    column = np.minimum((cloud[:, 0] - low[0]) // cell, columns - 1).astype(np.int64)
    row = np.minimum((high[1] - cloud[:, 1]) // cell, rows - 1).astype(np.int64)
    lowest = np.full(rows * columns, np.inf)
    np.minimum.at(lowest, row * columns + column, cloud[:, 2])
    z = np.where(np.isinf(lowest), np.nan, lowest).reshape(rows, columns)
    known = _dilate(_dilate(~np.isnan(z)))
    return _Raster(_raise_pits(_fill(z)), known, cell, float(low[0]), float(high[1]))


def _dilate(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.asarray(_neighbours(mask).any(axis=(-2, -1)))


def _neighbours(grid: NDArray[Scalar]) -> NDArray[Scalar]:
    """3 x 3 cells around each cell, the border repeated."""
    windows: NDArray[Scalar] = np.lib.stride_tricks.sliding_window_view(
        np.pad(grid, 1, mode="edge"), (3, 3)
    )
    return windows


def _fill(z: FloatArray) -> FloatArray:
    """Fill unknown cells from a grid half as fine, and that from the next; then smooth them."""
    unknown = np.isnan(z)
    if not unknown.any():
        return z
    rows, columns = z.shape
    wide = np.pad(z, ((0, rows % 2), (0, columns % 2)), constant_values=np.nan)
    blocks = wide.reshape(wide.shape[0] // 2, 2, wide.shape[1] // 2, 2)
    count = np.isfinite(blocks).sum(axis=(1, 3))
    total = np.nansum(blocks, axis=(1, 3))
    coarse = _fill(np.where(count > 0, total / np.maximum(count, 1), np.nan))
    fine = coarse.repeat(2, axis=0).repeat(2, axis=1)[:rows, :columns]
    filled = np.where(unknown, fine, z)
    for _ in range(3):
        filled = np.where(unknown, _neighbours(filled).mean(axis=(-2, -1)), z)
    return filled


def _raise_pits(z: FloatArray) -> FloatArray:
    """Raise cells that lie 2 m or more below the median of their surroundings: low outliers."""
    median = np.median(_neighbours(z), axis=(-2, -1))
    return np.where(z < median - 2.0, median, z)


def _height_range(raster: _Raster) -> tuple[float, float]:
    if not raster.known.any():
        return 0.0, 0.0
    low, high = np.percentile(raster.z[raster.known], [1, 98])
    return float(low), float(high)


def _tint(share: FloatArray) -> FloatArray:
    at = np.clip(share, 0.0, 1.0) * (len(TINTS) - 1)
    knots = np.arange(len(TINTS))
    return np.stack([np.interp(at, knots, TINTS[:, band]) for band in range(3)], axis=-1)


def _paint(raster: _Raster, low: float, high: float) -> NDArray[np.uint8]:
    share = (raster.z - low) / (high - low) if high > low else np.full(raster.z.shape, 0.4)
    light = hillshade(raster.z, raster.cell)[..., None] / 180.0
    colour = np.clip(_tint(share) * (0.25 + 0.75 * light), 0, 255)
    colour[~raster.known] = EMPTY
    painted: NDArray[np.uint8] = colour.astype(np.uint8)
    return painted


def _radius(seeds: int) -> float:
    """Dots get smaller where there are many: 2 to 1 pixels."""
    return float(np.interp(math.log10(max(seeds, 1)), [2.5, 4.5], [2.6, 1.1]))


def _dots(pixels: NDArray[np.uint8], seeds: FloatArray, raster: _Raster, scale: float) -> None:
    """Paint all dots at once, their pale rims first so that no rim covers a dot."""
    column = np.floor((seeds[:, 0] - raster.west) * scale).astype(np.int64)
    row = np.floor((raster.north - seeds[:, 1]) * scale).astype(np.int64)
    radius = FINE * _radius(len(seeds))
    reach = math.ceil(radius + FINE)
    for outer, colour in ((radius + 0.6 * FINE, (255, 255, 255)), (radius, DOT)):
        for i in range(-reach, reach + 1):
            for j in range(-reach, reach + 1):
                if math.hypot(i, j) > outer:
                    continue
                r, c = row + i, column + j
                inside = (r >= 0) & (r < pixels.shape[0]) & (c >= 0) & (c < pixels.shape[1])
                pixels[r[inside], c[inside]] = colour


def _legend(
    draw: ImageDraw.ImageDraw,
    raster: _Raster,
    heights: tuple[float, float],
    counts: tuple[int, int],
    scale: float,
) -> None:
    left, top = MARGIN + MAP_SIDE + 28, TITLE + MARGIN
    small, medium = ImageFont.load_default(16), ImageFont.load_default(18)

    middle = left + 18
    draw.polygon([(middle, top), (middle - 13, top + 40), (middle, top + 31)], fill=INK)
    draw.polygon([(middle, top), (middle + 13, top + 40), (middle, top + 31)], outline=INK)
    draw.text((middle, top + 46), "N", INK, medium, anchor="ma")

    length = _round_length(170 / scale)
    end = left + length * scale
    line = top + 116
    draw.line([(left, line), (end, line)], INK, 3)
    for at in (left, end):
        draw.line([(at, line - 6), (at, line + 6)], INK, 2)
    text = f"{length / 1000:g} km" if length >= 1000 else f"{length:g} m"
    draw.text((left, line + 12), text, INK, small)

    bar = line + 64
    draw.text((left, bar), "Height", INK, medium)
    ramp = _tint(np.linspace(1.0, 0.0, 160))
    for i, colour in enumerate(ramp.astype(int).tolist()):
        draw.line([(left, bar + 32 + i), (left + 26, bar + 32 + i)], tuple(colour))
    low, high = heights
    for share, value in ((0.0, high), (0.5, (low + high) / 2), (1.0, low)):
        at = bar + 32 + 159 * share
        draw.text((left + 36, at), f"{value:.1f} m", INK, small, anchor="lm")

    dots = bar + 232
    draw.ellipse((left + 8, dots + 2, left + 18, dots + 12), fill=DOT, outline=(255, 255, 255))
    draw.text((left + 36, dots + 7), f"{counts[1]:,} ground points", INK, small, anchor="lm")
    if not raster.known.all():
        draw.rectangle((left, dots + 32, left + 26, dots + 48), fill=EMPTY, outline=FAINT)
        draw.text((left + 36, dots + 40), "no points", INK, small, anchor="lm")
    notes = [
        f"{counts[0]:,} points",
        "terrain: lowest point of",
        f"each cell of {raster.cell:.3g} m",
        "light from the north-west",
    ]
    for i, note in enumerate(notes):
        draw.text((left, dots + 72 + 22 * i), note, FAINT, small)


def _round_length(length: float) -> float:
    """Longest of 1, 2, 5 times a power of ten that is not above a length."""
    power: float = 10.0 ** math.floor(math.log10(length))
    return max(step * power for step in (1, 2, 5) if step * power <= length * (1 + 1e-9))
