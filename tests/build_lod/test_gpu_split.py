"""The split of `build_lod` on the GPU is that of brute force; without one it runs on the host."""

import math

import numpy as np
import pytest
from spatialq.udfs.build_lod import Options, split_gpu
from spatialq.udfs.build_lod.split_gpu import Cloud, bounds, split
from spatialq.udfs.build_lod.tree import BITS, Cube, Root

from ..test_parity import device

__all__ = ["device"]

RNG = np.random.default_rng(1)


def stadium():
    """A field with a bowl in it, and in that a teapot; each needs grids of its own."""
    spread = np.repeat([1.0, 2.0**-9, 2.0**-18], [500, 800, 700])[:, None]
    return RNG.permutation(RNG.random((2000, 3)) * spread + 0.3 * (1 - spread))


def chain():
    """Two places a bit apart, many times each."""
    points = np.full((1300, 3), 0.3125)
    points[::2, 1] += 2.0**-BITS
    return np.concatenate([points, [[0, 0, 0], [1, 1, 1]]])


CASES = {
    "one point": ([[3.0, -4.0, 5.0]], 1),
    "two points": ([[3.0, -4.0, 5.0], [3.0, -4.0, 5.5]], 1),
    "few": (RNG.random((10, 3)), 50),
    "random": (RNG.normal(size=(3000, 3)) * [9, 5, 1], 40),
    "all alone": (RNG.random((300, 3)), 1),
    "identical": (np.full((700, 3), -7.25), 100),
    "identical, below the limit": (np.full((70, 3), -7.25), 100),
    "coincident in a cloud": (np.concatenate([RNG.random((500, 3)), np.full((900, 3), 0.3)]), 60),
    "teapot in a stadium": (stadium(), 30),
    "a bit apart": (chain(), 200),
    "a plane": (RNG.random((1500, 3)) * [1, 1, 0], 64),
    "a line": (RNG.random((1500, 3)) * [0, 0, 1e-9], 64),
    "faces": (RNG.integers(0, 9, (2000, 3)) / 8, 5),
    "far and wide": (RNG.integers(-1, 2, (400, 3)) * 1e9 + RNG.random((400, 3)), 9),
    "strips": (np.column_stack([*divmod(np.arange(4000), 200), np.arange(4000) % 3]), 50),
}


def places(points, cube):
    """Integers along each axis, without a limit of their size."""
    low = (cube.x0, cube.y0, cube.z0)
    return [
        tuple(
            min(math.floor((v - least) / cube.size * 2**BITS), 2**BITS - 1) if cube.size else 0
            for v, least in zip(point, low, strict=True)
        )
        for point in points.tolist()
    ]


def brute_force(points, cube, max_points, root):
    """Nodes breadth first: level, cell, parent, children, positions of the points."""
    q = places(points, cube)
    nodes = [(root.level, root.cell, -1, list(range(len(q))))]
    found = []
    for number, (level, cell, parent, members) in enumerate(nodes):
        parts = {}
        if len(members) > max_points and len({q[k] for k in members}) > 1:
            for k in members:
                parts.setdefault(tuple(v >> BITS - level - 1 for v in q[k]), []).append(k)
        first_child = len(nodes) if parts else -1
        numbers = {part: 4 * (part[0] & 1) + 2 * (part[1] & 1) + (part[2] & 1) for part in parts}
        found.append(
            (level, cell, parent, first_child, sum(1 << c for c in numbers.values()), members)
        )
        for part in sorted(parts, key=numbers.get):
            nodes.append((level + 1, part, number, parts[part]))
    return found


def leaves_before(nodes):
    """The number of the first point of each node, leaf after leaf in Morton order."""
    first, after = {0: 0}, {}
    for number, node in enumerate(nodes):
        parent = node[2]
        if parent >= 0:
            first[number] = after.get(parent, first[parent])
            after[parent] = first[number] + len(node[5])
    return [first[number] for number in range(len(nodes))]


def cloud_of(device, points, kind):
    if kind == "packed":
        colour = np.arange(len(points), dtype=np.uint32)
        packed = np.column_stack([points.astype(np.float32).view(np.uint32), colour])
        return Cloud.packed(device.upload([packed])[0]), packed
    colour = RNG.integers(0, 1 << 16, (len(points), 4), np.uint16)
    columns = [np.ascontiguousarray(column) for column in points.T]
    records = np.column_stack([points, colour.view(np.float64)]).view(np.uint32)
    return Cloud.columns(*device.upload([*columns, colour])), records


def assert_split(device, points, kind, max_points, cube=None, root=None):
    points = np.asarray(points, np.float32 if kind == "packed" else np.float64)
    points = points.astype(np.float64)
    cloud, records = cloud_of(device, points, kind)
    around = Cube.around(points.min(0), points.max(0))
    assert bounds(device, cloud) == around
    cube = cube or around
    found = split(device, cloud, cube, Options(max_points=max_points), root)
    expected = brute_force(points, cube, max_points, root or Root())
    nodes = [device.download(each) for each in found.nodes.arrays()]
    columns = list(zip(*expected, strict=True))
    columns[5] = leaves_before(expected)
    columns.append([len(node[5]) for node in expected])
    for values, wanted in zip(nodes, columns, strict=True):
        np.testing.assert_array_equal(values, np.array(wanted, values.dtype))
    levels = nodes[0] - nodes[0][0]
    ends = [*np.flatnonzero(np.diff(levels, prepend=-1)), len(levels)]
    assert found.level_first == ends
    order = device.download(found.order)
    for node, first in zip(expected, columns[5], strict=True):
        assert sorted(order[first : first + len(node[5])].tolist()) == node[5]
    np.testing.assert_array_equal(device.download(found.records), records[order])
    return expected


@pytest.mark.parametrize("kind", ["packed", "columns"])
@pytest.mark.parametrize("case", CASES)
def test_the_tree_is_that_of_brute_force(device, case, kind):
    points, max_points = CASES[case]
    assert_split(device, points, kind, max_points)


def test_a_teapot_in_a_stadium_and_bits_need_several_rounds(device):
    """The cases above reach beyond the first grid, which is the point of them."""
    assert max(node[0] for node in assert_split(device, stadium(), "columns", 30)) > 18
    assert max(node[0] for node in assert_split(device, chain(), "columns", 200)) == BITS


@pytest.mark.parametrize("cells", [1, 1 << 10])
@pytest.mark.parametrize("case", ["teapot in a stadium", "coincident in a cloud"])
def test_many_full_cells_get_grids_of_fewer_levels(device, case, cells, monkeypatch):
    monkeypatch.setattr(split_gpu, "CELLS", cells)
    points, max_points = CASES[case]
    assert_split(device, points, "columns", max_points)


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("MAX_POINTS", "at most 600 points at once, got 2000"),
        ("MAX_CELLS", "cannot number as many"),
    ],
)
def test_what_is_too_much_leaves_the_cloud_to_the_cpu(device, limit, message, monkeypatch):
    monkeypatch.setattr(split_gpu, limit, 600)
    with pytest.raises(MemoryError, match=f"build_lod: the GPU .*{message}"):
        assert_split(device, stadium(), "packed", 30)


@pytest.mark.parametrize("kind", ["packed", "columns"])
def test_a_tile_is_part_of_the_whole(device, kind):
    points = RNG.random((4000, 3)) ** 3
    points[0], points[1] = 0, 1
    points = points.astype(np.float32).astype(np.float64)
    cube, root = Cube(0.0, 0.0, 0.0, 1.0), Root(2, (0, 1, 0))
    inside = (np.floor(points * 4) == root.cell).all(1)
    whole = assert_split(device, points, kind, 25, cube)
    tile = assert_split(device, points[inside], kind, 25, cube, root)
    position = np.flatnonzero(inside)
    below = {
        (level, cell, mask, tuple(members))
        for level, cell, _, _, mask, members in whole
        if level >= 2 and tuple(v >> level - 2 for v in cell) == root.cell
    }
    assert below == {
        (level, cell, mask, tuple(position[members].tolist()))
        for level, cell, _, _, mask, members in tile
    }


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("kind", ["packed", "columns"])
def test_what_is_not_finite_has_no_cube(device, kind, axis, value):
    points = RNG.random((500, 3))
    points[333, axis] = value
    assert bounds(device, cloud_of(device, points, kind)[0]) is None
