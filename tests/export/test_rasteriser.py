"""The rasteriser, compared with rays that are cast by brute force."""

import hashlib
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from spatialq.data.meshes import Meshes
from spatialq.export.camera import Camera
from spatialq.export.rasteriser import NOTHING, PAPER, render

from .ray_casting import cast

WIDE, TALL = 48, 36
BOX = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
SIDES = np.array([
    [0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
    [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3],
])  # fmt: skip


def compare(camera, triangles):
    meshes = Meshes.of([(triangle, [[0, 1, 2]]) for triangle in triangles])
    colours = np.random.default_rng(1).integers(0, 256, (len(triangles), 3)).astype(np.uint8)
    found = render(camera, meshes, colours)
    item, depth, unsure = cast(camera, triangles, WIDE, TALL)
    sure = ~unsure
    assert sure.mean() > 0.9
    np.testing.assert_array_equal(found.item[sure], item[sure])
    np.testing.assert_allclose(found.depth[sure], depth[sure], rtol=1e-9)
    assert (found.pixels[sure & (item == NOTHING)] == PAPER).all()
    return found, sure


@pytest.mark.parametrize("seed", range(1, 5))
def test_meshes_are_drawn_besides_others_and_asked_what_they_hide(seed):
    rng = np.random.default_rng(seed)
    triangles = rng.uniform(-3, 3, (8, 1, 3)) + rng.normal(0, 1.5, (8, 3, 3))
    meshes = [Meshes.of([(each, [[0, 1, 2]]) for each in some]) for some in
              (triangles, triangles[:2], triangles[2:])]  # fmt: skip
    colours = rng.integers(0, 256, (8, 3)).astype(np.uint8)
    view = camera(rng)
    picture = render(view, meshes[1], colours[:2])
    hides = picture.hiding(view, meshes[2])
    pair, depth, _ = cast(view, triangles[:2], WIDE, TALL)
    expected = []
    for each in triangles[2:]:
        item, at, _ = cast(view, [each], WIDE, TALL)
        expected.append(((item >= 0) & (pair >= 0) & (at < depth)).any())
    assert hides.tolist() == expected
    picture.draw(view, meshes[2], colours[2:], first=2)
    for one, other in zip(picture.layers, render(view, *meshes[:1], colours).layers, strict=True):
        np.testing.assert_array_equal(one, other)


def camera(rng, **more):
    eye = rng.uniform(-4, 4, 3)
    return Camera(
        eye=tuple(eye), target=tuple(rng.uniform(-1, 1, 3)), width=WIDE, height=TALL, **more
    )


@pytest.mark.parametrize("seed", range(1, 7))
@pytest.mark.parametrize("kind", ["perspective", "parallel", "cut off"])
def test_a_pixel_shows_what_its_ray_meets_first(seed, kind):
    """Triangles all around the eye, also such that reach behind it."""
    rng = np.random.default_rng(seed)
    triangles = rng.uniform(-3, 3, (8, 1, 3)) + rng.normal(0, 1.5, (8, 3, 3))
    more = {
        "perspective": {"fov": rng.uniform(20, 120)},
        "parallel": {"view_height": rng.uniform(2, 8)},
        "cut off": {"near": 0.5, "far": 4.0},
    }[kind]
    found, _ = compare(camera(rng, **more), triangles)
    assert (found.item != NOTHING).any()


def test_far_from_the_origin_it_is_the_same():
    rng = np.random.default_rng(9)
    triangles = rng.normal(0, 1.5, (6, 3, 3))
    near = Camera(eye=(5, 4, 3), target=(0, 0, 0), width=WIDE, height=TALL)
    shift = np.array([600_000.0, 5_600_000.0, 0.0])
    far = Camera(
        eye=tuple(shift + np.array([5, 4, 3])), target=tuple(shift), width=WIDE, height=TALL
    )
    pictures = [
        render(view, Meshes.of([(t + moved, [[0, 1, 2]]) for t in triangles]), np.zeros((6, 3)))
        for view, moved in ((near, 0), (far, shift))
    ]
    assert (pictures[0].item == pictures[1].item).mean() > 0.999


def test_a_closed_box_has_no_holes():
    """Pixels on edges that two triangles share are drawn."""
    for k in range(20):
        angle = 2 * np.pi * k / 20
        eye = (0.5 + 3 * np.cos(angle), 0.5 + 3 * np.sin(angle), 0.5)
        view = Camera(eye=eye, target=(0.5, 0.5, 0.5), view_height=0.5, width=200, height=200)
        found = render(view, Meshes.of([(BOX, SIDES)]), np.zeros((1, 3), np.uint8))
        assert (found.item[:, 80:120] == 0).all()


def test_faces_are_lit_by_their_direction_and_from_both_sides():
    view = Camera(eye=(3, 2, 4), target=(0.5, 0.5, 0.5), width=100, height=100)
    white = np.full((1, 3), 200, np.uint8)
    found = render(view, Meshes.of([(BOX, SIDES)]), white)
    turned = render(view, Meshes.of([(BOX, SIDES[:, ::-1])]), white)
    shades = np.unique(found.pixels[found.item == 0])
    assert len(shades) == 3  # a face each
    assert 0.6 * 200 <= shades.min() < shades.max() <= 200
    np.testing.assert_array_equal(found.pixels, turned.pixels)


@pytest.mark.parametrize("more", [{}, {"view_height": 6.0}])
@pytest.mark.parametrize("size", [0.5, 1.0, 3.0])
def test_points_are_squares_in_front_of_what_is_behind_them(size, more):
    rng = np.random.default_rng(4)
    points = rng.uniform(-2, 2, (60, 3))
    colours = rng.integers(0, 256, (60, 3)).astype(np.uint8)
    view = Camera(eye=(0, -6, 0), target=(0, 0, 0), width=WIDE, height=TALL, **more)
    wall = np.array([[-9, 0.5, -9], [9, 0.5, -9], [0, 0.5, 20]])
    found = render(view, Meshes.of([(wall, [[0, 1, 2]])]), np.zeros((1, 3)), points, colours,
                   point_size=size)  # fmt: skip
    # looking along y: x is to the right and z is up
    expected = np.zeros((TALL, WIDE, 3), np.uint8)
    depth = np.full((TALL, WIDE), 6.5)
    scale = TALL / (more["view_height"] if more else 2 * np.tan(np.pi / 6))
    for (x, y, z), colour in zip(points, colours, strict=True):
        shrinks = 1 if more else y + 6
        u, v = WIDE / 2 + x / shrinks * scale, TALL / 2 - z / shrinks * scale
        # the pixels whose centres are in the square, or else the one with the point in it
        across, down = (
            [c for c in range(-9, n + 9) if -size / 2 <= c + 0.5 - w < size / 2] or [int(w // 1)]
            for w, n in ((u, WIDE), (v, TALL))
        )
        for row in set(down) & set(range(TALL)):
            for column in set(across) & set(range(WIDE)):
                if y + 6 < depth[row, column]:
                    depth[row, column], expected[row, column] = y + 6, colour
    is_point = depth < 6.5
    np.testing.assert_array_equal(found.item == 1, is_point)
    np.testing.assert_array_equal(found.pixels[is_point], expected[is_point])


def test_the_bytes_are_the_same_each_time_and_a_png_of_the_pixels():
    view = Camera(eye=(3, 2, 4), target=(0.5, 0.5, 0.5), width=WIDE, height=TALL)
    first, again = (
        render(view, Meshes.of([(BOX, SIDES)]), np.full((1, 3), 99, np.uint8)) for _ in range(2)
    )
    assert hashlib.sha256(first.png()).digest() == hashlib.sha256(again.png()).digest()
    with Image.open(BytesIO(first.png())) as picture:
        assert (picture.format, picture.size) == ("PNG", (WIDE, TALL))
        np.testing.assert_array_equal(np.asarray(picture), first.pixels)


def test_nothing_gives_paper_and_too_many_pixels_are_refused():
    view = Camera(eye=(3, 2, 4), target=(0, 0, 0), width=WIDE, height=TALL)
    found = render(view, Meshes.of([]), np.empty((0, 3), np.uint8))
    assert (found.pixels == PAPER).all()
    large = Camera(eye=(3, 2, 4), target=(0, 0, 0), width=1e6, height=1e6)
    with pytest.raises(ValueError, match="a picture must have 1 to 67,108,864 pixels, got"):
        render(large, Meshes.of([]), np.empty((0, 3), np.uint8))
