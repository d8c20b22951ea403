"""A surface whose seeds the GPU finds in strips is that of the whole."""

import numpy as np
import pytest
from spatialq.udfs.ground_surface import Options, cpu, gpu

from ..kernels import arguments_of, assert_same
from .cases import CASES


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("name", CASES)
def test_every_case_in_tiles(name):
    columns, options = arguments_of("ground_surface", name)
    options = Options(**{k: tuple(v) if k == "bounds" else v for k, v in options.items()})
    cloud = [columns[each] for each in ("x", "y", "z", "point_id")]
    assert_same(gpu.run(*cloud, options, tiles=3), cpu.run(*cloud, options))


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("source", ["seeds", "points"])
@pytest.mark.parametrize("method", ["tin", "idw"])
def test_any_surface_in_tiles(source, method):
    rng = np.random.default_rng(5)
    x, y = 500_000 + rng.uniform(0, 70, 900), 5_800_000 + rng.uniform(0, 50, 900)
    cloud = x, y, np.round(rng.uniform(100, 103, 900), 1), rng.permutation(900)
    options = Options(source=source, method=method, extrapolate=method == "idw")
    for tiles in (2, 9):
        assert_same(gpu.run(*cloud, options, tiles=tiles), cpu.run(*cloud, options))
