"""Named grids and options for `terrain_derivatives`."""

import numpy as np

from spatialq.data.grid import Grid

RNG = np.random.default_rng(11)


def hills(rows, columns):
    y, x = np.mgrid[:rows, :columns]
    return 20 * np.sin(x / 5) * np.cos(y / 7) + RNG.normal(size=(rows, columns))


def holed(z, share=0.05):
    return np.where(RNG.random(z.shape) < share, np.nan, z)


CASES = {
    "hills": (Grid(hills(30, 40), 1000.5, 2000.5, 1.0, 1.0), {}),
    "holes": (Grid(holed(hills(30, 40)), dx=2.0, dy=2.0), {}),
    "holes, edges": (Grid(holed(hills(25, 30), 0.3), dx=2.0, dy=2.0), {"edges": True}),
    "cells that are no squares": (Grid(hills(20, 21), dx=1.5, dy=4.0), {}),
    "single precision": (Grid(hills(20, 21).astype(np.float32), dx=10.0, dy=10.0), {}),
    "four neighbours": (Grid(hills(20, 21)), {"gradient": "zevenbergen_thorne"}),
    "percent, heights three times": (
        Grid(hills(20, 21)), {"slope_unit": "percent", "z_factor": 3.0},
    ),
    "light from the east": (Grid(hills(20, 21)), {"azimuth": 90.0, "altitude": 20.0}),
    "Wilson": (Grid(hills(20, 21)), {"ruggedness": "wilson"}),
    "level": (Grid(np.full((5, 6), 7.0)), {}),
    "level, edges": (Grid(np.full((5, 6), 7.0)), {"edges": True}),
    "two rows": (Grid(hills(2, 9)), {"edges": True}),
    "two rows without values": (Grid(hills(2, 9)), {}),
}  # fmt: skip


def arguments(name):
    """What the kernel takes of a case."""
    grid, options = CASES[name]
    return {"grid": grid}, options
