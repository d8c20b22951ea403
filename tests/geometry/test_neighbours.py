"""The search for neighbours against brute force, with ties, and against SciPy's k-d tree."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from spatialq.geometry.neighbours import LEAF, QUERIES, Neighbours

RNG = np.random.default_rng(11)
UTM = np.array([691_000.0, 5_334_000.0, 520.0])
LATTICE = np.stack(np.meshgrid(*[np.arange(7.0)] * 3), -1).reshape(-1, 3)
CLOUDS = {
    "no point": np.empty((0, 3)),
    "one point": np.array([[1.0, 2.0, 3.0]]),
    "one cell": RNG.random((LEAF, 3)),
    "one more than a cell": RNG.random((LEAF + 1, 3)),
    "cube": RNG.random((900, 3)),
    "UTM, centimetres": np.round(RNG.random((900, 3)) * [10, 10, 0.1], 2) + UTM,
    "a lattice": LATTICE[RNG.permutation(len(LATTICE))],
    "all equal": np.full((500, 3), 7.0),
    "two places": np.repeat([[0.0, 0, 0], [1e9, -1e9, 1e3]], 40, axis=0),
    "a line": np.outer(RNG.random(300), [1.0, 2.0, 0.0]),
    "far apart": RNG.normal(size=(200, 3)) * 1e149,
    "dense and sparse": np.exp(RNG.normal(size=(900, 3)) * 6),
}


def search(points):
    return Neighbours(*np.ascontiguousarray(points.T))


def gathered(call, m):
    """Collect the neighbours of each query, as lists of (squared distance, row)."""
    lists = [None] * m

    def use(found):
        for q in range(found.first, found.stop):
            some = slice(*found.starts[q - found.first : q - found.first + 2])
            lists[q] = list(zip(found.squared[some], found.rows[some], strict=True))

    call(use)
    return lists


def by_brute_force(points, query):
    differences = points - query
    squares = differences * differences
    squared = squares[:, 0] + squares[:, 1] + squares[:, 2]
    return sorted(zip(squared, range(len(points)), strict=True))


@pytest.mark.parametrize("name", CLOUDS)
def test_as_by_brute_force(name):
    points = CLOUDS[name]
    near = search(points)
    np.testing.assert_array_equal(near.points, points[near.order])
    others = points[::7] + RNG.normal(size=points[::7].shape) * (
        np.ptp(points, axis=0) / 9 if len(points) else 1
    )
    queries = np.concatenate([near.points[::5], others])
    expected = [by_brute_force(points, query) for query in queries]
    for k in (1, 9, 30, 2000):
        found = gathered(lambda use, k=k: near.nearest(queries, k, use), len(queries))
        assert found == [each[:k] for each in expected]
    distances = [each[min(5, len(each) - 1)][0] for each in expected]
    for radius in {0.0, 1.0, np.sqrt(np.median(distances)) if distances else 1.0}:
        found = gathered(lambda use, r=radius: near.within(queries, r, use), len(queries))
        inside = [[pair for pair in each if pair[0] <= radius * radius] for each in expected]
        assert [sorted(each) for each in found] == inside


def test_many_queries_as_scipy_finds_them(monkeypatch):
    """More than there are at once, in two threads; many neighbours of one query need more room."""
    monkeypatch.setenv("SPATIALQ_THREADS", "2")
    points = RNG.random((3 * QUERIES, 3))
    near, tree = search(points), cKDTree(points)
    found = gathered(lambda use: near.nearest(near.points, 9, use), len(points))
    distances, rows = tree.query(near.points, 9)
    assert [[row for _, row in each] for each in found] == rows.tolist()
    np.testing.assert_allclose([[d for d, _ in each] for each in found], distances**2, rtol=1e-14)
    found = gathered(lambda use: near.within(near.points[:9], 1.0, use), 9)
    counts = tree.query_ball_point(near.points[:9], 1.0, return_length=True)
    assert [len(each) for each in found] == counts.tolist()
    assert min(counts) > 64 * 9


def test_the_order_of_equal_points_decides_in_time():
    """Of a hundred thousand points at one place each search takes the first ones."""
    near = search(np.zeros((100_000, 3)))
    found = gathered(lambda use: near.nearest(near.points[:50], 5, use), 50)
    assert found == [[(0.0, row) for row in range(5)]] * 50


@pytest.mark.parametrize("size", [0.3, 1.0, 5.0])
def test_points_alone_are_those_with_few_in_27_voxels(size):
    points = np.concatenate([RNG.random((300, 3)) * 4 - 2, RNG.normal(size=(60, 3)) * 20])
    near = search(points)
    voxels = np.floor(points / size)
    around = (np.abs(voxels[:, None] - voxels[None]) <= 1).all(axis=2).sum(axis=1)
    for most in (1, 4, 50):
        assert sorted(near.order[near.alone(size, most)]) == np.flatnonzero(around <= most).tolist()


def test_coordinates_that_are_no_numbers_are_refused():
    x = np.array([0.0, np.nan])
    with pytest.raises(
        ValueError, match=r"f: x, y and z must be finite, got 1 points .* point_id 1"
    ):
        Neighbours.of("f", x, x, x, None)
