"""Voxels on the GPU are those of the CPU, to the bit; without a GPU its source runs on the host."""

import numpy as np
import pytest
from spatialq.udfs.build_lod import Options, cpu
from spatialq.udfs.build_lod.split_gpu import Records, Split
from spatialq.udfs.build_lod.tree import Nodes
from spatialq.udfs.build_lod.voxels_gpu import voxels

from .cases import CASES, STRATEGIES, cloud, cube_of, joined, packed, points_of, random

KINDS = ["packed", "columns"]
CHANNELS = {"packed": 3, "columns": 4}


def as_on_the_device(points, kind):
    """What points are as records on the device, and the points that these are."""
    if kind == "packed":
        return packed(points)
    columns = [getattr(points, axis).view(np.uint64) for axis in "xyz"]
    colour = np.ascontiguousarray(points.colour).view(np.uint64)
    return np.column_stack([*columns, colour]).view(np.uint32), points


def split_of(device, tree, records):
    """The leaves of a tree, their points in any order."""
    leaves = np.flatnonzero(tree.children == 0)
    leaf = np.sort(np.repeat(tree.first[leaves], tree.points[leaves]))
    shuffled = np.lexsort((np.random.default_rng(1).random(len(leaf)), leaf))
    order = tree.order[shuffled]
    put = device.upload_small
    names = ["level", "cell", "parent", "first_child", "children", "first", "points"]
    level_first = [*np.flatnonzero(np.diff(tree.level, prepend=-1)).tolist(), len(tree.level)]
    nodes = Nodes(*(put(getattr(tree, name)) for name in names), level_first)
    return Split(put(records[order]), put(order), nodes, tree.points, tree.children)


def assert_same_voxels(device, columns, kind, options, *, representatives=True):
    records, points = as_on_the_device(points_of(columns), kind)
    cube, put = cube_of(points), device.upload_small
    if kind == "packed":
        cloud, ids = Records.packed(put(records)), None
    else:
        places = (put(getattr(points, axis)) for axis in "xyz")
        cloud, ids = Records.columns(*places, put(points.colour)), put(points.point_id)
    tree = cpu.build(points, cube, options)
    split = split_of(device, tree, records)
    found = voxels(device, cloud, split, cube, options, ids, representatives=representatives)
    np.testing.assert_array_equal(found.voxel_first, tree.voxel_first)
    names = ["code", "mass"]
    if found.representative is not None:
        names.append("representative")
    for name in names:
        there = device.download(getattr(found, name))
        np.testing.assert_array_equal(there, getattr(tree, name), err_msg=name)
    colour = device.download(found.colour)
    if kind == "packed":
        colour = colour.view(np.uint8).reshape(-1, 4)
        assert (colour[:, 3] == 255).all()
    n = CHANNELS[kind]
    np.testing.assert_array_equal(colour[:, :n], tree.colour[:, :n])
    return found


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", KINDS)
def test_large_leaves_are_as_on_the_cpu(device, kind, strategy):
    """More points and voxels of a leaf than a block takes at once."""
    columns = joined(random(22_000), random(3_000, 0.4, seed=3))
    options = Options(strategy=strategy, max_points=24_999, grid_size=64)
    voxels = assert_same_voxels(device, columns, kind, options)
    assert len(voxels.mass) > 15_000


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["average", "weighted"])
@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_many_points_are_exact(device, kind, strategy):
    """All weigh as much as can be, and have the highest colours: 32 bits hold fewer than these."""
    centre = 0.5 + 1 / 32  # of a voxel of the node above the leaf
    places = [[centre] * 70_000, [0.0] * 3, [1.0] * 3]
    columns = cloud(*[np.concatenate(places)] * 3, colours=np.full((70_006, 4), 65535))
    options = Options(strategy=strategy, max_points=5, grid_size=8)
    found = assert_same_voxels(device, columns, kind, options)
    assert device.download(found.mass).max() == 70_000
    assert device.download(found.colour).min() in (65535, 0xFFFFFFFF)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_representatives_can_be_left_out(device, strategy):
    columns, options = CASES["surface with two sides"]
    options = Options(strategy=strategy, **options)
    found = assert_same_voxels(device, columns, "packed", options, representatives=False)
    assert (found.representative is None) == (strategy in ("average", "weighted"))
