"""The split of `build_lod` on the GPU is the CPU's; without one its source runs on the host."""

import numpy as np
import pytest
from spatialq.udfs.build_lod import Options, cpu, split_gpu
from spatialq.udfs.build_lod.nodes import build_nodes
from spatialq.udfs.build_lod.split import split
from spatialq.udfs.build_lod.split_gpu import Records
from spatialq.udfs.build_lod.tree import BITS, Cube, Points, Root

from .cases import (
    CASES,
    cloud,
    coincident,
    cube_of,
    neighbours,
    packed,
    points_of,
    random,
    teapot_in_a_stadium,
)

KINDS = ["packed", "columns"]


def strips(n, width):
    """Points as a scanner gives them, many of a cell one after the other."""
    y, x = np.divmod(np.arange(n), width)
    return cloud(x, y, np.arange(n) % 5 // 4)


def beside_faces(kind):
    """Points a few roundings away from faces of cells of a cube that is no power of two."""
    rng = np.random.default_rng(5)
    at = (3.3 * rng.integers(0, 65, (3, 2500)) / 64).astype(kind)
    at = at + np.spacing(at) * rng.integers(-2, 3, at.shape).astype(kind)
    return cloud(*np.abs(at))


MORE = {
    "beside faces": (beside_faces(np.float64), {"max_points": 30}),
    "beside faces, float32": (beside_faces(np.float32), {"max_points": 30}),
    "strips": (strips(9000, 300), {"max_points": 50}),
    "a bit apart": (neighbours(500), {"max_points": 200}),
    "many of one place": (coincident(3000, 3000), {"max_points": 40}),
    "a small teapot": (teapot_in_a_stadium(1e-12), {"max_points": 20}),
    **{name: CASES[name] for name in ("one point", "teapot in a stadium", "a lattice of thirds")},
}
"""Cases that differ to the split; `test_gpu` has all trees."""


def cloud_of(device, points, kind):
    """Points on the device, the bytes that they are sorted as, and the points that these are."""
    if kind == "packed":
        records, points = packed(points)
        return Records.packed(device.upload([records])[0]), records, points
    places = np.column_stack([points.x, points.y, points.z])
    records = np.column_stack([places, points.colour.view(np.float64)]).view(np.uint32)
    there = Records.columns(*device.upload([*places.T.copy(), points.colour]))
    return there, records, points


def assert_as_on_the_cpu(device, points, kind, max_points, cube=None, root=None):
    """Return the nodes."""
    there, records, points = cloud_of(device, points, kind)
    if kind == "packed":
        assert split_gpu.bounds(device, there) == cube_of(points)
    cube, root = cube or cube_of(points), root or Root()
    found = split_gpu.split(device, there, cube, Options(max_points=max_points), root)
    ordered = cpu.sort(points, cube, root)
    expected = build_nodes(split(ordered, max_points), root.level)
    assert found.nodes.level_first == expected.level_first
    for name, there in found.nodes.arrays.items():
        values, wanted = device.download(there), getattr(expected, name)
        assert values.dtype == wanted.dtype, name
        np.testing.assert_array_equal(values, wanted, err_msg=name)
    order = device.download(found.order)
    leaves = np.sort(expected.first[expected.children == 0])
    leaf = np.searchsorted(leaves, np.arange(len(order)), side="right")
    np.testing.assert_array_equal(order[np.lexsort((order, leaf))], ordered.order)
    np.testing.assert_array_equal(device.download(found.records), records[order])
    return expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", MORE)
def test_every_case_is_as_on_the_cpu(device, case, kind):
    columns, options = MORE[case]
    max_points = options.get("max_points", Options.max_points)
    assert_as_on_the_cpu(device, points_of(columns), kind, max_points)


def test_the_cases_reach_down_to_the_last_bit(device):
    for case, level in (("smaller teapot", 40), ("a bit apart", BITS)):
        columns, options = {**CASES, **MORE}[case]
        nodes = assert_as_on_the_cpu(device, points_of(columns), "columns", options["max_points"])
        assert nodes.level[-1] >= level


@pytest.mark.parametrize("cells", [1, 1 << 10])
@pytest.mark.parametrize("case", ["teapot in a stadium", "many of one place"])
def test_many_full_cells_get_grids_of_fewer_levels(device, case, cells, monkeypatch):
    monkeypatch.setattr(split_gpu, "CELLS", cells)
    columns, options = MORE[case]
    assert_as_on_the_cpu(device, points_of(columns), "columns", options["max_points"])


@pytest.mark.parametrize(
    ("limit", "message"),
    [("MAX_POINTS", "at most 600 points at once, got 1100"), ("MAX_CELLS", "cannot number as")],
)
def test_what_is_too_much_leaves_the_cloud_to_the_cpu(device, limit, message, monkeypatch):
    monkeypatch.setattr(split_gpu, limit, 600)
    with pytest.raises(MemoryError, match=f"build_lod: the GPU .*{message}"):
        assert_as_on_the_cpu(device, points_of(teapot_in_a_stadium()), "packed", 30)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("root", [Root(1, (0, 0, 0)), Root(2, (0, 1, 0)), Root(5, (3, 9, 1))])
def test_tiles_of_a_cube(device, kind, root):
    _, points = packed(points_of(random(4000)))
    low = np.array(root.cell) / 2**root.level
    places = low[:, None] + np.stack([points.x, points.y, points.z]) * 0.5**root.level * 0.99
    tile = Points(*places, points.colour, points.point_id)
    nodes = assert_as_on_the_cpu(device, tile, kind, 25, Cube(0.0, 0.0, 0.0, 1.0), root)
    assert nodes.level[-1] > root.level + 2


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("axis", "xyz")
def test_what_is_not_finite_has_no_cube(device, axis, value):
    columns = random(500)
    columns[axis][333] = value
    there, *_ = cloud_of(device, points_of(columns), "packed")
    assert split_gpu.bounds(device, there) is None
