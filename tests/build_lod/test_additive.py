"""The additive octree: every point once, in the node where plain counting puts it."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from spatialq.udfs.build_lod import Options, additive, cpu, tiles, validation
from spatialq.udfs.build_lod.tree import BITS

from .cases import joined, random, surface, teapot_in_a_stadium

CLOUD = joined(random(3000), teapot_in_a_stadium(), surface(4000))
CHANNELS = ("red", "green", "blue", "intensity")


def given(columns):
    return {name: columns[name] for name in ("x", "y", "z", "point_id", *CHANNELS)} | {
        "classification": columns["classification"]
    }


def by_counting(columns, options):
    """Name the node of each point: cells by Python's integers, the lowest id in each voxel."""
    xyz = np.column_stack([columns[axis] for axis in "xyz"])
    low, size = xyz.min(axis=0), float(np.ptp(xyz, axis=0).max())
    places = [
        [min(int((v - a) / size * 2**BITS), 2**BITS - 1) for v, a in zip(row, low, strict=True)]
        for row in xyz
    ]
    finer = options.grid_size.bit_length() - 1

    def cell(point, level):
        return tuple(each >> max(0, BITS - level) for each in places[point])

    found = {}
    here = {(): list(range(len(xyz)))}
    level = 0
    while here:
        below = defaultdict(list)
        for name, points in here.items():
            if len(points) <= options.max_points or len({cell(p, BITS) for p in points}) == 1:
                for p in points:
                    found.setdefault(p, name)
                continue
            firsts = {}
            for p in points:
                firsts.setdefault(cell(p, level + finer), p)
            for p in firsts.values():
                found.setdefault(p, name)
            for p in points:
                x, y, z = (each & 1 for each in cell(p, level + 1))
                below[(*name, 4 * x + 2 * y + z)].append(p)
        here, level = below, level + 1
    return ["r" + "".join(map(str, found[p])) for p in range(len(xyz))]


def octree_of(tables, n, options):
    collected = additive.Additive(n)
    for table in tables:
        collected.add(table)
    return collected.octree(options.grid_size, n)


def names_of(octree):
    names = np.repeat(octree.names, np.diff(octree.first))
    found = np.empty(len(names), object)
    found[octree.order] = names
    return found.tolist()


@pytest.mark.parametrize("strategy", ["first", "weighted"])
@pytest.mark.parametrize("grid_size", [2, 8])
def test_each_point_is_in_the_node_that_counting_gives(strategy, grid_size):
    options = Options(strategy=strategy, max_points=100, grid_size=grid_size)
    octree = octree_of([cpu.run(**given(CLOUD), options=options)], len(CLOUD["x"]), options)
    expected = [name[:32] for name in by_counting(CLOUD, options)]
    assert names_of(octree) == expected
    assert sorted(octree.order.tolist()) == list(range(len(expected)))
    for k, name in enumerate(octree.names):
        own = octree.order[octree.first[k] : octree.first[k + 1]]
        assert (np.diff(own.astype(np.int64)) > 0).all()
        assert octree.points(k) == Counter(expected)[name]
        assert k == 0 or name[:-1] in octree.names[:k]
    assert octree.low == tuple(float(CLOUD[axis].min()) for axis in "xyz")
    assert octree.spacing == octree.size / grid_size


@pytest.mark.parametrize("strategy", ["first", "random"])
def test_tiles_give_the_same_octree(strategy):
    """Children come before their parents there."""
    options = Options(strategy=strategy, max_points=100, grid_size=8)
    whole = octree_of([cpu.run(**given(CLOUD), options=options)], len(CLOUD["x"]), options)
    cloud = validation.validate(**given(CLOUD))
    tiler = tiles.Tiler(cloud.cube, options, cpu.build, 1500)
    rows = tiler.of_cloud(cloud.points, cloud.classification)
    parts = octree_of(rows, len(CLOUD["x"]), options)
    assert parts.names == whole.names
    np.testing.assert_array_equal(parts.first, whole.first)
    np.testing.assert_array_equal(parts.order, whole.order)


def test_keys_of_nodes():
    options = Options(strategy="first", max_points=100, grid_size=2)
    octree = octree_of([cpu.run(**given(CLOUD), options=options)], len(CLOUD["x"]), options)
    k = octree.names.index(next(name for name in octree.names if len(name) == 4))
    digits = [int(c) for c in octree.names[k][1:]]
    bits = [sum((d >> b & 1) << (2 - i) for i, d in enumerate(digits)) for b in (2, 1, 0)]
    assert octree.key(k) == (3, *bits)


def test_one_place_is_one_node():
    columns = {name: values[:50] for name, values in given(CLOUD).items()}
    for axis in "xyz":
        columns[axis] = np.full(50, 3.0)
    options = Options(strategy="first", max_points=10)
    octree = octree_of([cpu.run(**columns, options=options)], 50, options)
    assert (octree.names, octree.points(0), octree.size) == (["r"], 50, 0.0)


def test_a_point_that_no_node_has_is_an_error():
    options = Options(strategy="first")
    columns = {name: values[:50] for name, values in given(CLOUD).items()}
    with pytest.raises(ValueError, match="all points must be in a node, 1 are in none"):
        octree_of([cpu.run(**columns, options=options)], 51, options)
