"""Cost of one row per planar node relative to `detect_planes`, in one run.

python benchmarks/plane_nodes.py [--points N] [--repeat N]

On a generated room (rooms.py); detect_planes.py measures how fast `detect_planes` is.
"""

import argparse

from measure import in_turns
from rooms import room

import spatialq


def compare(output, description):
    """Time another output of the search, alone and together with the planes."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, default=5_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    scene = room(arguments.points)
    columns = {"x": scene.x, "y": scene.y, "z": scene.z}
    both = ["detect_planes", output]
    tasks = {
        "detect_planes": lambda: spatialq.run("detect_planes", **columns, device="cpu"),
        output: lambda: spatialq.run(output, **columns, device="cpu"),
        "both": lambda: spatialq.run(both, **columns, device="cpu"),
    }
    timed = in_turns(tasks, arguments.repeat)
    planes = timed.pop("detect_planes").best
    print(f"{arguments.points} points, detect_planes {1000 * planes:.0f} ms")
    for name, each in timed.items():
        print(f"{name:12} {1000 * each.best:8.0f} ms = {each.best / planes:5.2f} x detect_planes")


if __name__ == "__main__":
    compare("plane_nodes", __doc__)
