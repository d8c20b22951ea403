"""How many changes of a model `coverage` finds, by the truth of simulated scans; and its speed.

    python benchmarks/coverage.py [MODEL.ifc ...] [--rooms N] [--seeds N ...] [--changes N]
        [--out results]

Of each model, or of N generated buildings, and each seed: some of the elements that can be seen are
moved by 10 to 300 mm along their main normal or missing; boxes of clutter stand on the floors; the
scan has 3 mm of noise. "moved" and "missing" are the shares with the right status, a movement
within 3 mm and 5 %; "others" the share of unchanged elements that are installed, of those with 400
points; "false" that of those called displaced or not found; "hidden" how many of those without a
ray are called not found. What is not right is printed with its movement; each seed is a case of the
results.
"""

import argparse
import time
from collections import Counter
from pathlib import Path

from buildings import elements
from measure import add_arguments, add_cases
from scan_changes import case, judge
from spatialq.udfs.coverage import STATUSES, Options
from spatialq.udfs.coverage.cpu import run

from spatialq.demo import scanner

MOVEMENT = ("dx", "dy", "dz")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--rooms", type=int, default=1)
    parser.add_argument("--seeds", type=int, nargs="+", default=[11])
    parser.add_argument("--changes", type=int, default=20)
    parser.add_argument("--stations", type=int, default=12)
    parser.add_argument("--beams", type=int, default=200_000)
    parser.add_argument("--tolerance", type=float, default=0.005)
    add_arguments(parser)
    options = parser.parse_args()
    worlds = {path.stem: elements(path) for path in options.models}
    if not worlds:
        worlds = {f"rooms {k + 3} x 3": scanner.rooms(k + 3, 3)[0] for k in range(options.rooms)}
    print(
        f"{'model':32} {'elements':>8} {'points':>9} {'moved':>9} {'missing':>9} {'others':>11} "
        f"{'false':>7} {'hidden':>7} {'CPU s':>6}"
    )
    for name, meshes in worlds.items():
        total, n, seconds = Counter(), 0, 0.0
        for seed in options.seeds:
            changed = case(
                meshes, seed, changes=options.changes, stations=options.stations,
                beams=options.beams,
            )  # fmt: skip
            scan = changed.scan
            chosen = Options(scanner=tuple(scan.stations.ravel()), tolerance=options.tolerance)
            begin = time.process_time()
            found = run(scan.x, scan.y, scan.z, None, meshes, chosen)
            spent, of_seed = time.process_time() - begin, Counter()
            seconds += spent
            n += len(scan.x)
            for row, kind, is_right, status in judge(found, changed, STATUSES):
                of_seed[kind] += 1
                of_seed[kind, "right"] += bool(is_right)
                of_seed[kind, status] += 1
                if not is_right:
                    moved = [round(1000 * float(found[each][row]), 1) for each in MOVEMENT]
                    print(f"  seed {seed}, element {row}, {kind}: {status}, moved by {moved} mm")
            total += of_seed
            figures = {
                "model": name, "seed": seed, "points": len(scan.x),
                "processor_seconds": round(spent, 1),
                **{k if isinstance(k, str) else ": ".join(k): v for k, v in of_seed.items() if v},
            }  # fmt: skip
            add_cases(options.out, "coverage", options.commit, [figures])
        wrong = total["installed", "displaced"] + total["installed", "not found"]
        shares = [f"{total[k, 'right']}/{total[k]}" for k in ("moved", "missing", "installed")]
        print(
            f"{name:32} {len(meshes):8} {n:9} {shares[0]:>9} {shares[1]:>9} {shares[2]:>11} "
            f"{wrong:7} {total['hidden', 'not found']:7} {seconds:6.1f}"
        )


if __name__ == "__main__":
    main()
