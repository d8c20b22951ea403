"""Strips of a cloud give, joined, the rows of the whole."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spatialq.udfs.owm_ground import Options, cpu, gpu
from spatialq.udfs.owm_ground.cost import halo
from spatialq.udfs.owm_ground.tiled import in_strips, in_tiles
from spatialq.udfs.owm_ground.windows import Box

from spatialq.data.tiles import Strip, strips

from ..conftest import real_file
from ..examples import examples
from ..kernels import arguments_of, assert_same
from .cases import CASES


def cut(axis, borders, distance):
    """Make strips between borders, and beyond the first and the last."""
    ends = [-np.inf, *borders, np.inf]
    return [Strip(axis, low, high, distance) for low, high in pairwise(ends)]


def whole_and_in_strips(columns, options, axis, borders):
    cloud = tuple(columns[name] for name in ("x", "y", "z", "point_id"))
    x, y = cloud[:2]
    box = Box(x.min(), x.max(), y.min(), y.max())
    if options.bounds is not None:
        box = Box.of(options.bounds)
    tiles = cut(axis, borders, halo(options))
    return cpu.run(*cloud, options), in_strips(cpu.run, cloud, options, tiles, box)


@pytest.mark.parametrize("tiles", [2, 3, 16])
@pytest.mark.parametrize("name", CASES)
def test_every_case_in_tiles(name, tiles):
    columns, options = arguments_of("owm_ground", name)
    options = Options(**{k: tuple(v) if k == "bounds" else v for k, v in options.items()})
    cloud = tuple(columns[each] for each in ("x", "y", "z", "point_id"))
    assert_same(in_tiles(cpu.run, cloud, options, tiles), cpu.run(*cloud, options))


STRANGE = {
    "duplicates": lambda rng: [np.repeat(rng.integers(0, 40, 60), 10) for _ in range(3)],
    "a hole": lambda rng: [
        np.where(rng.random(400) < 0.5, 0, 300) + rng.uniform(0, 30, 400),
        rng.uniform(0, 40, 400),
        rng.integers(0, 9, 400),
    ],
    "a stray point": lambda rng: [np.append(rng.uniform(0, 60, 500), 1e5) for _ in range(3)],
    "on borders": lambda rng: [rng.integers(0, 60, 600) for _ in range(3)],
    "far away": lambda rng: [
        714947.98 + rng.integers(0, 6000, 500) / 100,
        4286501.93 + rng.integers(0, 6000, 500) / 100,
        rng.integers(0, 20, 500),
    ],
    "one line": lambda rng: [np.arange(300), np.full(300, 7), rng.integers(0, 9, 300)],
}


@examples(150)
@given(
    name=st.sampled_from(sorted(STRANGE)),
    seed=st.integers(0, 1000),
    axis=st.sampled_from("xy"),
    places=st.lists(st.integers(-8, 72), max_size=6, unique=True),
    shift=st.sampled_from([0.0, 0.25, 1 / 3]),
    window_size=st.sampled_from([3.0, 4.0, 5.5, 10.0, 15.0]),
    overlap=st.sampled_from([0.0, 0.25, 0.5, 2 / 3, 0.8]),
    min_points=st.sampled_from([None, 1, 3]),
    cell_size=st.sampled_from([0.0, 5.0, 8.0, 20.0]),
    ties=st.sampled_from(["lowest_id", "octree"]),
)
def test_strips_between_any_borders_give_the_rows_of_the_whole(
    name, seed, axis, places, shift, **options
):
    rng = np.random.default_rng(seed)
    x, y, z = (each.astype(np.float64) for each in STRANGE[name](rng))
    columns = {"x": x, "y": y, "z": z, "point_id": rng.permutation(10 * x.size)[: x.size]}
    first = columns[axis].min()
    borders = [first + place + shift for place in sorted(places)]
    whole, joined = whole_and_in_strips(columns, Options(**options), axis, borders)
    assert_same(joined, whole)


def test_a_strip_for_each_point():
    columns, _ = arguments_of("owm_ground", "on metre borders")
    borders = np.unique(columns["x"]).tolist()
    whole, joined = whole_and_in_strips(columns, Options(min_points=1), "x", borders)
    assert_same(joined, whole)


def test_a_narrower_halo_would_not_do():
    """What the declaration asks for is used: without it the rows are others."""
    columns, _ = arguments_of("owm_ground", "scattered")
    cloud = tuple(columns[name] for name in ("x", "y", "z", "point_id"))
    x, y = cloud[:2]
    box = Box(x.min(), x.max(), y.min(), y.max())
    joined = in_strips(cpu.run, cloud, Options(), cut("x", [20.0, 40.0], 1.0), box)
    assert joined["hits"].sum() < cpu.run(*cloud, Options())["hits"].sum()


def test_strips_cover_the_plane_with_equally_many_points():
    rng = np.random.default_rng(3)
    x, y = rng.uniform(0, 10, 50_000), rng.uniform(0, 30, 50_000)
    tiles = strips(x, y, 7, 2.0)
    assert {tile.axis for tile in tiles} == {"y"}
    owned = np.array([tile.core(y) for tile in tiles])
    assert (owned.sum(axis=0) == 1).all()
    assert abs(owned.sum(axis=1) - 50_000 / 7).max() < 500
    for tile, own in zip(tiles, owned, strict=True):
        near = tile.points(y)
        assert set(np.flatnonzero(own)) <= set(near.tolist())
        assert ((y[near] >= tile.low - 2) & (y[near] <= tile.high + 2)).all()
    assert len(strips(np.zeros(9), np.zeros(9), 4, 1.0)) <= 2


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused_for_the_whole(value):
    x, y, z = (np.arange(100.0) for _ in range(3))
    z[[17, 60]] = value
    with pytest.raises(ValueError, match=r"must be finite, got 2 points.*point_id 17"):
        in_tiles(cpu.run, (x, y, z, None), Options(), 4)


@pytest.mark.slow
@pytest.mark.parametrize("tiles", [2, 5, 13])
def test_a_real_cloud_in_tiles(tiles):
    with np.load(real_file("golden/owm/golden200k_owm.npz")) as golden:
        x, y, z = np.ascontiguousarray(golden["xyz"].T)
    assert_same(
        in_tiles(cpu.run, (x, y, z, None), Options(), tiles), cpu.run(x, y, z, None, Options())
    )


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("tiles", [2, 7])
@pytest.mark.parametrize("name", ["scattered", "utm", "no cells", "no overlap", "odd window"])
def test_tiles_on_the_gpu_are_as_on_the_cpu(name, tiles):
    columns, options = arguments_of("owm_ground", name)
    cloud = tuple(columns[each] for each in ("x", "y", "z", "point_id"))
    found = gpu.run(*cloud, Options(**options), tiles=tiles)
    assert_same(found, cpu.run(*cloud, Options(**options)))
