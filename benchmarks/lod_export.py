"""COPC and Potree of a cloud: speed beside that of decoding LAZ, bytes per point, memory.

``python benchmarks/lod_export.py CLOUD.laz [COPIES]``: the cloud beside itself so many times.
"""

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import laspy
import numpy as np
from spatialq.udfs.build_lod import Options, additive, cpu

from spatialq.data.octree import Octree
from spatialq.export.additive_points import gather
from spatialq.export.copc import write_copc
from spatialq.export.las_join import join
from spatialq.export.potree import write_potree
from spatialq.io.las.source import LasSource


@dataclass
class Spent:
    """What work took."""

    seconds: float
    """On the clock."""
    cores: float
    """Seconds of all cores, which do not depend on what else the machine does."""


def timed(work: Callable[[], Any]) -> tuple[Spent, Any]:
    """Do work; give what it took, and what it gives."""
    began, cores = time.perf_counter(), time.process_time()
    found = work()
    return Spent(time.perf_counter() - began, time.process_time() - cores), found


def copies(source: Path, folder: Path, n: int) -> list[Path]:
    """Write the cloud n times, side by side."""
    found = []
    for k in range(n):
        cloud = laspy.read(source)
        width = int(cloud.X.max()) - int(cloud.X.min()) + 1
        cloud.X[:] += k * width
        found.append(folder / f"{k}.laz")
        cloud.write(found[-1])
    return found


def octree_of(clouds: Sequence[LasSource], points: int) -> tuple[Octree, Spent, Spent]:
    """Build the octree of clouds; give what the tree took, and what the additive one took."""
    xyz = [np.empty(points) for _ in range(3)]
    first = 0
    for cloud in clouds:
        part = slice(first, first + cloud.rows)
        cloud.read_into({axis: values[part] for axis, values in zip("xyz", xyz, strict=True)})
        first += cloud.rows
    options = Options(strategy="first")
    building, table = timed(lambda: cpu.run(*xyz, *[None] * 6, options=options))
    collected = additive.Additive(points)
    placing, _ = timed(lambda: collected.add(table))
    return collected.octree(options.grid_size, points), building, placing


def main(source: Path, n: int) -> None:
    """Measure, and print JSON."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = copies(source, folder, n)
        copc, potree = folder / "a.copc.laz", folder / "metadata.json"
        clouds = [LasSource(path) for path in paths]
        joined = join(clouds, copc)
        points = joined.rows
        decoding, _ = timed(lambda: sum(part.size for part in joined.records()))
        octree, building, placing = octree_of(clouds, points)
        gathering, found = timed(lambda: gather(copc, joined, octree))
        as_copc, _ = timed(lambda: write_copc(copc, found))
        as_potree, _ = timed(lambda: write_potree(potree, found))
        steps = {
            "decoding LAZ": decoding,
            "tree": building,
            "additive octree": placing,
            "reading into its order": gathering,
            "writing COPC": as_copc,
            "writing Potree": as_potree,
        }
        measures: dict[str, Any] = {"points": points, "nodes": len(octree.names)}
        for step, spent in steps.items():
            measures[step] = {
                "M points/s": points / spent.seconds / 1e6,
                "M points/s a core": points / spent.cores / 1e6,
                "of decoding, a core": decoding.cores / spent.cores,
            }
        measures["bytes a point"] = {
            "LAZ": sum(path.stat().st_size for path in paths) / points,
            "COPC": copc.stat().st_size / points,
            "Potree": (folder / "octree.bin").stat().st_size / points,
        }
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        measures["peak memory, MB"] = peak
    print(json.dumps(measures, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
