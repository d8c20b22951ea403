"""A picture of a symmetric matrix of counts: larger counts are darker."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.errors import FileError
from spatialq.export.atomic import WRITER, whole

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont, ImageFont

    Font = FreeTypeFont | ImageFont

MARGIN, TITLE, LABEL = 24, 56, 8
"""Pixels around the picture, of the line above it, and between labels and cells."""
LARGEST, SMALLEST, WIDEST = 64, 18, 1600
"""Pixels of a cell; of all cells beside each other, if there are not too many."""
LONGEST = 60
"""Characters of a name that are drawn, about: its begin and its end."""
MAX_ROWS = 500
"""Rows: a picture of more takes gigabytes."""
INK, PAPER, EMPTY = (38, 42, 48), (252, 252, 250), (238, 240, 242)
PALE, DARK = (253, 226, 190), (178, 34, 34)
"""Colours of the fewest and of the most pairs."""


def write_matrix_picture(
    path: Path, names: Sequence[str], counts: Sequence[Sequence[int]], title: str
) -> None:
    """Write a PNG of a matrix, with the names of its rows and columns and the number in each cell.

    Parameters
    ----------
    path : Path
    names : sequence of str
        Of the n rows and columns.
    counts : n sequences of n int
    title : str

    Raises
    ------
    FileError
        If it cannot be written, or has too many rows.
    """
    from PIL import Image, ImageDraw, ImageFont

    if len(names) > MAX_ROWS:
        reason = (
            f"a picture of a matrix has up to {MAX_ROWS} rows, got {len(names):,}; a .csv has all"
        )
        raise FileError.of(WRITER, path, reason)
    side = max(SMALLEST, min(LARGEST, WIDEST // max(len(names), 1)))
    font, small = ImageFont.load_default(18), ImageFont.load_default(max(9, side // 3))
    labels = [_label(_brief(name) or "(none)", font) for name in names]
    wide = max((label.width for label in labels), default=0) + LABEL
    length = side * len(names)
    heading = ImageFont.load_default(30)
    width = max(wide + length, math.ceil(heading.getlength(title))) + 2 * MARGIN
    canvas = Image.new("RGB", (width, TITLE + wide + length + 2 * MARGIN), PAPER)
    draw = ImageDraw.Draw(canvas)
    draw.text((MARGIN, MARGIN), title, INK, heading)
    left, top = MARGIN + wide, TITLE + MARGIN + wide
    largest = max((max(row) for row in counts), default=0)
    for i, (label, row) in enumerate(zip(labels, counts, strict=True)):
        middle = (side - label.height) // 2
        canvas.paste(label, (left - LABEL - label.width, top + i * side + middle))
        upright = label.rotate(90, expand=True)
        canvas.paste(upright, (left + i * side + middle, top - LABEL - upright.height))
        for j, count in enumerate(row):
            x, y = left + j * side, top + i * side
            share = _share(count, largest)
            draw.rectangle((x, y, x + side - 2, y + side - 2), _colour(count, share))
            if count:
                ink = PAPER if share > 0.5 else INK
                middle_of = (x + side / 2 - 1, y + side / 2 - 1)
                draw.text(middle_of, f"{count}", ink, small, anchor="mm")
    with whole(path) as partial:
        canvas.save(partial, "PNG")


def _brief(name: str) -> str:
    line = " ".join(name.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST // 2]}...{line[-LONGEST // 2 :]}"


def _label(name: str, font: "Font"):  # type: ignore[no-untyped-def]
    from PIL import Image, ImageDraw

    _, _, width, height = font.getbbox(name)
    image = Image.new("RGB", (math.ceil(width), math.ceil(height) + 2), PAPER)
    ImageDraw.Draw(image).text((0, 0), name, INK, font)
    return image


def _share(count: int, largest: int) -> float:
    """Say how dark a cell is, from 0 to 1: by the logarithm, since a few cells have most."""
    return math.log(count) / math.log(largest) if count and largest > 1 else 0.0


def _colour(count: int, share: float) -> tuple[int, int, int]:
    if not count:
        return EMPTY
    r, g, b = (round(few + share * (many - few)) for few, many in zip(PALE, DARK, strict=True))
    return r, g, b
