"""A picture of a cloud at three levels of detail, side by side, and a part of it close up."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spatialq.camera import Camera
from spatialq.export.atomic import whole
from spatialq.numba_cache import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]
    Bytes = NDArray[np.uint8]

PANEL, MARGIN, GAP, TITLE, CAPTION = 600, 24, 20, 56, 58
FINE = 2  # drawn this much larger and reduced: smooth edges
INK, FAINT, PAPER, MARK = (38, 42, 48), (112, 118, 126), (252, 252, 250), (196, 22, 84)
VIEWER = (-0.45, -1.0, 0.85)  # looks from the south, a little west, from above
SHOWN = (0.05, 99.95)  # percentiles of the points that the picture reaches: not to stray ones
EDGE = 1.06  # of what it reaches
CLOSER = 6.0  # how much larger a part is shown
MOST_SAMPLES = 4_000_000  # of a level
SPLAT = 1.7  # diameter of a point, where 1 is how far points of a surface are apart
CELLS = 64  # along a panel, in which points are counted to tell that
LIGHT = (0.74, 0.87, 1.0)  # of the faces of a voxel across x, y and z
BRIGHT = (1.0, 99.0)  # percentiles of the colours that become dark and bright
TONES = (14.0, 244.0)  # these, of 255


class Level(NamedTuple):
    """Samples of a level of detail."""

    level: int
    place: "FloatArray"
    """float64[3, n]"""
    colour: "Bytes"
    """uint8[n, 3]"""
    edge: "FloatArray"
    """float64[n]: of a voxel; 0 of a point"""


class Window(NamedTuple):
    """What a panel shows of the picture's plane."""

    middle: "FloatArray"
    """Right and down, in the unit of the cloud."""
    scale: float
    """Pixels a unit."""
    wide: int
    tall: int


def write_lod_picture(path: str | Path, nodes: Mapping[str, Any], title: str) -> None:
    """Write a PNG of a cloud as its root shows it, as half the tree does, and with all points.

    The view is parallel, from above. Below, a part of the cloud is shown larger, where
    its colours vary most. A tree of two levels has two columns, one of a single leaf has one.

    Parameters
    ----------
    path
        File to write, about 1900 pixels wide.
    nodes : mapping
        Columns of `build_lod`, as the kernel gives them.
    title
        First line of the picture.

    Raises
    ------
    FileError
        If it cannot be written.
    """
    from PIL import Image, ImageDraw, ImageFont

    deepest = int(nodes["level"].max(initial=0))
    dark, bright = _brightness(nodes)
    levels = [_cut(nodes, each, dark, bright) for each in sorted({0, deepest // 2, deepest})]
    axes = Camera(eye=VIEWER, target=(0.0, 0.0, 0.0)).axes()
    axes *= [[1], [-1], [1]]  # right, down, away
    overview, part = _windows(levels, axes)
    apart = _apart(levels[-1], overview)

    canvas = Image.new(
        "RGB",
        (
            2 * MARGIN + len(levels) * (PANEL + GAP) - GAP,
            2 * MARGIN + TITLE + CAPTION + overview.tall + GAP + part.tall,
        ),
        PAPER,
    )
    draw = ImageDraw.Draw(canvas)
    draw.text((MARGIN, MARGIN), title, INK, ImageFont.load_default(32))
    for k, level in enumerate(levels):
        left, top = MARGIN + k * (PANEL + GAP), MARGIN + TITLE
        heading, note = _caption(level)
        draw.text((left, top), heading, INK, ImageFont.load_default(20))
        draw.text((left, top + 26), note, FAINT, ImageFont.load_default(16))
        for window, at in ((overview, top + CAPTION), (part, top + CAPTION + overview.tall + GAP)):
            size = (window.wide, window.tall)
            panel = Image.fromarray(_paint(level, axes, window, apart))
            canvas.paste(panel.resize(size, Image.Resampling.BOX), (left, at))
            draw.rectangle((left, at, left + window.wide - 1, at + window.tall - 1), outline=FAINT)
        x, y = np.array([left, top + CAPTION]) + _places(part.middle, overview)
        half = PANEL / CLOSER / 2
        draw.rectangle((x - half, y - half, x + half, y + half), outline=MARK, width=2)
        draw.rectangle((left, at, left + PANEL - 1, at + PANEL - 1), outline=MARK, width=2)
    with whole(Path(path)) as partial:
        canvas.save(partial, "PNG")


def _caption(level: Level) -> tuple[str, str]:
    voxels = int(np.count_nonzero(level.edge))
    points = level.edge.size - voxels
    if not voxels:
        return "all points", f"{points:,} points"
    parts = [f"{voxels:,} voxels, {level.edge.max():.3g} wide"]
    if points:
        parts.append(f"{points:,} points")
    return f"level {level.level}", ", ".join(parts)


def _brightness(nodes: Mapping[str, Any]) -> tuple[float, float]:
    """Colours of the root that are dark and bright: files have 8 bits or 16, and rarely all."""
    root = _colours(nodes, slice(0, nodes["samples"].offsets[:2][-1]))
    dark, bright = np.percentile(root, BRIGHT) if root.size else (0.0, 0.0)
    return (dark, bright) if dark < bright else (dark - 1, bright + 1)


def _colours(nodes: Mapping[str, Any], rows: Any) -> "NDArray[np.uint16]":
    """Give red, green, blue; or intensity where a file has fields for colours, but none in them."""
    columns = nodes["samples"].columns
    names = ("red", "green", "blue")
    if not any(columns[name].any() for name in names):
        names = ("intensity",) * 3
    return np.column_stack([columns[name][rows] for name in names])


def _cut(nodes: Mapping[str, Any], level: int, dark: float, bright: float) -> Level:
    """Take the nodes of a level, and the leaves above it."""
    chosen = (nodes["level"] == level) | (nodes["is_leaf"] & (nodes["level"] < level))
    offsets, columns = nodes["samples"].offsets, nodes["samples"].columns
    spans = [np.arange(*offsets[k : k + 2]) for k in np.flatnonzero(chosen)]
    step = max(1, math.ceil(sum(map(len, spans)) / MOST_SAMPLES))
    rows = np.concatenate([np.empty(0, np.int64), *spans])[::step]
    edge = np.repeat(nodes["spacing"][chosen], nodes["count"][chosen])[::step]
    colour = np.interp(_colours(nodes, rows), (dark, bright), TONES).astype(np.uint8)
    return Level(level, np.array([columns[axis][rows] for axis in "xyz"]), colour, edge)


def _windows(levels: Sequence[Level], axes: "FloatArray") -> tuple[Window, Window]:
    """Lay one panel around the cloud, and one around the part of it that is most colourful."""
    seen = axes[:2] @ levels[-1].place
    low, high = np.percentile(seen, SHOWN, axis=1) if seen.size else np.zeros((2, 2))
    wide, tall = EDGE * (high - low)
    scale = PANEL / (max(wide, tall) or 1.0)
    overview = Window((low + high) / 2, scale, PANEL, max(PANEL // 3, math.ceil(tall * scale)))
    return overview, Window(_spot(levels[0], axes, overview), CLOSER * scale, PANEL, PANEL)


def _spot(root: Level, axes: "FloatArray", window: Window) -> "FloatArray":
    """Give the middle of the square of a panel whose colours vary most in sum."""
    seen = axes[:2] @ root.place
    places = _places(seen.T, window)
    inside = ((places >= 0) & (places < (window.wide, window.tall))).all(axis=1)
    if not inside.any():
        return window.middle
    square = (places[inside] * CLOSER / PANEL).astype(np.int64)
    _, which, count = np.unique(square, axis=0, return_inverse=True, return_counts=True)
    tones = root.colour[inside].astype(np.float64).T
    sums = np.array([np.bincount(which, tone) for tone in tones])
    squares = np.array([np.bincount(which, tone**2) for tone in tones])
    most = np.argmax((squares - sums**2 / count).sum(axis=0))
    middle: FloatArray = seen[:, inside][:, which == most].mean(axis=1)
    return middle


def _places(seen: "FloatArray", window: Window) -> "FloatArray":
    """Tell where in a panel something is: pixels to the right and down."""
    corner = np.array([window.wide, window.tall]) / 2
    return corner + (seen - window.middle) * window.scale


def _apart(points: Level, window: Window) -> float:
    """Tell how far points lie apart: those of a cell fill a surface through it evenly."""
    edge = PANEL / window.scale / CELLS
    cells = np.floor(points.place / edge).astype(np.int64)
    mixed = cells[0] * 73856093 ^ cells[1] * 19349663 ^ cells[2] * 83492791
    return float(edge * math.sqrt(len(np.unique(mixed)) / max(len(mixed), 1)))


def _paint(level: Level, axes: "FloatArray", window: Window, apart: float) -> "Bytes":
    """Paint voxels as cubes and points as balls, the nearest in front."""
    fine = Window(window.middle, FINE * window.scale, FINE * window.wide, FINE * window.tall)
    seen = axes @ level.place
    x, y = _places(seen[:2].T, fine).T
    away = seen[2] * fine.scale
    depth = np.full((fine.tall, fine.wide), np.inf, np.float32)
    pixels = np.full((fine.tall, fine.wide, 3), PAPER, np.uint8)
    for edge in np.unique(level.edge):
        width = (edge or SPLAT * apart) * fine.scale
        stamp = _cube(axes, width) if edge else _ball(width)
        mine = np.flatnonzero(level.edge == edge)
        _press(x[mine], y[mine], away[mine], level.colour[mine], *stamp, depth, pixels)
    return pixels


Stamp = tuple[Any, Any, Any, Any]
"""Pixels to the right and down (int64[m]), depths and shares of light (float32[m])."""


def _cube(axes: "FloatArray", edge: float) -> Stamp:
    """Make the stamp of a cube: where the line of sight enters it, and by which face."""
    half = (edge + 1) / 2  # pixels, and a little, since stamps lie on whole pixels
    reach = math.ceil(half * math.sqrt(3))
    down, right = (each.ravel() for each in np.mgrid[-reach : reach + 1, -reach : reach + 1])
    on_plane = np.outer(right, axes[0]) + np.outer(down, axes[1])
    sight = axes[2]
    enters = (-half * np.sign(sight) - on_plane) / sight
    leaves = (half * np.sign(sight) - on_plane) / sight
    face = enters.argmax(axis=1)
    near = enters.max(axis=1)
    hit = near < leaves.min(axis=1)
    light = np.array(LIGHT)[face]
    return right[hit], down[hit], near[hit].astype(np.float32), light[hit].astype(np.float32)


def _ball(diameter: float) -> Stamp:
    """Make the stamp of a point: as a ball, so that it ends where the next one is as near."""
    radius = max(diameter, FINE) / 2
    reach = math.ceil(radius)
    down, right = (each.ravel() for each in np.mgrid[-reach : reach + 1, -reach : reach + 1])
    squared = right**2 + down**2
    hit = squared <= radius**2
    near = -np.sqrt(radius**2 - squared[hit])
    return right[hit], down[hit], near.astype(np.float32), np.ones(near.size, np.float32)


@njit(cache=True, nogil=True)
def _press(
    x: Any,
    y: Any,
    away: Any,
    colour: Any,
    right: Any,
    down: Any,
    behind: Any,
    light: Any,
    depth: Any,
    pixels: Any,
) -> None:
    """Press a stamp at each place, where nothing nearer is."""
    tall, wide = depth.shape
    for i in range(away.size):
        left, top = int(np.floor(x[i])), int(np.floor(y[i]))
        for k in range(right.size):
            column, row = left + right[k], top + down[k]
            if 0 <= column < wide and 0 <= row < tall:
                at = np.float32(away[i]) + behind[k]
                if at < depth[row, column]:
                    depth[row, column] = at
                    for c in range(3):
                        pixels[row, column, c] = np.uint8(colour[i, c] * light[k])
