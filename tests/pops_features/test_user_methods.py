"""User-defined methods: their results on both devices, and how they are rejected."""

import inspect
import math
import os
import re
import subprocess
import sys
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from spatialq.udfs.pops_features import cpu, user_methods_gpu
from spatialq.udfs.pops_features.methods import USER_METHODS

import spatialq
from spatialq import pops_method
from spatialq.data.grid import Grid
from spatialq.functions.catalogue import catalogue

from ..host.device import HostDevice
from . import oracle
from .test_oracle import features, patches

DX, DY = 1.0, 2.0
OPTIONS = {"scales": (4.0, 7.0), "example_scale": 12.0, "min_valid": 0.8}


@pytest.fixture(autouse=True)
def no_methods_of_another_test():
    USER_METHODS.clear()
    yield
    USER_METHODS.clear()


@pytest.fixture(scope="module")
def compiled_slope():
    pops_method("slope", features=["mean_slope", "max_slope"])(slope)
    return USER_METHODS["slope"]


@pytest.fixture
def of_slope(compiled_slope):
    """The method 'slope', compiled once for all tests."""
    USER_METHODS["slope"] = compiled_slope


uses_slope = pytest.mark.usefixtures("of_slope")


def slope(z, dx, dy, out):
    """Give mean and maximum of the slope, by central differences."""
    n, total, steepest = 0, 0.0, 0.0
    for row in range(1, z.shape[0] - 1):
        for column in range(1, z.shape[1] - 1):
            east = (z[row, column + 1] - z[row, column - 1]) / (2 * dx)
            north = (z[row + 1, column] - z[row - 1, column]) / (2 * dy)
            steep = math.sqrt(east * east + north * north)
            if steep == steep:
                n += 1
                total += steep
                steepest = max(steepest, steep)
    if n > 0:
        out[0] = total / n
        out[1] = steepest


def corners(z, dx, dy, out):
    out[0] = z[0, 0]
    out[1] = z[0, -1]
    out[2] = z[-1, 0]
    out[3] = dx
    out[4] = dy


def terrain(holes=0.1, dtype=np.float64):
    rng = np.random.default_rng(3)
    z = rng.normal(1000, 30, (40, 50)).astype(dtype)
    z[rng.random(z.shape) < holes] = np.nan
    return Grid(z, dx=DX, dy=DY)


@pytest.mark.slow
@uses_slope
@pytest.mark.parametrize(("dtype", "columns"), [(np.float32, 1), (np.float64, 30)])
def test_a_method_gets_each_patch_with_enough_values(monkeypatch, dtype, columns):
    """Examples are divided among threads, or two of them are taken together."""
    monkeypatch.setattr(cpu, "RUN", columns)
    grid = terrain(dtype=dtype)
    found = patches(grid, {**OPTIONS, "scales": (6.0, 8.0), "methods": ("slope",)})
    _, wests = oracle.windows(50, 12.0, None, DX)
    _, souths = oracle.windows(40, 12.0, None, DY)
    known = dict.fromkeys((6.0, 8.0), 0)
    for scale, (i, west), (j, south) in product(known, enumerate(wests), enumerate(souths)):
        sx, lefts = oracle.windows(12, scale, scale / 2, DX)
        sy, lows = oracle.windows(6, scale, scale / 2, DY)
        for (px, left), (py, low) in product(enumerate(lefts), enumerate(lows)):
            z = grid.z[south + low :, west + left :][:sy, :sx].astype(np.float64)
            out = np.full(2, np.nan)
            if np.isfinite(z).sum() >= 0.8 * z.size:
                slope(z, DX, DY, out)
            for feature, expected in zip(("mean_slope", "max_slope"), out, strict=True):
                value = found.pop((i * len(souths) + j, "slope", scale, px, py, feature))
                assert value == pytest.approx(expected, rel=1e-12, nan_ok=True)
                known[scale] += np.isfinite(expected)
    assert not found
    assert min(known.values()) > 100


@pytest.mark.slow
def test_rows_run_north_and_columns_east():
    pops_method("corners", features=["south_west", "south_east", "north_west", "dx", "dy"])(corners)
    z = np.arange(36.0).reshape(6, 6)
    found = patches(
        Grid(z, dx=DX, dy=DY), {"scales": (4.0,), "example_scale": 6.0, "methods": ("corners",)}
    )
    names = "south_west", "south_east", "north_west", "dx", "dy"
    of_patch = {at: [found[0, "corners", 4.0, *at, name] for name in names]
                for at in ((0, 0), (1, 0), (0, 1))}  # fmt: skip
    assert of_patch[0, 0] == [0, 3, 6, DX, DY]
    assert of_patch[1, 0] == [2, 5, 8, DX, DY]
    assert of_patch[0, 1] == [6, 9, 12, DX, DY]


def test_features_are_aggregated_beside_those_of_other_methods():
    @pops_method("mean", features=["mean", "none"])
    def mean(z, dx, dy, out):
        total, n = 0.0, 0
        for height in z.flat:
            if height == height:
                total += height
                n += 1
        out[0] = total / n

    options = {**OPTIONS, "methods": ("mean", "stat")}
    found = features(terrain(), options)
    alone = features(terrain(), {**options, "methods": ("stat",)})
    assert {key: row for key, row in found.items() if key[1] == "stat"} == alone
    for (example, method, scale, feature), (*_, patch_count) in found.items():
        if method == "mean" and feature == "mean":
            of_stat = found[example, "stat", scale, "mean"]
            assert found[example, method, scale, feature] == pytest.approx(of_stat, rel=1e-6)
        if feature == "none":
            assert patch_count == 0


@pytest.mark.slow
def test_what_is_no_number_is_null():
    @pops_method("height", features=["height", "one"])
    def height(z, dx, dy, out):
        out[0], out[1] = z[0, 0], 1.0
        if z[0, 0] > 1020:
            raise ValueError
        if z[0, 0] > 1000:
            out[0] = math.nan if z[0, 0] > 1010 else math.inf

    grid = terrain(holes=0)
    found = patches(grid, {**OPTIONS, "methods": ("height",), "scales": (4.0,), "steps": (4.0,)})
    seen = set()
    for (example, *_, px, py, feature), value in found.items():
        column, row = divmod(example, 40 // 6)
        corner = grid.z[6 * row + 2 * py, 12 * column + 4 * px]
        seen.add(min(int(corner // 10), 102))
        if feature == "one":
            expected = math.nan if corner > 1020 else 1.0
        else:
            expected = math.nan if corner > 1000 else corner
        assert value == pytest.approx(expected, rel=0, nan_ok=True), (corner, feature)
    assert {99, 100, 101, 102} <= seen


@pytest.mark.slow
def test_a_better_function_takes_the_name():
    def constant(number):
        def method(z, dx, dy, out):
            out[0] = number

        return pops_method("constant", features=["value"])(method)

    for number in (1.0, 2.0):
        constant(number)
        assert set(patches(terrain(holes=0), {**OPTIONS, "methods": ("constant",)}).values()) == {
            number
        }


def test_the_function_stays_what_it_is():
    assert pops_method("slope", features=["a", "b"])(slope) is slope


@uses_slope
def test_bands_are_the_whole():
    grid = terrain()
    options = {**OPTIONS, "methods": ("slope",)}
    whole = features(grid, options)
    for first in (0, 13):
        band = Grid(grid.z[first : first + 25].copy(), dx=DX, dy=DY, first_row=first, all_rows=40)
        part = features(band, options)
        assert part
        assert {key: str(row) for key, row in part.items()} == {
            key: str(whole[key]) for key in part
        }


@uses_slope
def test_it_is_a_name_in_sql():
    con = spatialq.connect()
    y, x = np.mgrid[:40, :50]
    con.register("cells", {"x": x.ravel() * DX, "y": y.ravel() * DY, "z": 3.0 * x.ravel()})
    found = con.sql(
        "SELECT feature, round(min(min), 9), round(max(max), 9) FROM pops_features('cells', "
        "scales := [8], example_scale := 12, methods := ['slope', 'pca']) "
        "WHERE method = 'slope' GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    assert found == [("max_slope", 3.0, 3.0), ("mean_slope", 3.0, 3.0)]


@pytest.mark.slow
def test_the_methods_of_the_page():
    page = (Path(__file__).parents[2] / "docs/pops_method.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    methods = [block for block in blocks if "@spatialq.pops_method" in block]
    first, second = (block for block in methods if "mine" not in block)
    exec(first.partition("con =")[0] + second, {})
    x = np.arange(40.0)
    z = 0.5 * DX * x + 0.25 * DY * x[:, None]
    z[20:25, 20:25] = np.nan
    found = patches(
        Grid(z, dx=DX, dy=DY), {**OPTIONS, "scales": (10.0,), "methods": ("slope", "position")}
    )
    expected = {"mean_slope": math.hypot(0.5, 0.25), "tpi": 0.25, "roughness": 0.5}
    expected["max_slope"] = expected["mean_slope"]
    for feature, of_plane in expected.items():
        values = np.array([value for key, value in found.items() if key[-1] == feature])
        of_holes = feature == "tpi"  # the mean is of what is there
        assert np.isclose(values, of_plane, rtol=1e-12).mean() > 0.7
        assert of_holes or np.allclose(values[np.isfinite(values)], of_plane, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "names", "sentence"),
    [
        ("my slope", ["a"], "name must be an identifier such as 'slope', got 'my slope'"),
        ("", ["a"], "name must be an identifier such as 'slope', got ''"),
        (None, ["a"], "name must be an identifier such as 'slope', got None"),
        ("pca", ["a"], "name must be none of pca, stat, pca_ternary, stat_centred, got 'pca'"),
        ("class", ["a"], "name must be an identifier such as 'slope', got 'class'"),
        ("m", ["None"], "features must be one or more identifiers, all different"),
        ("m", [], r"features must be one or more identifiers, all different, got \[\]"),
        ("m", "mean", "features must be one or more identifiers, all different, got 'mean'"),
        ("m", ["a", "a"], "features must be one or more identifiers, all different"),
        ("m", ["a b"], "features must be one or more identifiers, all different"),
        ("m", None, "features must be one or more identifiers, all different, got None"),
    ],
)
def test_wrong_names(name, names, sentence):
    with pytest.raises(ValueError, match=f"^pops_method: {sentence}"):
        pops_method(name, features=names)


def unknown_name(z, dx, dy, out):
    out[0] = nothing_of_the_kind(z)  # noqa: F821


def two_arguments(z, out):
    out[0] = 1


def returns(z, dx, dy, out):
    return z.size


def writes(z, dx, dy, out):
    z[0, 0] = 0


def returns_a_literal(z, dx, dy, out):
    return 3


def calls_what_is_not_compiled(z, dx, dy, out):
    slope(z, dx, dy, out)


def has_a_height_of_two_kinds(z, dx, dy, out):
    out[0] = len(1 if dx > 2 else "b")


def reads_files(z, dx, dy, out):
    with open("heights") as file:  # noqa: PTH123
        out[0] = float(file.read())


def opens_files(z, dx, dy, out):
    out[0] = float(open("heights").read())  # noqa: PTH123, SIM115


def adds_text(z, dx, dy, out):
    out[0] = z + "a"


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (unknown_name, r"does not compile: name 'nothing_of_the_kind' is not defined \(line \d+\)"),
        (two_arguments, r"must take \(z, dx, dy, out\), got \(z, out\)"),
        (returns, "must fill in out and return nothing, got int64"),
        (returns_a_literal, "must fill in out and return nothing, got int"),
        (calls_what_is_not_compiled, r"does not compile: Numba cannot call 'slope' \(line \d+\)"),
        (has_a_height_of_two_kinds, r"does not compile: Cannot unify [^,]* \(line \d+\)"),
        (writes, r"does not compile: Cannot modify readonly array .*\(line \d+\)"),
        (reads_files, r"does not compile: The 'with .*' construct is not supported."),
        (opens_files, r"does not compile: Numba cannot call 'open' \(line \d+\)"),
        (adds_text, r"does not compile: there is no add\(.*\) \(line \d+\)"),
        (3, "must be a plain function, got 3"),
        (partial(slope, dx=1), r"must be a plain function, got functools.partial\(.*\)"),
    ],
)
def test_functions_that_cannot_be_methods(function, sentence):
    with pytest.raises(ValueError, match=f"^pops_method: m {sentence}$") as caught:
        pops_method("m", features=["a"])(function)
    assert caught.value.__cause__ is None
    assert "m" not in USER_METHODS


@uses_slope
def test_a_name_that_is_none():
    with pytest.raises(ValueError, match=r"no method 'aspect'; there is pca, .*, slope$"):
        catalogue()["pops_features"].choose({"methods": ["aspect"]})


@uses_slope
def test_what_has_no_place_on_the_gpu_says_why(monkeypatch):
    sentence = "no GPU has this"

    def fail(*_, **__):
        raise TypeError(sentence)

    udf = catalogue()["pops_features"]
    assert udf.declaration.cpu_only(udf.choose({})) == ""
    options = udf.choose({"methods": ["pca", "slope"]})
    monkeypatch.setattr(user_methods_gpu.cuda, "is_available", lambda: False)
    user_methods_gpu.problem.cache_clear()
    assert udf.declaration.cpu_only(options) == "the method 'slope' without numba-cuda and a GPU"
    monkeypatch.setattr(user_methods_gpu.cuda, "is_available", lambda: True)
    monkeypatch.setattr(user_methods_gpu.cuda, "compile_ptx_for_current_device", fail)
    user_methods_gpu.problem.cache_clear()
    why = f"the method 'slope', which does not compile for it: {sentence}"
    assert udf.declaration.cpu_only(options) == why
    user_methods_gpu.problem.cache_clear()


@uses_slope
def test_a_name_that_is_given_again_during_a_call():
    udf = catalogue()["pops_features"]
    options = udf.choose({**OPTIONS, "methods": ("slope",)})
    pops_method("slope", features=list("abcde"))(corners)
    result = udf.kernel("cpu")(terrain(holes=0), options)
    assert set(result["feature"].names) == {"mean_slope", "max_slope"}
    assert (
        0 < np.nanmin(result["min"]) < np.nanmax(result["max"]) < 100
    )  # corners would be heights of about 1000


@pytest.mark.slow
@pytest.mark.parametrize("beyond", ["row", "column", "out"])
def test_an_index_beyond_is_null(beyond):
    def reads(z, dx, dy, out):
        if z[0, 0] > 1000:
            row, column = (beyond == "row") * z.shape[0], (beyond == "column") * z.shape[1]
            out[(beyond == "out") * 1] = z[row, column]
        else:
            out[0] = z[0, 0]

    pops_method("reads", features=["a"])(reads)
    found = patches(terrain(holes=0), {**OPTIONS, "methods": ("reads",)})
    values = np.array(list(found.values()))
    assert 0.3 < np.isnan(values).mean() < 0.7
    assert np.nanmax(values) <= 1000


ON_GPU = """
import math, sys
import numba, numpy as np
from spatialq import pops_method
from spatialq.data.grid import Grid
from spatialq.functions.catalogue import catalogue
from spatialq.data.columns import Text
from spatialq.runtime import cuda
from spatialq.udfs.pops_features import user_methods_gpu
sys.path.insert(0, {host!r})
from device import HostDevice
SIMULATED = bool(numba.config.ENABLE_CUDASIM)
{slope}
pops_method("slope", features=["mean_slope", "max_slope"])(slope)

@pops_method("low", features=["low"])
def low(z, dx, dy, out):
    if z[0, 0] > 0:
        if not SIMULATED:
            raise ValueError
        out[0] = math.nan
    else:
        out[0] = z[0, 0]

if SIMULATED:
    cuda.device = HostDevice
    user_methods_gpu.THREADS, user_methods_gpu.MIN_BLOCKS = 8, 1  # each is a thread of Python
rng = np.random.default_rng(4)
z = rng.normal(size=(17, 27))
z[rng.random(z.shape) < 0.15] = np.nan
for dtype in (np.float64, np.float32)[: 1 if SIMULATED else 2]:
    grid = Grid(z.astype(dtype), dx=1.0, dy=2.0)
    for function in ("pops_features", "pops_patches"):
        udf = catalogue()[function]
        options = udf.choose(
            dict(scales=(6, 8), example_scale=13, methods=("slope", "stat", "low"), min_valid=0.8)
        )
        expected, found = (udf.kernel(device)(grid, options) for device in ("cpu", "gpu"))
        for name, values in expected.items():
            if not isinstance(values, Text):
                np.testing.assert_allclose(found[name], values, rtol=1e-9, err_msg=name)
        assert 0.1 < np.isnan(expected.get("value", [0.0, np.nan])).mean() < 0.9
"""


@pytest.mark.slow
def test_it_is_the_same_on_the_gpu(device):
    """In a process of its own: Numba has its simulator, or not, from the start."""
    simulated = isinstance(device, HostDevice)
    source = inspect.getsource(slope)
    code = ON_GPU.format(slope=source, host=str(Path(inspect.getfile(HostDevice)).parent))
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": str(int(simulated))}
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 0, result.stderr
