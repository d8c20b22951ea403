"""The view of a clash: a camera that sees both elements, and its picture."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.export.camera import Camera
from spatialq.export.rasteriser import Picture, render
from spatialq.runtime.arrays import Bytes, Floats, Ints

WIDTH, HEIGHT, FOV = 800, 600, 60.0
"""Of snapshots. BCF 2.1 has angles from 45 to 60 degrees."""
SMALL = 10
"""So many times smaller are the pictures by which a direction is chosen."""
COLOURS = ((214, 39, 40), (31, 119, 180))
"""Of a and b."""
FADED = (225, 228, 231)
"""Of all others."""
RADIUS = (0.5, 8.0)
"""Limits of the distance from the clash that is in the picture, metres."""
MARGIN = 1.1
ELEVATIONS, AZIMUTHS = (30, 10, 55, -25), (225, 315, 135, 45, 270, 180, 0, 90)
"""Directions to the viewer, degrees, the preferred ones first."""
SEEN = 0.002
"""Part of a picture that an element must cover to be seen."""
TRIED = 4
"""Directions of those from which both are seen that are compared with the others there."""
STRIPE = 8
"""Width of the stripes by which an element is shown that is behind the other, pixels."""


@dataclass(frozen=True)
class ClashView:
    """How a clash is seen.

    Parameters
    ----------
    camera : Camera
    others : int64[n]
        Which of the other elements are shown: those that hide nothing.
    is_cut : bool
        Whether what is before the clash is cut off, since one element is inside the other.
    veil : int, optional
        Which of the two hides the other from everywhere, also where that is cut, as of equal ones.
        It is to be shown transparent; the picture has the other before it, in stripes where
        nothing else would be left of it.
    picture : Picture
    """

    camera: Camera
    others: Ints
    is_cut: bool
    veil: int | None
    picture: Picture


def radius_of(point: Floats, pair: Meshes) -> float:
    """Say how far from the clash its picture reaches: all of the smaller element, within limits."""
    reach = []
    for k in range(len(pair)):
        corners = pair.vertices[pair.vertex_starts[k] : pair.vertex_starts[k + 1]]
        reach.append(np.abs(corners - point).max(initial=0.0))
    return float(np.clip(np.sqrt(3) * min(reach), *RADIUS)) * MARGIN


def see(point: Floats, pair: Meshes, others: Meshes) -> ClashView:
    """Choose the direction from which most is seen of the element that is seen less.

    Elements that hide one of the two from there are left out. If one is inside the other, so that
    no direction shows both, the picture is cut open at the clash; if that does not help, the two
    are shown through each other.

    Parameters
    ----------
    point : float64[3]
        In the middle of the picture.
    pair : Meshes
        The two elements, or one alone.
    others : Meshes
    """
    radius = radius_of(point, pair)
    near = _around(pair, point, radius)
    is_cut, veil = False, None
    count = len(pair)
    pictures = _small_pictures(near)
    seen = [min(_covers(each, count)) for each in pictures]
    if count > 1 and max(seen) < SEEN:  # hidden, or too thin to be more
        alone = [[_covers(each, 1)[0] for each in _small_pictures(near.take([k]))] for k in (0, 1)]
        unhidden = [min(both) for both in zip(*alone, strict=True)]
        cut = _small_pictures(near, is_cut=True)
        seen_cut = [min(_covers(each, count)) for each in cut]
        needed = max(min(SEEN, max(unhidden) / 3), 1e-9)
        if max(seen) >= needed:
            pass
        elif max(seen_cut) >= needed:
            is_cut, pictures, seen = True, cut, seen_cut
        else:
            covers = np.sum([_covers(each, count) for each in pictures], axis=0)
            veil, seen = int(covers[1] > covers[0]), unhidden
    good = [k for k in range(len(seen)) if seen[k] >= min(max(seen) / 2, 10 * SEEN)][:TRIED]
    if veil is None:
        others_near = _around(others, point, radius)
        for k in good:
            pictures[k].draw(_views(is_cut)[k], others_near, _colours(len(others))[2:], first=2)
            seen[k] = min(_covers(pictures[k], count))
    best = max(good, key=lambda k: (seen[k], -k))
    direction = _directions()[best]
    camera = _camera(point, radius, *direction, is_cut=is_cut)
    return _uncovered(camera, pair, others, is_cut=is_cut, veil=veil)


def _directions() -> list[tuple[int, int]]:
    return [(elevation, azimuth) for elevation in ELEVATIONS for azimuth in AZIMUTHS]


def _away(radius: float) -> float:
    """Give the distance from which a ball fills the picture from bottom to top."""
    return float(radius / np.sin(np.radians(FOV / 2)))


def _camera(
    point: Floats,
    radius: float,
    elevation: float,
    azimuth: float,
    *,
    is_cut: bool = False,
    times: int = 1,
) -> Camera:
    """Look at a place, in a picture that is so many times smaller."""
    up, round_ = np.radians(elevation), np.radians(azimuth)
    towards = (np.cos(up) * np.cos(round_), np.cos(up) * np.sin(round_), np.sin(up))
    eye = point + _away(radius) * np.array(towards)
    # rounded: sines differ in their last digit from one machine to another
    place = tuple(float(f"{value:.6f}") for value in eye)
    target = tuple(float(f"{value:.6f}") for value in point)
    return Camera(
        eye=place, target=target, fov=FOV, width=WIDTH / times, height=HEIGHT / times,
        near=_away(radius) if is_cut else 0.0,
    )  # fmt: skip


@cache
def _views(is_cut: bool) -> tuple[Camera, ...]:  # noqa: FBT001 (for the cache)
    """Give the small cameras around a ball of radius 1, of which one is chosen."""
    return tuple(
        _camera(np.zeros(3), 1.0, *direction, is_cut=is_cut, times=SMALL)
        for direction in _directions()
    )


def _around(meshes: Meshes, point: Floats, radius: float) -> Meshes:
    """Move meshes so that the ball around a place becomes that of radius 1."""
    vertices = (meshes.vertices - point) / radius
    return Meshes(vertices, meshes.faces, meshes.vertex_starts, meshes.face_starts)


def _small_pictures(near: Meshes, *, is_cut: bool = False) -> list[Picture]:
    colours = _colours(0)[: len(near)]
    return [render(each, near, colours) for each in _views(is_cut)]


def _colours(others: int) -> Bytes:
    return np.array([*COLOURS, *[FADED] * others], np.uint8)


def _covers(picture: Picture, count: int) -> list[float]:
    """Say which part of a picture each of the first elements covers."""
    return [np.count_nonzero(picture.item == each) / picture.item.size for each in range(count)]


def _uncovered(
    camera: Camera, pair: Meshes, others: Meshes, *, is_cut: bool, veil: int | None
) -> ClashView:
    """Draw the picture, without others that hide the two elements."""
    picture = render(camera, pair, _colours(0)[: len(pair)])
    if veil is not None:
        behind = Picture.blank(*picture.item.shape)
        behind.draw(camera, pair.take([1 - veil]), _colours(0)[[1 - veil]], first=1 - veil)
        shows = behind.item >= 0
        if 2 * np.count_nonzero(shows) > np.count_nonzero(picture.item == veil):
            rows, columns = np.indices(shows.shape)
            shows &= (rows + columns) // STRIPE % 2 == 0
        for of_picture, of_behind in zip(picture.layers, behind.layers, strict=True):
            of_picture[shows] = of_behind[shows]
    shown = np.flatnonzero(~picture.hiding(camera, others))
    picture.draw(camera, others.take(shown), _colours(len(shown))[2:], first=2)
    return ClashView(camera, shown, is_cut, veil, picture)
