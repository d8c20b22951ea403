"""The penetration of pairs on the GPU against the host, in turns; where the time of a call goes.

    python benchmarks/penetration_gpu.py MESHES [MESHES ...] [--copies 1 200] [--cells 0 500 2000]

MESHES are those of models: IFC files, or what benchmarks/buildings.py wrote. Several are taken
together. `--cells` are those of a pair after which its search goes on on the host: with 0 all pairs
are searched there, the others tell where the limit should be. Each result is compared with the
CPU's, to the bit. Stages that contain others are those of `relations`.
"""

import argparse
from functools import reduce
from pathlib import Path

import cupy as cp
import measure
import numpy as np
from buildings import copies, elements
from spatialq.udfs.intersects_with import Options, cpu, depths, gpu

from spatialq.data.meshes import Meshes
from spatialq.geometry import rtree_gpu

STAGES = {
    "boxes": (rtree_gpu, "boxes"),
    "near pairs": (rtree_gpu, "pairs"),
    "solids": (gpu, "PreparedMeshes"),
    "relations": (gpu, "_relate"),
    "relations: triangles and balls": (gpu, "relate_pairs"),
    "relations: search on the GPU": (gpu, "_reaches"),
    "relations: meshes to the host": (gpu, "_on_host"),
    "relations: solids on the host": (gpu.prepared_meshes, "PreparedMeshes"),
    "relations: search on the host": (depths, "reaches"),
    "table": (gpu, "_table"),
}


def compare(name, meshes, cells, repeat):
    there = Meshes(*(cp.asarray(each) for each in meshes.arrays))
    options = Options()
    expected = cpu.run(meshes, options=options)
    print(f"{name}: {len(meshes):,} elements, {len(meshes.faces):,} triangles, "
          f"{len(expected['a']):,} pairs")  # fmt: skip

    def with_limit(limit):
        def work():
            gpu.MAX_CELLS = limit
            return gpu.run(there, options=options)

        return work

    works = {limit: with_limit(limit) for limit in cells}
    for work in works.values():
        measure.assert_same(work(), expected)
    timed = measure.in_turns(works, repeat)
    for limit, times in timed.items():
        ratio = times.median / timed[cells[0]].median
        on_host = []
        search = gpu._reaches

        def counted(*arguments, search=search, on_host=on_host):
            found = search(*arguments)
            on_host.append(int(cp.isnan(found[:, 0]).sum()))
            return found

        gpu._reaches = counted
        works[limit]()
        gpu._reaches = search
        print(f"    {limit:7,} cells {1e3 * times.median:9.2f} ms {ratio:6.3f} of the first, "
              f"{sum(on_host)} pairs on the host")  # fmt: skip
    best = min(timed, key=lambda limit: timed[limit].median)
    for limit in dict.fromkeys([cells[0], best]):
        print(f"    with {limit:,} cells, ms, each stage waited for")
        for stage, ms in measure.by_stage(STAGES, works[limit]).items():
            print(f"        {stage:34} {ms:9.2f}")
        print("      kernels")
        for kernel, ms in measure.by_kernel(works[limit]).items():
            print(f"        {kernel:34} {ms:9.2f}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("meshes", type=Path, nargs="+")
    parser.add_argument("--copies", type=int, nargs="+", default=[1, 200])
    parser.add_argument("--cells", type=int, nargs="+", default=[0, 100, 500, 2000, 10_000])
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    models = [elements(path) for path in arguments.meshes]
    whole = reduce(Meshes.followed_by, models)
    whole = Meshes(*map(np.asarray, whole.arrays))
    for n in arguments.copies:
        compare(f"{arguments.meshes[0].stem}, ... x {n}", copies(whole, n), arguments.cells,
                arguments.repeat)  # fmt: skip


if __name__ == "__main__":
    main()
