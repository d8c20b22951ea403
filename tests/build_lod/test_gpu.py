"""`build_lod` on the GPU gives what the CPU gives, to the bit; without one its source runs here."""

import numpy as np
import pytest
from spatialq.udfs.build_lod import Options, cpu, gpu
from spatialq.udfs.build_lod.cost import BYTES_GRID, bytes_device
from spatialq.udfs.build_lod.tree import BITS, Cube, Root

from ..examples import thinned
from ..kernels import assert_same, on_device, run, run_both
from .cases import (
    BEYOND_FLOAT32,
    CASES,
    STRATEGIES,
    cube_of,
    moved,
    packed,
    points_of,
    random,
)
from .test_tiles import assert_same_rows


def assert_same_tree(device, tree, points, cube, options, root=None, channels=4):
    """Compare with the CPU's tree; a channel that a packed colour lacks is not compared."""
    expected = cpu.build(points, cube, options, root)
    found = {name: device.download(values) for name, values in vars(tree).items()}
    found["order"] = device.download(gpu.ascending(tree))
    if channels == 3:
        colour = found["colour"].view(np.uint8).reshape(-1, 4)
        assert (colour[:, 3] == 255).all()
        found["colour"] = colour.astype(np.uint16)
    for name, values in vars(expected).items():
        ours = found[name]
        assert ours.dtype == values.dtype, name
        if name in ("colour", "sums"):
            ours, values = ours[:, :channels], values[:, :channels]
        np.testing.assert_array_equal(ours, values, err_msg=name)


CLOSE = (
    "teapot in a stadium", "surface with two sides", "a heavy voxel", "dense stack, split",
    "lowest and highest colours", "coincident points", "nearest places", "leaves beside nodes",
    "random, leaves of a thousand", "an oblique line",
)  # fmt: skip
"""Looked at with every strategy; 'weighted' is what `test_parity` does with all."""


def each_case_with(strategy):
    """Every case with a strategy, and some with the others."""
    return [
        (case, each) for case in CASES for each in STRATEGIES if each == strategy or case in CLOSE
    ]


@pytest.mark.parametrize(("case", "strategy"), thinned(each_case_with("average")))
def test_trees_of_columns_are_as_on_the_cpu(device, case, strategy):
    columns, chosen = CASES[case]
    points, options = points_of(columns), Options(strategy=strategy, **chosen)
    cube = cube_of(points)
    assert_same_tree(device, gpu.build(points, cube, options), points, cube, options)


@pytest.mark.parametrize(
    ("case", "strategy"),
    [each for each in each_case_with("random") if each[0] not in BEYOND_FLOAT32],
)
def test_trees_of_packed_points_are_as_on_the_cpu(device, case, strategy):
    columns, chosen = CASES[case]
    records, points = packed(points_of(columns))
    options, cube = Options(strategy=strategy, **chosen), cube_of(points)
    there = on_device(device, records)
    assert gpu.around(there) == cube
    tree = gpu.build(there, cube, options)
    assert_same_tree(device, tree, points, cube, options, channels=3)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("case", ["shuffled ids", "random, places of points"])
def test_tables_of_random_points_are_as_on_the_cpu(case):
    columns, options = CASES[case]
    assert_same(*run_both("build_lod", columns, strategy="random", **options))


@pytest.mark.parametrize("strategy", thinned(STRATEGIES))
def test_clouds_that_do_not_fit_go_through_tile_by_tile(device, strategy, monkeypatch):
    columns, chosen = CASES["teapot in a stadium"]
    options, sizes = Options(strategy=strategy, **chosen), []
    build = gpu.build

    def recorded(points, *others):
        sizes.append(len(points.x))
        return build(points, *others)

    monkeypatch.setattr(gpu, "build", recorded)
    enough = (300.5 * bytes_device(options) + BYTES_GRID) / gpu.SHARE_OF_FREE
    monkeypatch.setattr(device, "free_bytes", lambda: enough)
    found, expected = run_both("build_lod", columns, strategy=strategy, **chosen)
    assert_same_rows(found, expected)
    assert len(sizes) > 1
    assert max(sizes) <= gpu.capacity(options) == 300


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_columns_of_the_gpu(device, strategy):
    columns, options = CASES["shuffled ids"]
    there = {name: on_device(device, values) for name, values in columns.items()}
    found = run("build_lod", "gpu", there, strategy=strategy, **options)
    assert_same(found, run("build_lod", "cpu", columns, strategy=strategy, **options))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "lacks", [(), ("intensity",), ("green",), ("red", "green", "blue", "intensity"),
              ("classification",)],
)  # fmt: skip
def test_points_that_are_on_the_gpu_stay_there(device, monkeypatch, lacks, strategy):
    columns, options = CASES["random" if lacks else "random, places of points"]
    columns = columns | dict.fromkeys(("point_id", *lacks))
    there = {
        name: None if values is None else on_device(device, values)
        for name, values in columns.items()
    }
    expected = run("build_lod", "cpu", columns, strategy=strategy, **options)
    monkeypatch.setattr(gpu, "validate", None)  # of points in main memory
    found = run("build_lod", "gpu", there, strategy=strategy, **options)
    assert_same(found, expected)


@pytest.mark.parametrize(
    ("case", "strategy"), thinned([(case, each) for case in CASES for each in STRATEGIES])
)
@pytest.mark.parametrize("share", [1, 7])
def test_points_on_the_gpu_are_divided_there(device, monkeypatch, case, strategy, share):
    columns, chosen = CASES[case]
    columns = columns | {"point_id": None}
    options, n = Options(strategy=strategy, **chosen), len(columns["x"])
    there = {
        name: None if values is None else on_device(device, values)
        for name, values in columns.items()
    }
    built, build = [], gpu.build

    def recorded(points, *others):
        built.append(len(points.x))
        return build(points, *others)

    monkeypatch.setattr(gpu, "build", recorded)
    if case in ("random", "UTM", "surface with two sides"):
        monkeypatch.setattr(gpu, "validate", None)  # of points in main memory
    monkeypatch.setattr(gpu, "TILE", 1)
    monkeypatch.setattr(gpu, "capacity", lambda *_: max(options.max_points, n // share))
    found = run("build_lod", "gpu", there, strategy=strategy, **chosen)
    expected = run("build_lod", "cpu", columns, strategy=strategy, **chosen)
    assert_same_rows(found, expected)  # what is not divided there goes through main memory
    assert max(built, default=0) <= max(options.max_points, n // share)
    assert share > 1 or built in ([], [n])


def test_bad_points_on_the_gpu_are_refused_as_on_the_cpu(device):
    columns, options = CASES["random, places of points"]
    there = {axis: columns[axis].copy() for axis in "xyz"}
    there["y"][7] = np.nan
    there = {name: on_device(device, values) for name, values in there.items()}
    with pytest.raises(ValueError, match=r"must be finite, got 1 points .* with point_id 7"):
        run("build_lod", "gpu", there | {"point_id": None}, **options)


LAST = Root(BITS, (5, 6, 2))
"""No points of this have two places."""


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "root", [Root(1, (1, 0, 1)), Root(3, (5, 6, 2)), Root(30, (9, 2**29, 7)), LAST]
)
def test_tiles_are_as_on_the_cpu(device, root, strategy):
    corner = np.array(root.cell) / 2.0**root.level
    points = points_of(moved(random(700), scale=0.5**root.level * 0.99, shift=corner))
    cube = Cube(0.0, 0.0, 0.0, 1.0)
    options = Options(strategy=strategy, max_points=50, grid_size=16)
    tree = gpu.build(points, cube, options, root)
    assert_same_tree(device, tree, points, cube, options, root)


def test_packed_points_that_are_not_finite(device):
    records, _ = packed(points_of(random(300)))
    records[200, 1] = np.float32(np.nan).view(np.uint32)
    with pytest.raises(ValueError, match=r"^build_lod: x, y and z must be finite, got packed"):
        gpu.around(on_device(device, records))


@pytest.mark.usefixtures("device")
def test_no_points_are_no_nodes():
    columns = {name: values[:0] for name, values in random(1).items()}
    assert_same(*run_both("build_lod", columns))
