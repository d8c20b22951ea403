"""The triangulation against the lower convex hull of lifted points, and in tiles of any size."""

import os
import subprocess
import sys
import time
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import ConvexHull, Delaunay
from spatialq.udfs.ground_surface import Options, triangles
from spatialq.udfs.ground_surface.grid import cover

from ..examples import examples
from ..interruption import work_after_ctrl_c

TINY = 1 << 40  # more than any determinant of the coordinates here


def lower_hull(x, y):
    """Triangles of points that are lifted by x * x + y * y, and the later ones by ever more.

    In whole numbers. What a later point is lifted by is as nothing to a determinant of coordinates,
    and what an earlier one is lifted by is as nothing to that. The triangles are those that have
    every other point above their plane.
    """
    n = len(x)
    points = [
        (px, py, (px * px + py * py) * TINY ** (n + 1) + TINY**i)
        for i, (px, py) in enumerate(zip(x, y, strict=True))
    ]
    found = []
    for i, j, k in combinations(range(n), 3):
        to = cross(points[i], points[j], points[k])
        if to != 0:
            a, b, c = (i, j, k) if to > 0 else (i, k, j)
            corners = [points[a], points[b], points[c]]
            if all(above(*corners, points[d]) > 0 for d in range(n) if d not in (i, j, k)):
                found.append((a, b, c))
    return sorted(found)


def cross(a, b, c):
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def above(a, b, c, d):
    """How far d is above the plane of a, b, c, which turn left, times a positive number."""
    (ax, ay, az), (bx, by, bz), (cx, cy, cz) = (
        (u[0] - d[0], u[1] - d[1], u[2] - d[2]) for u in (a, b, c)
    )
    return -(az * (bx * cy - by * cx) + bz * (cx * ay - cy * ax) + cz * (ax * by - ay * bx))


def arranged(x, y, resolution=1.0):
    x, y = np.asarray(x, float), np.asarray(y, float)
    grid = cover(x, y, Options(resolution=resolution, source="points"))
    x, y, _ = triangles.arrange(x, y, np.zeros(x.size), grid, thin=False)
    return x, y


@pytest.fixture(params=[3, 4, 7, 20, 100])
def tile(request, monkeypatch):
    """Points of a tile; a function triangulates in such tiles."""

    def triangulate(x, y):
        with monkeypatch.context() as patched:
            patched.setattr(triangles, "POINTS_PER_TILE", request.param)
            return triangles.triangulate(x, y)

    return triangulate


@examples(200)
@given(
    places=st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=3, max_size=11),
    size=st.sampled_from([3, 4, 5, 1000]),
)
def test_points_on_lines_and_circles_have_one_triangulation(places, size):
    x, y = (np.array(values) for values in zip(*sorted(places), strict=True))
    expected = lower_hull(x.tolist(), y.tolist())
    usual, triangles.POINTS_PER_TILE = triangles.POINTS_PER_TILE, size
    try:
        found = triangles.triangulate(x.astype(float), y.astype(float))
    finally:
        triangles.POINTS_PER_TILE = usual
    assert sorted(map(tuple, found.tolist())) == expected
    assert found[:, 0].tolist() == sorted(found[:, 0].tolist())


def rng():
    return np.random.default_rng(22)


def circle(n):
    """Points with whole coordinates on one circle, and its centre."""
    whole = [(a, b) for a in range(-n, n + 1) for b in range(-n, n + 1) if a * a + b * b == n * n]
    return np.array([*whole, (0, 0)]).T


CLOUDS = {
    "centimetres": lambda: np.round(rng().random((2, 900)) * 30 + [[500_000], [5_800_000]], 2),
    "doubles": lambda: rng().random((2, 900)) * [[30], [17]],
    "doubles of very different size": lambda: np.exp(rng().normal(0, 2, (2, 900))),
    "a lattice": lambda: np.indices((30, 30)).reshape(2, -1) / 4,
    "a lattice of centimetres": lambda: (
        np.indices((30, 30)).reshape(2, -1) * 0.01 + [[500_000.03], [5_800_000.07]]
    ),
    "a turned lattice": lambda: [[3, -4], [4, 3]] @ np.indices((30, 30)).reshape(2, -1),
    "a circle": lambda: circle(5 * 5 * 13),
    "a parabola": lambda: np.array([np.arange(300), np.arange(300) ** 2]),
    "two lines": lambda: np.array([np.arange(400) % 200, np.arange(400) // 200]),
    "two far islands": lambda: rng().random((2, 400)) + np.repeat([[0, 9000], [0, 70]], 200, 1),
    "a corridor": lambda: rng().random((2, 900)) * [[1], [9000]],
    "a line and a point": lambda: np.array([[*range(200), 7], [*[0] * 200, 90]]),
    "a line": lambda: np.array([np.arange(200) * 3, np.arange(200) * 2]),
}


@pytest.mark.parametrize("name", CLOUDS)
def test_tiles_of_any_size_are_joined_to_what_one_piece_gives(name, tile):
    x, y = arranged(*CLOUDS[name]())
    expected, found = triangles.triangulate(x, y), tile(x, y)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", sorted(set(CLOUDS) - {"a line"}))
def test_triangles_cover_the_hull_and_have_empty_circles(name):
    """Euler's formula, the area of the hull, and the circle of each pair of neighbours."""
    x, y = arranged(*CLOUDS[name]())
    found = triangles.triangulate(x, y).astype(np.int64)
    a, b, c = (np.column_stack([x, y])[found[:, k]] for k in range(3))
    area = (b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]
    assert (area > -1e-9).all()
    places = np.column_stack([x, y])
    hull = ConvexHull(places)
    assert area.sum() / 2 == pytest.approx(hull.volume, rel=1e-9)
    assert len(np.unique(found)) == x.size
    sides = np.sort(found[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    _, uses = np.unique(sides, axis=0, return_counts=True)
    assert set(uses.tolist()) <= {1, 2}
    assert x.size - len(uses) + len(found) == 1


@pytest.mark.slow
def test_half_edges_may_have_large_numbers(monkeypatch):
    x, y = arranged(*CLOUDS["centimetres"]())
    expected = triangles.triangulate(x, y)
    monkeypatch.setattr(triangles, "SMALL_INDEX", 0)
    monkeypatch.setattr(triangles, "POINTS_PER_TILE", 100)
    assert triangles.triangulate(x, y).tobytes() == expected.tobytes()


@pytest.mark.slow
def test_ordinary_points_are_triangulated_as_qhull_does_it():
    x, y = arranged(*(np.random.default_rng(5).random((2, 20_000)) * 500))
    expected = Delaunay(np.column_stack([x, y])).simplices
    expected, found = (np.sort(each, axis=1) for each in (expected, triangles.triangulate(x, y)))
    assert np.array_equal(np.unique(found, axis=0), np.unique(expected, axis=0))
    assert len(found) == len(expected)


@pytest.mark.parametrize("name", CLOUDS)
def test_the_hull_is_the_outline_of_the_triangles(name):
    x, y = arranged(*CLOUDS[name]())
    corners = triangles.hull(x, y)
    if name == "a line":
        assert len(corners) == 0
        return
    area = [cross(*([x[i], y[i]] for i in corner)) / 2 for corner in corners.tolist()]
    assert min(area) > 0
    assert sum(area) == pytest.approx(ConvexHull(np.column_stack([x, y])).volume, rel=1e-9)


@pytest.mark.parametrize("run", [1, 2, 10, 100])
def test_points_sorted_in_runs_are_sorted(run, monkeypatch):
    x, y = (rng().integers(0, 20, 2000) / 4 for _ in range(2))
    z = rng().random(2000)
    grid = cover(x, y, Options(source="points"))
    expected = {}
    for place in sorted(zip(x, y, z, strict=True)):
        expected.setdefault(place[:2], place[2])
    monkeypatch.setattr(triangles, "POINTS_PER_TILE", run)
    found = triangles.arrange(x, y, z, grid, thin=False)
    assert list(zip(*(values.tolist() for values in found), strict=True)) == [
        (*place, low) for place, low in sorted(expected.items())
    ]


CALL = """
import numpy as np
import spatialq
ground = {"source": "points", "device": "cpu", **OPTIONS}
spatialq.run("ground_surface", *np.random.default_rng(1).random((3, 99)) * 30, **ground)
cloud = np.random.default_rng(1).random((3, 4_000_000)) * 2000
print("begins", flush=True)
spatialq.run("ground_surface", *cloud, **ground)
print("ended by itself", flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize("options", [{}, {"method": "idw"}, {"thin": True, "resolution": 0.5}])
@pytest.mark.parametrize("seconds", [0.1, 0.9, 1.7])
def test_ctrl_c_is_answered_within_two_seconds(options, seconds):
    command = [sys.executable, "-c", CALL.replace("OPTIONS", repr(options))]
    two_threads = {**os.environ, "SPATIALQ_THREADS": "2"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=two_threads
    ) as process:
        assert process.stdout.readline() == "begins\n"
        time.sleep(seconds)
        took, printed, said = work_after_ctrl_c(process)
    assert took < 2 * 2
    assert printed or "KeyboardInterrupt" in said
