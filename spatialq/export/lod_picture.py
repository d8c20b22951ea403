"""A picture of a cloud at three levels of detail, and of a part of it at a larger scale."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spatialq.export.atomic import whole
from spatialq.export.camera import Camera
from spatialq.runtime.arrays import Bytes, Floats, Uint16s
from spatialq.runtime.compile_cache import njit

if TYPE_CHECKING:
    import pyarrow as pa


COLOURS, GREY = ("red", "green", "blue"), "intensity"
PANEL, MARGIN, GAP, TITLE, CAPTION = 600, 24, 20, 56, 58
FINE = 2  # factor by which the picture is drawn larger and then reduced, for smooth edges
INK, FAINT, PAPER, MARK = (38, 42, 48), (112, 118, 126), (252, 252, 250), (196, 22, 84)
VIEWER = (
    -0.45,
    -1.0,
    0.85,
)  # direction to the viewer: south, a little west, above
SHOWN = (0.05, 99.95)  # percentiles of the points that the picture covers, without stray ones
EDGE = 1.06  # margin around them
MAX_VOXEL_PIXELS = 40.0  # of the first level drawn
CLOSER = 6.0  # magnification of the part
MAX_SAMPLES = 4_000_000  # drawn per level
SPLAT = 1.7  # diameter of a point, as a multiple of the distance between points of a surface
CELLS = 64  # along a panel, to estimate this distance
LIGHT = (0.74, 0.87, 1.0)  # brightness of the faces of a voxel across x, y and z
BRIGHT = 99.0  # percentile of the colours that is mapped to
TONES = (0.0, 244.0)  # the maximum of these tones, of 255
CLOSED = 2.0  # minimum number of points per voxel, so that surfaces of voxels have few holes
HEIGHTS = ((58, 82, 122), (104, 150, 146), (255, 240, 200))  # colours of low to high
CREASE = 12.0  # depth difference to neighbours, in pixels, at which the shade is darkest
SHADE = 0.75  # maximum part of the light that is removed


class LodTable(NamedTuple):
    """Columns of `build_lod` as NumPy arrays; the samples of node k start at offset k."""

    level: Any
    is_leaf: Any
    spacing: Any
    points: Any
    offsets: Any
    samples: Mapping[str, Any]
    colours: "tuple[Any, Any, Any]"
    is_plain: bool
    """Whether there are no colours; heights are coloured instead."""

    @classmethod
    def of(cls, table: "pa.Table") -> "LodTable":
        """Extract the columns of a table; the samples are not copied."""
        level, is_leaf, spacing, points = (
            table[name].to_numpy() for name in ("level", "is_leaf", "spacing", "points")
        )
        lists = table["samples"].combine_chunks()
        values = lists.values
        fields = {name: values.field(name).to_numpy() for name in (*"xyz", *COLOURS, GREY)}
        # a file may have columns of colours without values
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
    place: Floats
    """float64[3, n]"""
    colour: Uint16s
    """uint16[n, 3], as in the file"""
    edge: Floats
    """float64[n]: side of a voxel; 0 for a point"""
    is_plain: bool
    """Whether the colours stand for heights."""


class Window(NamedTuple):
    """The part of the picture plane that a panel shows."""

    centre: Floats
    """Position to the right and down, in the unit of the cloud."""
    scale: float
    """Pixels per unit."""
    wide: int
    tall: int


def write_lod_picture(path: str | Path, table: "pa.Table", title: str) -> None:
    """Write a PNG of a cloud at a coarse level, at an intermediate level, and with all points.

    The view is parallel, obliquely from above. The lower row magnifies the part of the cloud whose
    colours vary most. A cloud without colours is coloured by height and shaded. The coarse level is
    the first one whose voxels are small in the picture; voxels of the intermediate level have a few
    points each. A tree with fewer such levels has fewer columns.

    Parameters
    ----------
    path
        File to write, about 1900 pixels wide.
    table : pyarrow.Table
        The result of `build_lod`.
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
    coarse = _first_narrow_level(nodes, MAX_VOXEL_PIXELS / overview.scale)
    intermediate = max(coarse, min((coarse + points.level) // 2, _last_dense_level(nodes)))
    levels = [_cut(nodes, each) for each in sorted({coarse, intermediate})]
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
        x, y = np.array([left, above]) + _places(part.centre, overview)
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


def _tones(colour: Uint16s) -> tuple[float, float]:
    """Find the dark and bright values: files use 8 or 16 bits, and rarely the whole range."""
    if not colour.size:
        return 0.0, 1.0
    bright = float(np.percentile(colour, BRIGHT))
    return (0.0, bright) if colour.min() < bright else (bright - 1, bright + 1)


def _first_narrow_level(nodes: LodTable, width: float) -> int:
    """Give the first level with voxels up to this width; stray points widen those of the root."""
    narrow = ~nodes.is_leaf & (nodes.spacing <= width)
    return int(nodes.level[narrow].min(initial=nodes.level.max(initial=0)))


def _last_dense_level(nodes: LodTable) -> int:
    """Give the last level whose voxels form closed surfaces; others would show the far side."""
    inner = ~nodes.is_leaf
    voxels = np.bincount(nodes.level[inner], np.diff(nodes.offsets)[inner])
    points = np.bincount(nodes.level[inner], nodes.points[inner])
    return int(np.flatnonzero(points >= CLOSED * voxels).max(initial=0))


def _colours_of_heights(z: Floats) -> list[Uint16s]:
    """Map heights to red, green and blue of 16 bits; outliers are clipped."""
    low, high = np.percentile(z, SHOWN) if z.size else (0.0, 1.0)
    stops = np.linspace(low, high, len(HEIGHTS))
    return [
        np.interp(z, stops, np.multiply(channel, 257)).astype(np.uint16)
        for channel in zip(*HEIGHTS, strict=True)
    ]


def _cut(nodes: LodTable, level: int) -> Level:
    """Select the nodes of a level and the leaves above it."""
    chosen = (nodes.level == level) | (nodes.is_leaf & (nodes.level < level))
    spans = [np.arange(*nodes.offsets[k : k + 2]) for k in np.flatnonzero(chosen)]
    step = max(1, math.ceil(sum(map(len, spans)) / MAX_SAMPLES))
    rows = np.concatenate([np.empty(0, np.int64), *spans])[::step]
    samples = nodes.samples
    return Level(
        level,
        np.array([samples[axis][rows] for axis in "xyz"]),
        np.column_stack([each[rows] for each in nodes.colours]),
        np.repeat(nodes.spacing[chosen], [len(span) for span in spans])[::step],
        nodes.is_plain,
    )


def _overview(seen: Floats) -> Window:
    """Fit a panel around points, without outliers."""
    low, high = np.percentile(seen, SHOWN, axis=1) if seen.size else np.zeros((2, 2))
    wide, tall = EDGE * (high - low)
    scale = PANEL / (max(wide, tall) or 1.0)
    return Window((low + high) / 2, scale, PANEL, max(PANEL // 3, math.ceil(tall * scale)))


def _spot(seen: Floats, colour: Uint16s, window: Window) -> Floats:
    """Give the centre of the square of a panel with the largest variation of colours."""
    places = _places(seen.T, window)
    inside = ((places >= 0) & (places < (window.wide, window.tall))).all(axis=1)
    if not inside.any():
        return window.centre
    square = (places[inside] * CLOSER / PANEL).astype(np.int64)
    _, which, count = np.unique(square, axis=0, return_inverse=True, return_counts=True)
    channels = colour[inside].astype(np.float64).T
    sums = np.array([np.bincount(which, each) for each in channels])
    squares = np.array([np.bincount(which, each**2) for each in channels])
    most = np.argmax((squares - sums**2 / count).sum(axis=0))
    centre: Floats = seen[:, inside][:, which == most].mean(axis=1)
    return centre


def _places(seen: Floats, window: Window) -> Floats:
    """Convert positions to pixels of a panel, to the right and down."""
    corner = np.array([window.wide, window.tall]) / 2
    return corner + (seen - window.centre) * window.scale


def _apart(place: Floats, edge: float) -> float:
    """Estimate the distance between points, assuming that they fill a surface evenly."""
    cells = np.floor(place / edge).astype(np.int64)
    mixed = cells[0] * 73856093 ^ cells[1] * 19349663 ^ cells[2] * 83492791
    return edge * math.sqrt(len(np.unique(mixed)) / max(len(mixed), 1))


def _paint(
    level: Level, axes: Floats, window: Window, apart: float, tones: tuple[float, float]
) -> Bytes:
    """Draw voxels as cubes and points as balls, the nearest in front."""
    fine = Window(window.centre, FINE * window.scale, FINE * window.wide, FINE * window.tall)
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
    """Compute the light of pixels: less where surrounding pixels are nearer."""
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
"""Pixels to the right and down (int64[m]), depths and brightness (float32[m])."""


def _cube(axes: Floats, edge: float) -> Stamp:
    """Make the stamp of a cube: the depth and the face at which the line of sight enters it."""
    half = (edge + 1) / 2  # slightly larger, since stamps are placed on whole pixels
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
    """Make the stamp of a point: a ball, so that adjacent points meet halfway."""
    radius = max(diameter, FINE) / 2
    reach = math.ceil(radius)
    down, right = (each.ravel() for each in np.mgrid[-reach : reach + 1, -reach : reach + 1])
    squared = right**2 + down**2
    hit = squared <= radius**2
    near = -np.sqrt(radius**2 - squared[hit])
    return right[hit], down[hit], near.astype(np.float32), np.ones(near.size, np.float32)


@njit(cache=True, nogil=True)
def _press(
    x: Floats,
    y: Floats,
    away: Any,
    colour: Any,
    right: Any,
    down: Any,
    behind: Any,
    light: Any,
    depth: Any,
    pixels: Any,
) -> None:
    """Draw a stamp at each position, where nothing nearer has been drawn."""
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
