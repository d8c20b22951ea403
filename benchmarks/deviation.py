"""How many points a second `deviation` compares with a building, against rivals in the same run.

    python benchmarks/deviation.py [MODEL.ifc or MESHES.npz ...] [--points 1000000] [--repeat N]

Points lie on all faces of a model by their area, with 20 mm of noise: "scan" in the order of cubes
of 0.25 m, as a scanner sweeps a wall, "random" in any order. Without a model, the demo's house is
taken. "index" are seconds for the preparation of the model, which "search" lacks and "call" has.
Rivals get the first points of "scan": brute force compares each with every triangle (Numba, one
thread, unsigned); Open3D's RaycastingScene, where it is installed, computes them in float32.
Its rays that count for the sign are those of the whole model, so that signs differ where elements
overlap. "off" is the greatest difference of the unsigned distances, in metres.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from buildings import of_models
from spatialq.udfs.deviation import Options
from spatialq.udfs.deviation.cpu import run

from spatialq.geometry.nearest_faces import NearestFaces
from spatialq.geometry.triangles import squared_distance_point_triangle
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.threads import n_threads

NOISE, CUBE, LIMIT = 0.02, 0.25, 0.1
"""Metres."""
OF_BRUTE_FORCE = 200


def points_on(meshes, n, seed=1):
    """Make n points round the faces of meshes."""
    rng = np.random.default_rng(seed)
    a, b, c = np.moveaxis(meshes.vertices[meshes.global_faces], 1, 0)
    areas = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    face = rng.choice(len(areas), n, p=areas / areas.sum())
    s, t = rng.random((2, n, 1))
    s, t = np.where(s + t > 1, 1 - s, s), np.where(s + t > 1, 1 - t, t)
    found = a[face] + s * (b - a)[face] + t * (c - a)[face]
    return found + rng.normal(0.0, NOISE, (n, 3))


def in_scan_order(points):
    """Sort points by cubes."""
    cubes = np.floor(points / CUBE).astype(np.int64)
    return points[np.lexsort(cubes.T)]


@njit(cache=True, nogil=True, error_model="numpy")
def brute_force(points, triangles, distances):
    """Compare each point with every triangle."""
    for i in range(points.shape[0]):
        best = np.inf
        for f in range(triangles.shape[0]):
            t = triangles[f]
            d2, _, _, _ = squared_distance_point_triangle(
                points[i, 0], points[i, 1], points[i, 2], t[0], t[1], t[2], t[3], t[4], t[5],
                t[6], t[7], t[8],
            )  # fmt: skip
            best = min(best, d2)
        distances[i] = np.sqrt(best)


def timed(work, repeat):
    """Give the least seconds of several calls after a first one, with those of all threads."""
    work()
    taken = []
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        taken.append((time.perf_counter() - wall, time.process_time() - cpu))
    return min(taken)


def compare(name, meshes, n, repeat):
    """Print the figures of a model."""
    cloud = in_scan_order(points_on(meshes, n))
    orders = {"scan": cloud, "random": np.random.default_rng(2).permutation(cloud)}
    print(f"{name}: {len(meshes)} elements, {len(meshes.faces)} triangles, {n_threads()} threads")
    index, _ = timed(lambda: NearestFaces(meshes, LIMIT), repeat)
    nearest = NearestFaces(meshes, LIMIT)
    print(f"  index {index:.2f} s")
    for order, points in orders.items():
        x, y, z = np.ascontiguousarray(points.T)
        for kind, work in (
            ("search", lambda x=x, y=y, z=z: nearest.find(x, y, z)),
            ("call", lambda x=x, y=y, z=z: run(x, y, z, None, meshes, Options(LIMIT))),
        ):
            wall, cpu = timed(work, repeat)
            print(f"  {order:6} {kind:6} {n / wall / 1e6:8.2f} M points/s, "
                  f"{n / cpu / 1e6:6.2f} a thread")  # fmt: skip
    x, y, z = np.ascontiguousarray(cloud.T)
    rivals(meshes, cloud, np.abs(nearest.find(x, y, z).distance), repeat)


def rivals(meshes, cloud, expected, repeat):
    """Print the figures of others."""
    corners = np.ascontiguousarray(meshes.vertices[meshes.global_faces].reshape(-1, 9))
    few = np.ascontiguousarray(cloud[:: max(1, len(cloud) // OF_BRUTE_FORCE)])
    distances = np.empty(len(few))
    wall, _ = timed(lambda: brute_force(few, corners, distances), repeat)
    ours = expected[:: max(1, len(cloud) // OF_BRUTE_FORCE)]
    show("brute force", len(few) / wall, off(distances, ours))
    try:
        import open3d
    except ImportError:
        print("  Open3D is not installed")
        return
    scene = open3d.t.geometry.RaycastingScene(nthreads=n_threads())
    vertices = meshes.vertices - meshes.vertices.mean(axis=0)
    scene.add_triangles(vertices.astype(np.float32), meshes.global_faces.astype(np.uint32))
    points = (cloud - meshes.vertices.mean(axis=0)).astype(np.float32)
    wall, _ = timed(lambda: scene.compute_signed_distance(points), repeat)
    found = np.abs(scene.compute_signed_distance(points).numpy())
    show("Open3D signed", len(points) / wall, off(found, expected))


def show(rival, rate, difference):
    print(f"  {rival:13} {rate / 1e6:10.5f} M points/s, off {difference:.1e}")


def off(found, expected):
    """Give the greatest difference where there is a face within the limit."""
    near = np.isfinite(expected)
    return np.abs(found - expected)[near].max(initial=0.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--points", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    for name, meshes in of_models(arguments.models):
        for n in arguments.points:
            compare(name, meshes, n, arguments.repeat)


if __name__ == "__main__":
    main()
