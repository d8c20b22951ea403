"""`terrain_derivatives` against whole arrays in NumPy, and SQL on a GeoTIFF against the kernel.

python benchmarks/terrain_derivatives.py [--side CELLS] [--repeat N]

`NumPy` computes the same eight derivatives by slices of the array, as published scripts do, on one
thread. `SQL` reads a GeoTIFF in bands and fetches all rows as Arrow.
"""

import argparse
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from measure import in_turns, kernel, options_of
from pops_end_to_end import CELL, write_terrain

import spatialq
from spatialq.data.grid import Grid
from spatialq.io.grid.source import GridSource
from spatialq.runtime.threads import n_threads

NAME = "terrain_derivatives"


def by_numpy(grid):
    """The derivatives of the inner cells."""
    z = grid.z.astype(np.float64)
    (g, h, i), (d, e, f), (a, b, c) = (
        [z[r : r + z.shape[0] - 2, k : k + z.shape[1] - 2] for k in range(3)] for r in range(3)
    )
    p = ((c + 2 * f + i) - (a + 2 * d + g)) / (8 * grid.dx)
    q = ((a + 2 * b + c) - (g + 2 * h + i)) / (8 * grid.dy)
    steep = p * p + q * q
    found = {"slope": np.degrees(np.arctan(np.sqrt(steep)))}
    with np.errstate(invalid="ignore"):
        aspect = np.degrees(np.arctan2(-p, -q)) % 360
        found["aspect"] = np.where(steep > 0, aspect, np.nan)
        lit = ((p - q) / 2 + np.sqrt(0.5)) / np.sqrt(1 + steep)
        found["hillshade"] = np.floor(1.5 + 254 * np.maximum(lit, 0))
        xx, yy = (d - 2 * e + f) / grid.dx**2, (b - 2 * e + h) / grid.dy**2
        xy = (c - a + g - i) / (4 * grid.dx * grid.dy)
        p, q = (f - d) / (2 * grid.dx), (b - h) / (2 * grid.dy)
        steep = p * p + q * q
        found["profile_curvature"] = (xx * p * p + 2 * xy * p * q + yy * q * q) / steep
        found["plan_curvature"] = -(xx * q * q - 2 * xy * p * q + yy * p * p) / steep
    others = [a, b, c, d, f, g, h, i]
    found["tpi"] = e - sum(others) / 8
    found["tri"] = np.sqrt(sum((each - e) ** 2 for each in others))
    found["roughness"] = np.maximum.reduce([e, *others]) - np.minimum.reduce([e, *others])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=4000, help="of the grid, in cells")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    ours, options, n = kernel(NAME, "cpu"), options_of(NAME), arguments.side
    with tempfile.TemporaryDirectory() as folder, spatialq.connect() as con:
        path = Path(folder) / "terrain.tif"
        write_terrain(path, n, "none")
        grid = Grid(GridSource(path).grid(0, n).z, dx=CELL, dy=CELL)
        found, expected = ours(grid, options), by_numpy(grid)
        for name, values in expected.items():
            inner = found[name].reshape(n, n)[1:-1, 1:-1]
            np.testing.assert_allclose(inner, values, rtol=1e-9, atol=1e-9, err_msg=name)
        del found, expected
        query = f"FROM {NAME}('{path}')"
        works = {
            "ours": partial(ours, grid, options),
            "NumPy": partial(by_numpy, grid),
            "SQL": lambda: con.sql(query).to_arrow_table(),
        }
        timed = in_turns(works, arguments.repeat)
    print(f"{n} x {n} cells, {n_threads()} threads")
    for name, each in timed.items():
        print(
            f"{name:6} {each.best:7.3f} s, {1e9 * each.best_processor / n**2:5.0f} processor ns a "
            f"cell, {each.best / timed['ours'].best:5.2f} times ours (processor "
            f"{each.best_processor / timed['ours'].best_processor:5.2f})"
        )


if __name__ == "__main__":
    main()
