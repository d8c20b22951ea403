"""`contours` against contourpy alone, and SQL on a GeoTIFF against the kernel.

python benchmarks/contours.py [--side CELLS] [--interval HEIGHT] [--repeat N]

`contourpy` traces the same lines of the same array and keeps its arrays; ours also raises what lies
on a contour, measures the lines and writes them as WKB. `SQL` reads a GeoTIFF and fetches the rows.
"""

import argparse
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from contourpy import contour_generator
from measure import in_turns, kernel
from pops_end_to_end import CELL, write_terrain
from spatialq.udfs.contours import Options

import spatialq
from spatialq.data.grid import Grid
from spatialq.io.grid.source import GridSource
from spatialq.runtime.threads import n_threads

NAME = "contours"


def by_contourpy(grid, interval):
    """The lines, height by height."""
    z = grid.z.astype(np.float64)
    x, y = (np.arange(n) * CELL for n in z.shape[::-1])
    trace = contour_generator(x, y, z, name="serial")
    heights = np.arange(np.ceil(z.min() / interval), np.floor(z.max() / interval) + 1) * interval
    return [line for height in heights for line in trace.lines(height)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=2000, help="of the grid, in cells")
    parser.add_argument("--interval", type=float, default=50.0)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    ours, options, n = kernel(NAME, "cpu"), Options(interval=arguments.interval), arguments.side
    with tempfile.TemporaryDirectory() as folder, spatialq.connect() as con:
        path = Path(folder) / "terrain.tif"
        write_terrain(path, n, "none")
        grid = Grid(GridSource(path).grid(0, n).z, dx=CELL, dy=CELL)
        query = f"FROM {NAME}('{path}', interval := {arguments.interval})"
        works = {
            "ours": partial(ours, grid, options),
            "contourpy": partial(by_contourpy, grid, arguments.interval),
            "SQL": lambda: con.sql(query).to_arrow_table(),
        }
        lines = len(ours(grid, options)["height"])
        timed = in_turns(works, arguments.repeat)
    print(f"{n} x {n} cells, {lines} lines, {n_threads()} threads")
    for name, each in timed.items():
        print(
            f"{name:9} {each.best:7.3f} s, {1e9 * each.best_processor / n**2:5.0f} processor ns a "
            f"cell, {each.best / timed['ours'].best:5.2f} times ours (processor "
            f"{each.best_processor / timed['ours'].best_processor:5.2f})"
        )


if __name__ == "__main__":
    main()
