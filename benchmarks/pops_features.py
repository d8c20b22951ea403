"""How fast `pops_features` is: against a plain loop over the patches, and from scale to scale.

python benchmarks/pops_features.py [--side CELLS] [--repeat N] [--json FILE]

A generated terrain of square cells of 60 m, in examples of 2000 m. Ours and the loop take turns;
ratios are of wall times, and of the processor times of all threads, which say less about what
else the machine does.
"""

import argparse
import json
from functools import partial
from math import cos, sin
from pathlib import Path

import naive_pops
import numpy as np
from measure import in_turns, kernel
from spatialq.udfs.pops_features import STATISTICS, Options, cpu
from spatialq.udfs.pops_features.division import divide

from spatialq.data.grid import Grid
from spatialq.runtime.threads import n_threads

SPACING = 60.0
SCALES = {
    "small": (300.0, 400.0, 500.0),
    "medium": (700.0, 800.0, 900.0),
    "large": (1100.0, 1200.0, 1300.0),
}
SCALES["all nine"] = SCALES["small"] + SCALES["medium"] + SCALES["large"]
OURS = kernel("pops_features", "cpu")
METHODS = {"PCA": ("pca",), "STAT": ("stat",), "both": ("pca", "stat")}


def terrain(rows, columns, seed=1, xp=np):
    """Heights in metres: waves of all lengths, and noise of 1 m, in the memory of `xp`'s device."""
    x = xp.arange(columns, dtype=xp.float32)
    y = xp.arange(rows, dtype=xp.float32)[:, None]
    z = xp.random.default_rng(seed).standard_normal((rows, columns), dtype=xp.float32)
    turns, phases = np.random.default_rng(seed).uniform(0, 2 * np.pi, (2, 9)).tolist()
    z += 2000
    for power, turn, phase in zip(range(3, 12), turns, phases, strict=True):
        ahead = 2 * np.pi / 2**power
        across = xp.sin(ahead * cos(turn) * x + phase), xp.cos(ahead * cos(turn) * x + phase)
        up = xp.cos(ahead * sin(turn) * y), xp.sin(ahead * sin(turn) * y)
        for one, other in zip(across, up, strict=True):
            z += (0.6 * 2**power) * one * other
    return Grid(z, dx=SPACING, dy=SPACING)


def assert_same(grid, options, closed_form):
    """Check ours against the loop."""
    found = OURS(grid, options)
    expected = np.stack(naive_pops.run(grid, options, closed_form=closed_form), axis=1)
    tolerance = {"pca": 1e-6 if closed_form else 1e-12, "stat": 1e-9}
    for m, method in enumerate(options.methods):
        rows = found["method"].codes == m
        of_method = expected[:, :, naive_pops.PLACES[method]]
        for k, statistic in enumerate(STATISTICS):
            if method == "stat" or statistic not in ("variance", "skewness", "kurtosis"):
                ours = found[statistic][rows].reshape(of_method.shape[:-1])
                allowed = tolerance[method]
                np.testing.assert_allclose(ours, of_method[..., k], allowed, allowed)


def raw_only(grid, options):
    """Features of all patches, not aggregated."""
    division = divide(grid, options)

    def work(piece, k):
        cpu.raw_features(grid, division, options, piece, k)

    cpu.each_run(division, division.within(grid), work)


def against_the_loop(grid, repeat):
    rows = []
    for name, scales in SCALES.items():
        for method, methods in METHODS.items():
            options = Options(scales=scales, methods=methods)
            works = {
                "ours": partial(OURS, grid, options),
                "raw": partial(raw_only, grid, options),
                "loop": partial(naive_pops.run, grid, options),
            }
            if "pca" in methods:
                works["closed form"] = partial(naive_pops.run, grid, options, closed_form=True)
            timed = in_turns(works, repeat)
            ours, ours_processor = timed["ours"].best, timed["ours"].best_processor
            ratios = {
                rival: {
                    "wall": each.best / ours,
                    "processor": each.best_processor / ours_processor,
                }
                for rival, each in timed.items()
                if rival not in ("ours", "raw")
            }
            row = {
                "scales": name,
                "method": method,
                "seconds": {name: each.best for name, each in timed.items()},
                "ratios": ratios,
                "aggregation_share": 1 - timed["raw"].best_processor / ours_processor,
            }
            rows.append(row)
            shown = (
                f"  {rival} {timed[rival].best:6.3f} s, {each['wall']:4.1f} times ours "
                f"(processor {each['processor']:4.1f})"
                for rival, each in ratios.items()
            )
            share = round(100 * row["aggregation_share"])
            print(f"{name:9} {method:5} ours {ours:6.3f} s, {share:2} % aggregation", *shown)
    return rows


def by_number_of_scales(grid, repeat):
    rows, scales = [], SCALES["all nine"]
    cells = grid.rows * grid.columns
    for method, methods in METHODS.items():
        works = {
            n: partial(OURS, grid, Options(scales=scales[-n:], methods=methods))
            for n in (1, 3, 6, 9)
        }
        timed = in_turns(works, repeat)
        costs = {n: 1e9 * each.best_processor / cells for n, each in timed.items()}
        rows.append({"method": method, "processor_ns_per_cell": costs})
        shown = "  ".join(f"{n}: {cost:6.1f}" for n, cost in costs.items())
        print(f"processor ns a cell by number of scales, large ones first, {method:5} {shown}")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=3000, help="of the grid, in cells")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    for closed_form in (False, True):
        assert_same(terrain(233, 200), Options(scales=SCALES["all nine"]), closed_form)
    grid = terrain(arguments.side, arguments.side)
    print(f"{grid.rows} x {grid.columns} cells, {n_threads()} threads")
    report = {
        "side": arguments.side,
        "threads": n_threads(),
        "against_the_loop": against_the_loop(grid, arguments.repeat),
        "by_number_of_scales": by_number_of_scales(grid, arguments.repeat),
    }
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
