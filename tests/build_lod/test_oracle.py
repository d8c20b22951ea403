"""The kernel against brute force, to the bit; what must hold of clouds too large for it."""

import laspy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spatialq.udfs.build_lod import Options, cpu
from spatialq.udfs.build_lod.tree import Points

from spatialq.functions.catalogue import catalogue

from ..conftest import real_file
from ..examples import combinations, examples
from . import oracle
from .cases import CASES, CHANNELS, STRATEGIES, cloud, cube_of, points_of

REAL = [
    "data/rgb/1.2-with-color.las",
    "data/rgb/certainty3d-color-utm-feet-navd88.las",
    "data/rgb/lion_takanawa.copc.laz",
    "data/rgb/qcompass_outcrop.laz",
    "data/lidar/isprs_samp11.laz",
    "data/lidar/autzen_trim.laz",
]


def brute_force(points, options):
    return oracle.build(
        points.x, points.y, points.z, points.point_id, points.colour,
        strategy=options.strategy, max_points=options.max_points,
        grid_size=options.grid_size, seed=options.seed,
    )  # fmt: skip


def assert_same_tree(tree, expected):
    for name, values in expected.items():
        found = getattr(tree, name)
        np.testing.assert_array_equal(
            found, np.reshape(values, found.shape).astype(found.dtype), err_msg=name
        )


@pytest.mark.parametrize(("case", "strategy"), combinations(CASES, STRATEGIES))
def test_trees_are_as_by_brute_force(case, strategy):
    columns, chosen = CASES[case]
    points, options = points_of(columns), Options(strategy=strategy, **chosen)
    assert_same_tree(cpu.build(points, cube_of(points), options), brute_force(points, options))


def text(column):
    return [None if code < 0 else column.names[code] for code in column.codes.tolist()]


def within(found, expected, columns):
    """Whether places are right but for the rounding of a sum of what may be large."""
    largest = max(np.abs(columns[axis]).max() for axis in "xyz")
    np.testing.assert_allclose(found, expected, rtol=0, atol=4 * np.spacing(2 * largest))


@pytest.mark.slow
@pytest.mark.parametrize(("case", "strategy"), combinations(CASES, ["random", "weighted"]))
def test_tables_are_as_by_brute_force(case, strategy):
    columns, chosen = CASES[case]
    options = Options(strategy=strategy, **chosen)
    found = catalogue()["build_lod"].kernel("cpu")(**columns, options=options)
    assert list(found) == list(catalogue()["build_lod"].output.columns)
    expected = oracle.rows(
        columns, strategy=strategy, max_points=options.max_points, grid_size=options.grid_size,
        seed=options.seed, full_precision=options.full_precision,
    )  # fmt: skip
    for name in ("node", "parent"):
        assert text(found[name]) == [row[name] for row in expected]
    for name in ("level", "is_leaf", "points", "count"):
        assert found[name].tolist() == [row[name] for row in expected], name
    for name in ("xmin", "ymin", "zmin", "size", "spacing"):
        within(found[name], [row[name] for row in expected], columns)
    samples = found["samples"]
    counts = [row["count"] for row in expected]
    assert samples.offsets.tolist() == np.cumsum([0, *counts]).tolist()
    names = [*"xyz", *CHANNELS, "classification", "point_id"]
    assert list(samples.columns) == names
    of_all = zip(*(sample for row in expected for sample in row["samples"]), strict=True)
    for name, values in zip(names, of_all, strict=True):
        if name in "xyz":
            within(samples.columns[name], values, columns)
        else:
            assert samples.columns[name].tolist() == list(values), name


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_points_of_leaves_and_of_full_precision_are_not_rounded(strategy):
    columns, chosen = CASES["random, places of points"]
    found = catalogue()["build_lod"].kernel("cpu")(
        **columns, options=Options(strategy=strategy, **chosen)
    )
    samples = found["samples"].columns
    at = np.searchsorted(columns["point_id"], samples["point_id"])
    for axis in "xyz":
        np.testing.assert_array_equal(samples[axis], columns[axis][at])


# Any small cloud: coordinates on a lattice meet the faces of cells, and each other.

coordinates = st.one_of(
    st.integers(0, 8).map(lambda i: i / 8),
    st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda value: round(value, 3)),
    st.floats(0, 1, allow_subnormal=False),
    st.sampled_from([0.5, 0.5 + 2.0**-53, 0.5 - 2.0**-54, 1 - 2.0**-53, 1e-9]),
)
channels = st.one_of(st.integers(0, 65535), st.sampled_from([0, 65535]))
rows = st.tuples(coordinates, coordinates, coordinates, channels, channels, channels, channels)
chosen_options = st.builds(
    Options,
    strategy=st.sampled_from(STRATEGIES),
    max_points=st.integers(1, 9),
    grid_size=st.sampled_from([2, 4, 8, 32, 128]),
    seed=st.integers(0, 2**32 - 1),
)


@examples(150)
@given(st.lists(rows, min_size=1, max_size=50), st.integers(1, 4), chosen_options)
def test_any_small_cloud(several, times, options):
    x, y, z, *colours = zip(*(row for row in several for _ in range(times)), strict=True)
    points = points_of(cloud(x, y, z, colours=np.transpose(colours)))
    tree = cpu.build(points, cube_of(points), options)
    assert_same_tree(tree, brute_force(points, options))
    oracle.check(points.x, points.y, points.z, points.colour, options, tree)


# Real clouds.


def read(path):
    las = laspy.read(path)
    n = len(las.x)
    names = [name for name in CHANNELS if name in las.point_format.dimension_names]
    colour = np.zeros((n, 4), np.uint16)
    for name in names:
        colour[:, CHANNELS.index(name)] = las[name]
    places = (np.ascontiguousarray(las[axis], np.float64) for axis in "xyz")
    return Points(*places, colour, np.arange(n))


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("relative", REAL)
def test_real_clouds(relative, strategy):
    points = read(real_file(relative))
    options = Options(strategy=strategy, max_points=3000, grid_size=64)
    tree = cpu.build(points, cube_of(points), options)
    oracle.check(points.x, points.y, points.z, points.colour, options, tree)


@pytest.mark.slow
def test_a_large_real_cloud():
    points = read(real_file("data/rgb/autzen_2010_rgb_west.laz"))
    some = Points(*(np.ascontiguousarray(each[::4]) for each in vars(points).values()))
    options = Options(strategy="average", max_points=20_000)
    tree = cpu.build(some, cube_of(some), options)
    oracle.check(some.x, some.y, some.z, some.colour, options, tree)
