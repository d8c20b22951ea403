"""Named grids and options for `contours`."""

import numpy as np

from spatialq.data.grid import Grid

RNG = np.random.default_rng(5)


def hills(rows, columns):
    y, x = np.mgrid[:rows, :columns]
    return 20 * np.sin(x / 5) * np.cos(y / 7) + RNG.normal(size=(rows, columns))


CASES = {
    "hills": (Grid(hills(40, 50), 1000.5, 2000.5, 1.0, 1.0), {"interval": 5.0}),
    "whole heights, of which many are on a contour": (
        Grid(np.rint(hills(40, 50)), 4.5e5, 5.6e6, 0.5, 2.0), {"interval": 2.0},
    ),
    "saddles": (Grid(RNG.integers(0, 3, (30, 30)).astype(np.float32)), {"interval": 0.5}),
    "another base": (Grid(hills(20, 20)), {"interval": 7.0, "base": 2.5}),
    "level": (Grid(np.full((4, 5), 1.0)), {"interval": 1.0}),
    "no contour": (Grid(np.full((4, 5), 1.5)), {"interval": 1.0}),
}  # fmt: skip


def arguments(name):
    """What the kernel takes of a case."""
    grid, options = CASES[name]
    return {"grid": grid}, options
