"""Broad phase: the R-tree finds the pairs of brute force, whatever the boxes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spatialq.data.meshes import Meshes
from spatialq.geometry import boxes, broad_phase, rtree

NOTHING = np.array([[np.inf] * 3 + [-np.inf] * 3])


def gaps(a, b):
    """Gap of every pair of boxes along each axis; negative where they overlap."""
    return np.maximum(a[:, None, :3] - b[None, :, 3:], b[None, :, :3] - a[:, None, 3:])


def meeting(a, b, distance):
    """Rows of all pairs of boxes that meet, by the definition."""
    if b is not None:
        return np.argwhere((gaps(a, b) <= distance).all(axis=2))
    i, j = meeting(a, a, distance).T
    return np.column_stack([i, j])[i < j]


def near(a, b, k):
    """Pairs that may be among the k nearest of each box of a, by the definition."""
    other = a if b is None else b
    with np.errstate(invalid="ignore"):
        low = (np.maximum(gaps(a, other), 0.0) ** 2).sum(axis=2)
        spans = np.maximum(a[:, None, 3:] - other[None, :, :3], other[None, :, 3:] - a[:, None, :3])
        high = (spans**2).sum(axis=2)
    nobody = np.isnan(high) | (a[:, 0] > a[:, 3])[:, None] | (other[:, 0] > other[:, 3])
    if b is None:
        np.fill_diagonal(nobody, val=True)
    low[nobody] = high[nobody] = np.inf
    bound = np.sort(np.pad(high, ((0, 0), (0, k)), constant_values=np.inf), axis=1)[:, k - 1]
    return np.argwhere((low < np.inf) & (low * rtree.SAFETY <= bound[:, None]))


def assert_pairs(found, expected):
    for rows, column in zip(found, expected.T, strict=True):
        assert rows.dtype == np.int64
        np.testing.assert_array_equal(rows, column)


def boxes_of(corners, extents):
    corners, extents = np.broadcast_arrays(corners, extents)
    return np.hstack([corners, corners + extents]).astype(np.float64)


def scattered(n, seed=0, side=10.0, extent=2.0, at=0.0):
    rng = np.random.default_rng(seed)
    return boxes_of(at + side * rng.random((n, 3)), extent * rng.random((n, 3)) ** 3)


def lattice(n):
    """Unit cubes side by side: all gaps to neighbours are 0."""
    places = np.stack(np.meshgrid(*[np.arange(n)] * 3), axis=-1).reshape(-1, 3)
    return boxes_of(places, 1.0)


def powers():
    """Boxes of all sizes around one place and beside each other."""
    sizes = 10.0 ** np.arange(-9, 8)
    rows = np.repeat(sizes, 3)[:, None] * np.tile([[0.0], [1.0], [-0.5]], (sizes.size, 1))
    return boxes_of(rows * np.ones(3), np.repeat(sizes, 3)[:, None])


MANY = scattered(700)
CASES = {
    "scattered": (MANY, None, 0.0),
    "scattered, at a distance": (MANY, None, 0.25),
    "scattered, shrunk": (MANY, None, -0.25),
    "far from the origin": (scattered(300, at=5e6), None, 0.001),
    "side by side": (lattice(6), None, 0.0),
    "a millimetre apart": (boxes_of(1.001 * lattice(5)[:, :3], 1.0), None, 0.001),
    "all equal": (np.tile(MANY[:1], (70, 1)), None, 0.0),
    "all one point": (np.zeros((70, 6)), None, 0.0),
    "flat": (boxes_of(scattered(300)[:, :3], [3.0, 2.0, 0.0]), None, 0.0),
    "on a line": (boxes_of(np.arange(300)[:, None] * [1.0, 0, 0], [1.5, 0, 0]), None, 0.0),
    "of all sizes": (powers(), None, 0.001),
    "one around all": (np.vstack([MANY, [[-1e5] * 3 + [1e5] * 3]]), None, 0.0),
    "one far away": (np.vstack([MANY, [[5e6] * 3 + [5e6 + 1] * 3]]), None, 0.0),
    "slabs and screws": (
        np.vstack([scattered(400, extent=0.02), boxes_of(scattered(20)[:, :3], [50, 50, 0.3])]),
        None,
        0.001,
    ),
    "some without extent": (np.vstack([NOTHING, MANY[:50], NOTHING, NOTHING]), None, 0.5),
    "none with extent": (np.vstack([NOTHING, NOTHING]), None, 0.5),
    "none": (np.empty((0, 6)), None, 0.0),
    "one": (MANY[:1], None, 0.0),
    "two": (MANY[[0, 0]], None, 0.0),
    **{f"{n} in a row": (lattice(5)[:n], None, 0.0) for n in (7, 8, 9, 63, 64, 65)},
    "few with many": (MANY[:40], MANY[100:], 0.1),
    "many with few": (MANY[100:], MANY[:40], 0.1),
    "with itself": (MANY[:300], MANY[:300], 0.0),
    "with none": (MANY[:20], np.empty((0, 6)), 0.0),
    "none with some": (np.empty((0, 6)), MANY[:20], 0.0),
    "with one around all": (MANY[:300], np.array([[-1e7] * 3 + [1e7] * 3]), 0.0),
    "with boxes without extent": (MANY[:50], np.vstack([NOTHING, MANY[50:90], NOTHING]), 0.3),
    "without extent, with boxes": (np.vstack([NOTHING, MANY[50:90], NOTHING]), MANY[:30], 0.3),
}


@pytest.mark.parametrize("case", CASES)
def test_every_case_is_as_by_brute_force(case):
    a, b, distance = CASES[case]
    assert_pairs(rtree.pairs(a, b, distance), meeting(a, b, distance))


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 3, 1000])
@pytest.mark.parametrize("case", CASES)
def test_candidates_of_the_nearest_are_as_by_brute_force(case, k):
    a, b, _ = CASES[case]
    assert_pairs(rtree.nearest(a, b, k), near(a, b, k))


# places that meet exactly, by an ulp or not, and extents of all sizes
places = st.one_of(
    st.integers(-3, 3).map(float),
    st.integers(-3, 3).map(lambda n: np.nextafter(n * 0.1, 9.0)),
    st.floats(-1e7, 1e7),
    st.floats(5e6, 5e6 + 2),
)
extents = st.one_of(st.sampled_from([0.0, 1e-9, 0.1, 1.0, 1e7]), st.floats(0, 3))
some_boxes = st.lists(
    st.tuples(st.tuples(places, places, places), st.tuples(extents, extents, extents)), max_size=40
).map(lambda rows: boxes_of(*np.array(rows).reshape(-1, 2, 3).swapaxes(0, 1)))
distances_between = st.one_of(st.sampled_from([0.0, 0.001, 0.1, 1.0, 1e6]), st.floats(0, 2))


@given(a=some_boxes, b=st.one_of(st.none(), some_boxes), distance=distances_between)
def test_any_boxes_are_as_by_brute_force(a, b, distance):
    assert_pairs(rtree.pairs(a, b, distance), meeting(a, b, distance))


@given(a=some_boxes, b=st.one_of(st.none(), some_boxes), k=st.integers(1, 5))
def test_any_candidates_are_as_by_brute_force(a, b, k):
    assert_pairs(rtree.nearest(a, b, k), near(a, b, k))


@pytest.mark.parametrize("k", [1, 4])
def test_the_nearest_are_among_the_candidates(k):
    rng = np.random.default_rng(5)
    points = MANY[:, :3] + rng.random((len(MANY), 3)) * (MANY[:, 3:] - MANY[:, :3])
    i, j = rtree.nearest(MANY, None, k)
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    nearest = np.argsort(distances, axis=1)[:, :k]
    found = set(zip(i.tolist(), j.tolist(), strict=True))
    assert {(n, int(m)) for n, row in enumerate(nearest) for m in row} <= found
    assert len(found) < len(MANY) ** 2 / 4


def test_a_set_with_itself_has_each_pair_twice_and_everyone_alone():
    i, j = rtree.pairs(MANY, None, 0.1)
    rows = np.arange(len(MANY))
    both = np.column_stack([np.concatenate([i, j, rows]), np.concatenate([j, i, rows])])
    assert_pairs(rtree.pairs(MANY, MANY, 0.1), both[np.lexsort(both.T[::-1])])


def test_the_order_of_boxes_does_not_matter():
    order = np.random.default_rng(6).permutation(len(MANY))
    i, j = (order[rows] for rows in rtree.pairs(MANY[order], None, 0.1))
    found = np.column_stack([np.minimum(i, j), np.maximum(i, j)])
    assert_pairs(rtree.pairs(MANY, None, 0.1), found[np.lexsort(found.T[::-1])])


@pytest.mark.slow
def test_many_boxes_are_the_same_with_any_number_of_threads(monkeypatch):
    many = scattered(20_000, side=30.0)
    monkeypatch.setenv("SPATIALQ_THREADS", "1")
    i, j = rtree.pairs(many, None, 0.01)
    monkeypatch.setenv("SPATIALQ_THREADS", "5")
    assert_pairs(rtree.pairs(many, None, 0.01), np.column_stack([i, j]))
    some = i < 300
    assert_pairs((i[some], j[some]), later(many, 300, 0.01))


def later(many, first, distance):
    """Pairs of the first boxes with those behind them."""
    found = meeting(many[:first], many, distance)
    return found[found[:, 0] < found[:, 1]]


def test_a_giant_among_many_small_boxes_takes_no_memory():
    many = np.vstack([scattered(100_000, side=2000.0, extent=0.5), [[-1e6] * 3 + [1e6] * 3]])
    _, j = rtree.pairs(many, None, 0.0)
    assert (j == 100_000).sum() == 100_000


@pytest.mark.parametrize("method", ["auto", "rtree"])
def test_every_method_can_be_chosen(method):
    assert_pairs(broad_phase.pairs(MANY, None, 0.1, method), meeting(MANY, None, 0.1))


def test_boxes_are_those_of_the_faces():
    rng = np.random.default_rng(7)
    points = rng.normal(size=(40, 3)) * 1e3
    faces = rng.integers(0, 12, (9, 3))
    meshes = Meshes.of([(points[:12], faces), (points[12:13], []), (points[20:], faces[:1])])
    expected = np.vstack(
        [
            np.r_[points[faces.ravel()].min(axis=0), points[faces.ravel()].max(axis=0)],
            NOTHING[0],
            np.r_[points[20 + faces[0]].min(axis=0), points[20 + faces[0]].max(axis=0)],
        ]
    )
    np.testing.assert_array_equal(boxes.of(meshes), expected)
    assert boxes.of(Meshes.of([])).shape == (0, 6)
