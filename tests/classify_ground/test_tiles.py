"""A cloud whose points go to the GPU in runs has the classes and heights of the whole."""

import numpy as np
import pytest
from spatialq.udfs.classify_ground import Options, cpu, gpu

from ..conftest import real_file
from ..kernels import arguments_of, assert_same
from .cases import CASES

AXES = ("x", "y", "z", "point_id")


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("name", CASES)
def test_every_case_in_tiles(name):
    columns, options = arguments_of("classify_ground", name)
    options = Options(**{k: tuple(v) if k == "bounds" else v for k, v in options.items()})
    cloud = [columns[each] for each in AXES]
    assert_same(gpu.run(*cloud, options, tiles=3), cpu.run(*cloud, options))


def scattered(n):
    rng = np.random.default_rng(n)
    x, y = 714947.98 + rng.uniform(0, 90, n), 4286501.93 + rng.uniform(0, 60, n)
    z = 600 + np.round(0.05 * (x - x.min()) + rng.choice([0.0, 0.0, 0.1, 6.0], n), 2)
    return x, y, z, rng.permutation(10 * n)[:n]


@pytest.mark.slow
@pytest.mark.usefixtures("device")
@pytest.mark.parametrize(("tiles", "unit"), [(2, 0.3048), (7, None), (1000, None)])
def test_runs_of_any_length(tiles, unit):
    cloud, options = scattered(300), Options(unit=unit)
    assert_same(gpu.run(*cloud, options, tiles=tiles), cpu.run(*cloud, options))


@pytest.mark.usefixtures("device")
def test_no_ids_in_tiles():
    *cloud, _ = scattered(500)
    assert_same(gpu.run(*cloud, None, Options(), tiles=3), cpu.run(*cloud, None, Options()))


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("axis", range(3))
def test_what_is_not_finite_is_refused_for_the_whole(axis):
    cloud = scattered(500)
    cloud[axis][[17, 400]] = np.nan
    sentence = rf"must be finite, got 2 points.*point_id {cloud[3][17]}$"
    with pytest.raises(ValueError, match=sentence):
        gpu.run(*cloud, Options(), tiles=4)


@pytest.mark.slow
@pytest.mark.usefixtures("device")
def test_a_real_cloud_in_tiles():
    with np.load(real_file("golden/owm/golden200k_owm.npz")) as golden:
        x, y, z = np.ascontiguousarray(golden["xyz"].T)
    near = (x < x.min() + 150) & (y < y.min() + 100)
    cloud = [np.ascontiguousarray(values[near]) for values in (x, y, z)]
    assert_same(gpu.run(*cloud, None, Options(), tiles=4), cpu.run(*cloud, None, Options()))
