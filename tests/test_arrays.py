"""What `spatialq.run` and its relatives hand to kernels: arrays as they lie, or one conversion."""

import numpy as np
import pytest

import spatialq
from spatialq.data.points import IDS_PER_THREAD, converted
from spatialq.functions.catalogue import Function, catalogue
from spatialq.functions.declaration import PointsInput

from .intersects_with.shapes import cube

N = 50
OF_POINTS = [name for name, each in catalogue().items() if isinstance(each.inputs, PointsInput)]


@pytest.fixture
def given(monkeypatch):
    """Give what the last kernel got, by name."""
    got = {}
    kernel = Function.kernel

    def recording(function, device):
        def run(**arguments):
            got.clear()
            got.update(arguments)
            return kernel(function, device)(**arguments)

        return run

    monkeypatch.setattr(Function, "kernel", recording)
    return got


def cloud(n=N):
    rng = np.random.default_rng(3)
    return [np.floor(rng.uniform(0, 100, n)) for _ in "xyz"]


def address(array):
    return array.__array_interface__["data"][0]


def field_of_records(values):
    records = np.zeros(values.size, [("flag", "u1"), ("value", "f8")])  # not aligned
    records["value"] = values
    return records["value"]


def masked_nowhere(values):
    return np.ma.MaskedArray(values, np.zeros(values.size, bool))


AS_THEY_LIE = {
    "plain": lambda values: values,
    "slice": lambda values: np.concatenate([values[:1], values])[1:],
    "read-only": lambda values: np.frombuffer(values.tobytes()),
    "masked nowhere": masked_nowhere,
    "without a mask": np.ma.MaskedArray,
}
CONVERTED = {
    "strided": lambda values: np.repeat(values, 3)[::3],
    "backwards": lambda values: values[::-1].copy()[::-1],
    "broadcast": lambda values: np.broadcast_to(values[:1], values.shape),
    "of records": field_of_records,
    "big-endian": lambda values: values.astype(">f8"),
    "float32": lambda values: values.astype(np.float32),
    "longdouble": lambda values: values.astype(np.longdouble),
    "integers": lambda values: values.astype(np.uint8),
    "strided big-endian integers": lambda values: np.repeat(values, 2).astype(">i4")[::2],
    "booleans": lambda values: values > 50,
    "objects": lambda values: values.astype(object),
    "list": lambda values: values.tolist(),
}


@pytest.mark.parametrize("form", AS_THEY_LIE)
@pytest.mark.parametrize("function", ["owm_ground", "classify_ground", "build_lod"])
def test_contiguous_float64_is_not_copied(given, function, form):
    columns = [AS_THEY_LIE[form](values) for values in cloud()]
    ids = np.arange(N) * 3
    spatialq.run(function, *columns, ids)
    assert [address(given[name]) for name in "xyz"] == [address(values) for values in columns]
    assert address(given["point_id"]) == address(ids)


def test_no_ids_are_made(given):
    found = spatialq.run("owm_ground", *cloud())
    assert given["point_id"] is None
    counted = spatialq.run("owm_ground", *cloud(), np.arange(N))
    assert found["point_id"].tolist() == counted["point_id"].tolist()


@pytest.mark.parametrize("form", CONVERTED)
@pytest.mark.parametrize("axis", "xyz")
def test_other_arrays_are_converted_once(given, form, axis):
    columns = dict(zip("xyz", cloud(), strict=True))
    columns[axis] = CONVERTED[form](columns[axis])
    found = spatialq.run("owm_ground", *columns.values())
    for name, values in columns.items():
        assert given[name].dtype == np.dtype(np.float64)
        assert given[name].dtype.isnative
        assert given[name].flags.c_contiguous
        assert given[name].flags.aligned
        np.testing.assert_array_equal(given[name], np.array(values, np.float64))
        assert name == axis or address(given[name]) == address(values)
    expected = spatialq.run("owm_ground", *(np.array(each, "f8") for each in columns.values()))
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)


@pytest.mark.parametrize("kind", ["i1", "u2", ">i4", "u4", ">i8", "u8"])
@pytest.mark.parametrize("step", [1, 2])
def test_ids_are_converted_once(given, kind, step):
    ids = np.repeat(np.arange(N)[::-1], step).astype(kind)[::step]
    spatialq.run("owm_ground", *cloud(), ids)
    assert given["point_id"].dtype == np.dtype(np.int64)
    assert given["point_id"].flags.c_contiguous
    assert given["point_id"].tolist() == ids.tolist()


def test_ids_that_are_too_large_are_rejected():
    ids = np.full(N, 2**63, np.uint64)
    with pytest.raises(ValueError, match="owm_ground: point_id must be whole numbers of 64 bits"):
        spatialq.run("owm_ground", *cloud(), ids)


@pytest.mark.parametrize("n", [0, 1, IDS_PER_THREAD - 1, 3 * IDS_PER_THREAD + 7])
@pytest.mark.parametrize("mask", [False, True])
def test_threads_convert_every_value(monkeypatch, n, mask):
    monkeypatch.setenv("SPATIALQ_THREADS", "3")
    values = np.arange(2 * n, dtype=">i4")[::2]
    missing = values % 5 == 3
    found = converted(np.ma.MaskedArray(values, missing) if mask else values, np.float64)
    expected = values.astype(np.float64)
    if mask:
        expected[missing] = np.nan
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_heights_of_a_grid_are_not_copied(given, kind):
    z = np.random.default_rng(1).uniform(0, 9, (30, 40)).astype(kind)
    spatialq.run_grid("pops_features", z, dx=1.0, scales=[5], example_scale=5)
    assert address(given["grid"].z) == address(z)


def test_meshes_are_not_copied(given):
    meshes = spatialq.Meshes.of([cube(1), cube(1, (0.5, 0, 0))])
    spatialq.run_elements("intersects_with", meshes)
    pairs = zip(given["a"].arrays, meshes.arrays, strict=True)
    assert all(address(got) == address(array) for got, array in pairs)


@pytest.mark.parametrize("axis", "xyz")
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("with_ids", [False, True])
@pytest.mark.parametrize("function", OF_POINTS)
def test_kernels_find_what_is_not_finite(function, with_ids, bad, axis):
    columns = dict(zip("xyz", cloud(), strict=True))
    columns[axis][[17, 30]] = bad
    ids = np.arange(N) + 100 if with_ids else None
    where = 117 if with_ids else 17
    sentence = f"must be finite, got 2 points with NaN or infinity, the first with point_id {where}"
    with pytest.raises(ValueError, match=sentence):
        spatialq.run(function, *columns.values(), ids)
