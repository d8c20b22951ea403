"""Named grids and options for `pops_features`; used on every device."""

import numpy as np

from spatialq.data.grid import Grid

ALL = ("pca", "stat", "pca_ternary", "stat_centred")
SMALL = {"scales": (5.0, 6.0, 8.0), "example_scale": 17.0, "methods": ALL}
"""As 300, 400, 500 of 2000 m on cells of 60 m, in halves."""


def rng(seed=1):
    return np.random.default_rng(seed)


def terrain(rows, columns, seed=1):
    """Hills of 50 m and noise of one, in the middle of which is 0."""
    y, x = np.mgrid[:rows, :columns]
    hills = np.sin(x / 9 + 1) * np.cos(y / 7) + 0.3 * np.sin((x + 2 * y) / 4)
    return 50 * hills + rng(seed).normal(size=(rows, columns))


def plane(rows, columns, a=0.25, b=-0.5, c=3.0):
    """A tilted plane, exact in single precision."""
    y, x = np.mgrid[:rows, :columns]
    return a * x + b * y + c


def single(z):
    return np.ascontiguousarray(z, np.float32)


def holed(z, share, seed=2):
    """The grid without a share of its cells, at random."""
    return np.where(rng(seed).random(z.shape) < share, np.nan, z)


def valid_of(n, of=(5, 4)):
    """A patch of 20 cells, of which n have a value."""
    z = terrain(*of)
    z.flat[rng(n).permutation(z.size)[n:]] = np.nan
    return z


def thresholds():
    """Patches of 20 cells side by side, of which 0, 1, ... 20 have a value."""
    return np.hstack([valid_of(n) for n in range(21)])


def one_hole(z, rows, columns):
    z = z.copy()
    z[rows, columns] = np.nan
    return z


def flats(rows, columns):
    """Heights of 4000 m that are one step of single precision apart, or the same."""
    low = np.float32(4000)
    steps = rng(3).integers(0, 2, (rows, columns))
    steps[:, : columns // 3] = 0
    return np.where(steps == 1, np.nextafter(low, np.float32(np.inf)), low)


def extremes(rows, columns):
    """Heights of all magnitudes of either sign: patches of large, of tiny, and of both."""
    magnitudes = 10.0 ** rng(4).uniform(-30, 30, (rows, columns))
    signs = rng(5).choice([-1.0, 1.0], (rows, columns))
    z = magnitudes * signs
    z[:10] = 1e30 * rng(6).normal(size=(10, columns))
    z[-10:] = 1e-30 * rng(7).normal(size=(10, columns))
    return z


def spiked(z, height):
    """The grid with one height that is far from all others."""
    z = z.copy()
    z[20, 21] = height
    return z


ROWS, COLUMNS = 23, 38  # of examples of 17 cells: one up, two across, and leftovers
TERRAIN = terrain(ROWS, COLUMNS)
DEFAULT = {"scales": (300.0, 400.0, 500.0), "example_scale": 2000.0, "methods": ALL}

LARGE = SMALL | {"scales": (20.0, 37.0, 60.0), "example_scale": 60.0}

CASES = {
    "random": (Grid(single(rng().random((ROWS, COLUMNS)))), SMALL),
    "random, float64": (Grid(rng().random((ROWS, COLUMNS))), SMALL),
    "random, of both signs": (Grid(single(rng().normal(size=(ROWS, COLUMNS)))), SMALL),
    "terrain": (Grid(single(TERRAIN)), SMALL),
    "terrain, other quantiles": (Grid(single(TERRAIN)), SMALL | {"quantiles": "linear"}),
    "terrain, each method alone": (Grid(single(TERRAIN)), SMALL | {"methods": ("stat_centred",)}),
    "terrain, methods the other way round": (Grid(single(TERRAIN)), SMALL | {"methods": ALL[::-1]}),
    "terrain, pca alone": (Grid(single(TERRAIN)), SMALL | {"methods": ("pca",)}),
    "terrain, ternary alone": (Grid(single(TERRAIN)), SMALL | {"methods": ("pca_ternary",)}),
    "the paper's small scales": (Grid(single(terrain(35, 34)), dx=60.0, dy=60.0), DEFAULT),
    "the paper's medium scales": (
        Grid(single(terrain(33, 66)), dx=60.0, dy=60.0),
        DEFAULT | {"scales": (700.0, 800.0, 900.0)},
    ),
    "the paper's large scales": (
        Grid(single(terrain(66, 33)), dx=60.0, dy=60.0),
        DEFAULT | {"scales": (1100.0, 1200.0, 1300.0)},
    ),
    "the paper's scales, with holes": (
        Grid(single(holed(terrain(33, 33), 0.1)), dx=60.0, dy=60.0),
        DEFAULT | {"scales": (300.0, 800.0, 1300.0), "steps": (150.0, 400.0, 650.0)},
    ),
    "steps of half a cell more, to even": (
        Grid(single(terrain(33, 33)), dx=60.0, dy=60.0),
        DEFAULT | {"scales": (420.0, 430.0, 440.0), "steps": (150.0, 210.0, 450.0)},
    ),
    "steps of less than a cell": (Grid(single(terrain(9, 8))), SMALL | {
        "scales": (2.0, 3.5), "steps": (0.5, 0.1), "example_scale": 8.0,
    }),
    "constant": (Grid(np.full((20, 20), 7.25, np.float32)), SMALL),
    "constant, not exact": (Grid(np.full((20, 20), 0.1)), SMALL),
    "zero": (Grid(np.zeros((17, 17), np.float32)), SMALL),
    "constant, with holes": (Grid(single(holed(np.full((17, 34), -8.1), 0.3))), SMALL),
    "a tilted plane": (Grid(single(plane(17, 34)), dx=2.0, dy=0.5), SMALL | {
        "scales": (4.0, 8.0), "example_scale": 8.5,
    }),
    "a tilted plane, with holes": (Grid(single(holed(plane(17, 34), 0.2))), SMALL),
    "a steep plane": (Grid(single(plane(17, 34, 100.0, 3.0))), SMALL),
    "a plane along x": (Grid(single(plane(17, 34, 0.0, 1.0))), SMALL),
    "a plane of the slope of its cells": (Grid(single(plane(17, 17, 1.0, 0.0))), SMALL),
    "a plane and noise": (
        Grid(single(plane(17, 34) + 0.01 * rng(8).normal(size=(17, 34)))), SMALL,
    ),
    "an isotropic patch": (
        Grid(single(np.sqrt(2 / 3) * rng(9).choice([-1, 1], (16, 16)))),
        SMALL | {"scales": (2.0, 3.0), "example_scale": 16.0},
    ),
    "terraces": (Grid(single(np.floor(TERRAIN / 20) * 20)), SMALL),
    "a step": (Grid(single(TERRAIN > 0)), SMALL),
    "a step, float64": (Grid((TERRAIN > 0) * 0.1 + 0.2), SMALL),
    "one spike": (Grid(single(np.arange(17 * 17).reshape(17, 17) == 150)), SMALL),
    "holes": (Grid(single(holed(TERRAIN, 0.15))), SMALL),
    "many holes": (Grid(single(holed(TERRAIN, 0.6))), SMALL),
    "holes, float64": (Grid(holed(TERRAIN + 0.1, 0.15)), SMALL),
    "almost nothing but holes": (Grid(single(holed(TERRAIN, 0.95))), SMALL | {
        "min_valid": 0.0, "min_points": 2,
    }),
    "one hole": (Grid(single(one_hole(TERRAIN, 8, 8))), SMALL),
    "no value in an example": (Grid(single(one_hole(TERRAIN, slice(None), slice(0, 17)))), SMALL),
    "no value in some patches": (
        Grid(single(one_hole(TERRAIN, slice(2, 12), slice(12, 30)))), SMALL,
    ),
    "rows without a value": (Grid(single(one_hole(TERRAIN, slice(5, 9), slice(None)))), SMALL),
    "nine and ten points": (Grid(single(thresholds())), {
        "scales": (4.0,), "steps": (4.0,), "example_scale": 4.0,
        "methods": ALL, "min_valid": 0.0, "min_points": 10,
    }),
    "any share of points": (Grid(single(thresholds())), {
        "scales": (4.0,), "steps": (4.0,), "example_scale": 4.0,
        "methods": ALL, "min_valid": 0.0, "min_points": 2,
    }),
    **{
        f"a share of {share} and less": (Grid(single(thresholds()), dy=0.8), {
            "scales": (4.0,), "example_scale": 4.0,
            "methods": ALL, "min_valid": share, "min_points": 1,
        })
        for share in (0.1, 0.15, 0.35, 0.5, 0.55, 0.7, 1.0)
    },
    "patches enough, or not": (Grid(single(holed(TERRAIN, 0.45))), SMALL | {
        "min_patches": 12, "min_points": 10,
    }),
    "an example without all its patches": (Grid(single(TERRAIN)), SMALL | {"min_patches": 26}),
    "overlapping examples": (Grid(single(terrain(21, 25))), SMALL | {"example_step": 4.0}),
    "overlapping examples, with holes": (
        Grid(single(holed(terrain(21, 25), 0.2))), SMALL | {"example_step": 3.0},
    ),
    "gaps between examples": (Grid(single(terrain(20, 43))), SMALL | {
        "example_scale": 8.0, "example_step": 11.0,
    }),
    "gaps between patches": (Grid(single(TERRAIN)), SMALL | {
        "scales": (3.0, 5.0), "steps": (7.0, 6.0),
    }),
    "steps beyond the example": (Grid(single(TERRAIN)), SMALL | {
        "scales": (3.0, 5.0), "steps": (100.0, 1e6),
    }),
    "steps without end": (Grid(single(TERRAIN), dx=0.9), SMALL | {
        "scales": (3.0, 5.0), "steps": (1e30, 1e308), "example_scale": 11.0,
        "example_step": 1e300,
    }),
    "an example that is the grid": (Grid(single(terrain(17, 17))), SMALL),
    "a patch that is the example": (Grid(single(TERRAIN)), SMALL | {"scales": (17.0,)}),
    "one point": (Grid(single(holed(terrain(9, 12), 0.8))), SMALL | {
        "scales": (2.0,), "example_scale": 9.0, "min_valid": 0.0, "min_points": 1,
    }),
    "patches of 2 x 2": (Grid(single(terrain(9, 12))), SMALL | {
        "scales": (2.0,), "example_scale": 9.0, "min_points": 2,
    }),
    "patches of 2 x 2, with holes": (Grid(single(holed(terrain(9, 12), 0.3))), SMALL | {
        "scales": (2.0, 3.0), "example_scale": 6.0, "min_points": 2,
    }),
    "patches of 2 x 3": (Grid(single(terrain(12, 12)), dx=1.5), SMALL | {
        "scales": (3.0,), "example_scale": 9.0,
    }),
    "every patch": (Grid(single(terrain(12, 13))), SMALL | {
        "scales": (2.0, 7.0), "steps": (1.0, 1.0), "example_scale": 12.0,
    }),
    "more than 512 patches": (Grid(single(terrain(27, 27))), SMALL | {
        "scales": (3.0, 9.0), "steps": (1.0, 4.0), "example_scale": 27.0,
    }),
    "scales in no order": (Grid(single(TERRAIN)), SMALL | {
        "scales": (8.0, 5.0, 6.0), "steps": (2.0, 5.0, 3.0),
    }),
    "scales of the same cells": (Grid(single(TERRAIN)), SMALL | {
        "scales": (5.0, 5.25, 5.5), "steps": (3.0, 3.0, 4.0),
    }),
    "seventeen scales": (Grid(single(terrain(20, 20))), SMALL | {
        "scales": tuple(float(n) for n in range(2, 19)), "example_scale": 20.0,
        "steps": tuple(4.0 + n for n in range(17)),
    }),
    "cells that are no squares": (
        Grid(single(terrain(26, 40)), dx=2.5, dy=4.0),
        SMALL | {"scales": (10.0, 16.0, 25.0), "example_scale": 45.0},
    ),
    "cells of a tenth": (Grid(single(terrain(12, 11)), x0=0.05, y0=0.05, dx=0.1, dy=0.1), SMALL | {
        "scales": (0.3, 0.6, 0.7), "example_scale": 1.1, "steps": (0.15, 0.25, 0.35),
    }),
    "cells of a degree's parts": (
        Grid(single(200 * terrain(20, 20)), x0=-112.5, y0=36.1, dx=1 / 3600, dy=1 / 3600),
        SMALL | {"scales": (0.0015, 0.0025), "example_scale": 0.005},
    ),
    "UTM": (
        Grid(single(TERRAIN + 8000), x0=500_000.0, y0=5_000_000.0, dx=30.0, dy=30.0),
        SMALL | {"scales": (150.0, 240.0), "example_scale": 510.0},
    ),
    "8000 m": (Grid(single(TERRAIN + 8000)), SMALL),
    "8000 m, float64": (Grid(TERRAIN + 8000), SMALL),
    "8000 m and as good as flat, float64": (Grid(1e-6 * TERRAIN + 8000), SMALL),
    "as good as flat": (Grid(flats(17, 51)), SMALL),
    "as good as flat, with holes": (Grid(single(holed(flats(17, 34), 0.2))), SMALL),
    "all magnitudes": (Grid(single(extremes(34, 34))), SMALL),
    "all magnitudes, float64": (Grid(extremes(34, 34)), SMALL),
    "differences below single precision": (Grid(1 + 1e-12 * TERRAIN), SMALL),
    "whole numbers": (Grid(single(rng(10).integers(-5, 6, (ROWS, COLUMNS)))), SMALL),
    "minus zero": (Grid(single(np.where(TERRAIN > 20, 0.0, -0.0))), SMALL),
    "patches of 512 cells": (Grid(single(holed(terrain(40, 20), 0.01)), dx=2.0), SMALL | {
        "scales": (32.0,), "example_scale": 40.0,
    }),
    "patches of 513 cells": (Grid(single(terrain(40, 28)), dx=27 / 19), SMALL | {
        "scales": (27.0,), "example_scale": 39.0,
    }),
    "large patches": (Grid(single(terrain(61, 64))), SMALL | {
        "scales": (31.0, 32.0, 33.0, 45.0, 60.0), "example_scale": 61.0,
    }),
    "large patches, with holes": (Grid(single(holed(terrain(61, 64), 0.1))), LARGE),
    "large patches of few heights": (
        Grid(single(np.floor(terrain(61, 64) / 20) * 20)), LARGE,
    ),
    "large patches of one height": (Grid(np.full((60, 61), 0.1)), LARGE),
    "large patches with a spike": (Grid(single(spiked(terrain(61, 64), 1e30))), LARGE),
    "large patches with a pit, float64": (Grid(spiked(terrain(61, 64), -1e30)), LARGE),
    "large patches of all magnitudes": (Grid(single(extremes(61, 64))), LARGE),
    "large patches as good as flat": (Grid(flats(61, 64)), LARGE),
    "large patches as good as flat, float64": (Grid(1 + 1e-15 * terrain(61, 64)), LARGE),
    "large patches with steep flanks": (Grid(single(np.exp(terrain(61, 64) / 5))), LARGE),
    "large patches with holes of either kind of quartiles": (
        Grid(single(holed(terrain(61, 64), 0.3))), LARGE | {"quantiles": "linear"},
    ),
    "a large example of small patches": (Grid(single(terrain(70, 71))), SMALL | {
        "scales": (5.0, 12.0), "steps": (6.0, 9.0), "example_scale": 70.0,
    }),
    "a narrow grid": (Grid(single(terrain(2, 60))), SMALL | {
        "scales": (2.0,), "example_scale": 2.0,
    }),
}  # fmt: skip


def arguments(case):
    """What the kernel takes of a case."""
    grid, options = CASES[case]
    return {"grid": grid}, options
