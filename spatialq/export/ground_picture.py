"""A picture of classified ground: the shaded terrain, and beside it the points by their classes."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.export.atomic import whole
from spatialq.export.raster import Raster, hillshade
from spatialq.runtime.threads import chunks

if TYPE_CHECKING:
    from spatialq.runtime.arrays import Bools, Bytes, Float32s, Floats

WIDTH, MARGIN, GAP, TITLE, TALLEST = 1600, 24, 24, 56, 1200
INK, FAINT, PAPER, EMPTY = (38, 42, 48), (112, 118, 126), (252, 252, 250), (226, 230, 235)
GROUND, OTHER, IN_DOUBT = (204, 172, 124), (46, 134, 96), (205, 62, 62)
DOUBT = 0.2
"""Metres: of points whose margin is less, every second one has the wrong class."""
LIGHT = 181.0  # what `hillshade` gives of level ground
DARK, BRIGHT = 0.45, 1.2  # ends of the shading, so that no colour is lost in it


def write_ground_picture(
    path: str | Path,
    terrain: Raster,
    xyz: "Sequence[Floats]",
    is_ground: "Bools",
    margin: "Float32s",
    noise: int,
    title: str,
    unit: str | None = None,
    metres: float = 1.0,
) -> None:
    """Write a PNG of a terrain and of the points that it is made of.

    On the left the hillshade of the terrain, on the right the same area with the highest point of
    each pixel, in the colour of its class and shaded, so that an object that was taken for ground,
    or ground that was taken for an object, is seen as one. Points whose margin is less than `DOUBT`
    have a colour of their own.

    Parameters
    ----------
    path
        File to write, 1600 pixels wide.
    terrain : Raster
        It covers the points.
    xyz : three of float64[n]
    is_ground : bool[n]
    margin : float32[n]
        As from `classify_ground`. It is of no account for a point that is no ground though its
        margin is not negative: another one knew better.
    noise : int
        How many points of the cloud are not among them.
    title
        First line of the picture.
    unit : str, optional
        That of the coordinates, such as 'm' or 'ft'; by default it is not known.
    metres : float
        In one unit of the margins.

    Raises
    ------
    FileError
        If it cannot be written.
    """
    from PIL import Image, ImageDraw, ImageFont

    rows, columns = terrain.z.shape
    room = (WIDTH - 2 * MARGIN - GAP) // 2
    scale = min(room / columns, TALLEST / rows)  # pixels of a cell
    size = max(1, round(columns * scale)), max(1, round(rows * scale))
    shade = hillshade(terrain)[..., None]
    relief = np.where(shade == 0, np.array(EMPTY, np.uint8), shade)
    doubt = DOUBT / metres
    points = _points(xyz, is_ground, margin, doubt, terrain, scale)
    panels = (
        (f"terrain, cells of {_length(terrain.resolution, unit)}", relief),
        ("the highest point of each pixel", points),
    )
    top = TITLE + MARGIN + 28
    canvas = Image.new("RGB", (WIDTH, top + size[1] + 92), PAPER)
    draw = ImageDraw.Draw(canvas)
    medium = ImageFont.load_default(18)
    draw.text((MARGIN, MARGIN), title, INK, ImageFont.load_default(30))
    for k, (name, pixels) in enumerate(panels):
        left = MARGIN + k * (room + GAP)
        canvas.paste(Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS), (left, top))
        draw.rectangle((left - 1, top - 1, left + size[0], top + size[1]), outline=FAINT)
        draw.text((left, top - 28), name, INK, medium)
    below = top + size[1] + 24
    scale_bar(draw, (MARGIN, below), scale / terrain.resolution, unit)
    ground, in_doubt = int(np.count_nonzero(is_ground)), 0
    for start, stop in chunks(margin.size):
        part = slice(start, stop)
        in_doubt += int(np.count_nonzero(_in_doubt(is_ground[part], margin[part], doubt)))
    counts = ground, is_ground.size - ground, in_doubt
    _legend(draw, (MARGIN + room + GAP, below), counts, noise)
    with whole(Path(path)) as partial:
        canvas.save(partial, "PNG")


def _in_doubt(is_ground: "Bools", margin: "Float32s", doubt: float) -> "Bools":
    found: Bools = (np.abs(margin) < doubt) & (is_ground == (margin >= 0))
    return found


def _points(
    xyz: "Sequence[Floats]",
    is_ground: "Bools",
    margin: "Float32s",
    doubt: float,
    box: Raster,
    scale: float,
) -> "Bytes":
    """Colour and shade the highest points of cells that are pixels, or wider if these had none."""
    x, y, z = xyz
    high, wide = (cells * box.resolution for cells in box.z.shape)
    apart = math.sqrt(2 * high * wide / max(z.size, 1))
    cell = max(box.resolution / scale, min(apart, max(high, wide) / 40))
    rows, columns = math.ceil(high / cell), math.ceil(wide / cell)
    surface = np.full(rows * columns, np.nan)
    colour = np.full((rows * columns, 3), EMPTY, np.float64)
    colours = np.array([OTHER, GROUND, IN_DOUBT], np.float64)
    for start, stop in chunks(z.size):
        part = slice(start, stop)
        row = np.clip((box.north - y[part]) // cell, 0, rows - 1).astype(np.int64)
        column = np.clip((x[part] - box.west) // cell, 0, columns - 1).astype(np.int64)
        place = row * columns + column
        order = np.argsort(z[part], kind="stable")  # of the points of a cell the last one remains
        order = order[~(z[part][order] < surface[place[order]])]
        surface[place[order]] = z[part][order]
        kind = np.where(_in_doubt(is_ground[part], margin[part], doubt), 2, is_ground[part])
        colour[place[order]] = colours[kind[order]]
    shade = hillshade(Raster(surface.reshape(rows, columns), 0.0, 0.0, cell))
    light = np.where(shade == 0, 1.0, np.clip(shade / LIGHT, DARK, BRIGHT))
    lit = np.clip(colour.reshape(rows, columns, 3) * light[..., None], 0, 255)
    pixels: Bytes = lit.astype(np.uint8)
    return pixels


def _length(value: float, unit: str | None) -> str:
    return f"{value:g}" if unit is None else f"{value:g} {unit}"


def scale_bar(draw: Any, at: tuple[int, int], pixels: float, unit: str | None) -> None:
    """Draw the longest of 1, 2, 5 times a power of ten units that is not above 170 pixels."""
    from PIL import ImageFont

    power = 10.0 ** math.floor(math.log10(170 / pixels))
    length = max(step * power for step in (1, 2, 5) if step * power * pixels <= 170 * (1 + 1e-9))
    (left, top), end = at, at[0] + length * pixels
    draw.line([(left, top + 8), (end, top + 8)], INK, 3)
    for each in (left, end):
        draw.line([(each, top + 2), (each, top + 14)], INK, 2)
    text = _length(length, unit) + ("" if unit else " in the unit of the file")
    draw.text((end + 14, top + 8), text, INK, ImageFont.load_default(16), anchor="lm")


def _legend(draw: Any, at: tuple[int, int], counts: tuple[int, int, int], noise: int) -> None:
    """Name the colours; `counts` are of ground, of others, and of those in doubt of either."""
    from PIL import ImageFont

    small, n = ImageFont.load_default(16), max(counts[0] + counts[1], 1)
    names = "ground", "others", f"within {DOUBT:g} m of the limit"
    places = (0, 0), (350, 0), (0, 30)
    for colour, name, count, (x, y) in zip(
        (GROUND, OTHER, IN_DOUBT), names, counts, places, strict=True
    ):
        left, top = at[0] + x, at[1] + y
        draw.rectangle((left, top, left + 22, top + 16), fill=colour, outline=FAINT)
        text = f"{name}: {count:,} points, {100 * count / n:.0f} %"
        draw.text((left + 32, top + 8), text, INK, small, anchor="lm")
    if noise:
        text = f"without {noise:,} points of noise"
        draw.text((at[0] + 480, at[1] + 38), text, FAINT, small, anchor="lm")
