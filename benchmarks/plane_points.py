"""Cost of one row per point, of `split` and of SQL relative to `detect_planes`, in one run.

python benchmarks/plane_points.py [--points N] [--repeat N]

On a generated room (rooms.py). `detect_planes` gives one row per plane, `plane_points` one row
per point; detect_planes.py measures how fast the former is.
"""

import argparse

import numpy as np
import pyarrow as pa
from detect_planes import best_of
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
        planes, points, split, sql = best_of(
            arguments.repeat,
            lambda: spatialq.run("detect_planes", **columns, device="cpu"),
            lambda: spatialq.run("plane_points", **columns, device="cpu"),
            lambda: spatialq.run("plane_points", **columns, device="cpu", split=True),
            lambda: con.sql(query).fetchall(),
        )
    print(f"{arguments.points} points, detect_planes {1000 * planes:.0f} ms")
    for name, seconds in (("plane_points", points), ("with split", split), ("in SQL", sql)):
        print(f"{name:12} {1000 * seconds:8.0f} ms = {seconds / planes:5.2f} x detect_planes")


if __name__ == "__main__":
    main()
