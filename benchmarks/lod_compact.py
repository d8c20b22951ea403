"""Levels of detail with packed samples: bytes a sample before and after zstd, and time.

    python benchmarks/lod_compact.py CLOUD ...

For each cloud: bytes of a voxel and of a point of a leaf in `packed`, and after zstd (level 1, of
each node by itself); the size of the Parquet file beside that with `samples`; and processor seconds
of both, of the same process, after a run that is not counted.
"""

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import spatialq


def main() -> None:
    """Print one line for each cloud."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clouds", nargs="+", type=Path)
    warnings.simplefilter("ignore")
    print("| cloud | LAZ | samples | packed | voxel, zstd | point, zstd | seconds | packed |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for cloud in parser.parse_args().clouds:
        with tempfile.TemporaryDirectory() as folder:
            print(row(cloud, Path(folder)))


def row(cloud: Path, folder: Path) -> str:
    """Measure one cloud."""
    targets = {False: folder / "samples.parquet", True: folder / "packed.parquet"}
    spatialq.write_lod(cloud, targets[True], compact=True)
    seconds = {}
    for compact, target in targets.items():
        began = time.process_time()
        spatialq.write_lod(cloud, target, compact=compact)
        seconds[compact] = time.process_time() - began
    sizes = [path.stat().st_size / 1e6 for path in (cloud, *targets.values())]
    table = pq.read_table(targets[True], columns=["is_leaf", "count", "packed"]).to_pylist()
    parts = [of_samples([each for each in table if each["is_leaf"] == leaf]) for leaf in (0, 1)]
    cells = [cloud.name, *(f"{size:.1f} MB" for size in sizes), *parts]
    cells += [f"{seconds[compact]:.2f}" for compact in (False, True)]
    return f"| {' | '.join(cells)} |"


def of_samples(nodes: list[dict]) -> str:
    """Give bytes of a sample, before and after zstd."""
    count = sum(node["count"] for node in nodes) or 1
    plain = sum(len(node["packed"]) for node in nodes)
    small = sum(len(pa.compress(node["packed"], codec="zstd", asbytes=True)) for node in nodes)
    return f"{plain / count:.2f}, {small / count:.2f}"


if __name__ == "__main__":
    main()
