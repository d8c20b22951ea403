"""How long matching planes with elements takes, against their detection; and what is found.

    python benchmarks/plane_elements.py [MODEL.ifc ...] [--points 1000000 10000000] [--repeat N]

A scan of all faces of a model, 3 mm of noise, and the model itself. Without a model, the demo's
house is taken. "right" is the share of the planes' points whose own element is among those of
the plane, "off" the median and the 95th percentile of the deviation of the best, which is none.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from buildings import of_models
from spatialq.udfs.detect_planes.cpu import detection
from spatialq.udfs.plane_elements import Options
from spatialq.udfs.plane_elements.match import match

from spatialq.data.meshes import Meshes
from spatialq.runtime.threads import n_threads

CORNERS = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)], np.float64)
FACES = np.array([
    (0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1),
    (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3),
])  # fmt: skip
BAY, HEIGHT, THICKNESS = (6.0, 5.0), 3.0, 0.2
"""Metres: of a room along x and y, of a storey, of a wall or slab."""


def walls(columns, rows, storeys):
    """A building of walls and slabs, each a box, as meshes."""
    made = []

    def add(low, high):
        low, high = np.array(low), np.array(high)
        made.append((low + CORNERS * (high - low), FACES))

    (a, b), t = BAY, THICKNESS
    for storey in range(storeys):
        bottom = storey * HEIGHT
        top = bottom + HEIGHT - t
        for i in range(columns):
            for j in range(rows):
                add((i * a, j * b, top), ((i + 1) * a, (j + 1) * b, top + t))
        for i in range(columns + 1):
            for j in range(rows):
                add((i * a, j * b + t, bottom), (i * a + t, (j + 1) * b, top))
        for i in range(columns):
            for j in range(rows + 1):
                add((i * a + t, j * b, bottom), ((i + 1) * a, j * b + t, top))
    return Meshes.of(made)


def scan(meshes, n, rng):
    """Make n points on the faces of meshes, and the element of each."""
    owner = np.repeat(np.arange(len(meshes)), np.diff(meshes.face_starts))
    corners = meshes.vertices[meshes.vertex_starts[owner][:, None] + meshes.faces]
    one, other = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    area = np.linalg.norm(np.cross(one, other), axis=1)
    face = rng.choice(len(area), n, p=area / area.sum())
    s, t = rng.random((2, n, 1))
    s, t = np.where(s + t > 1, (1 - s, 1 - t), (s, t))
    points = corners[face, 0] + s * one[face] + t * other[face] + rng.normal(0, 0.003, (n, 3))
    return np.ascontiguousarray(points.T), owner[face]


def quality(result, labels, owner, n_elements):
    """Share of points whose element was found; deviations in millimetres of the best elements."""
    is_match = result["element"] >= 0
    plane, element = (result[name][is_match] for name in ("plane_id", "element"))
    found = np.isin(labels * n_elements + owner, plane * n_elements + element)
    _, best = np.unique(plane, return_index=True)
    off = 1000 * np.abs(result["deviation"][is_match][best])
    return found[labels > 0].mean(), *np.percentile(off, [50, 95])


def compare(name, meshes, n, repeat):
    (x, y, z), owner = scan(meshes, n, np.random.default_rng(1))
    options = Options()
    best = [np.inf, np.inf]
    for turn in range(repeat + 1):
        started = time.perf_counter()
        found = detection(x, y, z, np.arange(n), options, label=True)
        detected = time.perf_counter()
        result = match(x, y, z, found.owner, found.columns, meshes, options)
        spent = detected - started, time.perf_counter() - detected
        if turn:  # the first compiles
            best = [min(pair) for pair in zip(best, spent, strict=True)]
    detecting, matching = best
    matched = np.unique(result["plane_id"][result["element"] >= 0])
    right, median, most = quality(result, found.owner.astype(np.int64), owner, len(meshes))
    print(
        f"{name:20} {n:10} {len(meshes):6} {len(meshes.faces):9} {len(found.columns['nx']):7} "
        f"{len(matched):7} {right:6.3f} {median:5.1f} {most:4.1f} "
        f"{detecting:11.3f} {matching:10.3f} {matching / detecting:6.2f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--points", nargs="+", type=int, default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--repeat", type=int, default=3)
    chosen = parser.parse_args()
    print(f"{n_threads()} threads")
    print(
        f"{'':20} {'points':>10} {'elem.':>6} {'triangles':>9} {'planes':>7} {'matched':>7} "
        f"{'right':>6} {'off, mm':>10} {'detection s':>11} {'matching s':>10} {'ratio':>6}"
    )
    for name, meshes in of_models(chosen.models):
        for n in chosen.points:
            compare(name, meshes, n, chosen.repeat)


if __name__ == "__main__":
    main()
