"""A picture of the planes of a cloud, each in its own colour, seen obliquely from above."""

import colorsys
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.export.atomic import whole
from spatialq.runtime.arrays import Bytes, Floats, Ints
from spatialq.runtime.threads import chunks

if TYPE_CHECKING:
    from numpy.typing import NDArray

WIDTH, VIEW_SIDE, MARGIN, TITLE = 1200, 880, 24, 56
FINE = 2  # factor by which the picture is drawn larger and then reduced, for smooth edges
INK, FAINT, PAPER = (38, 42, 48), (112, 118, 126), (252, 252, 250)
OTHER = (205, 208, 212)  # colour of points without a plane
MAX_POINTS = 400_000  # drawn with a plane, and as many without
BLOCK = 16  # side in pixels of the squares in which the density of points is measured
FRAME = (0.1, 99.9)  # percentiles of the points that the picture covers
LISTED = 20  # planes in the legend
NOTHING = -1  # pixels without a point; those of a point without a plane are 0
NUMBERED = 40  # pixels that are seen of a plane whose number is in the picture
ELEVATION = math.radians(38)
ROTATION = math.radians(28)  # of the view, relative to the main direction of the walls
MULTIPOLYGON_Z = 1006  # code in WKB
COARSE = 120  # maximum number of cells along the longer side, to find out which planes hide others


def write_planes_picture(
    path: str | Path,
    xyz: Sequence[Floats],
    plane_id: Ints,
    planes: Sequence[Mapping[str, Any]],
    title: str,
    up: str = "z",
    unit: str | None = None,
) -> None:
    """Write a PNG of a cloud whose points have the colours of their planes.

    The largest planes are listed, and planes have their numbers in the picture where there is room,
    the larger ones first. The view is parallel, from above, rotated from the main direction of the
    vertical planes. A plane that hides most of what is behind it, such as the ceiling of a room, is
    cut away: only its boundary is drawn.

    Parameters
    ----------
    path
        File to write, about 1200 pixels wide.
    xyz : three of float64[n]
    plane_id : int64[n]
        0 for a point without a plane.
    planes : sequence of mappings
        With `plane_id nx ny nz area point_count orientation boundary`, the last as WKB.
    title
        First line of the picture.
    up : 'x', 'y' or 'z'
        The axis that points up.
    unit : str, optional
        That of the coordinates, such as 'm' or 'ft'; by default it is not known.

    Raises
    ------
    FileError
        If it cannot be written.
    """
    from PIL import Image, ImageDraw, ImageFont

    n_all, n_on = plane_id.size, int(np.count_nonzero(plane_id))
    drawn = np.concatenate([_thinned(plane_id, on=True), _thinned(plane_id, on=False)])
    cloud = np.column_stack([values[drawn] for values in xyz])
    owner = plane_id[drawn]
    axes = _view(planes, up)
    on_plane = cloud[owner > 0] if n_on else cloud
    centre = on_plane.mean(axis=0) if len(on_plane) else np.zeros(3)
    seen = (cloud - centre) @ axes.T  # right, up, towards the viewer
    shown = seen[owner > 0] if n_on else seen
    # the picture is not enlarged for stray points
    low, high = np.percentile(shown, FRAME, axis=0) if len(shown) else (-np.ones(3), np.ones(3))
    edge = 0.02 * (high - low)
    low, high = low - edge, high + edge
    scale = FINE * VIEW_SIDE / (float((high - low)[:2].max()) or 1.0)
    wide, tall = (max(FINE, math.ceil((high - low)[k] * scale)) for k in (0, 1))

    cut = _cut_away(seen, owner, low, high)
    pixels = np.full((tall, wide), NOTHING)
    colours = _colours(planes, axes)
    for mine, thin in ((owner == 0, 2), (~np.isin(owner, [0, *cut]), 1)):
        picked = seen[mine]
        picked = np.column_stack(
            [(picked[:, 0] - low[0]) * scale, (high[1] - picked[:, 1]) * scale, picked[:, 2]]
        )
        _paint(pixels, picked, owner[mine], _splat(picked) // thin)
    palette = np.vstack([colours, np.array(PAPER, np.uint8)])  # the last one is that of NOTHING
    view = Image.fromarray(palette[pixels])
    draw = ImageDraw.Draw(view)
    for plane in planes:
        if plane["plane_id"] in cut:
            for corners in _rings(plane["boundary"]):
                ring = (corners - centre) @ axes.T
                places = [((u - low[0]) * scale, (high[1] - v) * scale) for u, v, _ in ring]
                draw.line(places, FAINT, FINE)
    view = view.resize((wide // FINE, tall // FINE), Image.Resampling.LANCZOS)

    panel = max(view.height, 600)
    canvas = Image.new("RGB", (WIDTH, TITLE + panel + 2 * MARGIN), PAPER)
    left, top = MARGIN + (VIEW_SIDE - view.width) // 2, TITLE + MARGIN + (panel - view.height) // 2
    canvas.paste(view, (left, top))
    draw = ImageDraw.Draw(canvas)
    draw.text((MARGIN, MARGIN), title, INK, ImageFont.load_default(30))
    largest_first = sorted(planes, key=lambda plane: -plane["area"])
    _number(draw, (left, top), pixels[::FINE, ::FINE], [p["plane_id"] for p in largest_first])
    _legend(draw, largest_first, colours, cut, (n_all, n_on), unit)
    with whole(Path(path)) as partial:
        canvas.save(partial, "PNG")


def _thinned(plane_id: "NDArray[np.integer[Any]]", *, on: bool) -> Ints:
    """Give the rows of points with a plane, or without one: every k-th, so that they are few."""
    n_on = int(np.count_nonzero(plane_id))
    step = max(1, math.ceil((n_on if on else plane_id.size - n_on) / MAX_POINTS))
    parts, passed = [np.empty(0, np.int64)], 0
    for start, stop in chunks(plane_id.size):
        rows = start + np.flatnonzero((plane_id[start:stop] > 0) == on)
        parts.append(rows[-passed % step :: step])
        passed += rows.size
    return np.concatenate(parts)


def _view(planes: Sequence[Mapping[str, Any]], up: str) -> Floats:
    """Give the unit vectors to the right, up and towards the viewer, as rows."""
    upward = np.eye(3)["xyz".index(up)]
    east, north = (np.eye(3)[("xyz".index(up) + k) % 3] for k in (1, 2))
    # four times the direction is equal for walls at right angles
    main = 0j
    for plane in planes:
        normal = np.array([plane["nx"], plane["ny"], plane["nz"]])
        across = complex(normal @ east, normal @ north)
        if plane["orientation"] == "vertical" and across:
            main += float(plane["area"]) * (across / abs(across)) ** 4
    heading = (np.angle(main) / 4 if main else 0.0) - math.pi / 2 - ROTATION
    out = math.cos(heading) * east + math.sin(heading) * north  # to the viewer, on the ground
    towards = math.cos(ELEVATION) * out + math.sin(ELEVATION) * upward
    right = np.cross(upward, out)
    return np.array([right, np.cross(towards, right), towards])


def _cut_away(seen: Floats, owner: Ints, low: Floats, high: Floats) -> set[int]:
    """Find the large planes that hide others with most of their area."""
    on = owner > 0
    if not on.any():
        return set()
    owners, rows = np.unique(owner[on], return_inverse=True)
    along = min(COARSE, max(8.0, math.sqrt(np.count_nonzero(on)) / 4))  # several points in each
    side = float((high - low)[:2].max()) / along or 1.0
    column, row = (((seen[on, k] - low[k]) // side).astype(np.int64) for k in (0, 1))
    cells, place = np.unique((column, row), axis=1, return_inverse=True)
    nearest = np.full((owners.size, cells.shape[1]), -np.inf)
    np.maximum.at(nearest, (rows, place), seen[on, 2])
    farthest = np.full((owners.size, cells.shape[1]), np.inf)
    np.minimum.at(farthest, (rows, place), seen[on, 2])
    cut = set()
    for k in np.argsort(-nearest.max(axis=1)):
        covers = np.isfinite(nearest[k])
        behind = np.delete(farthest, k, axis=0).min(axis=0, initial=np.inf)
        hides = covers & (nearest[k] - behind > 3 * side)
        if covers.mean() > 0.1 and hides.sum() > 0.5 * covers.sum():
            cut.add(int(owners[k]))
            farthest[k] = np.inf
    return cut


def colours_of_planes(planes: Sequence[Mapping[str, Any]], up: str = "z") -> Bytes:
    """Give the colours that planes have in their picture.

    Parameters
    ----------
    planes : sequence of mappings
        With `plane_id nx ny nz area orientation`.
    up : 'x', 'y' or 'z'

    Returns
    -------
    uint8[p + 1, 3]
        Red, green and blue by `plane_id`; row 0 is that of points without a plane.
    """
    return _colours(planes, _view(planes, up))


def _colours(planes: Sequence[Mapping[str, Any]], axes: Floats) -> Bytes:
    """Colours by `plane_id`: hues a golden angle apart, darker at a flat angle to the light."""
    light = np.array([-0.4, 0.75, 0.55])  # from above, a little left
    light /= np.linalg.norm(light)
    colours = np.tile(
        np.array(OTHER, np.uint8), (1 + max((p["plane_id"] for p in planes), default=0), 1)
    )
    for plane in planes:
        k = plane["plane_id"]
        normal = axes @ np.array([plane["nx"], plane["ny"], plane["nz"]])
        value = 0.62 + 0.33 * abs(float(normal @ light))
        rgb = colorsys.hsv_to_rgb(
            (0.56 + 0.61803398875 * k) % 1.0, 0.35 + 0.25 * (k % 3) / 2, value
        )
        colours[k] = [round(255 * each) for each in rgb]
    return colours


def _splat(places: Floats) -> int:
    """Side of a point in pixels such that surfaces have no holes."""
    blocks = len(np.unique(places[:, :2] // BLOCK, axis=0))
    apart = BLOCK * math.sqrt(blocks / max(len(places), 1))
    return min(max(round(1.6 * apart), FINE), 9 * FINE)


def _paint(pixels: Ints, places: Floats, owner: Ints, size: int) -> None:
    """Draw squares of pixels with the numbers of their planes, the nearest ones last."""
    order = np.argsort(places[:, 2], kind="stable")
    column, row = (places[order, k].astype(np.int64) - size // 2 for k in (0, 1))
    side = np.arange(size)
    rows = (row[:, None, None] + side[:, None]).repeat(size, axis=2).ravel()
    columns = (column[:, None, None] + side).repeat(size, axis=1).ravel()
    inside = (rows >= 0) & (rows < pixels.shape[0]) & (columns >= 0) & (columns < pixels.shape[1])
    # the last one drawn at a pixel remains
    pixels[rows[inside], columns[inside]] = owner[order].repeat(size * size)[inside]


def _number(draw: Any, corner: tuple[int, int], pixels: Ints, plane_ids: Sequence[int]) -> None:
    """Write the numbers of planes in the midst of what is seen of them, if none is there yet."""
    from PIL import ImageFont

    font = ImageFont.load_default(14)
    there: list[tuple[float, float, float, float]] = []
    rows, columns = np.nonzero(pixels > 0)
    owner = pixels[rows, columns]
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], plane_ids, "left")
    stops = np.searchsorted(owner[order], plane_ids, "right")
    for plane_id, start, stop in zip(plane_ids, starts, stops, strict=True):
        if stop - start < NUMBERED:
            continue
        seen = np.column_stack([columns, rows])[order[start:stop]]
        inmost = seen[np.square(seen - seen.mean(axis=0)).sum(axis=1).argmin()]
        at = (float(corner[0] + inmost[0]), float(corner[1] + inmost[1]))
        box = draw.textbbox(at, str(plane_id), font, anchor="mm", stroke_width=2)
        if any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in there):
            continue
        there.append(box)
        draw.text(at, str(plane_id), INK, font, anchor="mm", stroke_width=2, stroke_fill=PAPER)


def _rings(wkb: bytes) -> Iterator[Floats]:
    """Give the corners of each ring of a WKB POLYGON Z or MULTIPOLYGON Z: float64[n, 3]."""
    kind, parts = struct.unpack_from("<xII", wkb)
    at, parts = (9, parts) if kind == MULTIPOLYGON_Z else (0, 1)
    for _ in range(parts):
        (rings,) = struct.unpack_from("<5xI", wkb, at)
        at += 9
        for _ in range(rings):
            (corners,) = struct.unpack_from("<I", wkb, at)
            yield np.frombuffer(wkb, "<f8", 3 * corners, at + 4).reshape(-1, 3)
            at += 4 + 24 * corners


def _legend(
    draw: Any,
    planes: Sequence[Mapping[str, Any]],
    colours: Bytes,
    cut: set[int],
    counts: tuple[int, int],
    unit: str | None,
) -> None:
    from PIL import ImageFont

    left, top = MARGIN + VIEW_SIDE + 28, TITLE + MARGIN
    small, medium = ImageFont.load_default(16), ImageFont.load_default(18)
    draw.text((left, top), "Planes, by area", INK, medium)
    line = top + 34
    for plane in planes[:LISTED]:
        k = plane["plane_id"]
        box = (left, line, left + 22, line + 14)
        draw.rectangle(box, fill=None if k in cut else tuple(colours[k]), outline=FAINT)
        area = f"{plane['area']:,.0f}" if plane["area"] >= 100 else f"{plane['area']:.3g}"
        area = area if unit is None else f"{area} sq {unit}"
        text = f"{k}  {plane['orientation']}  {area}"
        draw.text((left + 32, line + 7), text, INK, small, anchor="lm")
        line += 22
    share = 100 * counts[1] / max(counts[0], 1)
    notes = [
        *([f"and {len(planes) - LISTED} more"] if len(planes) > LISTED else []),
        f"{counts[0]:,} points,",
        f"{share:.0f} % on {len(planes)} planes",
        *(["areas in the unit of the file"] if unit is None and planes else []),
        *(["outlines: cut away"] if cut else []),
    ]
    for i, note in enumerate(notes):
        draw.text((left, line + 14 + 22 * i), note, FAINT, small)
