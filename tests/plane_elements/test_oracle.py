"""The matching of planes and elements against brute force, and what must not matter."""

import numpy as np
import pytest
from spatialq.udfs.plane_elements import Options
from spatialq.udfs.plane_elements.match import match
from spatialq.udfs.plane_elements.sample import CELLS, Sample

from spatialq.data.meshes import Meshes

from . import oracle
from .cases import CASES, FRONT, ROOM, ROOM_PLANES, SIDES, WALL, moved, off, patch

MATCH = ("nearest", "overlap", "coverage", "angle", "deviation")


def detected(given):
    """What `detect_planes` would give for planes: points, their labels, and the planes."""
    points = np.concatenate([np.empty((0, 3)), *(points for points, _ in given)])
    labels = np.repeat(np.arange(len(given)) + 1, [len(points) for points, _ in given])
    normals = np.array([normal for _, normal in given]).reshape(-1, 3)
    planes = {
        "plane_id": np.arange(len(given)) + 1,
        **{f"n{axis}": normals[:, i] for i, axis in enumerate("xyz")},
        "d": np.array([np.mean(points @ normal) for points, normal in given]),
        "point_count": np.bincount(labels, minlength=len(given) + 1)[1:],
        "area": np.array([extent(points) for points, _ in given]),
    }
    return *np.ascontiguousarray(points.T), labels, planes


def extent(points):
    """Area of a parallelogram from the variances of what is spread over it."""
    values = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    return 12 * values[0] * values[1] / len(points)


def run(given, elements, **options):
    x, y, z, labels, planes = detected(given)
    return match(x, y, z, labels, planes, Meshes.of(elements), Options(**options))


def rows(result):
    names = ("plane_id", "element", *MATCH)
    return list(zip(*(result[name].tolist() for name in names), strict=True))


def sampled(given, options):
    """The planes with those of their points that the kernel looks at, in metres."""
    unit = options.get("unit", 1.0)
    x, y, z, labels, planes = detected(given)
    sample = Sample.of(x, y, z, labels, planes, unit)
    parts = [sample.points[i:j] for i, j in zip(sample.starts, sample.starts[1:], strict=False)]
    parts = [points[~np.isnan(points[:, 0])] for points in parts]
    return [(points, normal) for points, (_, normal) in zip(parts, given, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_case_is_as_brute_force_has_it(case):
    given, elements, options = CASES[case]
    areas = detected(given)[-1]["area"]
    expected = oracle.rows(sampled(given, options), elements, areas=areas, **options)
    found = rows(run(given, elements, **options))
    assert [row[:2] for row in found] == [
        (number + 1, -1 if element is None else element) for number, element, *_ in expected
    ]
    for one, other in zip(found, expected, strict=True):
        if one[1] < 0:
            assert np.isnan(one[2:]).all()
        else:
            # degrees: the oracle's come from a cosine
            near = (1e-12, 1e-12, 1e-9, 1e-5, 1e-9)
            assert np.all(np.abs(np.subtract(one[2:], other[2:])) <= near), (one, other)


def assert_same(found, expected):
    assert list(found) == list(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


DENSE = patch((0, 0, 0), (2, 0, 0), (0, 0, 2.5), n=100_000, noise=0.004, seed=7)
SPARSE = patch((2, 0, 0), (4, 0, 0), (0, 0, 2.5), n=20_000, noise=0.004, seed=8)
FACADE = (np.concatenate([DENSE[0], SPARSE[0]]), DENSE[1])


@pytest.mark.parametrize("threads", ["1", "3"])
def test_neither_the_order_of_the_points_nor_threads_matter(threads, monkeypatch):
    given = [FACADE, *ROOM_PLANES]
    elements = [WALL, *ROOM]
    x, y, z, labels, planes = detected(given)
    expected = match(x, y, z, labels, planes, Meshes.of(elements), Options())
    monkeypatch.setenv("SPATIALQ_THREADS", threads)
    order = np.random.default_rng(3).permutation(len(x))
    x, y, z, labels = (values[order] for values in (x, y, z, labels))
    assert_same(match(x, y, z, labels, planes, Meshes.of(elements), Options()), expected)


def test_the_density_of_the_scan_does_not_matter():
    """A third of the plane, with five of six of its points, is on the wall."""
    (row,) = rows(run([FACADE], [moved(WALL, (-2, 0, 0))]))
    assert row[3] == pytest.approx(1 / 3, abs=0.01)


def test_a_sample_has_one_point_a_cell_the_nearest_to_its_middle():
    x, y, z, labels, planes = detected([FACADE, FRONT])
    sample = Sample.of(x, y, z, labels, planes, 1.0)
    counts = np.diff(sample.starts)
    assert CELLS <= counts[0] < 1.1 * CELLS
    assert 600 <= counts[1] < 1.1 * 600  # no more cells than the plane has points, about
    for plane, points in enumerate([FACADE[0], FRONT[0]]):
        at = (points @ sample.axes[plane, :2].T - sample.corner[plane]) / sample.size[plane]
        column, row = np.floor(at).astype(int).T
        cell = row * sample.columns[plane] + column
        gap = np.sum((at - np.floor(at) - 0.5) ** 2, axis=1)
        chosen = sample.points[sample.starts[plane] : sample.starts[plane + 1]]
        for number in range(counts[plane]):
            here = np.flatnonzero(cell == number)
            if len(here):
                np.testing.assert_array_equal(chosen[number], points[here[np.argmin(gap[here])]])
            else:
                assert np.isnan(chosen[number]).all()


def test_of_equally_near_points_the_lowest_counts():
    corners = np.array([(x, y, 0.0) for x in (0, 2) for y in (0, 2)])
    twins = np.array([(1.25, 1.75, 0.25), (1.75, 1.25, 0.0), (1.25, 1.75, 0.0)])
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        points = np.concatenate([corners, twins[order]])
        x, y, z = np.ascontiguousarray(points.T)
        planes = {"nx": [0.0], "ny": [0.0], "nz": [1.0], "point_count": np.array([4])}
        sample = Sample.of(x, y, z, np.ones(7, np.int64), planes, 1.0)
        assert sample.size[0] == 1.0
        assert sample.points[sample.columns[0] + 1].tolist() == [1.25, 1.75, 0.0]


@pytest.mark.parametrize(
    "points",
    [
        np.zeros((0, 3)),
        np.full((5, 3), 0.03),
        np.linspace((0, 0, 0), (4, 0, 0), 50),
        np.linspace((0, 0, 0), (0, 0, 2.5), 50),
    ],
    ids=["none", "one place", "a line", "an upright line"],
)
def test_a_plane_may_be_a_line_or_a_place(points):
    x, y, z = np.ascontiguousarray(points.T)
    planes = {
        "plane_id": np.array([1]),
        "nx": np.array([0.0]),
        "ny": np.array([1.0]),
        "nz": np.array([0.0]),
        "d": np.array([0.0]),
        "point_count": np.array([len(points)]),
        "area": np.array([0.0]),
    }
    labels = np.ones(len(points), np.int64)
    (row,) = rows(match(x, y, z, labels, planes, Meshes.of([WALL]), Options()))
    if len(points):
        assert row[1:5] == (0, 1.0, 1.0, 0.0)
    else:
        assert row[1] == -1


def test_the_same_plane_wherever_the_origin_is():
    here, there = (
        np.array(rows(run([(points + by, normal) for points, normal in ROOM_PLANES],
                          [moved(mesh, by) for mesh in ROOM])))
        for by in (0.0, np.array([4e5, 5.5e6, 300.0]))
    )  # fmt: skip
    np.testing.assert_array_equal(here[:, :2], there[:, :2])
    np.testing.assert_allclose(here, there, atol=2e-2)  # other cells, other points of the sample


def test_planes_beside_all_elements_match_none():
    near = [off(plane, np.array([40, 0, 0])) for plane in ROOM_PLANES]
    assert {row[1] for row in rows(run(near, ROOM))} == {-1}


def test_a_body_of_many_triangles_is_as_one_of_few():
    """The faces of a finely divided wall are one face."""
    vertices, faces = np.array(WALL[0]), list(SIDES)
    for _ in range(3):
        halves = []
        for a, b, c in faces:
            new = len(vertices)
            middles = [(vertices[p] + vertices[q]) / 2 for p, q in ((a, b), (b, c), (c, a))]
            vertices = np.vstack([vertices, middles])
            halves += [(a, new, new + 2), (new, b, new + 1), (new + 2, new + 1, c),
                       (new, new + 1, new + 2)]  # fmt: skip
        faces = halves
    fine, coarse = (np.array(rows(run([FACADE], [mesh]))) for mesh in ((vertices, faces), WALL))
    np.testing.assert_allclose(fine, coarse, atol=1e-9)
