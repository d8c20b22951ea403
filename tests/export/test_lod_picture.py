"""The picture of a cloud at three levels of detail."""

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

import spatialq
from spatialq.export.lod_picture import GAP, MARK, PANEL, _light, write_lod_picture

pytestmark = pytest.mark.slow  # as a whole


def nodes(n=3000, *, colours=65535, intensity=0, max_points=200, stray=False, floor=False):
    """A slope, red in the west and blue in the east, as build_lod gives it; a green floor below."""
    x, y = np.random.default_rng(1).uniform(0, 100, (2, n))
    z = x / 4
    if stray:
        z[:11] = 9000.0  # fewer would be left out
    if floor:
        z[n // 2 :] = -20.0
    share = x / 100
    rgb = [(colours * each).astype(np.uint16) for each in (1 - share, 0 * share, share)]
    if floor:
        for channel, value in zip(rgb, (0, colours, 0), strict=True):
            channel[n // 2 :] = value
    columns = {"point_id": np.arange(n), "x": x, "y": y, "z": z}
    columns["intensity"] = (intensity * share).astype(np.uint16)
    if colours:
        columns |= dict(zip(("red", "green", "blue"), rgb, strict=True))
    with spatialq.connect() as con:
        con.register("cloud", pa.table(columns))
        options = f"max_points := {max_points}, grid_size := 32"
        return con.sql(f"FROM build_lod('cloud', {options})").to_arrow_table()


def draw(path, found):
    write_lod_picture(path, found, "Levels")
    with Image.open(path) as picture:
        pixels = np.asarray(picture.convert("RGB")).astype(int)
    columns = round((pixels.shape[1] - 48 + GAP) / (PANEL + GAP))
    return pixels, [pixels[:, 24 + k * (PANEL + GAP) :][:, :PANEL] for k in range(columns)]


def coloured(panel):
    """Where red and blue differ."""
    return np.abs(panel[..., 0] - panel[..., 2]) > 40


def test_a_deep_tree_has_three_columns_that_look_alike_from_afar(tmp_path):
    _, columns = draw(tmp_path / "a.png", nodes(60_000, max_points=1000))
    assert len(columns) == 3
    left, _, right = (coloured(column)[:600].mean() for column in columns)
    assert left > 0.1
    assert right == pytest.approx(left, rel=0.25)
    for column in columns:
        west, east = column[150:550, :250], column[150:550, 350:]
        assert (west[..., 0] - west[..., 2]).sum() > 0 > (east[..., 0] - east[..., 2]).sum()


def test_close_up_a_voxel_has_one_colour_on_a_face(tmp_path):
    _, columns = draw(tmp_path / "a.png", nodes(30_000, max_points=2000))
    close = [column[-PANEL:] for column in columns]
    plain = [(np.diff(each, axis=1) == 0).all(axis=-1).mean() for each in close]
    assert plain[0] > plain[1] > plain[2]


def test_eight_bits_look_as_sixteen(tmp_path):
    (wide, _), (narrow, _) = (
        draw(tmp_path / f"{most}.png", nodes(colours=most)) for most in (65535, 255)
    )
    assert np.abs(wide - narrow).max() <= 6


def test_without_colours_it_is_grey(tmp_path):
    pixels, columns = draw(tmp_path / "a.png", nodes(colours=0, intensity=4000))
    marked = (pixels == MARK).all(axis=-1)
    rest = pixels[~marked]
    assert (rest.max(axis=-1) - rest.min(axis=-1)).max() < 60
    dark = (columns[-1].max(axis=-1) < 180).mean()
    assert dark > 0.1


@pytest.mark.parametrize("intensity", [0, 0.5], ids=["none", "all of one"])
def test_without_intensity_too_it_has_the_colours_of_heights(tmp_path, intensity):
    _, columns = draw(tmp_path / "a.png", nodes(60_000, colours=0, intensity=intensity))
    for column in columns:
        close = column[-PANEL:][50:-50, 50:-50]
        assert (close[..., 2] - close[..., 0]).std() > 3
        overview = column[150:400]
        west, east = overview[:, 100:250], overview[:, 350:500]
        low, high = (
            np.median(each[(each < 230).all(axis=-1)].sum(axis=-1)) for each in (west, east)
        )
        assert high > low + 60


def test_steps_are_in_the_shade():
    depth = np.full((20, 20), 5.0, np.float32)
    depth[:, 10:] += 100
    depth[:3] = np.inf
    light = _light(depth)
    assert (light[:3] == 1).all()  # paper
    assert (light[6:, :10] == 1).all()
    assert (light[6:, 10] < 0.9).all()
    assert (light[6:, 14:] == 1).all()


def test_what_lies_behind_is_not_seen_through_voxels(tmp_path):
    _, columns = draw(tmp_path / "a.png", nodes(40_000, max_points=5, floor=True))
    greens = []
    for column in columns:
        shown = column[200:400, 200:400]  # of the slope, which hides the floor
        greens.append((shown[..., 1] > shown[..., 0] + shown[..., 2]).mean())
    assert len(greens) > 1
    assert max(greens[:-1]) < 0.02


def test_a_stray_point_does_not_make_the_rest_small(tmp_path):
    plain, stray = (
        draw(tmp_path / f"{stray}.png", nodes(40_000, stray=stray, max_points=50))[1][-1][:550]
        for stray in (False, True)
    )
    assert coloured(stray).mean() > coloured(plain).mean() / 2


@pytest.mark.parametrize(("n", "columns"), [(1, 1), (2, 1), (150, 1), (300, 2)])
def test_a_small_tree_has_fewer_columns(tmp_path, n, columns):
    assert len(draw(tmp_path / "a.png", nodes(n))[1]) == columns


def test_a_cloud_without_points_gives_a_picture(tmp_path):
    assert len(draw(tmp_path / "a.png", nodes(0))[1]) == 1


def test_it_cannot_be_written(tmp_path):
    with pytest.raises(spatialq.FileError, match=r"output: '.*': there is no folder"):
        write_lod_picture(tmp_path / "no" / "p.png", nodes(3), "")
