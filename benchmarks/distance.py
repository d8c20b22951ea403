"""`distance` against IfcOpenShell's clearance of the same meshes; ratios in one run.

    python benchmarks/distance.py [MODEL.ifc ...] [--copies 1 10] [--limit 0.05]

All pairs of elements within the limit, on models and on copies of them on a grid. Reading and
tessellation are not counted, building the tree and everything else is. Without a model, the
demo's house is taken.
"""

import argparse
from pathlib import Path

from buildings import copies, of_models
from intersects_with import Rival
from measure import in_turns
from spatialq.udfs.distance import Options, cpu

from spatialq.runtime.threads import n_threads


def compare(name, meshes, limit, repeat):
    rival = Rival(meshes)

    def clearance():
        tree = rival.tree()
        return tree.clash_clearance_many(rival.products, rival.products, limit, check_all=True)

    def near():
        return cpu.run(meshes, options=Options(max_distance=limit))

    def nearest():
        return cpu.run(meshes, options=Options(k=1))

    near()
    nearest()
    tasks = {"clearance": clearance, "near": near, "nearest": nearest}
    timed = in_turns(tasks, repeat, warm_up=False, keep=True)
    theirs, ours, first = (each.best for each in timed.values())
    clashes, pairs = (timed[name].results[-1] for name in ("clearance", "near"))
    found = {frozenset((clash.a.id(), clash.b.id())) for clash in clashes}
    print(
        f"{name:24} {len(meshes):7} {len(meshes.faces):9} {theirs:11.3f} {len(found):7} "
        f"{ours:9.4f} {len(pairs['a']):7} {theirs / ours:7.1f} {first:11.4f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--copies", nargs="+", type=int, default=[1, 10])
    parser.add_argument("--limit", type=float, default=0.05)
    parser.add_argument("--repeat", type=int, default=3)
    chosen = parser.parse_args()
    print(f"{n_threads()} threads, within {chosen.limit} m")
    print(
        f"{'':24} {'elem.':>7} {'triangles':>9} {'clearance s':>11} {'pairs':>7} {'ours s':>9} "
        f"{'pairs':>7} {'ratio':>7} {'nearest s':>11}"
    )
    for name, meshes in of_models(chosen.models):
        for n in chosen.copies:
            compare(f"{name} x {n}", copies(meshes, n), chosen.limit, chosen.repeat)


if __name__ == "__main__":
    main()
