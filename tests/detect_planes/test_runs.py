"""Points are compared with planes run by run: the same as point by point, in any order."""

import numpy as np
import pytest
from spatialq.udfs.detect_planes import assign, cells

GRID, SIDE, PLANES = 1, 1 << 20, 7
"""Eight cells, their side in steps, and planes of which two are equal."""


@pytest.fixture
def scene():
    """Points in steps, planes, lists of planes per cell, rasters of 8 by 8 pixels, labels."""
    rng = np.random.default_rng(11)
    points = rng.uniform(0, 2 * SIDE, (3000, 3))
    normals = rng.normal(size=(PLANES, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    offsets = (normals * rng.uniform(0.5 * SIDE, 1.5 * SIDE, (PLANES, 3))).sum(1)
    planes = np.column_stack([normals, offsets, rng.uniform(0.1, 0.5, PLANES) * SIDE])
    planes[4] = planes[2]  # at one distance the first plane counts
    lists = [np.sort(rng.choice(PLANES, size, replace=False)) for size in (0, 1, 7, 4, 5, 3, 2, 6)]
    cell_starts = np.cumsum([0, *map(len, lists)]).astype(np.int32)
    axes = np.linalg.svd(normals[:, None])[2][:, 1:].reshape(PLANES, 6)
    frames = np.column_stack([axes, np.full((PLANES, 2), -4.0 * SIDE), np.full(PLANES, 1.0 / SIDE)])
    starts = np.column_stack([64 * np.arange(PLANES), np.full((PLANES, 2), 8)])
    labels = rng.choice([0, 1, 2, 3], 64 * PLANES).astype(np.int32)
    return points, planes, (cell_starts, np.concatenate(lists).astype(np.int32)), (
        frames, starts), labels  # fmt: skip


def near(scene, whole):
    """Give the planes near each point, the nearest first, with their signed distances."""
    points, planes, (cell_starts, items), _, _ = scene
    steps = points.astype(np.int64)
    for place, step in zip(steps if whole else points, steps, strict=True):
        cell = int(((step >> (cells.BITS - GRID)) * (4, 2, 1)).sum())
        own = items[cell_starts[cell] : cell_starts[cell + 1]]
        far = [planes[p, :3] @ place - planes[p, 3] for p in own]
        found = [(abs(d), p, d) for p, d in zip(own, far, strict=True) if abs(d) <= planes[p, 4]]
        yield place, sorted(found)


def pixel(scene, place, plane):
    frames, starts = scene[3]
    u, v = ((frames[plane, :6].reshape(2, 3) @ place) - frames[plane, 6:8]) * frames[plane, 8]
    return starts[plane, 0] + 8 * int(v) + int(u)


def orders(n):
    """As they come, and cell by cell or not: in any order the result is the same."""
    return [np.arange(n), np.random.default_rng(1).permutation(n)]


def arguments(scene, order, *lists):
    points, planes, near_lists, rasters, _ = scene
    xyz = [np.ascontiguousarray(axis) for axis in points[order].T]
    return *xyz, 0.0, 0.0, 0.0, 1.0, 0, len(order), GRID, *near_lists, *lists, planes, *rasters


def ordered(scene):
    """Put the points into the order of cells."""
    points, n = scene[0], len(scene[0])
    at, xyz = np.empty(n, np.int64), [np.empty(n) for _ in "xyz"]
    cells.order(*np.ascontiguousarray(points.T), 0.0, 0.0, 0.0, 1.0, 0, n, at, *xyz)
    return at, np.column_stack(xyz)


def test_the_order_is_that_of_cells(scene):
    at, points = ordered(scene)
    np.testing.assert_array_equal(points, scene[0][at])
    np.testing.assert_array_equal(np.sort(at), np.arange(len(at)))
    bits = [points.astype(np.int64) >> bit & 1 for bit in range(20, 14, -1)]
    codes = sum((each @ (4, 2, 1)) << 3 * k for k, each in enumerate(reversed(bits)))
    assert np.all(np.diff(codes) >= 0)
    same = np.diff(codes) == 0
    assert np.all(np.diff(at)[same] > 0)  # points of a cell stay in order


def test_cover(scene):
    sums, covered = np.zeros((PLANES, assign.SUMS), np.int64), np.zeros(64 * PLANES, np.uint8)
    for place, found in near(scene, whole=False):
        if found:
            _, p, d = found[0]
            units = int(np.floor(d / scene[1][p, 4] * assign.NEAR + 0.5))
            sums[p, [0, 4, 5]] += 1, units, units * units
            sums[min(p for _, p, _ in found), 1] += 1
            covered[pixel(scene, place, p)] = 1
    assert np.count_nonzero(sums[:, 0]) == PLANES - 1  # of two equal ones the second has none
    for order in [*orders(len(scene[0])), ordered(scene)[0]]:
        got, marked = np.zeros_like(sums), np.zeros_like(covered)
        assign.cover(*arguments(scene, order), marked, got)
        np.testing.assert_array_equal(marked, covered)
        np.testing.assert_array_equal(got[:, :2], sums[:, :2])
        np.testing.assert_allclose(got[:, 4:], sums[:, 4:], rtol=1e-9, atol=100)


def test_settle(scene):
    labels, n = scene[4], len(scene[0])
    owner, distance = np.zeros(n, np.int32), np.full(n, np.nan)
    for k, (place, found) in enumerate(near(scene, whole=False)):
        for _, p, d in found:
            if labels[pixel(scene, place, p)]:
                owner[k], distance[k] = labels[pixel(scene, place, p)], d
                break
    assert 0 < np.count_nonzero(owner) < n
    directions = np.zeros((assign.SIDES, 2))
    for order in [*orders(n), ordered(scene)[0]]:
        got, far = np.empty(n, np.int32), np.empty(n)
        sums, farthest = np.zeros((3, assign.SUMS), np.int64), np.zeros((3, assign.SIDES), np.int64)
        assign.settle(
            *arguments(scene, order), labels, directions, sums, farthest, order, got, far
        )  # fmt: skip
        np.testing.assert_array_equal(got, owner)
        np.testing.assert_allclose(far, distance, atol=1e-6)
        np.testing.assert_array_equal(sums[:, 0], np.bincount(owner, minlength=4)[1:])


def test_rest(scene):
    plain = np.array([0, 0, 0, 1, 0, 0, 0, 0], np.uint8)
    steps = scene[0].astype(np.int64) >> (cells.BITS - GRID)
    explained = [bool(found) for _, found in near(scene, whole=True)]
    left = np.flatnonzero(~np.array(explained) & (plain[steps @ (4, 2, 1)] == 0))
    assert 0 < left.size < len(scene[0])
    for order in [*orders(len(scene[0])), ordered(scene)[0]]:
        found = np.empty(len(order), np.int64)
        end = assign.rest(*arguments(scene, order, plain)[:-2], found)
        np.testing.assert_array_equal(np.sort(order[found[:end]]), left)
