"""The kernels against brute force, the reference's own results, and what must not matter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spatialq.udfs.owm_ground import Options, cpu, small, windows

from ..conftest import real_file
from ..examples import examples
from .cases import CASES
from .oracle import owm_ground


def run(points, **options):
    ids, x, y, z = (np.array([p[k] for p in points]) for k in range(4))
    columns = (values.astype(np.float64) for values in (x, y, z))
    return cpu.run(*columns, point_id=ids.astype(np.int64), options=Options(**options))


def split(result):
    pairs = list(zip(result["point_id"].tolist(), result["hits"].tolist(), strict=True))
    filled = result["filled"].tolist()
    return (
        {
            point: hits
            for (point, hits), is_filled in zip(pairs, filled, strict=True)
            if not is_filled
        },
        {point: hits for (point, hits), is_filled in zip(pairs, filled, strict=True) if is_filled},
    )


@pytest.fixture(params=["small", "large"])
def way(request, monkeypatch):
    """Both ways of the CPU's kernel: small clouds can take either."""
    if request.param == "large":
        monkeypatch.setattr(small, "MAX_POINTS", 0)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", CASES)
def test_every_case_is_as_brute_force_has_it(name):
    points, options = CASES[name]
    assert split(run(points, **options)) == owm_ground(points, **options)


@pytest.mark.parametrize("name", CASES)
def test_threads_and_order_do_not_matter(name, monkeypatch):
    points, options = CASES[name]
    expected = run(points, **options)
    monkeypatch.setattr(cpu, "POINTS_PER_THREAD", 20)
    monkeypatch.setattr(cpu, "n_threads", lambda: 3)
    again = run(sorted(points, key=lambda p: (p[1], p[0])), **options)
    assert {k: v.tolist() for k, v in again.items()} == {k: v.tolist() for k, v in expected.items()}


@pytest.mark.parametrize("name", CASES)
def test_leaving_out_what_is_empty_changes_nothing(name, monkeypatch):
    points, options = CASES[name]
    expected = run(points, **options)
    monkeypatch.setattr(windows, "MIN_SPARSE", -(10**9))  # as if the table were too large
    again = run(points, **options)
    assert {k: v.tolist() for k, v in again.items()} == {k: v.tolist() for k, v in expected.items()}


def test_an_extent_that_is_mostly_empty_needs_no_large_table(monkeypatch):
    """Two islands give the same ids however far apart they are; here 90,000 x 40,000 m."""

    def islands(dx, dy):
        near = CASES["scattered"][0]
        return [*near, *((p + 90_000, x + dx, y + dy, z) for p, x, y, z in near)]

    options = {"min_points": 3}
    expected = run(islands(200.0, 160.0), **options)
    sizes = []
    make = cpu._table
    monkeypatch.setattr(
        cpu, "_table", lambda *a: sizes.append(a[2].n_slots * a[3].n_slots) or make(*a)
    )
    result = run(islands(90_000.0, 40_000.0), **options)
    assert result["point_id"].tolist() == expected["point_id"].tolist()
    assert result["hits"].tolist() == expected["hits"].tolist()
    assert sizes[0] < 1_000_000


lattice = st.integers(0, 120).map(lambda k: k / 4)


@st.composite
def clouds(draw):
    n = draw(st.integers(1, 60))
    ids = draw(st.lists(st.integers(0, 10**12), min_size=n, max_size=n, unique=True))
    xs, ys = (draw(st.lists(lattice, min_size=n, max_size=n)) for _ in range(2))
    zs = draw(st.lists(st.integers(0, 6).map(float), min_size=n, max_size=n))
    dx, dy = draw(st.sampled_from([(0.0, 0.0), (-1e4, 5e5), (714947.98, 4286501.93)]))
    return [(i, x + dx, y + dy, z) for i, x, y, z in zip(ids, xs, ys, zs, strict=True)]


@pytest.mark.usefixtures("way")
@examples(100)
@given(
    points=clouds(),
    window_size=st.sampled_from([3.0, 4.0, 5.5, 10.0]),
    overlap=st.sampled_from([0.0, 0.25, 0.5, 2 / 3, 0.8]),
    min_points=st.sampled_from([None, 1, 3]),
    cell_size=st.sampled_from([0.0, 5.0, 8.0]),
    overlap_y=st.sampled_from([None, 0.0, 0.5, 0.8]),
    odd_sizes=st.sampled_from(["exact", "reference"]),
)
def test_random_small_clouds_are_as_brute_force_has_them(points, **options):
    assert split(run(points, **options)) == owm_ground(points, **options)


def test_small_clouds_are_done_the_small_way(monkeypatch):
    monkeypatch.setattr(cpu, "cut_axes", None)  # which the other way calls
    x, y, z = np.random.default_rng(1).random((3, 10))
    assert run(list(zip(range(10), x, y, z, strict=True)))["point_id"].size


@examples(200)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 200),
    side=st.sampled_from([0.0, 1e-3, 1.0, 30.0, 100.0, 1e5]),
    corner=st.sampled_from([0.0, -1e4, 714947.98, 1e13]),
    has_ids=st.booleans(),
    window_size=st.sampled_from([1.0, 3.0, 5.5, 10.0, 15.0]),
    overlap=st.sampled_from([0.0, 0.25, 2 / 3, 0.8, 0.9]),
    min_points=st.sampled_from([None, 1, 3]),
    cell_size=st.sampled_from([0.0, 1.0, 0.1, 7.3, 20.0]),
    overlap_y=st.sampled_from([None, 0.0, 0.5, 0.9]),
    odd_sizes=st.sampled_from(["exact", "reference"]),
    around=st.sampled_from([None, (1.0, 7.3), (40.0, 1.0)]),
)
def test_both_ways_give_the_same_rows(seed, n, side, corner, has_ids, around, **options):
    """To the bit, also where a coordinate is not finite or too far away: then with one error."""
    rng = np.random.default_rng(seed)
    x, y = np.round(corner + side * rng.random((2, n)), rng.choice([1, 2, 8]))
    z = np.round(rng.normal(0, 1, n), rng.choice([0, 8]))
    if rng.random() < 0.05:
        rng.choice([x, y, z])[rng.integers(n)] = rng.choice([np.nan, np.inf])
    ids = rng.permutation(n) * 3 - 5 if has_ids else None
    box = None
    if around is not None:
        ends = corner - around[0], corner + side + around[1]
        box = windows.Box(*ends, *ends)

    def rows(most):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(small, "MAX_POINTS", most)
            try:
                found = cpu.run(x, y, z, ids, Options(**options), box)
            except ValueError as error:
                return str(error)
        return {name: (values.dtype, values.tolist()) for name, values in found.items()}

    assert rows(256) == rows(0)


GOLDEN = {
    "w10_o0.8_b20": {"window_size": 10.0, "overlap": 0.8},
    "w10_o0.5_b20": {"window_size": 10.0, "overlap": 0.5},
    "w12_o0.75_b20": {"window_size": 12.0, "overlap": 0.75},
    "w10_o2third_b20": {"window_size": 10.0, "overlap": 2 / 3},
    "w15_o0.8_b20": {"window_size": 15.0, "overlap": 0.8},
    "w10_o0_b20": {"window_size": 10.0, "overlap": 0.0},
}


@pytest.fixture(scope="module")
def golden():
    with np.load(real_file("golden/owm/golden200k_owm.npz")) as file:
        return dict(file)


@pytest.mark.parametrize("ties", ["lowest_id", "octree"])
@pytest.mark.parametrize("setting", GOLDEN)
def test_the_reference_finds_the_same_points(golden, setting, ties):
    """The sequential FastOWM baseline on 200,000 points, in both tie orders."""
    x, y, z = np.ascontiguousarray(golden["xyz"].T)
    result = cpu.run(
        x, y, z, np.arange(x.size), Options(ties=ties, odd_sizes="reference", **GOLDEN[setting])
    )
    ending = "_tie_lowest_id" if ties == "lowest_id" else ""
    seeds = result["point_id"][~result["filled"]]
    filled = result["point_id"][result["filled"]]
    assert seeds.tolist() == sorted(golden[f"{setting}__llp{ending}"].tolist())
    assert filled.tolist() == sorted(golden[f"{setting}__fill{ending}"].tolist())


@pytest.mark.parametrize("shift", [(1000.0, -2000.0), (-4096.0, 8192.0)])
def test_a_shift_by_whole_metres_changes_no_id(golden, shift):
    # on a lattice of 1/64 m, where every sum is exact
    x, y, z = np.round(golden["xyz"].T[:, :20000] * 64) / 64
    ids = np.arange(x.size)
    here = cpu.run(x, y, z, ids, Options())
    there = cpu.run(x + shift[0], y + shift[1], z, ids, Options())
    assert here["point_id"].tolist() == there["point_id"].tolist()
    assert here["hits"].max() <= 25  # (window / step) squared


def test_every_cell_with_points_has_a_ground_point(golden):
    x, y, z = np.ascontiguousarray(golden["xyz"].T)
    result = cpu.run(x, y, z, np.arange(x.size), Options())

    def cells(xs, ys):
        inside = ((xs - x.min()) % 20 > 0) & ((ys - y.min()) % 20 > 0)
        i, j = (xs - x.min()) // 20, (ys - y.min()) // 20
        return set(zip(i[inside].tolist(), j[inside].tolist(), strict=True))

    assert cells(x, y) == cells(result["x"], result["y"])
