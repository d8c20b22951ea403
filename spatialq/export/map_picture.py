"""A map of values on a grid as a picture for a page, with scales and outlines."""

import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from spatialq.export.features_picture import EMPTY, FAINT, FEATURE_RAMP, INK, PAPER, number, ramp
from spatialq.export.ground_picture import scale_bar

if TYPE_CHECKING:
    from spatialq.export.raster import Raster

SIDE, MARGIN, LEGEND = 800, 16, 150
"""Pixels of the longer side of a map, around it, and of the scale of colours beside it."""
MARKS = 5
MOST = 0.98
"""The quantile of the values that has the last colour, as have all above it."""


def draw_map(
    values: "Raster",
    name: str,
    unit: str | None,
    boxes: Sequence[tuple[float, float, float, float]] = (),
) -> tuple[bytes, int, int]:
    """Draw a map of values from 0 on.

    Parameters
    ----------
    values : Raster
        Not negative; NaN where there is none, which is grey.
    name : str
        Of the values, with their unit; it may have several lines.
    unit : str, optional
        That of the coordinates, such as 'm'; by default it is not known.
    boxes : sequence of four of float
        xmin, ymin, xmax, ymax of outlines.

    Returns
    -------
    bytes, int, int
        A PNG, its width and its height.
    """
    from PIL import Image, ImageDraw, ImageFont

    rows, columns = values.z.shape
    scale = SIDE / max(rows, columns)  # pixels of a cell
    size = max(1, round(columns * scale)), max(1, round(rows * scale))
    there = np.isfinite(values.z)
    most = float(np.quantile(values.z[there], MOST)) if there.any() else 0.0
    most = most or float(values.z[there].max(initial=0.0)) or 1.0
    share = np.where(there, np.minimum(values.z / most, 1.0), 0.0)
    colours = ramp(FEATURE_RAMP)
    pixels = colours[np.rint(255 * share).astype(np.int64)].astype(np.uint8)
    pixels[~there] = EMPTY
    width, height = size[0] + LEGEND + 3 * MARGIN, max(size[1], 260) + 2 * MARGIN + 40
    canvas = Image.new("RGB", (width, height), PAPER)
    draw, small = ImageDraw.Draw(canvas), ImageFont.load_default(15)
    canvas.paste(Image.fromarray(pixels).resize(size, Image.Resampling.NEAREST), (MARGIN, MARGIN))
    pixel = scale / values.resolution
    for xmin, ymin, xmax, ymax in boxes:
        left, right = (MARGIN + (x - values.west) * pixel for x in (xmin, xmax))
        top, bottom = (MARGIN + (values.north - y) * pixel for y in (ymax, ymin))
        draw.rectangle((left, top, max(left, right), max(top, bottom)), outline=INK)
    edge = (MARGIN - 1, MARGIN - 1, MARGIN + size[0], MARGIN + size[1])
    draw.rectangle(edge, outline=FAINT)
    left, top, length = size[0] + 2 * MARGIN, MARGIN + 48, 180
    draw.multiline_text((left, MARGIN), name, INK, small)
    for k in range(length):
        colour = tuple(int(c) for c in colours[round(255 * (1 - k / (length - 1)))])
        draw.line([(left, top + k), (left + 20, top + k)], colour)
    for k in range(MARKS):
        text = number(most * k / (MARKS - 1), 3) + (" and more" if k == MARKS - 1 else "")
        place = top + (1 - k / (MARKS - 1)) * (length - 1)
        draw.text((left + 28, place), text, INK, small, "lm")
    scale_bar(draw, (MARGIN, height - MARGIN - 24), pixel, unit)
    file = io.BytesIO()
    canvas.save(file, "PNG", optimize=True)
    return file.getvalue(), math.ceil(width), height
