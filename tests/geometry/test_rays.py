"""Rays against a loop over all triangles."""

import numpy as np
import pytest

from spatialq.data.meshes import Meshes
from spatialq.geometry.rays import TriangleTree


def brute(triangles, origin, way):
    """Where a ray hits each triangle, by solving for its place in the triangle and on the ray."""
    hits = []
    for a, b, c in triangles:
        matrix = np.column_stack([b - a, c - a, -way])
        if np.linalg.matrix_rank(matrix) < 3:
            hits.append(np.inf)
            continue
        u, v, t = np.linalg.solve(matrix, origin - a)
        is_hit = min(u, v, 1 - u - v) >= -1e-9 and t >= 0
        hits.append(t if is_hit else np.inf)
    return np.array(hits)


def soup(n, seed, size=0.4):
    rng = np.random.default_rng(seed)
    return rng.random((n, 1, 3)) + size * rng.normal(size=(n, 3, 3))


@pytest.mark.parametrize("n", [1, 2, 5, 60, 400])
def test_the_first_hit_is_that_of_all_triangles(n):
    triangles, rng = soup(n, n), np.random.default_rng(n)
    origins, ways = rng.normal(size=(80, 3)), rng.normal(size=(80, 3))
    ways[:20, rng.integers(0, 3)] = 0.0  # along a plane of the axes
    ways[:3] = np.eye(3)
    distance, row = TriangleTree.over(triangles).first_hits(origins, ways)
    for k in range(len(ways)):
        hits = brute(triangles, origins[k], ways[k])
        if np.isinf(hits.min()):
            assert row[k] == -1
            assert np.isinf(distance[k])
        else:
            assert row[k] == np.argmin(hits)
            assert distance[k] == pytest.approx(hits.min(), abs=1e-9)


def test_what_is_beyond_the_reach_is_not_hit():
    triangles, rng = soup(100, 3), np.random.default_rng(3)
    origins, ways = rng.normal(size=(200, 3)), rng.normal(size=(200, 3))
    tree = TriangleTree.over(triangles)
    distance, row = tree.first_hits(origins, ways)
    reach = rng.random(200)
    nearer, found = tree.first_hits(origins, ways, reach)
    np.testing.assert_array_equal(found, np.where(distance <= reach, row, -1))
    np.testing.assert_array_equal(nearer, np.where(distance <= reach, distance, np.inf))
    np.testing.assert_array_equal(tree.are_blocked(origins, ways, reach), found >= 0)
    assert 0 < (found >= 0).sum() < (row >= 0).sum()


def test_of_triangles_at_one_place_the_lowest_row_is_hit():
    triangle = np.array([[(0, 0, 0), (1, 0, 0), (0, 1, 0)]], float)
    triangles = np.repeat(triangle, 20, axis=0)
    tree = TriangleTree.over(triangles)
    distance, row = tree.first_hits([(0.25, 0.25, 2.0)], [(0, 0, -0.5)])
    assert (distance[0], row[0]) == (4.0, 0)


def test_no_ray_passes_between_triangles_that_share_an_edge():
    rng = np.random.default_rng(5)
    place = rng.random((12, 12, 2)) * 0.9 + np.stack(
        np.meshgrid(np.arange(12), np.arange(12), indexing="ij"), axis=-1
    )
    height = rng.random((12, 12, 1))
    grid = np.concatenate([place, height], axis=2) + np.array([1e5, 5e6, 0])
    triangles = []
    for i in range(11):
        for j in range(11):
            a, b, c, d = grid[i, j], grid[i + 1, j], grid[i + 1, j + 1], grid[i, j + 1]
            triangles += [(a, b, c), (a, c, d)]
    triangles = np.array(triangles)
    tree = TriangleTree.over(triangles)
    # down onto points of inner edges
    inner = triangles.reshape(11, 11, 2, 3, 3)[1:-1, 1:-1].reshape(-1, 3, 3)
    share = rng.random((len(inner), 1))
    ends = inner[:, 0] + share * (inner[:, 2] - inner[:, 0])
    _, row = tree.first_hits(ends + np.array([0, 0, 5]), np.tile([0.0, 0.0, -1.0], (len(ends), 1)))
    assert (row >= 0).all()


def test_no_triangles_and_no_rays():
    tree = TriangleTree.of(Meshes.of([]))
    distance, row = tree.first_hits([(0, 0, 0)], [(1, 0, 0)])
    assert (distance[0], row[0]) == (np.inf, -1)
    distance, row = tree.first_hits(np.empty((0, 3)), np.empty((0, 3)))
    assert len(distance) == len(row) == 0


def test_a_deep_tree_is_a_leaf_at_its_end():
    """Of triangles whose sizes grow by a factor, each division takes off few."""
    size = 1.4 ** np.arange(400)[:, None, None]
    triangles = size * np.array([[(1, 0, 0), (1, 1, 0), (1, 0, 1)]], float)
    tree = TriangleTree.over(triangles)
    origin = np.array([[0.0, 0.3, 0.3]])
    distance, row = tree.first_hits(origin, [(1, 0, 0)])
    assert distance[0] == brute(triangles[:10], origin[0], np.array([1.0, 0, 0])).min()
    assert row[0] == 0
