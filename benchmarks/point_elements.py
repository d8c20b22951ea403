"""How long points against elements take, and what of it is the kernel; times of one run.

    python benchmarks/point_elements.py [--points 100000 1000000] [--elements 1000] [--limit 0.05]

Points spread over a building of walls and slabs, all within its box: half of them or more are near
none. "kernel" is `distance` on meshes that are there already, "SQL" is `point_elements` on tables.
"""

import argparse

import numpy as np
import pyarrow as pa
from measure import in_turns
from plane_elements import walls
from spatialq.udfs.distance import Options, cpu

import spatialq
from spatialq.data.meshes import Meshes
from spatialq.runtime.threads import n_threads


def building(n):
    """At least n walls and slabs."""
    side = 1
    while len(meshes := walls(side, side, 3)) < n:
        side += 1
    return meshes


def table_of(con, meshes):
    """Make the table `elements` of meshes."""
    spans = zip(meshes.vertex_starts, meshes.vertex_starts[1:], strict=False)
    faces = zip(meshes.face_starts, meshes.face_starts[1:], strict=False)
    rows = [
        {"vertices": meshes.vertices[a:b].ravel(), "faces": meshes.faces[c:d].ravel()}
        for (a, b), (c, d) in zip(spans, faces, strict=True)
    ]
    kind = pa.struct({"vertices": pa.list_(pa.float64()), "faces": pa.list_(pa.int32())})
    names = [f"element {n}" for n in range(len(rows))]
    incoming = pa.table({"global_id": names, "mesh": pa.array(rows, kind)})
    con.register("incoming", incoming)
    con.execute("CREATE OR REPLACE TABLE elements AS FROM incoming")
    con.unregister("incoming")


def compare(con, meshes, n, limit, repeat):
    low, high = meshes.vertices.min(axis=0), meshes.vertices.max(axis=0)
    points = low + np.random.default_rng(1).random((n, 3)) * (high - low)
    positions = np.arange(n + 1)
    as_meshes = Meshes(points, np.zeros((n, 3), np.int32), positions, positions)
    x, y, z = points.T
    con.register("incoming", pa.table({"point_id": positions[:n], "x": x, "y": y, "z": z}))
    con.execute("CREATE OR REPLACE TABLE points AS FROM incoming")
    con.unregister("incoming")

    def kernel():
        return cpu.run(as_meshes, meshes, options=Options(max_distance=limit))

    def sql():
        query = (
            f"SELECT count(*) FROM point_elements('points', 'elements', {limit}, device := 'cpu')"
        )
        return con.sql(query).fetchall()[0][0]

    timed = in_turns({"kernel": kernel, "sql": sql}, repeat, keep=True)
    pairs = timed["sql"].results[-1]
    assert pairs == len(timed["kernel"].results[-1]["a"])
    k, s = timed["kernel"].best, timed["sql"].best
    print(f"{n:10} {len(meshes):9} {pairs:10} {k:9.3f} {s:9.3f} {s / k:6.2f} {n / s / 1e6:12.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", nargs="+", type=int, default=[100_000, 1_000_000])
    parser.add_argument("--elements", type=int, default=1000)
    parser.add_argument("--limit", type=float, default=0.05)
    parser.add_argument("--repeat", type=int, default=3)
    chosen = parser.parse_args()
    print(f"{n_threads()} threads, within {chosen.limit} m")
    print(
        f"{'points':>10} {'elements':>9} {'pairs':>10} {'kernel s':>9} {'SQL s':>9} {'ratio':>6} "
        f"{'M points/s':>12}"
    )
    with spatialq.connect() as con:
        meshes = building(chosen.elements)
        table_of(con, meshes)
        for n in chosen.points:
            compare(con, meshes, n, chosen.limit, chosen.repeat)


if __name__ == "__main__":
    main()
