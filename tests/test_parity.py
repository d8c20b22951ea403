"""Every kernel gives what the CPU's gives, to the bit, on every case and device.

Without a GPU the CUDA sources run on the host (tests/host): the same text, built by g++, in random
turns of its threads. With one, the same cases run there as well; with SPATIALQ_REQUIRE_GPU=1 a
missing one is a failure.
"""

import numpy as np
import pytest

from spatialq.functions.catalogue import catalogue
from spatialq.functions.declaration import PointsAndOtherInput, PointsInput

from .conftest import real_file
from .examples import thinned
from .kernels import (
    arguments_of,
    arrays_in,
    assert_same,
    cases_of,
    on_device,
    on_host,
    run,
    run_both,
)

FUNCTIONS = [name for name, each in catalogue().items() if each.has_kernel("gpu")]
OF_POINTS = [name for name in FUNCTIONS if isinstance(catalogue()[name].inputs, PointsInput)]
CASES = [
    (name, case)
    for name in FUNCTIONS
    for case in getattr(cases_of(name), "PARITY", cases_of(name).CASES)
]


@pytest.mark.parametrize(("function", "case"), thinned(CASES))
@pytest.mark.usefixtures("device")
def test_every_case_is_as_on_the_cpu(function, case):
    arguments, options = arguments_of(function, case)
    assert_same(*run_both(function, arguments, **options))


def typical(function):
    """Give the first case of a function with several rows in its result, or one, and the result."""
    found = None
    for case in cases_of(function).CASES:
        arguments, options = arguments_of(function, case)
        expected = run(function, "cpu", arguments, **options)
        rows = len(next(iter(arrays_in(expected).values())))
        if rows and (found is None or rows > 1):
            found = arguments, options, expected
        if rows > 1:
            break
    assert found, f"all results of {function} are empty"
    return found


@pytest.mark.parametrize("function", FUNCTIONS)
def test_arrays_of_the_gpu_stay_there(device, function):
    arguments, options, expected = typical(function)
    there = {
        name: each if name == "elements" else on_device(device, each)  # which the host matches
        for name, each in arguments.items()
    }
    assert_same(on_host(device, run(function, "gpu", there, **options)), arrays_in(expected))


WITH_POINTS = [
    (name, case)
    for name, each in catalogue().items()
    if isinstance(each.inputs, PointsInput | PointsAndOtherInput)
    for case in getattr(cases_of(name), "PARITY", cases_of(name).CASES)
]
"""All cases of functions that get points."""


@pytest.mark.parametrize(("function", "case"), WITH_POINTS)
def test_no_ids_are_the_positions(function, case):
    arguments, options = arguments_of(function, case)
    counted = {**arguments, "point_id": np.arange(len(arguments["x"]))}
    without = {**arguments, "point_id": None}
    assert_same(run(function, "cpu", without, **options), run(function, "cpu", counted, **options))


@pytest.mark.parametrize("function", sorted({name for name, _ in WITH_POINTS} & {*FUNCTIONS}))
@pytest.mark.parametrize("there", [False, True])
def test_no_ids_are_the_positions_on_the_gpu(device, function, there):
    arguments, options, _ = typical(function)
    arguments = {**arguments, "point_id": np.arange(len(arguments["x"]))}
    expected = run(function, "cpu", arguments, **options)
    if there:
        arguments = {
            name: each if name == "elements" else on_device(device, each)
            for name, each in arguments.items()
        }
    found = run(function, "gpu", {**arguments, "point_id": None}, **options)
    assert_same(on_host(device, found), arrays_in(expected))


@pytest.mark.parametrize("function", OF_POINTS)
def test_points_are_in_one_memory(device, function):
    arguments, options, _ = typical(function)
    there = {name: on_device(device, each) for name, each in arguments.items()}
    with pytest.raises(ValueError, match=f"{function}: .* must be in one memory"):
        run(function, "gpu", {**there, "x": arguments["x"]}, **options)


@pytest.mark.parametrize("function", OF_POINTS)
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
    results = []
    for turn in (slice(None), order):
        result = run(function, "gpu", {k: v[turn] for k, v in columns.items()})
        first = next(iter(result))
        by_id = np.argsort(result[first], kind="stable") if first == "point_id" else slice(None)
        results.append({name: values[by_id] for name, values in arrays_in(result).items()})
    assert_same(*results)


@pytest.mark.parametrize("ties", ["lowest_id", "octree"])
def test_owm_ground_ties_as_on_the_cpu(device, ties):
    columns, _ = arguments_of("owm_ground", "on metre borders")
    assert_same(*run_both("owm_ground", columns, ties=ties))


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
@pytest.mark.parametrize("case", cases_of("ground_surface").CASES)
def test_ground_surface_from_points_is_as_on_the_cpu(device, case, method, extrapolate):
    columns, options = arguments_of("ground_surface", case)
    chosen = {"source": "points", "method": method, "extrapolate": extrapolate}
    assert_same(*run_both("ground_surface", columns, **chosen, **options))


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


@pytest.mark.parametrize("function", OF_POINTS)
@pytest.mark.parametrize("axis", "xyz")
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused_in_the_same_words(device, function, axis, value):
    rng = np.random.default_rng(6)
    columns = {name: rng.uniform(0, 30, 500) for name in "xyz"}
    columns["point_id"] = np.arange(1000, 1500)
    columns[axis][[17, 400]] = value
    sentences = []
    for kind in ("cpu", "gpu"):
        with pytest.raises(
            ValueError, match=r"must be finite, got 2 points.*point_id 1017"
        ) as error:
            run(function, kind, columns)
        sentences.append(str(error.value))
    assert sentences[0] == sentences[1]
