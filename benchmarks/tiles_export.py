"""What 3D Tiles of a cloud cost, against decoding it from LAZ, in one run.

python benchmarks/tiles_export.py [CLOUD] [--points N] [--memory 1GB]

CLOUD is a LAZ file; without one the cloud of lod_cloud.py is written, with classes and intensities.
Times are those of the processors, all threads together: points a second and core. 'tree' is reading
and `build_lod`, 'tiles' is writing its nodes. With --memory the whole command runs in that memory,
in a process of its own, whose peak is said.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SCRIPT = """
import json, resource, spatialq
row = spatialq.write_lod({source!r}, {target!r}, memory={memory!r}, device="cpu")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps([row["points"], row["seconds"], peak]))
"""


def write_cloud(path, n):
    import laspy
    from lod_cloud import cloud

    records = cloud(n)
    header = laspy.LasHeader(point_format=7, version="1.4")
    header.scales = [1e-3] * 3
    las = laspy.LasData(header)
    for axis, name in enumerate("xyz"):
        las[name] = records[:, axis].view(np.float32).astype(np.float64)
    colour = np.ascontiguousarray(records[:, 3]).view(np.uint8).reshape(n, 4)
    for channel, name in enumerate(("red", "green", "blue")):
        las[name] = colour[:, channel].astype(np.uint16) * 257
    las.intensity = colour.astype(np.uint16).sum(axis=1) * 40
    las.classification = np.where(colour[:, 1] > colour[:, 0], 5, 2)
    las.write(path)


def processor_seconds(work):
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def decoded(path):
    from spatialq.io.las.source import LasSource

    source = LasSource(path)
    for batch in source.batches(source.schema.names):
        del batch


def bytes_of(target):
    return sum(path.stat().st_size for path in target.parent.rglob("*") if path.is_file())


def tree_of(path, n):
    """Build the tree; also what the writer has to be told."""
    from spatialq.data.frame import Frame
    from spatialq.functions.catalogue import catalogue
    from spatialq.workflows.cloud_files import open_clouds
    from spatialq.workflows.lod_nodes import CloudStatistics
    from spatialq.workflows.lod_tree import Reading, TreeBuild
    from spatialq.workflows.outputs import Outputs

    outputs = Outputs.of("benchmark", [])
    clouds = open_clouds([path], [path], outputs, ())
    seen = CloudStatistics("benchmark", None, None)
    options = catalogue()["build_lod"].choose({})
    reading, frame = Reading(clouds, None, None), Frame(f"'{path}'")
    build = TreeBuild(reading, options, frame, "cpu", outputs, n, seen)
    with build.tables() as (tables, _):
        (tree,) = tables
    return tree, seen.cloud()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cloud", nargs="?", type=Path)
    parser.add_argument("--points", type=int, default=10_000_000)
    parser.add_argument("--memory", help="such as 1GB")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.cloud is None:
            given.cloud = folder / "cloud.laz"
            write_cloud(given.cloud, given.points)
        run(given, folder)


def run(given, folder):
    from spatialq.export.tiles.options import TileOptions
    from spatialq.export.tiles.points import write_nodes

    def tiles(tree, cloud, target, options):
        with write_nodes(target, cloud, options) as write:
            write(tree)

    if given.memory:  # first: a process inherits the peak of the one that starts it
        target = folder / "whole" / "tileset.json"
        script = SCRIPT.format(source=str(given.cloud), target=str(target), memory=given.memory)
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        _, seconds, peak = json.loads(done.stdout)
        print(f"whole command in {given.memory}: {seconds:.0f} s, peak {peak:.2f} GiB")
    decoded(given.cloud)  # imports
    decoding, _ = processor_seconds(lambda: decoded(given.cloud))
    building, (tree, cloud) = processor_seconds(lambda: tree_of(given.cloud, 2**31))
    n, samples = cloud.points, int(tree["count"].sum())
    size = given.cloud.stat().st_size
    print(f"{n} points, {samples} samples in {len(tree['count'])} nodes")
    print(f"LAZ          {size / n:6.1f} B/point   decoded {n / decoding / 1e6:6.2f} M points/s")
    print(f"tree                          built   {n / building / 1e6:6.2f} M points/s")
    variants = {
        "tiles": TileOptions(),
        "8 bits": TileOptions(colour_bits=8),
        "plain": TileOptions(compress=False),
    }
    for k, (title, options) in enumerate(variants.items()):
        for turn in range(2 if k == 0 else 1):  # the first compiles
            target = folder / f"{k}{turn}" / "tileset.json"
            seconds, _ = processor_seconds(lambda: tiles(tree, cloud, target, options))  # noqa: B023
        print(
            f"{title:8}     {bytes_of(target) / samples:6.1f} B/sample  "
            f"written {n / seconds / 1e6:6.2f} M points/s, {decoding / seconds:.2f} of decoding"
        )


if __name__ == "__main__":
    main()
