"""What must not matter to the kernel: threads, order of the points, where the tree begins."""

from dataclasses import fields, replace

import numpy as np
import pytest
from spatialq.udfs.build_lod import Options, cpu
from spatialq.udfs.build_lod.cost import voxels_a_point
from spatialq.udfs.build_lod.tree import Points, Root, Tree

from .cases import STRATEGIES, cube_of, joined, points_of, random, surface, teapot_in_a_stadium

CLOUD = points_of(joined(random(20_000), teapot_in_a_stadium()))


def turned(points, order):
    """Points in another order, with ids that ascend again."""
    columns = {axis: getattr(points, axis)[order] for axis in "xyz"}
    return Points(**columns, colour=points.colour[order], point_id=points.point_id)


def assert_same(found, expected, without=()):
    for field in fields(Tree):
        if field.name not in without:
            values = getattr(expected, field.name)
            assert getattr(found, field.name).dtype == values.dtype, field.name
            np.testing.assert_array_equal(getattr(found, field.name), values, err_msg=field.name)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("max_points", [100, 15_000])
def test_threads_do_not_matter(strategy, max_points, monkeypatch):
    options = Options(strategy=strategy, max_points=max_points)
    trees = []
    for threads in ("1", "2", "7"):
        monkeypatch.setenv("SPATIALQ_THREADS", threads)
        trees.append(cpu.build(CLOUD, cube_of(CLOUD), options))
    for tree in trees[1:]:
        assert_same(tree, trees[0])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_order_of_the_points_does_not_matter_to_nodes_and_voxels(strategy):
    """To the colours of means it does not either; positions are those of the new order."""
    options = Options(strategy=strategy, max_points=300, grid_size=64)
    order = np.random.default_rng(4).permutation(CLOUD.x.size)
    tree = cpu.build(CLOUD, cube_of(CLOUD), options)
    other = cpu.build(turned(CLOUD, order), cube_of(CLOUD), options)
    chosen = ["colour"] if strategy in ("first", "random") else []
    assert_same(other, tree, without=["order", "representative", *chosen])
    leaves = np.flatnonzero(tree.children == 0)
    for first, points in zip(tree.first[leaves], tree.points[leaves], strict=True):
        span = slice(first, first + points)
        np.testing.assert_array_equal(np.sort(order[other.order[span]]), tree.order[span])


def test_a_seed_draws_other_points():
    options = Options(strategy="random", max_points=2000, grid_size=16)
    drawn = [
        cpu.build(CLOUD, cube_of(CLOUD), replace(options, seed=seed)).representative
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    shared = cpu.build(CLOUD, cube_of(CLOUD), options).mass > 1
    assert (drawn[0] != drawn[2])[shared].mean() > 0.3


def test_draws_are_fair():
    """Each of the points in a voxel is as likely as the others to be its colour."""
    n, cells = 8, 4000
    rng = np.random.default_rng(2)
    x = np.repeat(np.arange(cells), n) + rng.uniform(0.1, 0.9, n * cells)
    points = Points(x, x * 0, x * 0, np.zeros((x.size, 4), np.uint16), np.arange(x.size))
    options = Options(strategy="random", max_points=n * 100, grid_size=128)
    cube = replace(cube_of(points), x0=0.0, size=4096.0)
    tree = cpu.build(points, cube, options)
    full = tree.mass == n  # a cell of the finest nodes
    assert full.sum() > 3000
    counts = np.bincount(tree.representative[full] % n, minlength=n)
    expected = full.sum() / n
    assert ((counts - expected) ** 2 / expected).sum() < 24.3  # 0.1 % of fair draws are above


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_tile_is_what_the_whole_has_there(strategy):
    """The tree of the points in a cell is the subtree of all points."""
    options = Options(strategy=strategy, max_points=150, grid_size=32)
    whole = cpu.build(CLOUD, cube_of(CLOUD), options)
    for top in np.flatnonzero((whole.level == 2) & (whole.first_child >= 0))[:3]:
        span = slice(whole.first[top], whole.first[top] + whole.points[top])
        inside = np.sort(whole.order[span])
        part = Points(
            *(getattr(CLOUD, axis)[inside] for axis in "xyz"),
            CLOUD.colour[inside], CLOUD.point_id[inside],
        )  # fmt: skip
        root = Root(2, tuple(whole.cell[top].tolist()))
        tile = cpu.build(part, cube_of(CLOUD), options, root)
        below = [int(top)]
        for node in below:  # which grows
            first = whole.first_child[node]
            if first >= 0:
                below.extend(range(first, first + int(whole.children[node]).bit_count()))
        np.testing.assert_array_equal(tile.level, whole.level[below])
        np.testing.assert_array_equal(tile.cell, whole.cell[below])
        np.testing.assert_array_equal(tile.points, whole.points[below])
        np.testing.assert_array_equal(tile.children, whole.children[below])
        np.testing.assert_array_equal(inside[tile.order], whole.order[span])
        mine = np.concatenate(
            [np.arange(whole.voxel_first[node], whole.voxel_first[node + 1]) for node in below]
        )
        for name in ("code", "mass", "colour"):
            np.testing.assert_array_equal(getattr(tile, name), getattr(whole, name)[mine])
        np.testing.assert_array_equal(inside[tile.representative], whole.representative[mine])


@pytest.mark.parametrize(("grid_size", "max_points"), [(128, 100), (64, 500), (32, 3000)])
def test_voxels_of_a_surface_are_no_more_than_reckoned_with(grid_size, max_points):
    """By this estimate tiles are cut so that they fit into memory."""
    points, options = (
        points_of(surface(20_000)),
        Options(grid_size=grid_size, max_points=max_points),
    )
    tree = cpu.build(points, cube_of(points), options)
    expected = voxels_a_point(options) * 20_000
    assert 0.5 * expected < len(tree.code) <= expected
