"""Strips of a cloud give, joined, the rows of the whole."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spatialq.udfs.owm_ground import Options, cost, cpu, gpu, runs
from spatialq.udfs.owm_ground.cost import halo
from spatialq.udfs.owm_ground.tiled import in_strips, in_tiles
from spatialq.udfs.owm_ground.windows import Box, cut_axes, fill_borders, window_borders

from spatialq.data.tiles import Strip, gather, members, strips
from spatialq.functions.declaration import Size
from spatialq.runtime import cuda

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


@pytest.mark.slow
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


@examples(60)
@given(
    seed=st.integers(0, 1000),
    borders=st.lists(st.integers(0, 100), max_size=9, unique=True),
    halo=st.sampled_from([0.0, 1.0, 2.5, 40.0]),
    threads=st.integers(1, 5),
)
def test_members_of_strips_are_those_within_their_halos(seed, borders, halo, threads):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 400, 900) / 4
    tiles = cut("x", sorted(map(float, borders)), halo)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spatialq.data.tiles.POINTS_PER_THREAD", 10)
        patch.setenv("SPATIALQ_THREADS", str(threads))
        found = members(values, tiles)
    for tile, at in zip(tiles, found, strict=True):
        low, high = tile.low - halo, tile.high + halo
        assert at.tolist() == np.flatnonzero((values >= low) & (values <= high)).tolist()
        assert gather(values, at).tolist() == values[at].tolist()


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
    for tile, own, near in zip(tiles, owned, members(y, tiles), strict=True):
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


@pytest.fixture(params=["runs", "strips"])
def way(request, device, monkeypatch):
    """Both ways in which tiles are made on a GPU, whatever takes less memory."""
    monkeypatch.setattr(cost, "keeps_cells", lambda *_: request.param == "runs")
    return request.param


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("tiles", [2, 7])
@pytest.mark.parametrize("name", CASES)
def test_tiles_on_the_gpu_are_as_on_the_cpu(name, tiles):
    columns, options = arguments_of("owm_ground", name)
    options = Options(**{k: tuple(v) if k == "bounds" else v for k, v in options.items()})
    cloud = tuple(columns[each] for each in ("x", "y", "z", "point_id"))
    found = gpu.run(*cloud, options, tiles=tiles)
    assert_same(found, cpu.run(*cloud, options))


@pytest.mark.usefixtures("device")
@examples(60)
@given(
    name=st.sampled_from(sorted(STRANGE)),
    seed=st.integers(0, 1000),
    tiles=st.integers(2, 40),
    ids=st.sampled_from(["none", "ascending", "shuffled"]),
    window_size=st.sampled_from([3.0, 5.5, 10.0, 15.0]),
    overlap=st.sampled_from([0.0, 0.5, 2 / 3, 0.8]),
    min_points=st.sampled_from([None, 1, 3]),
    cell_size=st.sampled_from([0.0, 5.0, 20.0]),
    ties=st.sampled_from(["lowest_id", "octree"]),
)
def test_runs_of_points_give_the_rows_of_the_whole(name, seed, tiles, ids, **options):
    """Lowest points that tie are in several runs, and so are the points of every window."""
    rng = np.random.default_rng(seed)
    x, y, z = (each.astype(np.float64) for each in STRANGE[name](rng))
    point_id = None if ids == "none" else rng.permutation(10 * x.size)[: x.size]
    if ids == "ascending":
        point_id.sort()
    options = Options(**options)
    box = Box(x.min(), x.max(), y.min(), y.max())
    found = runs.in_runs(cuda.device(), (x, y, z, point_id), options, tiles, box)
    assert_same(found, cpu.run(x, y, z, point_id, options))


def test_dense_points_go_by_in_runs_and_sparse_ones_in_strips():
    dense, sparse = Size(10_000_000, (400.0, 300.0, 0.0)), Size(90_000, (6000.0, 3000.0, 0.0))
    assert all(cost.keeps_cells(dense, Options(), tiles) for tiles in (2, 16, 64))
    assert not any(cost.keeps_cells(sparse, Options(), tiles) for tiles in (2, 16, 64))
    assert cost.work_in_tiles(dense, Options(), 16).bytes_host == 0
    assert cost.work_in_tiles(sparse, Options(), 16).bytes_host >= 24 * sparse.rows


@pytest.mark.parametrize("name", CASES)
def test_the_memory_of_runs_is_counted(name):
    """The cells that are counted are no fewer than there are."""
    columns, options = arguments_of("owm_ground", name)
    options = Options(**{k: tuple(v) if k == "bounds" else v for k, v in options.items()})
    x, y = columns["x"], columns["y"]
    if x.size == 0:
        return
    box = Box(x.min(), x.max(), y.min(), y.max())
    if options.bounds is not None:
        box = Box.of(options.bounds)
    every = [np.ones(1 << 20, np.bool_)] * 2
    axes = cut_axes(box, 1 << 40, options, lambda _: every)
    size = Size(x.size, (np.ptp(x), np.ptp(y), 0.0))
    counted = cost._cells(size, options)
    assert counted >= axes[0].n_slots * axes[1].n_slots


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_the_gpu_refuses_what_is_not_finite_in_any_tile(value):
    for axis in range(3):
        cloud = [np.arange(100.0) for _ in range(3)]
        cloud[axis][[17, 60]] = value
        with pytest.raises(ValueError, match=r"must be finite, got 2 points.*point_id 17"):
            gpu.run(*cloud, None, Options(), tiles=4)


@pytest.mark.usefixtures("device")
def test_a_box_must_hold_the_points_of_all_runs():
    cloud = tuple(np.arange(100.0) for _ in range(3))
    with pytest.raises(ValueError, match="box must hold all points, got some outside of"):
        runs.in_runs(cuda.device(), (*cloud, None), Options(), 4, Box(0.0, 90.0, 0.0, 99.0))


BORDERS = st.tuples(
    st.floats(-1e6, 1e6), st.floats(0.5, 1e4), st.floats(0.5, 300.0), st.floats(-0.2, 1.2)
)


@given(BORDERS, st.sampled_from([0.0, 0.5, 2 / 3, 0.8]), st.floats(0.0, 0.3))
def test_borders_near_points_are_those_of_the_whole(survey, overlap, part):
    """Of all intervals, none that reaches into the part is missing, and few others are there."""
    low, width, size, at = survey
    near = low + at * width, low + (at + part) * width
    for whole, some in (
        (window_borders(low, low + width, size, overlap, size / 2),
         window_borders(low, low + width, size, overlap, size / 2, near)),
        (fill_borders(low, low + width, size, size / 2),
         fill_borders(low, low + width, size, size / 2, near)),
    ):  # fmt: skip
        reach = (whole[1] >= near[0]) & (whole[0] <= near[1])
        needed = zip(*(each[reach] for each in whole), strict=True)
        assert set(needed) <= set(zip(*some, strict=True)) <= set(zip(*whole, strict=True))
        assert some[0].size <= reach.sum() + 4


def test_seeds_of_a_part_of_wide_bounds_are_those_of_all_windows(monkeypatch):
    rng = np.random.default_rng(5)
    x, y = (np.round(rng.uniform(4000.0, 4090.0, 5000), 1) for _ in range(2))
    z = np.round(x / 10 + rng.uniform(0.0, 1.0, x.size), 1)
    for ties in ("lowest_id", "octree"):
        options = Options(bounds=(0.0, 0.0, 7000.0, 9000.0), min_points=4, ties=ties)
        found = cpu.run(x, y, z, None, options)
        with monkeypatch.context() as changed:
            changed.setattr(cpu, "cut_axes", lambda *given: cut_axes(*given[:5]))
            expected = cpu.run(x, y, z, None, options)
        assert found["x"].size > 100
        assert all((found[name] == expected[name]).all() for name in expected)
