"""The picture of features: where things are, and what their colours say."""

import numpy as np
import pytest
from PIL import Image

from spatialq.export.features_picture import (
    EMPTY,
    FEATURE_RAMP,
    HEIGHT_RAMP,
    LEGEND,
    MARGIN,
    PAPER,
    FeatureMap,
    Terrain,
    _apart,
    _label,
    _nearest,
    ramp,
    write_features_picture,
)

pytestmark = pytest.mark.slow  # as a whole

BOX = (0.0, 0.0, -np.inf, 100.0, 100.0, np.inf)
HILL = np.add.outer(np.linspace(0, 5, 50), np.linspace(0, 9, 50))
X, Y = (each.ravel() for each in np.meshgrid([10.0, 30.0, 50.0, 70.0], [10.0, 30.0, 50.0, 70.0]))


def draw(tmp_path, *maps, terrain=HILL, box=BOX, example=(20.0, 20.0)):
    path = tmp_path / "p.png"
    write_features_picture(path, Terrain(terrain, box), maps, example=example, title="Title")
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB")).astype(int)


def colours(picture):
    """Those of large areas."""
    found, counts = np.unique(picture @ [1 << 16, 1 << 8, 1], return_counts=True)
    return {tuple(int(each).to_bytes(3)) for each in found[counts > 500]}


@pytest.mark.parametrize("chosen", [FEATURE_RAMP, HEIGHT_RAMP])
def test_ramps_are_the_colours_of_their_knots(chosen):
    """Back in OKLab (Ottosson 2020), as no colour is that a screen does not have."""
    srgb = ramp(chosen) / 255
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    cones = linear @ np.transpose([
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ])  # fmt: skip
    lightness, a, b = np.transpose([
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]).T @ np.cbrt(cones).T  # fmt: skip
    at, knots = np.linspace(0, len(chosen) - 1, 256), range(len(chosen))
    expected = [np.interp(at, knots, column) for column in zip(*chosen, strict=True)]
    np.testing.assert_allclose(lightness, expected[0], atol=0.005)
    np.testing.assert_allclose(np.hypot(a, b), expected[1], atol=0.005)


def test_the_ramp_of_features_gets_lighter_all_the_way():
    srgb = ramp(FEATURE_RAMP) / 255
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    steps = np.diff(np.cbrt(linear @ [0.2126, 0.7152, 0.0722]))
    assert steps.min() > 0.7 * steps.max() > 0


def test_an_example_is_where_it_is(tmp_path):
    """Bottom left dark, the others light: the south-western example has the least value."""
    value = np.ones(16)
    value[0] = 0.0  # at 10, 10
    picture = draw(tmp_path, FeatureMap("pca pca1", 300.0, X, Y, value))
    dark = ramp(FEATURE_RAMP)[8].astype(int)  # half of one of sixteen lies below it
    panel = picture[100:, 540:840]
    rows, columns = np.nonzero(np.abs(panel - dark).sum(axis=-1) < 3)
    assert rows.size > 1000
    light = np.nonzero(np.abs(panel - ramp(FEATURE_RAMP)[136].astype(int)).sum(axis=-1) < 3)
    assert rows.min() > light[0].mean()
    assert columns.max() < light[1].mean()
    # the grid is 100 wide and an example 20
    assert np.ptp(rows) == pytest.approx(np.ptp(columns), abs=2)
    assert np.ptp(light[1]) / np.ptp(columns) == pytest.approx(4, abs=0.1)


def test_what_has_no_value_is_grey_and_what_is_in_no_example_is_paper(tmp_path):
    value = np.arange(16.0)
    value[5] = np.nan
    picture = draw(tmp_path, FeatureMap("pca pca1", 300.0, X, Y, np.ma.masked_equal(value, 9.0)))
    assert EMPTY in colours(picture)
    assert PAPER in colours(picture)
    assert EMPTY not in colours(draw(tmp_path, FeatureMap("f", 1.0, X, Y, np.arange(16.0))))


@pytest.mark.parametrize(
    ("side", "first"),
    [(20.0, [0] * 20 + [1] * 20), (8.0, [-1] * 6 + [0] * 8 + [-1] * 12), (40.0, [0] * 20 + [1])],
)
def test_examples_have_their_size_whatever_their_distance(side, first):
    """Between them is paper, and so is beyond the last; where they overlap, the nearest counts."""
    centres = np.array([10.0, 30.0, 50.0, 70.0])
    of_place, which = _nearest(np.tile(centres, 2), side, np.arange(100) + 0.5)
    assert of_place[: len(first)].tolist() == first
    assert which.tolist() == [0, 1, 2, 3] * 2
    last = 70 + side / 2
    assert (of_place[int(last) - 1], of_place[int(last)]) == (3, -1)


def test_gaps_between_examples_are_paper(tmp_path):
    flat = FeatureMap("f", 1.0, X, Y, np.zeros(16))
    touching, apart = (draw(tmp_path, flat, example=(side, side)) for side in (20.0, 10.0))
    examples = [(picture[:, 540:840] != PAPER).any(axis=-1).sum() for picture in (touching, apart)]
    assert examples[1] < examples[0] / 2


def test_a_few_extreme_values_leave_the_others_apart(tmp_path):
    tame, wild = np.arange(16.0), np.arange(16.0)
    wild[15] = 1e30
    pictures = [draw(tmp_path, FeatureMap("f", 1.0, X, Y, each)) for each in (tame, wild)]
    assert colours(pictures[0]) == colours(pictures[1])


@pytest.mark.parametrize(
    ("marks", "texts"),
    [
        ([0.0, 0.25, 1234.0, 98765.0], ["0", "0.25", "1230", "98800"]),
        ([0.99991, 0.99992, 1.0], ["0.99991", "0.99992", "1"]),
        ([0.5, 0.5 + 1e-15, 2e-5, 3e7], ["0.5", "0.5", "2e-05", "3e+07"]),
    ],
)
def test_numbers_of_a_legend_have_few_digits(marks, texts):
    assert _apart(np.array(marks)) == texts


@pytest.mark.parametrize("name", ["pca1", "stat_centred.skewness", "mine.of_the_steepest_quarter"])
def test_no_label_is_cut_off(name):
    text, font = _label(name)
    assert max(map(font.getlength, text.split("\n"))) <= LEGEND
    assert font.size > 9


def test_maps_of_one_feature_share_their_colours(tmp_path):
    """At twice the values of the first, nothing of the second map is as dark."""
    both = [FeatureMap("f", 1.0, X, Y, np.zeros(16)), FeatureMap("f", 2.0, X, Y, np.ones(16))]
    apart = [FeatureMap("f", 1.0, X, Y, np.zeros(16)), FeatureMap("g", 2.0, X, Y, np.ones(16))]
    assert len(colours(draw(tmp_path, *both))) == len(colours(draw(tmp_path, *apart))) + 1


def test_rows_and_columns_are_features_and_scales(tmp_path):
    def maps(names, scales):
        return [FeatureMap(n, s, X, Y, np.arange(16.0)) for n in names for s in scales]

    one = draw(tmp_path, *maps("a", [1.0]))
    many = draw(tmp_path, *maps("abcd", [1.0]))
    assert many.shape[0] > 1.5 * one.shape[0]
    assert one.shape[1] == many.shape[1] == 1600
    five = draw(tmp_path, *maps("abcde", [1.0, 2.0, 3.0, 4.0, 5.0]))
    np.testing.assert_array_equal(five.shape, many.shape)  # a picture has room for four, and three


@pytest.mark.parametrize(
    "box", [(0, 0, 0, 1e-3, 1e-3, 0), (5e5, 5e6, 0, 5.1e5, 5.001e6, 0), (-9, -90, 0, -8, 90, 0)]
)
def test_any_extent_is_drawn(tmp_path, box):
    west, south, _, east, north, _ = box
    x = np.array([west + 0.25 * (east - west), west + 0.75 * (east - west)])
    y = np.full(2, (south + north) / 2)
    example = (0.5 * (east - west), north - south)
    one = FeatureMap("f", 1.0, x, y, np.array([1.0, 2.0]))
    picture = draw(tmp_path, one, box=box, example=example)
    assert picture.shape[0] < 1600
    assert len(colours(picture)) > 2


@pytest.mark.parametrize(
    "terrain", [np.full((9, 9), np.nan), np.zeros((5, 7)), np.zeros((1, 1)), -HILL * 1e6]
)
def test_any_terrain_has_a_hillshade(tmp_path, terrain):
    one = FeatureMap("f", 1.0, np.array([50.0]), np.array([50.0]), np.array([np.nan]))
    picture = draw(tmp_path, one, terrain=terrain)
    colour = picture[120, MARGIN + 100]
    assert (tuple(colour) == EMPTY) == bool(np.isnan(terrain).all())
