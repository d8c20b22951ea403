import numpy as np
import pytest
from PIL import Image

from spatialq.demo.picture import DOT, hillshade, write_ground_picture

pytestmark = pytest.mark.slow


def test_flat_ground_is_180():
    assert (hillshade(np.full((4, 5), 7.0), 1.0) == 180).all()


def test_light_comes_from_the_north_west():
    rows, columns = np.mgrid[0:20, 0:20].astype(float)
    rises_to_south_east = hillshade(rows + columns, 1.0)
    rises_to_north_west = hillshade(-rows - columns, 1.0)
    assert rises_to_south_east[10, 10] > 180 > rises_to_north_west[10, 10]


def test_the_cell_size_scales_the_slope():
    z = np.random.default_rng(1).random((30, 40))
    np.testing.assert_array_equal(hillshade(z, 1.0), hillshade(3.0 * z, 3.0))


@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (1, 9), (9, 1)])
def test_small_grids_are_shaded(shape):
    assert hillshade(np.zeros(shape), 1.0).shape == shape


def test_missing_heights_are_shaded_as_flat():
    z = np.zeros((5, 5))
    z[2, 2] = np.nan
    assert (hillshade(z, 1.0) == 180).all()


LINE = np.linspace(0.0, 50.0, 40)
CLOUDS = {
    "none": (np.empty(0), np.empty(0), np.empty(0)),
    "one": ([5.0], [5.0], [5.0]),
    "three": ([0.0, 1.0, 2.0], [0.0, 2.0, 1.0], [1.0, 2.0, 3.0]),
    "line east": (LINE, np.zeros(40), LINE),
    "line north": (np.zeros(40), LINE, np.ones(40)),
    "equal points": (np.ones(9), np.ones(9), np.ones(9)),
    "huge": ([0.0, 1e7], [0.0, 1e7], [-1e4, 1e4]),
    "far away": (5e6 + LINE, 5e7 + LINE[::-1], LINE),
    "with NaN": ([0.0, 1.0, np.nan], [0.0, np.inf, 1.0], [0.0, 0.0, 0.0]),
}


@pytest.mark.parametrize("name", CLOUDS)
def test_any_cloud_gives_a_picture(tmp_path, name):
    x, y, z = CLOUDS[name]
    write_ground_picture(tmp_path / "any.png", x, y, z, np.column_stack([x, y, z])[:5])
    with Image.open(tmp_path / "any.png") as image:
        assert image.width == 1200
        assert image.height < 1400


def test_the_village_is_drawn_with_its_ground_points(world, tmp_path):
    import laspy

    las = laspy.read(world.las)
    xyz = np.column_stack([las.x, las.y, las.z])
    seeds = xyz[np.asarray(las.classification) == 2][::600]
    empty, dotted = tmp_path / "empty.png", tmp_path / "dotted.png"
    write_ground_picture(empty, *xyz.T, np.empty((0, 3)))
    write_ground_picture(dotted, *xyz.T, seeds, title="Village")
    pictures = [np.asarray(Image.open(path).convert("RGB")).astype(int) for path in (empty, dotted)]
    near_dot = [(np.abs(picture - DOT).sum(axis=-1) < 40).sum() for picture in pictures]
    assert near_dot[1] > near_dot[0] + len(seeds)


def test_a_point_is_drawn_where_it_is(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0.0, 100.0, (2, 20_000))
    write_ground_picture(tmp_path / "one.png", x, y, np.zeros(20_000), [[25.0, 75.0, 0.0]])
    picture = np.asarray(Image.open(tmp_path / "one.png").convert("RGB")).astype(int)
    rows, columns = np.nonzero(np.abs(picture[:, :920] - DOT).sum(axis=-1) < 60)
    # the map starts at 24, 80 and is 900 pixels for 100 metres
    assert columns.mean() == pytest.approx(24 + 225, abs=2)
    assert rows.mean() == pytest.approx(80 + 225, abs=2)
