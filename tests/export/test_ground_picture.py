"""The picture of classified ground."""

import numpy as np
import pytest
from PIL import Image, ImageDraw

import spatialq
from spatialq.export.ground_picture import EMPTY, GROUND, IN_DOUBT, OTHER, write_ground_picture
from spatialq.export.raster import Raster

LEFT, RIGHT, TOP, SIDE = 24, 812, 108, 764
"""Where the two panels of a square are in the picture."""


def scene(tmp_path, *, noise=0, unit=None, gap=False, metres=1.0):
    """A square of 40 x 40: flat ground, on its east half a roof over it, in doubt in its north."""
    x, y = (
        each.ravel() for each in np.meshgrid(np.arange(0.125, 40, 0.25), np.arange(0.125, 40, 0.25))
    )
    z, ground = np.zeros(x.size), np.ones(x.size, bool)
    east = x > 20
    x, y = np.concatenate([x, x[east]]), np.concatenate([y, y[east]])
    z, ground = (
        np.append(z, np.full(east.sum(), 6.0)),
        np.append(ground, np.zeros(east.sum(), bool)),
    )
    if gap:
        keep = ~((x > 5) & (x < 15) & (y > 5) & (y < 15))
        x, y, z, ground = x[keep], y[keep], z[keep], ground[keep]
    path = tmp_path / "g.png"
    terrain = Raster(np.zeros((40, 40)), 0.0, 40.0, 1.0)
    margin = np.where(ground, 4.0, -5.0).astype(np.float32)
    margin[(z > 0) & (y > 30)] = -0.3
    margin[(z > 0) & (y < 10)] = 0.1  # of ground that is none by its class in the file
    write_ground_picture(path, terrain, (x, y, z), ground, margin, noise, "Ground", unit, metres)
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB")).astype(int)


def part(pixels, left, share_x, share_y):
    """Colours around a place of a panel, given as shares of its sides from its north-west."""
    column, row = round(left + share_x * SIDE), round(TOP + share_y * SIDE)
    return pixels[row - 9 : row + 10, column - 9 : column + 10].reshape(-1, 3)


def near(colours, colour):
    return (np.abs(colours - np.array(colour)).max(axis=1) <= 4).mean()


def test_what_is_above_has_the_colour_of_its_class(tmp_path):
    pixels = scene(tmp_path)
    assert pixels.shape[1] == 1600
    assert near(part(pixels, RIGHT, 0.25, 0.5), GROUND) == 1
    assert near(part(pixels, RIGHT, 0.75, 0.5), OTHER) == 1  # there is ground below as well
    for at in (0.25, 0.75):
        assert near(part(pixels, LEFT, at, 0.5), (181, 181, 181)) == 1  # level ground


def test_what_is_near_the_limit_has_a_colour_of_its_own(tmp_path):
    for metres, colour in ((1.0, OTHER), (0.3048, IN_DOUBT)):  # 0.3 m, and 0.3 ft
        pixels = scene(tmp_path, metres=metres)
        assert near(part(pixels, RIGHT, 0.75, 0.1), colour) == 1
        assert near(part(pixels, RIGHT, 0.75, 0.9), OTHER) == 1
        assert near(part(pixels, RIGHT, 0.25, 0.1), GROUND) == 1


def test_noise_is_not_drawn_and_no_points_are_no_class(tmp_path):
    np.testing.assert_array_equal(
        scene(tmp_path, noise=9)[: TOP + SIDE], scene(tmp_path)[: TOP + SIDE]
    )
    pixels = scene(tmp_path, gap=True)
    assert near(part(pixels, RIGHT, 0.25, 0.75), EMPTY) == 1
    assert near(part(pixels, RIGHT, 0.25, 0.25), GROUND) == 1


@pytest.mark.parametrize(("unit", "bar"), [("ft", "5 ft"), (None, "5 in the unit of the file")])
def test_it_says_what_there_is(tmp_path, monkeypatch, unit, bar):
    said = []
    write = ImageDraw.ImageDraw.text

    def text(draw, at, words, *arguments, **options):
        said.append(words)
        return write(draw, at, words, *arguments, **options)

    monkeypatch.setattr(ImageDraw.ImageDraw, "text", text)
    scene(tmp_path, noise=3, unit=unit, metres=0.3048)
    assert {
        "Ground",
        f"terrain, cells of {'1 ft' if unit else '1'}",
        "ground: 25,600 points, 67 %",
        "others: 12,800 points, 33 %",
        "within 0.2 m of the limit: 3,200 points, 8 %",
        "without 3 points of noise",
        bar,
    } <= set(said)


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("ground", [True, False])
def test_few_points_and_no_ground(tmp_path, n, ground):
    path = tmp_path / "g.png"
    z = np.zeros((1, 3)) if ground else np.full((1, 3), np.nan)
    line = np.arange(float(n))
    write_ground_picture(
        path,
        Raster(z, 0.0, 1.0, 1.0),
        (line, line / 9, line),
        np.full(n, ground),
        np.zeros(n, np.float32),
        0,
        "",
    )
    with Image.open(path) as picture:
        assert picture.width == 1600


def test_it_cannot_be_written(tmp_path):
    nothing = np.zeros(0)
    with pytest.raises(spatialq.FileError, match=r"output: '.*': there is no folder"):
        write_ground_picture(
            tmp_path / "no" / "g.png",
            Raster(np.zeros((1, 1)), 0.0, 1.0, 1.0),
            (nothing, nothing, nothing),
            nothing.astype(bool),
            nothing,
            0,
            "",
        )
