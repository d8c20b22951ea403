"""A picture of terrain features: a hillshade, and a map of each feature at each scale."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.export.atomic import whole
from spatialq.export.raster import Raster, hillshade
from spatialq.runtime.arrays import Bytes, Floats, Ints

WIDTH, MARGIN, TITLE, GAP = 1600, 28, 64, 14
HILLSHADE_SIDE, LEGEND = 500, 130
MAX_ROWS, MAX_COLUMNS = 4, 3
INK, FAINT, PAPER, EMPTY = (38, 42, 48), (112, 118, 126), (252, 252, 250), (226, 230, 235)
SLOPE = 0.35  # root mean square of the slopes in the hillshade, to which heights are scaled
NEAR = 1e-9
"""Tolerance for positions on the border of an example, as a part of its extent."""
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Quantiles of the examples at the marks of a legend."""

# Colours as lightness, chroma and hue in OKLCh: equal steps of lightness look equal.
FEATURE_RAMP = (
    (0.24, 0.09, 300),
    (0.42, 0.10, 255),
    (0.60, 0.10, 200),
    (0.76, 0.13, 150),
    (0.94, 0.16, 108),
)
HEIGHT_RAMP = (
    (0.55, 0.07, 150),
    (0.74, 0.08, 125),
    (0.84, 0.07, 90),
    (0.76, 0.06, 60),
    (0.95, 0.01, 60),
)


@dataclass(frozen=True)
class Terrain:
    """The terrain under the examples.

    Parameters
    ----------
    z : float64[rows, columns]
        Row 0 in the north; NaN where there is no height.
    box : sequence of float
        xmin, ymin, zmin, xmax, ymax, zmax; those of z are not used.
    """

    z: Floats
    box: Sequence[float]

    @classmethod
    def of(cls, raster: Raster) -> "Terrain":
        """Use a whole raster."""
        rows, columns = raster.z.shape
        east = raster.west + columns * raster.resolution
        south = raster.north - rows * raster.resolution
        return cls(raster.z, (raster.west, south, -math.inf, east, raster.north, math.inf))


@dataclass(frozen=True)
class FeatureMap:
    """One feature at one scale, for all examples.

    Parameters
    ----------
    name : str
        Name of the feature; maps with the same name share their colours.
    scale : float
    x, y : float64[n]
        Centres of the examples.
    value : float64[n]
        NaN or masked where there is no value.
    """

    name: str
    scale: float
    x: Floats
    y: Floats
    value: Floats


def write_features_picture(
    path: str | Path,
    terrain: Terrain,
    maps: Sequence[FeatureMap],
    *,
    example: tuple[float, float],
    title: str,
) -> None:
    """Write a PNG of a hillshade and maps of features: one row per feature, one column per scale.

    Each row has one legend. Each colour is used for the same number of examples, so that a few
    extreme values do not make all others look the same.

    Parameters
    ----------
    path
        File to write, 1600 pixels wide.
    terrain : Terrain
    maps : sequence of FeatureMap, one or more
        At most four names are drawn; of more than three scales the first, the central and the last.
    example : (float, float)
        Extent of an example along x and along y.
    title
        First line of the picture.

    Raises
    ------
    FileError
        If it cannot be written.
    """
    from PIL import Image, ImageDraw, ImageFont

    names = list(dict.fromkeys(each.name for each in maps))[:MAX_ROWS]
    scales = _some(sorted({each.scale for each in maps}))
    west, south, _, east, north, _ = terrain.box
    aspect = (north - south) / (east - west)
    left = MARGIN + HILLSHADE_SIDE + 2 * GAP
    column = (WIDTH - MARGIN - LEGEND - left) // MAX_COLUMNS
    wide, tall = _fit(aspect, column - GAP, column - GAP)
    hillshade_wide, hillshade_tall = _fit(aspect, HILLSHADE_SIDE, 2 * HILLSHADE_SIDE)
    top = TITLE + MARGIN + 24
    bottom = top + max(len(names) * (tall + 2 * GAP), hillshade_tall + 130)
    canvas = Image.new("RGB", (WIDTH, bottom + MARGIN), PAPER)
    draw = ImageDraw.Draw(canvas)
    small, medium = ImageFont.load_default(16), ImageFont.load_default(18)
    draw.text((MARGIN, MARGIN), title, INK, ImageFont.load_default(32))

    image = Image.fromarray(_hillshade(terrain.z))
    image = image.resize((hillshade_wide, hillshade_tall), Image.Resampling.LANCZOS)
    canvas.paste(image, (MARGIN, top))
    draw.text((MARGIN, top - 26), "hillshade", INK, medium)
    notes = [
        f"{maps[0].x.size:,} examples",
        "each: the mean of a feature over its patches",
        "colours share out the examples evenly",
        "grey: no value",
    ]
    for k, note in enumerate(notes):
        draw.text((MARGIN, top + hillshade_tall + 16 + 24 * k), note, FAINT, small)

    for j, scale in enumerate(scales):
        draw.text((left + j * column, top - 26), f"scale {scale:.4g}", INK, medium)
    for i, name in enumerate(names):
        row = top + i * (tall + 2 * GAP)
        shown = {each.scale: each for each in maps if each.name == name}
        values = np.sort(np.concatenate([_known(each.value) for each in shown.values()]))
        for j, scale in enumerate(scales):
            if scale in shown:
                at = (left + j * column, row)
                panel = _panel(shown[scale], values, terrain.box, example, (wide, tall))
                canvas.paste(Image.fromarray(panel), at)
                draw.rectangle((at[0] - 1, at[1] - 1, at[0] + wide, at[1] + tall), outline=FAINT)
        _legend(draw, (left + len(scales) * column, row), name, values, tall)
    with whole(Path(path)) as partial:
        canvas.save(partial, "PNG")


def _some(scales: list[float]) -> list[float]:
    n = len(scales)
    return scales if n <= MAX_COLUMNS else [scales[0], scales[n // 2], scales[-1]]


def _fit(aspect: float, wide: int, tall: int) -> tuple[int, int]:
    """Fit a box with this ratio of height to width into another box."""
    width = min(wide, tall / aspect)
    return max(1, round(width)), max(1, round(width * aspect))


def _known(value: object) -> Floats:
    plain = np.ma.filled(np.ma.asarray(value, np.float64), np.nan)
    known: Floats = plain[~np.isnan(plain)]
    return known


def _hillshade(z: Floats) -> Bytes:
    """Colour by height and shade; slopes are scaled to be visible, whatever the units."""
    known = ~np.isnan(z)
    low, high = np.percentile(z[known], (1, 99)) if known.any() else (0.0, 0.0)
    steps = np.concatenate([np.diff(z, axis=axis).ravel() for axis in (0, 1)])
    steps = steps[~np.isnan(steps)]
    slope = math.sqrt(float(np.mean(steps**2))) if steps.size else 0.0
    light = hillshade(Raster(z * (SLOPE / slope if slope else 1.0), 0, 0, 1)) / 181.0
    share = np.where(known, (z - low) / (high - low or 1.0), 0.0)
    colour = ramp(HEIGHT_RAMP)[np.clip(255 * share, 0, 255).astype(np.int64)]
    colour = np.clip(colour * (0.25 + 0.75 * light[..., None]), 0, 255)
    colour[~known] = EMPTY
    painted: Bytes = colour.astype(np.uint8)
    return painted


def _panel(
    shown: FeatureMap,
    values: Floats,
    box: Sequence[float],
    example: tuple[float, float],
    size: tuple[int, int],
) -> Bytes:
    """Draw a map: each pixel gets the colour of the nearest example that contains it."""
    wide, tall = size
    west, south, _, east, north, _ = box
    x = west + (np.arange(wide) + 0.5) * (east - west) / wide
    y = north - (np.arange(tall) + 0.5) * (north - south) / tall
    (column, of_x), (row, of_y) = (
        _nearest(*places) for places in zip((shown.x, shown.y), example, (x, y), strict=True)
    )
    value = np.full((of_y.max() + 1, of_x.max() + 1), np.nan)
    value[of_y, of_x] = np.ma.filled(np.ma.asarray(shown.value, np.float64), np.nan)
    below = (np.searchsorted(values, value, "left") + np.searchsorted(values, value, "right")) / 2
    share = below / max(1, values.size)
    colours = ramp(FEATURE_RAMP)[np.clip(256 * share, 0, 255).astype(np.int64)]
    colours[np.isnan(value)] = EMPTY
    inside = (row >= 0)[:, None] & (column >= 0)
    painted: Bytes = np.where(inside[..., None], colours[row[:, None], column], PAPER).astype(
        np.uint8
    )
    return painted


def _nearest(centres: Floats, reach: float, places: Floats) -> tuple[Ints, Ints]:
    """Find the window that contains each position, -1 for none, and the window of each centre.

    Of several overlapping windows it is the one with the nearest centre.
    """
    at, which = np.unique(centres, return_inverse=True)
    index = np.searchsorted((at[:-1] + at[1:]) / 2, places)
    inside = np.abs(places - at[index]) <= 0.5 * reach * (1 + NEAR)
    return np.where(inside, index, -1), which


def _legend(draw: Any, at: tuple[int, int], name: str, values: Floats, tall: int) -> None:
    from PIL import ImageFont

    small = ImageFont.load_default(15)
    left, top = at
    title, font = _label(name)
    draw.multiline_text((left, top), title, INK, font, spacing=1)
    start, length = top + 44, max(90, tall - 54)
    colours = ramp(FEATURE_RAMP)
    for k in range(length):
        colour = tuple(int(c) for c in colours[round(255 * (1 - k / (length - 1)))])
        draw.line([(left, start + k), (left + 20, start + k)], colour)
    if values.size:
        for share, text in zip(SHARES, _apart(np.quantile(values, SHARES)), strict=True):
            draw.text((left + 28, start + (1 - share) * (length - 1)), text, INK, small, "lm")


def _label(name: str) -> tuple[str, Any]:
    """Give the title of a legend, with the method on a separate line, and a font that fits."""
    from PIL import Image, ImageDraw, ImageFont

    text = name.replace(".", ".\n")
    draw = ImageDraw.Draw(Image.new("L", (1, 1)))
    fonts = (ImageFont.load_default(size) for size in range(18, 4, -1))
    for font in fonts:
        _, _, right, bottom = draw.multiline_textbbox((0, 0), text, font, spacing=1)
        if right <= LEGEND and bottom <= 32:
            break
    return text, font


def _apart(marks: Floats) -> list[str]:
    """Write numbers with the fewest digits, from three to six, that distinguish them."""
    differ = np.unique(marks).size
    texts: list[str] = []
    for digits in range(3, 7):
        texts = [number(mark, digits) for mark in marks]
        if len(set(texts)) >= differ:
            break
    return texts


def number(value: float, digits: int) -> str:
    """Write a number without an exponent: 1230, not 1.23e+03."""
    if 1e-3 <= abs(value) < 1e6:
        return np.format_float_positional(value, digits, unique=False, fractional=False, trim="-")
    return f"{value:.{digits}g}"


@cache
def ramp(knots: tuple[tuple[float, float, float], ...]) -> Floats:
    """Interpolate 256 colours of sRGB, 0 to 255, between knots in OKLCh (Ottosson 2020)."""
    at = np.linspace(0, len(knots) - 1, 256)
    lightness, chroma, hue = (
        np.interp(at, np.arange(len(knots)), column) for column in zip(*knots, strict=True)
    )
    a, b = chroma * np.cos(np.radians(hue)), chroma * np.sin(np.radians(hue))
    cones = (
        np.stack(
            [
                lightness + 0.3963377774 * a + 0.2158037573 * b,
                lightness - 0.1055613458 * a - 0.0638541728 * b,
                lightness - 0.0894841775 * a - 1.2914855480 * b,
            ]
        )
        ** 3
    )
    to_linear = np.array(
        [
            [4.0767416621, -3.3077115913, 0.2309699292],
            [-1.2684380046, 2.6097574011, -0.3413193965],
            [-0.0041960863, -0.7034186147, 1.7076147010],
        ]
    )
    linear = np.clip(to_linear @ cones, 0, 1).T
    srgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return np.asarray(255 * srgb)
