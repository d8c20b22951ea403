"""The kernel against brute force and the published code's figures; what must not matter."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from spatialq.udfs import pops_features
from spatialq.udfs.pops_features import STATISTICS, cpu, order
from spatialq.udfs.pops_features.division import divide

from spatialq.data.grid import Grid
from spatialq.functions.catalogue import catalogue

from ..conftest import real_file
from ..examples import examples, thinned
from . import oracle
from .cases import ALL, CASES, SMALL, TERRAIN, holed, plane, single, terrain

REL = 1e-9
EPS = np.finfo(np.float64).eps


def run(function, grid, options):
    """Columns that the kernel gives, text as text."""
    found = catalogue()[function].kernel("cpu")(grid, pops_features.Options(**options))
    assert set(found) == set(catalogue()[function].output.columns)
    for name, values in found.items():
        if catalogue()[function].output.columns[name] == "VARCHAR":
            found[name] = np.array(values.names, object)[values.codes]
    assert len({len(values) for values in found.values()}) == 1
    return found


def by(found, *keys):
    """Rows by what names them: (keys) -> the other columns."""
    rest = [name for name in found if name not in keys]
    names = zip(*(found[key].tolist() for key in keys), strict=True)
    rows = dict(zip(names, zip(*(found[name].tolist() for name in rest), strict=True), strict=True))
    assert len(rows) == len(found[keys[0]])
    return rows


def patches(grid, options):
    """(example_id, method, scale, px, py, feature) -> value."""
    found = run("pops_patches", grid, options)
    keys = "example_id", "method", "scale", "px", "py", "feature"
    return {key: value for key, (value,) in by(found, *keys).items()}


def features(grid, options):
    """(example_id, method, scale, feature) -> x, y, nine statistics, patches."""
    found = run("pops_features", grid, options)
    return by(found, "example_id", "method", "scale", "feature")


def shaped(found):
    """(example_id, method, scale, feature) -> [px, py] from the rows of patches."""
    parts = {}
    for (*key, px, py, feature), value in found.items():
        parts.setdefault((*key, feature), {})[px, py] = value
    result = {}
    for key, cells in parts.items():
        n_x, n_y = np.max(list(cells), axis=0) + 1
        assert len(cells) == n_x * n_y
        result[key] = np.array([[cells[px, py] for py in range(n_y)] for px in range(n_x)])
    return result


def examples_of(grid, options):
    options = {name: value for name, value in options.items() if name != "min_patches"}
    place = grid.x0, grid.y0, grid.dx, grid.dy
    return list(oracle.examples(grid.z, *place, **options | {"methods": ALL}))


@cache
def expected(name):
    return examples_of(*CASES[name])


@cache
def patches_of(name):
    return shaped(patches(*CASES[name]))


def close(values, truth, *, rel=REL, scale=0.0, floor=0.0):
    """Whether errors are small against the true values, or a scale if that is larger."""
    allowed = rel * np.maximum(np.abs(truth), scale) + floor
    return (np.isnan(values) == np.isnan(truth)) & ~(np.abs(values - truth) > allowed)


def as_brute_force_has_it(method, feature, values, truth, stat):
    """Which of the patches' values are right; `stat` are the nine true statistics of z."""
    known = dict(zip(oracle.STATISTICS, np.moveaxis(stat, -1, 0), strict=True))
    largest = np.maximum(np.abs(known["min"]), np.abs(known["max"]))
    if method.startswith("pca"):
        # shares of the whole: of no more digits than the largest has
        return close(values, truth, floor=1e-14)
    if feature in ("skewness", "kurtosis"):
        return close(values, truth, scale=1.0)
    if feature in ("variance", "std"):
        return close(values, truth)
    if method == "stat_centred":
        # a height less the mean: of no more digits than the height has
        return close(values, truth, scale=np.sqrt(known["variance"]), floor=4 * EPS * largest)
    if feature in ("min", "max"):
        return close(values, truth, rel=0.0)
    return close(values, truth, rel=0.0, floor=(32 if feature == "mean" else 4) * EPS * largest)


def assert_as_brute_force(found, options, examples):
    methods = options["methods"]
    assert {key[:3] for key in found} == {
        (e.example_id, method, scale) for e in examples for method, scale in e.features
        if method in methods
    }  # fmt: skip
    for e in examples:
        for (method, scale), truth in e.features.items():
            names = oracle.METHODS[method][1]
            for k, name in enumerate(names if method in methods else ()):
                values = found[e.example_id, method, scale, name]
                assert values.shape == e.valid[scale].shape
                right = as_brute_force_has_it(
                    method, name, values, truth[..., k], e.features["stat", scale]
                )
                wrong = np.argwhere(~right)[:3]
                pairs = [(*at, values[*at], truth[*at, k]) for at in wrong]
                assert right.all(), (e.example_id, method, scale, name, pairs)


def assert_aggregated(values, grid, options, examples):
    """What the kernel aggregates is what it gives patch by patch."""
    found = features(grid, options)
    assert set(found) == set(values)
    chosen = {k: options[k] for k in ("min_patches", "quantiles") if k in options}
    examples = {e.example_id: e for e in examples}
    for (example_id, method, scale, name), (x, y, *nine, n) in found.items():
        e = examples[example_id]
        assert (x, y) == pytest.approx((e.x, e.y), rel=8 * EPS)
        assert n == np.count_nonzero(~np.isnan(values[example_id, method, scale, name]))
        of = values[example_id, method, scale, name]
        truth = np.array(oracle.aggregate(of, **chosen), np.float64)
        largest = np.nanmax(np.abs(of), initial=0.0)
        for statistic, value, true in zip(STATISTICS, nine, truth, strict=True):
            if statistic in ("skewness", "kurtosis"):
                right = close(value, true, scale=1.0)
            elif statistic == "variance":
                right = close(value, true)
            elif statistic in ("min", "max"):
                right = close(value, true, rel=0.0)
            else:
                ulps = 32 if statistic == "mean" else 4
                right = close(value, true, rel=0.0, floor=ulps * EPS * largest)
            assert right, (example_id, method, scale, name, statistic, value, true)


@pytest.mark.slow
@pytest.mark.parametrize("name", thinned(CASES))
def test_the_patches_of_every_case_are_as_brute_force_has_them(name):
    _, options = CASES[name]
    assert_as_brute_force(patches_of(name), options, expected(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", thinned(CASES))
def test_the_features_of_every_case_are_statistics_of_its_patches(name):
    assert_aggregated(patches_of(name), *CASES[name], expected(name))


SIZES = [*range(1, 70), 81, 100, 121, 128, 169, 225, 256, 324, 400, 511, 512]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["median_unbiased", "linear"])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_quartiles_of_any_number_of_values_are_exact(kind, missing):
    rng = np.random.default_rng(1)
    for n in SIZES:
        sets = rng.integers(-n, n, (n, order.WIDTH)).astype(np.float32)
        sets[rng.random(sets.shape) < missing] = np.nan
        known = [lane[~np.isnan(lane)] for lane in sets.T]
        counts = np.array([lane.size for lane in known])
        networks = order.exchanges(n, kind == "linear")
        five = np.empty((order.FIVE, order.WIDTH))
        order.five_of_lanes(
            sets, counts, order.WIDTH, *networks, kind == "linear", five, 0
        )  # fmt: skip
        for values, found in zip(known, five.T, strict=True):
            if values.size:
                true = oracle.statistics(values, kind)[4:]
                assert close(found, np.array(true), rel=0.0, floor=4 * EPS * n).all(), n
            else:
                assert np.isnan(found).all()


HEIGHTS = st.one_of(
    st.just(np.nan), st.integers(-3, 3).map(float), st.floats(-9000, 9000, width=32)
)


@st.composite
def small_grids(draw):
    rows, columns = draw(st.integers(2, 9)), draw(st.integers(2, 9))
    heights = st.lists(HEIGHTS, min_size=rows * columns, max_size=rows * columns)
    kind = draw(st.sampled_from([np.float32, np.float64]))
    z = np.array(draw(heights), kind).reshape(rows, columns)
    assume(not np.isnan(z).all())
    spacings = st.sampled_from([0.5, 1.0, 1.25])
    return Grid(z, dx=draw(spacings), dy=draw(spacings))


@st.composite
def divisions(draw, grid):
    """Options that fit on a grid."""
    two, across = 2 * max(grid.dx, grid.dy), min(grid.columns * grid.dx, grid.rows * grid.dy)
    assume(two <= across)
    lengths = st.floats(two, across).map(lambda length: round(length, 3))
    example_scale = draw(lengths)
    scales = draw(st.lists(lengths, min_size=1, max_size=3, unique=True))
    scales = tuple(dict.fromkeys(min(scale, example_scale) for scale in scales))
    steps = st.floats(0.25, 4.0).map(lambda step: round(step, 3))
    return {
        "scales": scales,
        "steps": draw(st.none() | st.tuples(*[steps] * len(scales))),
        "example_scale": example_scale,
        "example_step": draw(st.none() | steps),
        "methods": ALL,
        "min_valid": draw(st.sampled_from([0.0, 0.25, 0.5, 1.0])),
        "min_points": draw(st.integers(1, 6)),
        "min_patches": draw(st.integers(1, 3)),
        "quantiles": draw(st.sampled_from(["median_unbiased", "linear"])),
    }


@examples(60)
@given(st.data())
def test_small_grids_are_as_brute_force_has_them(data):
    grid = data.draw(small_grids())
    options = data.draw(divisions(grid))
    examples, values = examples_of(grid, options), shaped(patches(grid, options))
    assert_as_brute_force(values, options, examples)
    assert_aggregated(values, grid, options, examples)


# The published code.

GOLDEN = [f"etna{v}_{size}" for v in ("", "_nan") for size in ("small", "medium", "large")]
PUBLISHED = {"pca_ternary": "PCA_ISPRS12", "stat_centred": "STAT"}
INVALID = 2e9


def published(name):
    file = np.load(real_file(f"golden/pops/{name}.npz"))
    spacing = float(file["res_m"])
    # there the first axis is x; and the published code casts to single precision
    grid = Grid(single(file["z"].T), dx=spacing, dy=spacing)
    options = {
        "scales": tuple(file["scales_m"].tolist()),
        "steps": tuple(file["steps_m"].tolist()),
        "example_scale": float(file["ex_scale_m"]),
        "methods": tuple(PUBLISHED),
        "min_valid": 0.0,
        "min_points": int(file["num_valid_th"]),
        "min_patches": 3,
    }
    return file, grid, options


@pytest.mark.parametrize("name", GOLDEN)
def test_patches_are_as_published(name):
    file, grid, options = published(name)
    found = shaped(patches(grid, options))
    for method, key in PUBLISHED.items():
        names, cuts = oracle.METHODS[method][1], file[f"{key}_cum"]
        for example_id, raw in enumerate(file[f"{key}_raw"]):
            for scale, first, last in zip(options["scales"], cuts, cuts[1:], strict=False):
                for feature, true in zip(names, raw[first:last].T, strict=True):
                    values = found[example_id, method, scale, feature].ravel()
                    missing = true == INVALID
                    assert (np.isnan(values) == missing).all()
                    # a flat patch: the published GPU's definition, the CPU's is not a number
                    flat = np.isnan(true)
                    assert (values[flat] == (-3.0 if feature == "kurtosis" else 0.0)).all()
                    rest = ~(missing | flat)
                    floor = 1e-14 if method == "pca_ternary" else 0.0
                    right = close(values[rest], true[rest], scale=1.0 - (floor > 0), floor=floor)
                    assert right.all(), (example_id, method, scale, feature)


@pytest.mark.parametrize("name", GOLDEN)
def test_features_are_as_published(name):
    file, grid, options = published(name)
    found = features(grid, options)
    n = len(options["scales"]), -1, len(STATISTICS)
    for method, key in PUBLISHED.items():
        for example_id, aggregated in enumerate(file[f"{key}_agg"]):
            for scale, of_scale in zip(options["scales"], aggregated.reshape(n), strict=True):
                names = oracle.METHODS[method][1]
                for feature, true in zip(names, of_scale, strict=True):
                    _, _, *nine, _ = found[example_id, method, scale, feature]
                    if np.isnan(true).any():
                        continue  # a flat patch has no skewness there, and so its example has none
                    nine[1] = np.sqrt(nine[1])  # "variance" is a standard deviation there
                    true = np.where(true == INVALID, np.nan, true)
                    assert close(np.array(nine), true, scale=1.0).all(), (example_id, feature)


# What must not matter.

GRIDS = {
    "terrain": Grid(single(TERRAIN)),
    "holes": Grid(single(holed(TERRAIN, 0.2))),
    "cells that are no squares": Grid(single(holed(TERRAIN, 0.1)), dx=1.0, dy=1.25),
    "float64": Grid(holed(TERRAIN, 0.1)),
}
OPTIONS = SMALL | {"example_step": 5.0, "min_patches": 2}
every_grid = pytest.mark.parametrize("name", GRIDS)


def assert_same(found, expected):
    """To the bit, whatever the order of the keys."""
    assert set(found) == set(expected)
    for key, values in expected.items():
        np.testing.assert_array_equal(found[key], values, err_msg=str(key))


@pytest.mark.slow
@every_grid
@pytest.mark.parametrize("threads", ["1", "3", "16"])
def test_threads_and_runs_do_not_matter(name, threads, monkeypatch):
    functions = "pops_patches", "pops_features"
    known = [run(function, GRIDS[name], OPTIONS) for function in functions]
    monkeypatch.setenv("SPATIALQ_THREADS", threads)
    for columns in (1, 10, 20, 10_000):  # of which examples are larger, overlapping or not
        monkeypatch.setattr(cpu, "RUN", columns)
        for function, columns_before in zip(functions, known, strict=True):
            assert_same(run(function, GRIDS[name], OPTIONS), columns_before)


@pytest.mark.slow
@every_grid
def test_the_order_of_scales_and_methods_does_not_matter(name):
    turned = OPTIONS | {"scales": (6.0, 8.0, 5.0), "methods": (*ALL[2:], *ALL[:2])}
    for of in (patches, features):
        assert_same(of(GRIDS[name], turned), of(GRIDS[name], OPTIONS))


@every_grid
def test_a_scale_is_the_same_beside_others(name):
    alone = features(GRIDS[name], OPTIONS | {"scales": (6.0,)})
    beside = features(GRIDS[name], OPTIONS)
    assert_same(alone, {key: row for key, row in beside.items() if key[2] == 6.0})


@every_grid
@pytest.mark.parametrize("method", ALL)
def test_a_method_is_the_same_beside_others(name, method):
    alone = features(GRIDS[name], OPTIONS | {"methods": (method,)})
    beside = features(GRIDS[name], OPTIONS)
    assert_same(alone, {key: row for key, row in beside.items() if key[1] == method})


@pytest.mark.slow
@every_grid
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_bands_of_rows_are_the_whole(name, rows):
    """Bands of as many rows of examples, with what these share with the next band."""
    grid = GRIDS[name]
    options = OPTIONS | {"example_scale": 10.0}
    division = divide(grid, pops_features.Options(**options))
    assert division.y.count > 2
    for of in (patches, features):
        joined = {}
        for first in range(0, division.y.count, rows):
            last = min(first + rows, division.y.count) - 1
            south, north = first * division.y.step, last * division.y.step + division.y.size
            band = replace(
                grid, z=grid.z[south:north].copy(), first_row=south, all_rows=grid.z.shape[0]
            )
            part = of(band, options)
            assert not joined.keys() & part.keys()
            joined |= part
        assert_same(joined, of(grid, options))


@pytest.mark.parametrize(("first", "last"), [(0, 9), (1, 11), (4, 23), (5, 15), (6, 14), (7, 21)])
def test_a_band_has_the_examples_that_lie_in_it(first, last):
    grid, options = GRIDS["holes"], OPTIONS | {"example_scale": 10.0}
    band = replace(grid, z=grid.z[first:last].copy(), first_row=first, all_rows=grid.rows)
    y = divide(grid, pops_features.Options(**options)).y
    inside = [r for r in range(y.count) if first <= r * y.step and r * y.step + y.size <= last]
    whole = features(grid, options)
    assert_same(
        features(band, options), {k: row for k, row in whole.items() if k[0] % y.count in inside}
    )


@pytest.mark.parametrize("step", [None, 4.0, 13.0])
@pytest.mark.parametrize("west", [0, 1, 9, 13, 30])
@pytest.mark.parametrize("east", [12, 27, 38])
def test_a_window_has_the_examples_that_lie_in_it(step, west, east):
    """With the same statistics, numbers and centres as in the whole grid, to the bit."""
    z = holed(terrain(23, 38), 0.1)
    grid = Grid(z, x0=1000.3, y0=77.7, dx=0.7, dy=0.9)
    options = OPTIONS | {"scales": (2.1, 3.5), "example_scale": 7.0}
    options["example_step"] = step and 0.7 * step
    division = divide(grid, pops_features.Options(**options))
    window = replace(
        grid, z=z[2:21, west:east].copy(), first_row=2, all_rows=23, first_column=west,
        all_columns=38,
    )  # fmt: skip
    x, y = division.x, division.y
    inside = {
        c * y.count + r
        for c in range(x.count)
        for r in range(y.count)
        if west <= c * x.step and c * x.step + x.size <= east
        and r * y.step >= 2 and r * y.step + y.size <= 21
    }  # fmt: skip
    for of in (patches, features):
        expected = {key: row for key, row in of(grid, options).items() if key[0] in inside}
        assert_same(of(window, options), expected)


@every_grid
def test_cells_beyond_the_last_example_do_not_matter(name):
    grid, options = GRIDS[name], SMALL
    other = grid.z.copy()
    division = divide(grid, pops_features.Options(**options))
    other[division.y.extent :] = 1e6
    other[:, division.x.extent :] = np.nan
    assert_same(features(replace(grid, z=other), options), features(grid, options))


@every_grid
def test_the_grid_is_left_as_it_is(name):
    grid = GRIDS[name]
    z = grid.z.copy()
    z.flags.writeable = False
    assert_same(features(replace(grid, z=z), OPTIONS), features(grid, OPTIONS))


@pytest.mark.slow
def test_heights_of_single_precision_are_the_same_in_double():
    for grid in (GRIDS["terrain"], GRIDS["holes"]):
        double = replace(grid, z=grid.z.astype(np.float64))
        for of in (patches, features):
            assert_same(of(double, OPTIONS), of(grid, OPTIONS))


@every_grid
def test_the_place_of_the_grid_does_not_matter(name):
    grid = GRIDS[name]
    moved = features(replace(grid, x0=500_000.0, y0=-4_000_000.0), OPTIONS)
    for key, (x, y, *rest) in features(grid, OPTIONS).items():
        there_x, there_y, *rest_there = moved[key]
        assert (there_x, there_y) == (x + 500_000.0, y - 4_000_000.0)
        np.testing.assert_array_equal(rest_there, rest)


@pytest.mark.slow
@every_grid
@pytest.mark.parametrize("power", [-40, 3])
def test_another_unit_changes_nothing(name, power):
    """All lengths times a power of two: every sum is the same to the bit."""
    unit = 2.0**power
    grid = GRIDS[name]
    other = replace(grid, z=grid.z * grid.z.dtype.type(unit), dx=grid.dx * unit, dy=grid.dy * unit)
    lengths = {
        "scales": tuple(scale * unit for scale in OPTIONS["scales"]),
        "example_scale": OPTIONS["example_scale"] * unit,
        "example_step": OPTIONS["example_step"] * unit,
    }
    there = patches(other, OPTIONS | lengths)
    for (example_id, method, scale, *rest), value in patches(grid, OPTIONS).items():
        feature = rest[-1]
        is_shape = method.startswith("pca") or feature in ("skewness", "kurtosis")
        factor = 1.0 if is_shape else unit**2 if feature == "variance" else unit
        found = there[example_id, method, scale * unit, *rest]
        np.testing.assert_array_equal(found, value * factor, err_msg=str((method, rest)))


@pytest.mark.slow
@every_grid
def test_a_lift_moves_what_is_a_height_and_nothing_else(name):
    # on a lattice of 1/64 m, so that heights stay exact
    grid = GRIDS[name]
    z = np.round(64 * grid.z) / 64
    low, high = patches(replace(grid, z=z), OPTIONS), patches(replace(grid, z=z + 4096), OPTIONS)
    for key, value in low.items():
        method, feature = key[1], key[-1]
        is_height = method == "stat" and feature in ("mean", *oracle.STATISTICS[4:])
        lifted = value + 4096 * is_height
        assert high[key] == pytest.approx(lifted, rel=1e-11, abs=1e-11, nan_ok=True), key


@pytest.mark.slow
@every_grid
def test_a_transposed_grid_has_its_patches_transposed(name):
    grid = GRIDS[name]
    turned = Grid(np.ascontiguousarray(grid.z.T), dx=grid.dy, dy=grid.dx)
    here, there = patches(grid, OPTIONS), patches(turned, OPTIONS)
    division = divide(grid, pops_features.Options(**OPTIONS))
    assert len(there) == len(here)
    for (example_id, method, scale, px, py, feature), value in here.items():
        column, row = divmod(example_id, division.y.count)
        found = there[row * division.x.count + column, method, scale, py, px, feature]
        exact = method == "stat" and feature in oracle.STATISTICS[4:]
        rel, floor = (0.0, 0.0) if exact else (1e-11, 1e-13)
        assert found == pytest.approx(value, rel=rel, abs=floor, nan_ok=True), (px, py, feature)


@pytest.mark.parametrize("slopes", [(0.0, 0.0), (0.25, -0.5), (1.0, 0.0), (100.0, 3.0)])
@pytest.mark.parametrize("share", [0.0, 0.2])
def test_a_plane_has_two_components(slopes, share):
    grid = Grid(single(holed(plane(17, 34, *slopes), share)), dx=2.0, dy=2.0)
    found = patches(grid, SMALL | {"scales": (10.0, 16.0), "example_scale": 34.0})
    for key, value in found.items():
        if key[-1] == "ternary2":
            assert value == pytest.approx(0.0, abs=4e-15)
        if key[-1] == "pca1":
            assert value + found[*key[:-1], "pca2"] == pytest.approx(1.0, rel=4e-15)


def test_a_patch_of_equal_heights_is_flat_exactly():
    grid, options = CASES["constant, not exact"]
    nine = {"mean": 0.1, "variance": 0.0, "skewness": 0.0, "kurtosis": -3.0,
            **dict.fromkeys(oracle.STATISTICS[4:], 0.1)}  # fmt: skip
    for key, value in patches(grid, options | {"methods": ("stat",)}).items():
        assert value == nine[key[-1]], key


def test_a_spacing_that_was_rounded_has_the_same_cells():
    grid, options = CASES["the paper's scales, with holes"]
    expected = patches(grid, options | {"methods": ("stat",)})
    for spacing in (60 - 1e-7, 60 + 1e-7):
        near = replace(grid, dx=spacing, dy=spacing)
        assert_same(patches(near, options | {"methods": ("stat",)}), expected)
