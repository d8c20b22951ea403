"""How fast `pops_patches` is: against a plain loop over the patches, and how much its rows cost.

python benchmarks/pops_patches.py [--side CELLS] [--repeat N]

Grids and scales are those of benchmarks/pops_features.py; a row is a feature of a patch.
"""

import argparse
from functools import partial

import naive_pops
import numpy as np
from measure import in_turns, kernel
from pops_features import SCALES, raw_only, terrain
from spatialq.udfs.pops_features import Options

from spatialq.runtime.threads import n_threads

OURS = kernel("pops_patches", "cpu")


def assert_same(grid, options):
    """Check that the loop gives the same values."""
    found = OURS(grid, options)
    names = found["feature"].names
    for scale, raw in zip(options.scales, naive_pops.run(grid, options, keep=True), strict=True):
        for k, _ in enumerate(names):
            rows = (found["scale"] == scale) & (found["feature"].codes == k)
            order = np.lexsort([found[name][rows] for name in ("py", "px", "example_id")])
            ours = found["value"][rows][order]
            np.testing.assert_allclose(ours, raw[:, :, k].ravel(), rtol=1e-9, atol=1e-9)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=1200, help="of the grid, in cells")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    assert_same(terrain(233, 200), Options(scales=SCALES["all nine"]))
    grid = terrain(arguments.side, arguments.side)
    print(f"{grid.rows} x {grid.columns} cells, {n_threads()} threads")
    for name, scales in SCALES.items():
        options = Options(scales=scales)
        rows = OURS(grid, options)["value"].size
        works = {
            "ours": partial(OURS, grid, options),
            "features": partial(raw_only, grid, options),
            "loop": partial(naive_pops.run, grid, options, keep=True),
        }
        timed = in_turns(works, arguments.repeat)
        wall, processor = timed["ours"].best, timed["ours"].best_processor
        share = 1 - timed["features"].best_processor / processor
        loop = timed["loop"]
        print(
            f"{name:9} {rows / 1e6:5.1f} M rows  ours {wall:6.3f} s, {1e9 * processor / rows:4.0f} "
            f"processor ns a row, {100 * share:2.0f} % of them to write the columns  "
            f"loop {loop.best:6.3f} s, {loop.best / wall:4.1f} times ours "
            f"(processor {loop.best_processor / processor:4.1f})"
        )


if __name__ == "__main__":
    main()
