"""Cost of one row per point, of `split` and of SQL relative to `detect_planes`, in one run.

python benchmarks/plane_points.py [--points N] [--repeat N]

On a generated room (rooms.py). `detect_planes` gives one row per plane, `plane_points` one row
per point; detect_planes.py measures how fast the former is.
"""

import argparse

import numpy as np
import pyarrow as pa
from measure import in_turns
from rooms import room

import spatialq


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, default=5_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    scene = room(arguments.points)
    columns = {"x": scene.x, "y": scene.y, "z": scene.z}
    ids = np.arange(arguments.points)
    with spatialq.connect() as con:
        con.register("cloud", pa.table({"point_id": ids, **columns}))
        con.execute("CREATE TABLE points AS FROM cloud")
        query = "SELECT count(plane_id) FROM plane_points('points', device := 'cpu')"
        tasks = {
            "detect_planes": lambda: spatialq.run("detect_planes", **columns, device="cpu"),
            "plane_points": lambda: spatialq.run("plane_points", **columns, device="cpu"),
            "with split": lambda: spatialq.run("plane_points", **columns, device="cpu", split=True),
            "in SQL": lambda: con.sql(query).fetchall(),
        }
        timed = in_turns(tasks, arguments.repeat)
    planes = timed.pop("detect_planes").best
    print(f"{arguments.points} points, detect_planes {1000 * planes:.0f} ms")
    for name, each in timed.items():
        print(f"{name:12} {1000 * each.best:8.0f} ms = {each.best / planes:5.2f} x detect_planes")


if __name__ == "__main__":
    main()
