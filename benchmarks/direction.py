"""`direction` against NumPy and Shapely in one run: what lies above what in a made-up building.

python benchmarks/direction.py [--elements 1000] [--repeat 3] [--no-rival]

The rival is what one would write: an STRtree of footprints, then every pair of triangles whose
footprints meet is intersected, until one part is wide enough and higher. It stops at the first.
"""

import argparse

import numpy as np
from measure import in_turns
from spatialq.udfs.direction import Options, cpu

from spatialq.data.meshes import Meshes
from spatialq.runtime.threads import n_threads

SIDES = 24
TOLERANCE = 0.001


def prism(low, high, rng):
    """An upright prism of many sides in a box: 4 SIDES - 4 triangles, closed."""
    angles = 2 * np.pi * (np.arange(SIDES) + rng.random()) / SIDES
    ring = np.column_stack([np.cos(angles), np.sin(angles)])
    plane = (low + high)[:2] / 2 + ring * (high - low)[:2] / 2
    vertices = np.concatenate(
        [np.column_stack([plane, np.full(SIDES, z)]) for z in (low[2], high[2])]
    )
    fan = np.array([(0, k, k + 1) for k in range(1, SIDES - 1)])
    here = np.arange(SIDES)
    there = np.roll(here, -1)
    walls = [
        np.column_stack([here, there, there + SIDES]),
        np.column_stack([here, there + SIDES, here + SIDES]),
    ]
    return vertices, np.concatenate([fan[:, ::-1], fan + SIDES, *walls])


def building(n):
    """Elements of 0.2 to 3 m, eight to a storey and bay."""
    rng = np.random.default_rng(1)
    side = 6.0 * np.sqrt(n / 40)
    low = rng.uniform(0, (side, side, 15), (n, 3))
    return [prism(each, each + rng.uniform(0.2, 3, 3), rng) for each in low]


def rival(meshes):
    """Pairs (a, b) of which b is above a somewhere, with Shapely."""
    import shapely

    triangles = [vertices[faces] for vertices, faces in meshes]
    shapes = []
    for each in triangles:
        flat = shapely.polygons(each[:, :, :2])  # seen from above
        shapes.append((each, flat, shapely.area(flat) > TOLERANCE**2))
    boxes = [
        shapely.box(*each[:, :, :2].min(axis=(0, 1)), *each[:, :, :2].max(axis=(0, 1)))
        for each in triangles
    ]
    tree = shapely.STRtree(boxes)
    found = []
    for a, b in tree.query(boxes, predicate="intersects").T:
        higher = triangles[b][:, :, 2].max() > triangles[a][:, :, 2].min() + TOLERANCE
        if a != b and higher and some_over(shapes[a], shapes[b]):
            found.append((a, b))
    return np.array(found)


def some_over(a, b):
    import shapely

    corners_a, flat_a, wide_a = a
    corners_b, flat_b, wide_b = b
    of_b = np.flatnonzero(wide_b)
    of_a = np.flatnonzero(wide_a)
    pairs = shapely.STRtree(flat_a[of_a]).query(flat_b[of_b], predicate="intersects")
    for t, s in zip(of_b[pairs[0]], of_a[pairs[1]], strict=True):
        part = shapely.intersection(flat_b[t], flat_a[s])
        if part.area > TOLERANCE**2:
            places = shapely.get_coordinates(part)
            higher = height(corners_b[t], places) - height(corners_a[s], places)
            if higher.max() > TOLERANCE:
                return True
    return False


def height(triangle, places):
    (a, b, c) = triangle
    shares = np.linalg.solve(np.column_stack([(b - a)[:2], (c - a)[:2]]), (places - a[:2]).T)
    return a[2] + shares[0] * (b - a)[2] + shares[1] * (c - a)[2]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--rival", action=argparse.BooleanOptionalAction, default=True)
    arguments = parser.parse_args()
    made = building(arguments.elements)
    meshes = Meshes.of(made)

    def kernel(**chosen):
        options = Options(**chosen)
        result = cpu.run(meshes, options=options)
        return np.column_stack([result["a"], result["b"]])

    tasks = {
        "relaxed": kernel,
        "strict": lambda: kernel(strict=True),
        "halfspace": lambda: kernel(model="halfspace"),
        "halfspace, strict": lambda: kernel(model="halfspace", strict=True),
    }
    for task in tasks.values():  # compiles
        task()
    if arguments.rival:
        tasks["Shapely, relaxed"] = lambda: rival(made)
    timed = in_turns(tasks, arguments.repeat, warm_up=False, keep=True)
    if arguments.rival:
        ours, theirs = (
            {*map(tuple, timed[k].results[-1].tolist())} for k in ("relaxed", "Shapely, relaxed")
        )
        print(f"{len(ours ^ theirs)} pairs differ from Shapely's: it takes narrow parts as well")
    print(f"{len(made):,} elements, {len(meshes.faces):,} triangles, {n_threads()} threads")
    for name, each in timed.items():
        ratio, pairs = each.best / timed["relaxed"].best, len(each.results[-1])
        print(f"{name:20} {each.best:9.4f} s  {ratio:8.2f} of relaxed  {pairs:10,} pairs")


if __name__ == "__main__":
    main()
