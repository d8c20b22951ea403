"""`build_lod` on the GPU gives what the CPU gives, to the bit; without one its source runs here."""

import numpy as np
import pytest
from spatialq.udfs.build_lod import UDF, Options, cpu, gpu
from spatialq.udfs.build_lod.cost import BYTES_GRID, bytes_device
from spatialq.udfs.build_lod.tree import Cube, Points, Root

from spatialq.udf import Lists, Text

from ..host.device import OnDevice
from ..test_parity import device
from .cases import CASES, moved, random
from .test_oracle import STRATEGIES, cube_of, points_of
from .test_tiles import assert_same_rows

__all__ = ["device"]

BEYOND_FLOAT32 = ["smallest extents", "largest extents"]


def there(device, values):
    """Put an array on the device."""
    (array,) = device.upload([np.ascontiguousarray(values)])
    return array.view(OnDevice) if device.xp is np else array


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


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("case", CASES)
def test_trees_of_columns_are_as_on_the_cpu(device, case, strategy):
    columns, chosen = CASES[case]
    points, options = points_of(columns), Options(strategy=strategy, **chosen)
    cube = cube_of(points)
    assert_same_tree(device, gpu.build(points, cube, options), points, cube, options)


def packed(points):
    """Records of 16 bytes, and the points that these are."""
    places = np.column_stack([points.x, points.y, points.z]).astype(np.float32)
    colour = (points.colour >> 8).astype(np.uint8)
    records = np.column_stack([places.view(np.uint32), colour.view(np.uint32)])
    shades = colour.astype(np.uint16)
    wide = (np.ascontiguousarray(each) for each in places.T.astype(np.float64))
    return records, Points(*wide, shades, np.arange(len(records)))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("case", [case for case in CASES if case not in BEYOND_FLOAT32])
def test_trees_of_packed_points_are_as_on_the_cpu(device, case, strategy):
    columns, chosen = CASES[case]
    records, points = packed(points_of(columns))
    options, cube = Options(strategy=strategy, **chosen), cube_of(points)
    on_device = there(device, records)
    assert gpu.around(on_device) == cube
    tree = gpu.build(on_device, cube, options)
    assert_same_tree(device, tree, points, cube, options, channels=3)


def assert_same_table(found, expected):
    assert list(found) == list(expected)
    for name, values in expected.items():
        ours = found[name]
        if isinstance(values, Text):
            assert list(ours.names) == list(values.names)
            ours, values = ours.codes, values.codes
        if isinstance(values, Lists):
            np.testing.assert_array_equal(ours.offsets, values.offsets)
            assert_same_table(ours.columns, values.columns)
        else:
            assert ours.dtype == values.dtype, name
            np.testing.assert_array_equal(ours, values, err_msg=name)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("strategy", ["random", "weighted"])
@pytest.mark.parametrize("case", [
    "one point", "random, places of points", "teapot in a stadium", "coincident points",
    "shuffled ids", "no colours", "nothing carried", "no intensity",
])  # fmt: skip
def test_tables_are_as_on_the_cpu(case, strategy):
    columns, chosen = CASES[case]
    options = Options(strategy=strategy, **chosen)
    found, expected = (UDF.kernel(kind)(**columns, options=options) for kind in ("gpu", "cpu"))
    assert_same_table(found, expected)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_clouds_that_do_not_fit_go_through_tile_by_tile(device, strategy, monkeypatch):
    columns, chosen = CASES["teapot in a stadium"]
    options, sizes = Options(strategy=strategy, **chosen), []
    build = gpu.build

    def recorded(points, *others):
        sizes.append(len(points.x))
        return build(points, *others)

    monkeypatch.setattr(gpu, "build", recorded)
    enough = (300.5 * bytes_device(options) + BYTES_GRID) / gpu.SHARE
    monkeypatch.setattr(device, "free_bytes", lambda: enough)
    found = UDF.kernel("gpu")(**columns, options=options)
    assert_same_rows(found, UDF.kernel("cpu")(**columns, options=options))
    assert len(sizes) > 1
    assert max(sizes) <= gpu.capacity(options) == 300


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_columns_of_the_gpu(device, strategy):
    columns, chosen = CASES["shuffled ids"]
    options = Options(strategy=strategy, **chosen)
    on_device = {name: there(device, values) for name, values in columns.items()}
    found = UDF.kernel("gpu")(**on_device, options=options)
    assert_same_table(found, UDF.kernel("cpu")(**columns, options=options))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("root", [Root(1, (1, 0, 1)), Root(3, (5, 6, 2)), Root(30, (9, 2**29, 7))])
def test_tiles_are_as_on_the_cpu(device, root, strategy):
    corner = np.array(root.cell) / 2.0**root.level
    points = points_of(moved(random(700), scale=0.5**root.level * 0.99, shift=corner))
    cube = Cube(0.0, 0.0, 0.0, 1.0)
    options = Options(strategy=strategy, max_points=50, grid_size=16)
    tree = gpu.build(points, cube, options, root)
    assert_same_tree(device, tree, points, cube, options, root)


@pytest.mark.parametrize("strategy", ["average", "weighted"])
def test_without_representatives_the_rest_is_the_same(device, strategy):
    records, points = packed(points_of(random(3000)))
    cube, options = cube_of(points), Options(strategy=strategy, max_points=100, grid_size=32)
    trees = [
        gpu.build(there(device, records), cube, options, representatives=wanted)
        for wanted in (True, False)
    ]
    assert trees[1].representative is None
    for name, values in vars(trees[0]).items():
        if name not in ("order", "representative"):
            np.testing.assert_array_equal(
                device.download(values), device.download(getattr(trees[1], name)), err_msg=name
            )


def test_packed_points_that_are_not_finite(device):
    records, _ = packed(points_of(random(300)))
    records[200, 1] = np.float32(np.nan).view(np.uint32)
    with pytest.raises(ValueError, match=r"^build_lod: x, y and z must be finite, got packed"):
        gpu.around(there(device, records))


@pytest.mark.usefixtures("device")
def test_no_points_are_no_nodes():
    columns = {name: values[:0] for name, values in random(1).items()}
    found, expected = (UDF.kernel(kind)(**columns, options=Options()) for kind in ("gpu", "cpu"))
    assert_same_table(found, expected)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("axis", "xyz")
def test_what_is_not_finite_is_refused_in_the_same_words(axis):
    columns = random(300)
    columns[axis][[17, 100]] = np.nan
    sentences = []
    for kind in ("cpu", "gpu"):
        with pytest.raises(ValueError, match="must be finite, got 2 points") as error:
            UDF.kernel(kind)(**columns, options=Options())
        sentences.append(str(error.value))
    assert sentences[0] == sentences[1]


def test_coordinates_must_be_in_one_memory(device):
    columns = random(700)
    mixed = {name: there(device, values) for name, values in columns.items()}
    with pytest.raises(ValueError, match=r"build_lod: .* must be in one memory"):
        UDF.kernel("gpu")(**{**mixed, "x": columns["x"]}, options=Options())
