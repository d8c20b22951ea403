"""`ground_surface` against brute force, other libraries, and what must not matter."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import LinearNDInterpolator
from scipy.spatial import cKDTree
from spatialq.udfs.ground_surface import Options, cpu, triangles
from spatialq.udfs.ground_surface.grid import cover
from spatialq.udfs.owm_ground import Options as SeedOptions
from spatialq.udfs.owm_ground import cpu as owm_ground

import spatialq

from ..conftest import real_file
from ..examples import examples
from . import oracle
from .cases import CASES


def run(points, **options):
    ids, x, y, z = (np.array([p[k] for p in points], np.float64) for k in range(4))
    chosen = Options(**{"source": "points", **options})
    return cpu.run(x, y, z, ids.astype(np.int64), chosen)


def places(result):
    return list(zip(result["x"].tolist(), result["y"].tolist(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_triangulation_is_as_brute_force_has_it(name):
    points, options = CASES[name]
    result = run(points, **options)
    assert places(result) == oracle.centres(points, options.get("resolution", 1.0))
    expected_triangles = oracle.delaunay(oracle.lowest_of_each_place(points))
    for place, z in zip(places(result), result["z"].tolist(), strict=True):
        expected = oracle.heights_in(expected_triangles, place)
        assert bool(expected) == (not math.isnan(z)), place
        # rounding far from the origin moves a point by up to 1e-9, and a slope is up to 900
        assert not expected or min(abs(float(e) - z) for e in expected) < 1e-6, place


@pytest.mark.parametrize("name", CASES)
def test_outside_the_hull_the_nearest_point_counts(name):
    points, options = CASES[name]
    inside, result = run(points, **options), run(points, **options, extrapolate=True)
    known = ~np.isnan(inside["z"])
    assert result["z"][known].tolist() == inside["z"][known].tolist()
    assert not np.isnan(result["z"]).any()
    kept = oracle.lowest_of_each_place(points)
    for place, z, is_known in zip(places(result), result["z"].tolist(), known, strict=True):
        if not is_known:
            near = oracle.squares(kept, place)
            assert z in [height for square, height in near if square <= near[0][0] * (1 + 1e-9)]


@pytest.mark.parametrize("name", sorted(set(CASES) - {"a lattice", "a lattice of cell centres"}))
def test_idw_is_as_brute_force_has_it(name):
    """Without the cases where equally near points compete for the last place."""
    points, options = CASES[name]
    neighbours = options.get("neighbours", 10)
    result = run(points, **options, method="idw", extrapolate=True)
    kept = oracle.lowest_of_each_place(points)
    for place, z in zip(places(result), result["z"].tolist(), strict=True):
        near = [square for square, _ in oracle.squares(kept, place)]
        if len(near) > neighbours and near[neighbours] < near[neighbours - 1] * (1 + 1e-6):
            continue
        assert z == pytest.approx(oracle.idw(kept, place, neighbours), abs=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_idw_knows_the_same_cells_as_the_triangulation(name):
    points, options = CASES[name]
    tin, idw = run(points, **options), run(points, **options, method="idw")
    assert np.isnan(tin["z"]).tolist() == np.isnan(idw["z"]).tolist()


@pytest.mark.parametrize("method", ["tin", "idw"])
@pytest.mark.parametrize("name", CASES)
def test_threads_and_order_do_not_matter(name, method, monkeypatch):
    points, options = CASES[name]
    expected = run(points, **options, method=method)
    monkeypatch.setenv("SPATIALQ_THREADS", "3")
    monkeypatch.setattr(cpu, "COLUMNS_PER_STRIP", 2)
    monkeypatch.setattr(cpu, "TRIANGLES_PER_STRIP", 3)
    monkeypatch.setattr(triangles, "POINTS_PER_TILE", 4)
    again = run(sorted(points, key=lambda p: (p[3], -p[1])), **options, method=method)
    for column in "xyz":
        assert again[column].tobytes() == expected[column].tobytes()


coordinates = st.integers(0, 64).map(lambda k: k / 4)  # on lines, on circles, on top of others


@st.composite
def clouds(draw):
    n = draw(st.integers(1, 40))
    dx, dy = draw(st.sampled_from([(0.0, 0.0), (500_000.0, 5_800_000.0), (-700.25, -3.5)]))
    return [(i, draw(coordinates) + dx, draw(coordinates) + dy, 0.0) for i in range(n)]


@examples(60)
@given(points=clouds(), resolution=st.sampled_from([0.5, 1.0, 0.7]))
def test_a_plane_stays_a_plane_and_the_hull_has_no_holes(points, resolution):
    """Also where the triangulation is not unique, and where centres lie on edges and corners."""
    _, x0, y0, _ = points[0]
    tilted = [(i, x, y, 3 + 0.5 * (x - x0) - 0.25 * (y - y0)) for i, x, y, _ in points]
    result = run(tilted, resolution=resolution)
    expected = 3 + 0.5 * (result["x"] - x0) - 0.25 * (result["y"] - y0)
    known = ~np.isnan(result["z"])
    assert np.abs(result["z"][known] - expected[known]).max(initial=0) < 1e-8
    # A centre that 0.7 puts beside an edge by less than rounding may be on either side of it.
    if len(points) < 12 and resolution != 0.7:
        expected_triangles = oracle.delaunay(oracle.lowest_of_each_place(points))
        inside = [bool(oracle.heights_in(expected_triangles, place)) for place in places(result)]
        assert known.tolist() == inside


@pytest.mark.parametrize("method", ["tin", "idw"])
def test_level_ground_is_level_to_the_last_bit(method):
    points = [(i, x, y, 431.07) for i, x, y, _ in CASES["utm"][0]]
    result = run(points, method=method, extrapolate=True)
    assert set(result["z"].tolist()) == {431.07}


@pytest.mark.parametrize("method", ["tin", "idw"])
def test_a_line_but_for_rounding_has_no_hull(method):
    rng = random.Random(0)
    along = [rng.random() * 100 for _ in range(30)]
    line = [(i, t, 0.37 * t + rng.random() * 1e-12, 1.0) for i, t in enumerate(along)]
    assert np.isnan(run(line, method=method)["z"]).all()
    assert set(run(line, method=method, extrapolate=True)["z"].tolist()) == {1.0}


def test_a_cell_has_the_height_of_the_point_in_its_centre():
    result = run(CASES["a lattice of cell centres"][0])
    heights = {(x, y): z for _, x, y, z in CASES["a lattice of cell centres"][0]}
    assert dict(zip(places(result), result["z"].tolist(), strict=True)) == heights


def test_cell_edges_are_multiples_of_the_resolution():
    result = run([(1, 0.3, -7.9, 1.0), (2, 9.9, -4.1, 1.0)], resolution=2.5)
    assert sorted(set(result["x"].tolist())) == [1.25, 3.75, 6.25, 8.75]
    assert sorted(set(result["y"].tolist())) == [-8.75, -6.25, -3.75]


def test_a_point_on_the_upper_border_needs_no_further_cell():
    result = run([(1, 0.0, 0.0, 1.0), (2, 2.0, 1.0, 1.0)])
    assert places(result) == [(0.5, 0.5), (1.5, 0.5)]


def test_thinning_keeps_the_point_nearest_to_the_centre():
    corners = [(i, x, y, 0.0) for i, (x, y) in enumerate([(0, 0), (3, 0), (0, 3), (3, 3)])]
    same_cell = [(10, 1.5, 1.45, 4.0), (11, 1.5, 1.6, 9.0), (12, 1.2, 1.2, -5.0)]
    result = run([*corners, *same_cell], thin=True, method="idw", neighbours=1)
    assert result["z"][4] == 4.0
    alone = run([*corners, same_cell[0]])
    assert run([*corners, *same_cell], thin=True)["z"].tolist() == alone["z"].tolist()


def test_of_points_equally_near_the_centre_the_lowest_is_kept():
    ring = [(1, 0.5, 0.75, 3.0), (2, 0.75, 0.5, 2.0), (3, 0.25, 0.5, 4.0), (4, 0.75, 0.5, 1.0)]
    for points in (ring, ring[::-1]):
        result = run(points, thin=True, extrapolate=True)
        assert result["z"].tolist() == [1.0]


def test_real_ground_thinned_is_as_numpy_thins_it(sample):
    _, (x, y, z, _) = sample
    size = 20.0
    grid = cover(x, y, Options(resolution=size))
    kept = np.column_stack(triangles.arrange(x, y, z, grid, thin=True)[:2]) + np.array(grid.origin)
    places = np.column_stack([x, y])

    def square_to_centre(places):
        return ((places - size * (np.floor(places / size) + 0.5)) ** 2).sum(axis=1)

    cells, cell = np.unique(np.floor(places / size), axis=0, return_inverse=True)
    nearest = np.full(len(cells), np.inf)
    np.minimum.at(nearest, cell.ravel(), square_to_centre(places))
    assert len(kept) == len(cells) < x.size / 4
    assert np.abs(np.sort(square_to_centre(kept)) - np.sort(nearest)).max() < 1e-6


@pytest.fixture(scope="module")
def sample():
    """Reference ground points of an ISPRS sample, and all of its points."""
    with spatialq.connect() as con:
        spatialq.read_las(con, real_file("data/lidar/isprs_samp53.laz"), name="points")
        columns = con.sql("SELECT point_id, x, y, z, classification FROM points").fetchnumpy()
    cloud = [columns[name] for name in ("x", "y", "z", "point_id")]
    is_ground = columns["classification"] == 2
    return cloud, [column[is_ground] for column in cloud]


@pytest.mark.slow
def test_real_ground_is_interpolated_as_scipy_does_it(sample):
    _, (x, y, z, point_id) = sample
    result = cpu.run(x, y, z, point_id, Options(source="points", resolution=3.0))
    x0, y0 = np.floor(x.min()), np.floor(y.min())
    expected = LinearNDInterpolator(np.column_stack([x - x0, y - y0]), z)(
        result["x"] - x0, result["y"] - y0
    )
    assert (np.isnan(expected) == np.isnan(result["z"])).all()
    difference = np.abs(expected - result["z"])
    # where four points lie on one circle either diagonal is right
    assert np.mean(difference[~np.isnan(difference)] < 1e-6) > 0.99


def test_real_ground_is_weighted_as_scipys_tree_finds_it(sample):
    _, (x, y, z, point_id) = sample
    options = Options(source="points", method="idw", extrapolate=True, resolution=2.0)
    result = cpu.run(x, y, z, point_id, options)
    order = np.lexsort((z, y, x))
    places = np.column_stack([x, y])[order]
    _, first = np.unique(places, axis=0, return_index=True)
    distance, index = cKDTree(places[first]).query(
        np.column_stack([result["x"], result["y"]]), k=11
    )
    clear = (distance[:, 0] > 0) & (distance[:, 10] > distance[:, 9] * (1 + 1e-9))
    weight = 1 / distance[clear, :10] ** 2
    heights = z[order][first][index[clear, :10]]
    expected = (weight * heights).sum(axis=1) / weight.sum(axis=1)
    assert clear.sum() > 0.9 * clear.size
    assert np.abs(result["z"][clear] - expected).max() < 1e-6


@pytest.mark.slow
def test_seeds_are_those_of_owm_ground_over_the_box_of_all_points(sample):
    cloud, _ = sample
    result = cpu.run(*cloud, Options(window_size=12.0))
    seeds = owm_ground.run(*cloud, SeedOptions(window_size=12.0))
    expected = cpu.run(
        *(seeds[name] for name in ("x", "y", "z", "point_id")), Options(source="points")
    )
    heights = dict(zip(places(expected), expected["z"].tolist(), strict=True))
    for place, z in zip(places(result), result["z"].tolist(), strict=True):
        assert z == pytest.approx(heights.get(place, math.nan), abs=1e-9, nan_ok=True)
    assert result["x"].min() < cloud[0].min() + 1
    assert result["x"].max() > cloud[0].max() - 1
