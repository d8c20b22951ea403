"""A small grid is worked on in two compiled calls: with the bits of the passes over a large one."""

import numpy as np
import pytest
from spatialq.udfs.classify_ground import Options, cpu, small

SIZES = [1, 2, 3, 10, 10, 30, 100, 1000]


def cloud(rng, n):
    """Hills of any size, with objects and outliers; at times on a line or at one place."""
    x, y = 10 ** rng.uniform(-1, 3) * rng.random((2, n)) + rng.uniform(-1e5, 1e5, (2, 1))
    z = rng.choice([0, 1, 30]) * rng.random(n) + rng.choice([0, 1, 10]) * np.sin(x / 10)
    z[rng.random(n) < 0.1] += rng.uniform(-20, 20)
    kind = rng.integers(8)
    if kind < 2:
        x[:] = x[0]
    if kind == 1:
        y[:] = y[0]
    return x, y, z


@pytest.mark.parametrize("width", [0.0, 5.0, 60.0, 200.0])
def test_the_bits_are_those_of_large_grids(width, monkeypatch):
    rng = np.random.default_rng(int(width))
    clouds = [cloud(rng, n) for n in SIZES for _ in range(3)]
    options, most, objects_of = Options(object_width=width), small.MAX_CELLS, small.objects_of
    n_small = 0

    def noted(*arguments):
        nonlocal n_small
        n_small += 1
        return objects_of(*arguments)

    monkeypatch.setattr(small, "objects_of", noted)
    for xyz in clouds:
        found, expected = [], []
        for limit, result in ((most, found), (0, expected)):
            monkeypatch.setattr(small, "MAX_CELLS", limit)
            columns = cpu.run(*xyz, None, options)
            result.extend((name, values.tobytes()) for name, values in columns.items())
        assert found == expected
    assert n_small > len(clouds) / 2
