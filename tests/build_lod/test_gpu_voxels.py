"""Voxels on the GPU are those of the CPU, to the bit; without a GPU its source runs on the host."""

from dataclasses import replace

import numpy as np
import pytest
from spatialq.udfs.build_lod import Options, cpu
from spatialq.udfs.build_lod.split_gpu import Cloud, Nodes, Split
from spatialq.udfs.build_lod.tree import Root
from spatialq.udfs.build_lod.voxels_gpu import voxels

from ..test_parity import device
from . import oracle
from .cases import CASES, coincident, joined, random, surface, teapot_in_a_stadium
from .test_oracle import STRATEGIES, cube_of, points_of

__all__ = ["device"]

KINDS = ["packed", "columns"]
CHANNELS = {"packed": 3, "columns": 4}


def as_packed(points):
    """The same points as 16 bytes hold them."""
    places = (getattr(points, axis).astype(np.float32).astype(np.float64) for axis in "xyz")
    colour = points.colour & 0xFF
    colour[:, 3] = 0
    return replace(points, **dict(zip("xyz", places, strict=True)), colour=colour)


def packed(points):
    words = np.empty((len(points.x), 4), np.uint32)
    for k, axis in enumerate("xyz"):
        words[:, k] = getattr(points, axis).astype(np.float32).view(np.uint32)
    words[:, 3] = points.colour @ np.array([1, 1 << 8, 1 << 16, 0], np.uint32)
    return words


def records_of(points, kind):
    if kind == "packed":
        return packed(points)
    columns = [getattr(points, axis).view(np.uint64) for axis in "xyz"]
    colour = np.ascontiguousarray(points.colour).view(np.uint64)
    return np.column_stack([*columns, colour]).view(np.uint32)


def split_of(device, tree, records):
    """The leaves of a tree, their points in any order."""
    leaves = np.flatnonzero(tree.first_child < 0)
    leaf = np.sort(np.repeat(tree.first[leaves], tree.points[leaves]))
    turn = np.lexsort((np.random.default_rng(1).random(len(leaf)), leaf))
    order = tree.order[turn]
    put = device.upload_small
    names = ["level", "cell", "parent", "first_child", "children", "first", "points"]
    level_first = [*np.flatnonzero(np.diff(tree.level, prepend=-1)).tolist(), len(tree.level)]
    nodes = Nodes(*(put(getattr(tree, name)) for name in names))
    return Split(put(records[order]), put(order), nodes, level_first)


def assert_same_voxels(device, columns, kind, options, root=None, representatives=True):
    points = points_of(columns)
    if kind == "packed":
        points = as_packed(points)
    cube, put = cube_of(points), device.upload_small
    records = records_of(points, kind)
    if kind == "packed":
        points = replace(points, point_id=np.arange(len(points.x)))
        cloud, ids = Cloud.packed(put(records)), None
    else:
        places = (put(getattr(points, axis)) for axis in "xyz")
        cloud, ids = Cloud.columns(*places, put(points.colour)), put(points.point_id)
    tree = cpu.build(points, cube, options, root)
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
@pytest.mark.parametrize("case", CASES)
def test_every_case_is_as_on_the_cpu(device, case, kind, strategy):
    if kind == "packed" and case == "largest extents":
        pytest.skip("no float32")
    columns, options = CASES[case]
    assert_same_voxels(device, columns, kind, Options(strategy=strategy, **options))
