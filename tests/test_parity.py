"""Every kernel gives what the CPU's gives, to the bit, on every case and device.

Without a GPU the CUDA sources run on the host (tests/host): the same text, built by g++, in random
turns of its threads. With one, the same cases run there as well; with SPATIALQ_REQUIRE_GPU=1 a
missing one is a failure.
"""

import importlib

import numpy as np
import pytest

from spatialq.functions.declaration import Lists, Text, catalog

from .conftest import real_file
from .host.device import HostDevice, OnDevice

FUNCTIONS = [name for name, udf in catalog().items() if udf.takes_points and udf.has_kernel("gpu")]
CASES = [
    (name, case)
    for name in FUNCTIONS
    for case in importlib.import_module(f".{name}.cases", __package__).CASES
]


def columns_of(points):
    if isinstance(points, dict):
        return points
    ids, *coordinates = (np.array([p[k] for p in points]) for k in range(4))
    columns = {name: v.astype(np.float64) for name, v in zip("xyz", coordinates, strict=True)}
    return {**columns, "point_id": ids.astype(np.int64)}


def arrays_in(result):
    """All arrays of a result, those of texts and lists of structs under names of their own."""
    found = {}
    for name, values in result.items():
        if isinstance(values, Text):
            found |= {name: values.codes, f"names of {name}": np.array(values.names)}
        elif isinstance(values, Lists):
            found[name] = values.offsets
            found |= {f"{name}, {field}": each for field, each in values.columns.items()}
        else:
            found[name] = values
    return found


def assert_same(found, expected):
    found, expected = arrays_in(found), arrays_in(expected)
    assert list(found) == list(expected)
    for name, values in expected.items():
        assert found[name].dtype == values.dtype, name
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def run(function, kind, columns, options):
    """Run a kernel; what it carries is absent if it is not among the columns."""
    udf = catalog()[function]
    return udf.kernel(kind)(**{**dict.fromkeys(udf.carries), **columns}, options=options)


def run_both(function, columns, **options):
    chosen = catalog()[function].options(**options)
    return (run(function, kind, columns, chosen) for kind in ("gpu", "cpu"))


@pytest.mark.parametrize(("function", "case"), CASES)
def test_every_case_is_as_on_the_cpu(device, function, case):
    points, options = importlib.import_module(f".{function}.cases", __package__).CASES[case]
    assert_same(*run_both(function, columns_of(points), **options))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_order_of_the_points_does_not_matter_to_the_gpu(device, function):
    rng = np.random.default_rng(4)
    n = 3000
    columns = {
        "x": 714947.98 + np.round(rng.uniform(0, 60, n), 2),
        "y": 4286501.93 + np.round(rng.uniform(0, 45, n), 2),
        "z": np.round(rng.uniform(600, 603, n), 1),  # many ties
        "point_id": rng.permutation(10 * n)[:n],
    }
    order = np.lexsort((columns["y"] // 1, columns["x"] // 20))  # as flight lines come
    options = catalog()[function].options()
    results = []
    for turn in (slice(None), order):
        result = run(function, "gpu", {k: v[turn] for k, v in columns.items()}, options)
        first = next(iter(result))
        by_id = np.argsort(result[first], kind="stable") if first == "point_id" else slice(None)
        results.append({name: values[by_id] for name, values in arrays_in(result).items()})
    assert_same(*results)


@pytest.mark.parametrize("ties", ["lowest_id", "octree"])
def test_owm_ground_ties_as_on_the_cpu(device, ties):
    points, _ = importlib.import_module(".owm_ground.cases", __package__).CASES["on metre borders"]
    assert_same(*run_both("owm_ground", columns_of(points), ties=ties))


def test_owm_ground_finds_the_references_points_in_200000(device):
    with np.load(real_file("golden/owm/golden200k_owm.npz")) as golden:
        x, y, z = np.ascontiguousarray(golden["xyz"].T)
        seeds = sorted(golden["w10_o0.8_b20__llp_tie_lowest_id"].tolist())
    columns = {"x": x, "y": y, "z": z, "point_id": np.arange(x.size)}
    found, expected = run_both("owm_ground", columns)
    assert_same(found, expected)
    assert found["point_id"][~found["filled"]].tolist() == seeds


@pytest.mark.parametrize("extrapolate", [False, True])
@pytest.mark.parametrize("method", ["tin", "idw"])
@pytest.mark.parametrize(
    "case", importlib.import_module(".ground_surface.cases", __package__).CASES
)
def test_ground_surface_from_points_is_as_on_the_cpu(device, case, method, extrapolate):
    points, options = importlib.import_module(".ground_surface.cases", __package__).CASES[case]
    chosen = {"source": "points", "method": method, "extrapolate": extrapolate}
    assert_same(*run_both("ground_surface", columns_of(points), **chosen, **options))


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("method", ["tin", "idw"])
@pytest.mark.parametrize(
    ("width", "depth", "resolution"),
    [(50.0, 40.0, 0.7), (30.0, 30.0, 5.0), (3000.0, 9.0, 1.0), (9.0, 3000.0, 1.0)],
)
def test_ground_surface_cuts_triangles_of_all_shapes(
    device, width, depth, resolution, method, thin
):
    """Small ones in large cells, and rows of more columns than one warp looks at."""
    rng = np.random.default_rng(8)
    n = 400
    columns = {
        "x": 500_000 + np.round(rng.uniform(0, width, n), 1),
        "y": 5_800_000 + np.round(rng.uniform(0, depth, n), 1),
        "z": np.round(rng.uniform(100, 103, n), 1),
        "point_id": rng.permutation(n),
    }
    chosen = {"source": "points", "resolution": resolution, "method": method, "thin": thin}
    assert_same(*run_both("ground_surface", columns, **chosen))


def test_a_box_of_the_callers_spares_a_pass_and_is_checked(device):
    from spatialq.udfs.owm_ground import Options, gpu
    from spatialq.udfs.owm_ground.windows import Box

    rng = np.random.default_rng(5)
    x, y, z = (rng.uniform(0, 40, 2000) for _ in range(3))
    box = Box(x.min(), x.max(), y.min(), y.max())
    assert_same(gpu.run(x, y, z, None, Options(), box), gpu.run(x, y, z, None, Options()))
    small = Box(x.min(), x.max() - 5, y.min(), y.max())
    with pytest.raises(ValueError, match="owm_ground: box must hold all points, got some outside"):
        gpu.run(x, y, z, None, Options(), small)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("axis", "xyz")
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused_in_the_same_words(device, function, axis, value):
    rng = np.random.default_rng(6)
    columns = {name: rng.uniform(0, 30, 500) for name in "xyz"}
    columns["point_id"] = np.arange(1000, 1500)
    columns[axis][[17, 400]] = value
    options = catalog()[function].options()
    sentences = []
    for kind in ("cpu", "gpu"):
        with pytest.raises(
            ValueError, match=r"must be finite, got 2 points.*point_id 1017"
        ) as error:
            run(function, kind, columns, options)
        sentences.append(str(error.value))
    assert sentences[0] == sentences[1]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_arrays_of_the_gpu_stay_there(device, function):
    rng = np.random.default_rng(7)
    columns = {name: rng.uniform(0, 30, 800) for name in "xyz"}
    columns["point_id"] = rng.permutation(800)
    options = catalog()[function].options()
    expected = arrays_in(run(function, "cpu", columns, options))
    put = (
        device.xp.asarray
        if not isinstance(device, HostDevice)
        else lambda values: values.view(OnDevice)
    )
    there = {name: put(values) for name, values in columns.items()}
    result = arrays_in(run(function, "gpu", there, options))
    for name, values in expected.items():
        np.testing.assert_array_equal(device.download(result[name]), values, err_msg=name)
    mixed = {**there, "x": columns["x"]}
    with pytest.raises(ValueError, match=f"{function}: .* must be in one memory"):
        run(function, "gpu", mixed, options)
