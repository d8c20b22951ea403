"""A picture of a cloud at three levels of detail, side by side, and a part of it close up."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spatialq.export.atomic import whole
from spatialq.export.camera import Camera
from spatialq.runtime.compile_cache import njit

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]
    Bytes = NDArray[np.uint8]
    Colours = NDArray[np.uint16]

COLOURS, GREY = ("red", "green", "blue"), "intensity"
PANEL, MARGIN, GAP, TITLE, CAPTION = 600, 24, 20, 56, 58
FINE = 2  # drawn this much larger and reduced: smooth edges
INK, FAINT, PAPER, MARK = (38, 42, 48), (112, 118, 126), (252, 252, 250), (196, 22, 84)
VIEWER = (-0.45, -1.0, 0.85)  # looks from the south, a little west, from above
SHOWN = (0.05, 99.95)  # percentiles of the points that the picture reaches: not to stray ones
EDGE = 1.06  # of what it reaches
COARSEST = 40.0  # pixels that a voxel of the first level is wide, at most
CLOSER = 6.0  # how much larger a part is shown
MOST_SAMPLES = 4_000_000  # of a level
SPLAT = 1.7  # diameter of a point, where 1 is how far points of a surface are apart
CELLS = 64  # along a panel, in which points are counted to tell that
LIGHT = (0.74, 0.87, 1.0)  # of the faces of a voxel across x, y and z
BRIGHT = 99.0  # percentile of the colours that becomes
TONES = (0.0, 244.0)  # the brightest; of 255
CLOSED = 2.0  # points a voxel, at least, so that surfaces of voxels have few holes
HEIGHTS = ((58, 82, 122), (104, 150, 146), (255, 240, 200))  # colours of low to high
CREASE = 12.0  # pixels that a neighbour is nearer where shade is darkest
SHADE = 0.75  # of the light, there


class LodTable(NamedTuple):
    """Columns of `build_lod` as NumPy arrays; the samples of node k are those from offset k on."""

    level: Any
    is_leaf: Any
    spacing: Any
    points: Any
    offsets: Any
    samples: Mapping[str, Any]
    colours: "tuple[Any, Any, Any]"
    is_plain: bool
    """Whether there are none: the colours are those of the height."""

    @classmethod
    def of(cls, table: "pa.Table") -> "LodTable":
        """Take them out of a table, the samples without a copy."""
        level, is_leaf, spacing, points = (
            table[name].to_numpy() for name in ("level", "is_leaf", "spacing", "points")
        )
        lists = table["samples"].combine_chunks()
        values = lists.values
        fields = {name: values.field(name).to_numpy() for name in (*"xyz", *COLOURS, GREY)}
        # a file may have room for colours, and none there
        names = COLOURS if any(fields[name].any() for name in COLOURS) else (GREY,) * 3
        red, green, blue = (fields[name] for name in names)
        is_plain = all(np.array_equal(each[1:], each[:-1]) for each in (red, green, blue))
        if is_plain:
            red, green, blue = _colours_of_heights(fields["z"])
        offsets = lists.offsets.to_numpy()
        return cls(level, is_leaf, spacing, points, offsets, fields, (red, green, blue), is_plain)


class Level(NamedTuple):
    """Samples of a level of detail."""

    level: int
    place: "FloatArray"
    """float64[3, n]"""
    colour: "Colours"
    """uint16[n, 3], as the file has them"""
    edge: "FloatArray"
    """float64[n]: of a voxel; 0 of a point"""
    is_plain: bool
    """Whether the colours are those of the height."""


class Window(NamedTuple):
    """What a panel shows of the picture's plane."""

    middle: "FloatArray"
    """Right and down, in the unit of the cloud."""
    scale: float
    """Pixels a unit."""
    wide: int
    tall: int


def write_lod_picture(path: str | Path, table: "pa.Table", title: str) -> None:
    """Write a PNG of a cloud as the root shows it, as half the tree does, and with all points.

    The view is parallel, obliquely from above. Below, a part of the cloud is shown larger, where
    its colours vary most; a cloud without has those of the heights, and shade. Instead of the root
    it is the first level whose voxels are small in the picture; those of half the tree have a few
    points each. A tree of fewer such levels has fewer columns.

    Parameters
    ----------
    path
        File to write, about 1900 pixels wide.
    table : pyarrow.Table
        LodTable, as `build_lod` gives them.
    title
        First line of the picture.

    Raises
    ------
    FileError
        If it cannot be written.
    """
    from PIL import Image, ImageDraw, ImageFont

    nodes = LodTable.of(table)
    axes = Camera(eye=VIEWER, target=(0.0, 0.0, 0.0)).axes()
    axes *= [[1], [-1], [1]]  # right, down, away
    points = _cut(nodes, int(nodes.level.max(initial=0)))
    overview = _overview(axes[:2] @ points.place)
    coarse = _coarse(nodes, COARSEST / overview.scale)
    middle = max(coarse, min((coarse + points.level) // 2, _finest(nodes)))
    levels = [_cut(nodes, each) for each in sorted({coarse, middle})]
    levels = [*(each for each in levels if each.level < points.level), points]
    spot = _spot(axes[:2] @ levels[0].place, levels[0].colour, overview)
    part = Window(spot, CLOSER * overview.scale, PANEL, PANEL)
    apart = _apart(points.place, PANEL / overview.scale / CELLS)
    tones = _tones(levels[0].colour)

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
        above, below = top + CAPTION, top + CAPTION + overview.tall + GAP
        for window, at in ((overview, above), (part, below)):
            size = (window.wide, window.tall)
            panel = Image.fromarray(_paint(level, axes, window, apart, tones))
            canvas.paste(panel.resize(size, Image.Resampling.BOX), (left, at))
            draw.rectangle((left, at, left + window.wide - 1, at + window.tall - 1), outline=FAINT)
        x, y = np.array([left, above]) + _places(part.middle, overview)
        half = PANEL / CLOSER / 2
        draw.rectangle((x - half, y - half, x + half, y + half), outline=MARK, width=2)
        draw.rectangle((left, below, left + PANEL - 1, below + PANEL - 1), outline=MARK, width=2)
    with whole(Path(path)) as partial:
        canvas.save(partial, "PNG")


def _caption(level: Level) -> tuple[str, str]:
    voxels = int(np.count_nonzero(level.edge))
    points = level.edge.size - voxels
    said = f"{points:,} point{'s' * (points != 1)}"
    if not voxels:
        return "all points", said
    wide = f"{voxels:,} voxels, {level.edge.max():.3g} wide"
    return f"level {level.level}", f"{wide}, {said}" if points else wide


def _tones(colour: "Colours") -> tuple[float, float]:
    """Tell which values are dark and bright: files have 8 bits or 16, and rarely use them all."""
    if not colour.size:
        return 0.0, 1.0
    bright = float(np.percentile(colour, BRIGHT))
    return (0.0, bright) if colour.min() < bright else (bright - 1, bright + 1)


def _coarse(nodes: LodTable, width: float) -> int:
    """Give the first level whose voxels are that narrow: a stray point makes the root's wide."""
    narrow = ~nodes.is_leaf & (nodes.spacing <= width)
    return int(nodes.level[narrow].min(initial=nodes.level.max(initial=0)))


def _finest(nodes: LodTable) -> int:
    """Give the last level whose voxels lie close: through the others the far side is seen."""
    inner = ~nodes.is_leaf
    voxels = np.bincount(nodes.level[inner], np.diff(nodes.offsets)[inner])
    points = np.bincount(nodes.level[inner], nodes.points[inner])
    return int(np.flatnonzero(points >= CLOSED * voxels).max(initial=0))


def _colours_of_heights(z: "FloatArray") -> "list[Colours]":
    """Give 16 bits of red, green and blue, but for the outermost heights."""
    low, high = np.percentile(z, SHOWN) if z.size else (0.0, 1.0)
    stops = np.linspace(low, high, len(HEIGHTS))
    return [
        np.interp(z, stops, np.multiply(channel, 257)).astype(np.uint16)
        for channel in zip(*HEIGHTS, strict=True)
    ]


def _cut(nodes: LodTable, level: int) -> Level:
    """Take the nodes of a level, and the leaves above it."""
    chosen = (nodes.level == level) | (nodes.is_leaf & (nodes.level < level))
    spans = [np.arange(*nodes.offsets[k : k + 2]) for k in np.flatnonzero(chosen)]
    step = max(1, math.ceil(sum(map(len, spans)) / MOST_SAMPLES))
    rows = np.concatenate([np.empty(0, np.int64), *spans])[::step]
    samples = nodes.samples
    return Level(
        level,
        np.array([samples[axis][rows] for axis in "xyz"]),
        np.column_stack([each[rows] for each in nodes.colours]),
        np.repeat(nodes.spacing[chosen], [len(span) for span in spans])[::step],
        nodes.is_plain,
    )


def _overview(seen: "FloatArray") -> Window:
    """Lay a panel around points, but for the outermost."""
    low, high = np.percentile(seen, SHOWN, axis=1) if seen.size else np.zeros((2, 2))
    wide, tall = EDGE * (high - low)
    scale = PANEL / (max(wide, tall) or 1.0)
    return Window((low + high) / 2, scale, PANEL, max(PANEL // 3, math.ceil(tall * scale)))


def _spot(seen: "FloatArray", colour: "Colours", window: Window) -> "FloatArray":
    """Give the middle of the square of a panel whose colours vary most in sum."""
    places = _places(seen.T, window)
    inside = ((places >= 0) & (places < (window.wide, window.tall))).all(axis=1)
    if not inside.any():
        return window.middle
    square = (places[inside] * CLOSER / PANEL).astype(np.int64)
    _, which, count = np.unique(square, axis=0, return_inverse=True, return_counts=True)
    channels = colour[inside].astype(np.float64).T
    sums = np.array([np.bincount(which, each) for each in channels])
    squares = np.array([np.bincount(which, each**2) for each in channels])
    most = np.argmax((squares - sums**2 / count).sum(axis=0))
    middle: FloatArray = seen[:, inside][:, which == most].mean(axis=1)
    return middle


def _places(seen: "FloatArray", window: Window) -> "FloatArray":
    """Tell where in a panel something is: pixels to the right and down."""
    corner = np.array([window.wide, window.tall]) / 2
    return corner + (seen - window.middle) * window.scale


def _apart(place: "FloatArray", edge: float) -> float:
    """Tell how far points lie apart: those of a cell fill a surface through it evenly."""
    cells = np.floor(place / edge).astype(np.int64)
    mixed = cells[0] * 73856093 ^ cells[1] * 19349663 ^ cells[2] * 83492791
    return edge * math.sqrt(len(np.unique(mixed)) / max(len(mixed), 1))


def _paint(
    level: Level, axes: "FloatArray", window: Window, apart: float, tones: tuple[float, float]
) -> "Bytes":
    """Paint voxels as cubes and points as balls, the nearest in front."""
    fine = Window(window.middle, FINE * window.scale, FINE * window.wide, FINE * window.tall)
    seen = axes @ level.place
    x, y = _places(seen[:2].T, fine).T
    away = seen[2] * fine.scale
    colour = np.interp(level.colour, tones, TONES).astype(np.uint8)
    depth = np.full((fine.tall, fine.wide), np.inf, np.float32)
    pixels = np.full((fine.tall, fine.wide, 3), PAPER, np.uint8)
    for edge in np.unique(level.edge):
        width = (edge or SPLAT * apart) * fine.scale
        stamp = _cube(axes, width) if edge else _ball(width)
        mine = np.flatnonzero(level.edge == edge)
        _press(x[mine], y[mine], away[mine], colour[mine], *stamp, depth, pixels)
    if level.is_plain:
        pixels = (pixels * _light(depth)[..., None]).astype(np.uint8)
    return pixels


def _light(depth: Any) -> Any:
    """Give the share of light that pixels get: less where those around are nearer."""
    there = np.isfinite(depth)
    far = np.where(there, depth, np.finfo(np.float32).max)
    around = np.pad(far, FINE, mode="edge")
    tall, wide = far.shape
    shade = np.zeros(far.shape, np.float32)
    for down, right in ((0, FINE), (2 * FINE, FINE), (FINE, 0), (FINE, 2 * FINE)):
        nearer = far - around[down : down + tall, right : right + wide]
        shade += np.clip(nearer / CREASE, 0, 1)
    return np.where(there, 1 - SHADE * shade / 4, 1)


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
    reach = np.abs(right).max() + np.abs(down).max()
    for i in range(away.size):
        if not (-reach <= x[i] <= wide + reach and -reach <= y[i] <= tall + reach):
            continue
        left, top = int(np.floor(x[i])), int(np.floor(y[i]))
        for k in range(right.size):
            column, row = left + right[k], top + down[k]
            if 0 <= column < wide and 0 <= row < tall:
                at = np.float32(away[i]) + behind[k]
                if at < depth[row, column]:
                    depth[row, column] = at
                    for c in range(3):
                        pixels[row, column, c] = np.uint8(colour[i, c] * light[k])
