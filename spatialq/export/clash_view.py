"""From where a clash is seen: a camera that sees both elements, and the picture."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.export.camera import Camera
from spatialq.export.rasteriser import Picture, render

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

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
ROUNDS = 8
"""How often others that hide the two are looked for: behind one there may be another."""


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
    picture : Picture
    """

    camera: Camera
    others: "NDArray[np.int64]"
    is_cut: bool
    picture: Picture


def radius_of(point: "FloatArray", pair: Meshes) -> float:
    """Say how far from the clash its picture reaches: all of the smaller element, within limits."""
    reach = []
    for k in range(len(pair)):
        corners = pair.vertices[pair.vertex_starts[k] : pair.vertex_starts[k + 1]]
        reach.append(np.abs(corners - point).max(initial=0.0))
    return float(np.clip(np.sqrt(3) * min(reach), *RADIUS)) * MARGIN


def see(point: "FloatArray", pair: Meshes, others: Meshes) -> ClashView:
    """Choose the direction from which most is seen of the element that is seen less.

    Elements that hide one of the two from there are left out. If one is inside the other, so that
    no direction shows both, the picture is cut open at the clash.

    Parameters
    ----------
    point : float64[3]
        In the middle of the picture.
    pair : Meshes
        The two elements.
    others : Meshes
    """
    radius = radius_of(point, pair)
    small = [_camera(point, radius, *direction) for direction in _directions()]
    small = [replace(each, width=WIDTH / SMALL, height=HEIGHT / SMALL) for each in small]
    is_cut = False
    seen = [_least(render(each, pair, _colours(0))) for each in small]
    if max(seen) < SEEN:
        is_cut = True
        small = [replace(each, near=_away(radius)) for each in small]
        seen = [_least(render(each, pair, _colours(0))) for each in small]
    good = [k for k in range(len(seen)) if seen[k] >= min(max(seen) / 2, 10 * SEEN)][:TRIED]
    both = _joined(pair, others)
    colours = _colours(len(others))
    best = max(good, key=lambda k: (_least(render(small[k], both, colours)), -k))
    camera = replace(small[best], width=float(WIDTH), height=float(HEIGHT))
    return _uncovered(camera, pair, others, is_cut=is_cut)


def _directions() -> list[tuple[int, int]]:
    return [(elevation, azimuth) for elevation in ELEVATIONS for azimuth in AZIMUTHS]


def _away(radius: float) -> float:
    """Give the distance from which a ball fills the picture from bottom to top."""
    return float(radius / np.sin(np.radians(FOV / 2)))


def _camera(point: "FloatArray", radius: float, elevation: float, azimuth: float) -> Camera:
    up, round_ = np.radians(elevation), np.radians(azimuth)
    towards = (np.cos(up) * np.cos(round_), np.cos(up) * np.sin(round_), np.sin(up))
    eye = point + _away(radius) * np.array(towards)
    # rounded: sines differ in their last digit from one machine to another
    place = tuple(float(f"{value:.6f}") for value in eye)
    target = tuple(float(f"{value:.6f}") for value in point)
    return Camera(eye=place, target=target, fov=FOV, width=float(WIDTH), height=float(HEIGHT))


def _colours(others: int) -> "NDArray[np.uint8]":
    return np.array([*COLOURS, *[FADED] * others], np.uint8)


def _joined(pair: Meshes, others: Meshes) -> Meshes:
    vertices, faces = len(pair.vertices), len(pair.faces)
    return Meshes(
        np.concatenate([pair.vertices, others.vertices]),
        np.concatenate([pair.faces, others.faces]),
        np.concatenate([pair.vertex_starts, others.vertex_starts[1:] + vertices]),
        np.concatenate([pair.face_starts, others.face_starts[1:] + faces]),
    )


def _least(picture: Picture) -> float:
    """Say which part of a picture the element covers that covers less of it."""
    return min(float(np.mean(picture.item == each)) for each in (0, 1))


def _uncovered(camera: Camera, pair: Meshes, others: Meshes, *, is_cut: bool) -> ClashView:
    """Draw the picture, without others that hide the two elements."""
    shown = np.arange(len(others))
    for times in (SMALL, 1):  # most of what hides them is found in a small picture
        view = replace(camera, width=camera.width / times, height=camera.height / times)
        alone = render(view, pair, _colours(0))
        for _ in range(ROUNDS):
            picture = render(view, _joined(pair, others.take(shown)), _colours(len(shown)))
            hiding = np.unique(picture.item[(alone.item >= 0) & (picture.item >= 2)]) - 2
            if not hiding.size:
                break
            shown = np.delete(shown, hiding)
        else:
            shown, picture = shown[:0], alone
    return ClashView(camera, shown, is_cut, picture)
