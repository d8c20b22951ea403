"""`ground_surface` against SciPy's interpolators, and what its parts cost; ratios in one run.

python benchmarks/ground_surface.py [--points 50000] [--side 2000] [--repeat 3] [--no-rival]
"""

import argparse

import numpy as np
import pyarrow as pa
from measure import in_turns
from scipy.interpolate import LinearNDInterpolator
from scipy.spatial import Delaunay, cKDTree
from spatialq.udfs.ground_surface import Options, cpu, grid, triangles

import spatialq
from spatialq.runtime.threads import n_threads, workers


def make_ground(n, side):
    """Terrain points in centimetres, in UTM, in random order."""
    rng = np.random.default_rng(1)
    x, y = (np.round(rng.random(n) * side, 2) for _ in range(2))
    z = np.round(30 * np.sin(x / 210) * np.cos(y / 170) + 0.02 * x + rng.normal(0, 0.05, n), 2)
    return x + 500_000, y + 5_800_000, z


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=50_000)
    parser.add_argument("--side", type=float, default=2000.0, help="metres; cells of 1 m")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--rival", action=argparse.BooleanOptionalAction, default=True)
    arguments = parser.parse_args()
    x, y, z = make_ground(arguments.points, arguments.side)
    point_id = np.arange(x.size)
    options = Options(source="points")
    cells = grid.cover(x, y, options)
    corner = np.array(cells.origin)
    centres = np.column_stack([np.tile(cells.x, cells.rows), np.repeat(cells.y, cells.columns)])

    def kernel(**chosen):
        return lambda: cpu.run(x, y, z, point_id, Options(source="points", **chosen))

    def linear():
        points = np.column_stack([x, y]) - corner
        return LinearNDInterpolator(points, z)(centres - corner)

    def nearest_ten():
        points = np.column_stack([x, y]) - corner
        distance, index = cKDTree(points).query(centres - corner, k=10, workers=n_threads())
        weight = 1 / np.maximum(distance, 1e-9) ** 2
        return (weight * z[index]).sum(axis=1) / weight.sum(axis=1)

    for method in ("tin", "idw"):  # compiles
        cpu.run(x[:99], y[:99], z[:99], point_id[:99], Options(source="points", method=method))
    points = triangles.arrange(x, y, z, cells, thin=False)
    found = triangles.triangulate(*points[:2])
    heights = np.empty((cells.rows, cells.columns))

    def rasterise():
        heights.fill(np.nan)
        with workers() as pool:
            cpu._rasterise(pool, points, found, cells, heights)

    con = spatialq.connect()
    con.register("cloud", pa.table({"point_id": point_id, "x": x, "y": y, "z": z}))
    con.execute("SET enable_progress_bar = false; CREATE TABLE points AS FROM cloud")
    query = "SELECT count(z) FROM ground_surface('points', source := 'points')"
    tasks = {
        "tin": kernel(),
        "tin, thin": kernel(thin=True),
        "idw": kernel(method="idw", extrapolate=True),
        "arrange": lambda: triangles.arrange(x, y, z, cells, thin=False),
        "triangulate": lambda: triangles.triangulate(*points[:2]),
        "rasterise": rasterise,
        "SQL, tin": lambda: con.sql(query).fetchall(),
    }
    if arguments.rival:
        tasks["Qhull"] = lambda: Delaunay(np.column_stack(points[:2]))
        tasks["SciPy linear"] = linear
        tasks["SciPy tree, 10 nearest"] = nearest_ten
    timed = in_turns(tasks, arguments.repeat, warm_up=False)
    con.close()
    print(f"{x.size:,} points, {cells.columns} x {cells.rows} cells, {n_threads()} threads")
    for name, each in timed.items():
        print(
            f"{name:24} {each.best:8.3f} s   {each.best / timed['tin'].best:6.2f} of tin   "
            f"processor {each.best_processor:8.3f} s"
        )


if __name__ == "__main__":
    main()
