"""`pops_features` on the GPU gives the bits of the CPU; without one its source runs on the host."""

import re

import numpy as np
import pytest
from spatialq.udfs.pops_features import gpu, layout, table

from spatialq.data.grid import Grid

from ..kernels import assert_same, run, run_both
from .cases import ALL, holed, single, terrain

SHAPES = {
    "all of an example at once": {"scales": (5.0, 21.0), "example_scale": 33.0},
    "parts of an example": {"scales": (4.0, 9.0), "steps": (3.0, 2.0), "example_scale": 50.0},
    "parts that end before the example": {
        "scales": (7.0,), "steps": (5.0,), "example_scale": 83.0,
    },
    "cells that stay in global memory": {
        "scales": (70.0, 80.0), "steps": (5.0, 2.0), "example_scale": 95.0,
    },
    "patches of thousands of cells": {"scales": (95.0,), "example_scale": 95.0},
    "columns of some scales at a time": {
        "scales": (2.5, 3.0, 4.0, 6.0), "steps": (1.0,) * 4, "example_scale": 30.0,
    },
    "narrow patches": {"scales": (2.5, 40.0), "steps": (1.0, 9.0), "example_scale": 60.0},
    "parts in which no patch of a scale starts": {
        "scales": (6.0, 10.0), "steps": (20.0, 5.0), "example_scale": 42.0,
    },
    "the paper's small scales on cells of 20 m": {
        "scales": (15.0, 20.0, 25.0), "example_scale": 100.0,
    },
}  # fmt: skip


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("share", [0.0, 0.02])
@pytest.mark.parametrize("shape", SHAPES)
def test_superpatches_are_as_on_the_cpu(shape, share, dtype):
    cells = int(SHAPES[shape]["example_scale"])
    grid = Grid(holed(terrain(cells, cells + 2), share).astype(dtype), dy=1.25)
    assert_same(*run_both("pops_features", {"grid": grid}, methods=ALL, **SHAPES[shape]))


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("seed", range(4))
def test_any_division_is_as_on_the_cpu(seed):
    """Examples of one or more superpatches, up to the border of the grid."""
    draw = np.random.default_rng(seed)
    side, dx, dy = draw.integers(34, 101), *draw.choice([0.75, 1.0, 1.5], 2)
    scales = np.unique(draw.integers(3, side // 2, 3)).astype(float)
    options = {
        "scales": tuple(scales),
        "steps": tuple(np.maximum(3.0, np.round(scales * draw.uniform(0.5, 2.5, scales.size)))),
        "example_scale": float(side),
        "example_step": float(draw.integers(30, 90)),
        "quantiles": str(draw.choice(["median_unbiased", "linear"])),
    }
    z = terrain(int(side / dy) + int(draw.integers(0, 25)), int(side / dx), seed)
    z = holed(z, draw.choice([0.0, 0.01])).astype(draw.choice([np.float32, np.float64]))
    grid = {"grid": Grid(z, dx=dx, dy=dy)}
    assert_same(*run_both("pops_features", grid, methods=ALL, **options))


@pytest.mark.usefixtures("device")
def test_patches_too_wide_to_keep_their_columns(monkeypatch, tmp_path):
    """As of more than a thousand columns, on small ones: with less room in shared memory."""
    copy = tmp_path / "pops_features/kernels.cu"
    copy.parent.mkdir()
    text, times = re.subn(r"(#define ROOM) \d+", r"\1 120", gpu.SOURCE.read_text())
    assert times == 1
    copy.write_text(text)
    grid = {"grid": Grid(single(terrain(64, 64)))}
    options = {"scales": (4.0, 60.0, 61.0), "example_scale": 62.0, "methods": ALL}
    with monkeypatch.context() as patch:
        patch.setattr(gpu, "ROOM", 120)
        patch.setattr(gpu, "SOURCE", copy)
        assert_same(*run_both("pops_features", grid, **options))


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("function", ["pops_features", "pops_patches"])
@pytest.mark.parametrize("step", [None, 3.0, 14.0])
def test_bands_are_as_all_at_once(monkeypatch, function, step):
    band = Grid(single(holed(terrain(50, 25), 0.1)), first_row=3, all_rows=60)
    grid = {"grid": band}
    options = {"scales": (3.0, 5.0), "example_scale": 9.0, "example_step": step}
    whole, expected = run_both(function, grid, **options)
    assert_same(whole, expected)
    monkeypatch.setattr(gpu, "RAW_BYTES", 60_000)
    for values in (table.FOR_THREADS, 1):
        monkeypatch.setattr(table, "FOR_THREADS", values)
        assert_same(run(function, "gpu", grid, **options), expected)
        assert_same(run(function, "cpu", grid, **options), expected)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("function", ["pops_features", "pops_patches"])
@pytest.mark.parametrize("step", [None, 3.0, 14.0])
def test_windows_are_as_on_the_cpu(function, step):
    window = Grid(
        single(holed(terrain(30, 25), 0.1)), first_row=3, all_rows=60, first_column=5,
        all_columns=70,
    )  # fmt: skip
    options = {"scales": (3.0, 5.0), "example_scale": 9.0, "example_step": step}
    found, expected = run_both(function, {"grid": window}, **options)
    assert len(expected["example_id"])
    assert_same(found, expected)


def test_numbers_of_the_source():
    found = re.findall(r"^#define ([A-Z]\w+) (\d+)(?![\dx.])", gpu.SOURCE.read_text(), re.MULTILINE)
    kinds = {f"SORTED_{kind.upper()}": most for kind, most in gpu.SORTED.items()}
    ours = {name: getattr(layout, name) for name in ("SIDE", "SCALES", "ROOM")}
    ours["SORTER_BYTES"] = gpu.SORTER_BYTES
    assert {name: int(value) for name, value in found} == {**ours, **kinds, "FIVE": 5}
