"""`pops_patches` through DuckDB: one row per patch and feature (the rest: tests/pops_features)."""

from math import isnan

import numpy as np
import pytest

import spatialq

from .cases import CASES
from .oracle import rows

NAMES = [
    "terrain",
    "terrain, other quantiles",
    "holes",
    "steps of less than a cell",
    "overlapping examples",
    "gaps between patches",
    "scales in no order",
    "cells that are no squares",
    "an example that is the grid",
]


def sql_of(options):
    values = ((name, list(v) if isinstance(v, tuple) else v) for name, v in options.items())
    return ", ".join(f"{name} := {value!r}" for name, value in values)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_rows_are_those_of_brute_force(name):
    grid, options = CASES[name]
    options = {key: value for key, value in options.items() if key != "min_patches"}
    row, column = np.indices(grid.z.shape)
    with spatialq.connect() as con:
        x, y = grid.x0 + grid.dx * column.ravel(), grid.y0 + grid.dy * row.ravel()
        cells = {"x": x, "y": y, "z": grid.z.ravel()}  # noqa: F841 (DuckDB finds it by its name)
        con.execute("CREATE TABLE shuffled AS FROM cells ORDER BY hash(x * 7 + y)")
        found = con.sql(f"FROM pops_patches(shuffled, {sql_of(options)})").fetchall()
    expected = {row[:-1]: row[-1] for row in rows(grid, options)}
    # SQL: example_id, method, scale, px, py, feature, value
    assert sorted(row[:-1] for row in found) == sorted(expected)
    for *key, value in found:
        truth = float(expected[tuple(key)])
        if isnan(truth):
            assert value is None, key
        else:
            assert value == pytest.approx(truth, rel=1e-9, abs=1e-10), key
