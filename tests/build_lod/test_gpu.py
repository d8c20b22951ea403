"""The GPU's tree is the CPU's, to the bit; without a GPU its sources run on the host."""

from itertools import cycle

import numpy as np
import pytest
from spatialq.udfs.build_lod import UDF, Options, cpu, gpu
from spatialq.udfs.build_lod.tree import Points, Tree

from spatialq.udf import Lists, Text

from ..host.device import OnDevice
from ..test_parity import device
from .cases import CASES, random
from .test_cpu import CLOUD
from .test_cpu import assert_same as assert_same_tree
from .test_oracle import STRATEGIES, cube_of

__all__ = ["device"]


def assert_same_table(found, expected):
    assert list(found) == list(expected)
    for name, values in expected.items():
        if isinstance(values, Lists):
            np.testing.assert_array_equal(found[name].offsets, values.offsets)
            assert_same_table(found[name].columns, values.columns)
        elif isinstance(values, Text):
            np.testing.assert_array_equal(found[name].codes, values.codes)
            assert found[name].names == values.names
        else:
            assert found[name].dtype == values.dtype, name
            np.testing.assert_array_equal(found[name], values, err_msg=name)


def there(device):
    """What puts arrays in the memory of the GPU, or makes them look so."""
    if device.xp is not np:
        return device.xp.asarray
    return lambda values: np.ascontiguousarray(values).view(OnDevice)


def both(columns, **options):
    return (UDF.kernel(kind)(**columns, options=Options(**options)) for kind in ("gpu", "cpu"))


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize(("case", "strategy"), list(zip(CASES, cycle(STRATEGIES), strict=False)))
def test_every_case_is_as_on_the_cpu(case, strategy):
    """Strategies take turns; the tests of voxels have all of them."""
    columns, options = CASES[case]
    assert_same_table(*both(columns, strategy=strategy, **options))


@pytest.mark.usefixtures("device")
def test_no_points_are_no_nodes():
    columns = {name: values[:0] for name, values in random(1).items()}
    assert_same_table(*both(columns))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_tree_stays_on_the_gpu(device, strategy):
    options = Options(strategy=strategy, max_points=900, grid_size=32)
    expected = cpu.build(CLOUD, cube_of(CLOUD), options)
    put = there(device)
    for points in (CLOUD, Points(*map(put, vars(CLOUD).values()))):
        tree = gpu.build(points, cube_of(CLOUD), options)
        found = {name: device.download(values) for name, values in vars(tree).items()}
        found["order"] = device.download(gpu.ascending(tree))
        assert_same_tree(Tree(**found), expected)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_packed_points(device, strategy):
    rng = np.random.default_rng(3)
    places = rng.normal(size=(5000, 3)).astype(np.float32)
    colour = rng.integers(0, 256, (5000, 4)).astype(np.uint8)
    packed = there(device)(np.column_stack([places.view(np.uint32), colour.view(np.uint32)]))
    wide = colour * np.array([1, 1, 1, 0], np.uint16)
    points = Points(*places.T.astype(np.float64), wide, np.arange(5000))
    options = Options(strategy=strategy, max_points=100, grid_size=16)
    cube = gpu.around(packed)
    assert cube == cube_of(points)
    expected = cpu.build(points, cube, options)
    tree = gpu.build(packed, cube, options)
    found = {name: device.download(values) for name, values in vars(tree).items()}
    found["order"] = device.download(gpu.ascending(tree))
    tints = found["colour"].view(np.uint8).reshape(-1, 4)
    assert (tints[:, 3] == 255).all()
    found["colour"] = tints * np.array([1, 1, 1, 0], np.uint16)
    assert_same_tree(Tree(**found), expected)
    if strategy in ("average", "weighted"):
        lean = gpu.build(packed, cube, options, representatives=False)
        assert lean.representative is None
        np.testing.assert_array_equal(device.download(lean.colour), device.download(tree.colour))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_packed_points_must_be_finite(device, value):
    places = np.zeros((40, 4), np.float32)
    places[7, 1] = value
    with pytest.raises(ValueError, match="build_lod: x, y and z must be finite, got packed points"):
        gpu.around(there(device)(places))


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


def test_arrays_of_the_gpu_are_taken(device):
    columns, options = random(700), Options(max_points=50, grid_size=8)
    expected = UDF.kernel("cpu")(**columns, options=options)
    given = {name: there(device)(values) for name, values in columns.items()}
    assert_same_table(UDF.kernel("gpu")(**given, options=options), expected)
    with pytest.raises(ValueError, match=r"build_lod: .* must be in one memory"):
        UDF.kernel("gpu")(**{**given, "x": columns["x"]}, options=options)
