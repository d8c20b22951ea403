"""How many things in simulated scans `unmodelled` finds, and its speed beside DBSCAN.

    python benchmarks/unmodelled.py [MODEL.ifc ...] [--things N] [--beams N]

Of each model, or of generated rooms: boxes of clutter stand on the floors, and the scan has 3 mm of
noise. "found" is the share of the boxes with 100 far points that are in a cluster of more than half
of their points; "others" counts the clusters whose points are mostly of elements. "DBSCAN" is how
many times as long scikit-learn's takes on the far points alone, with the same distance.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from buildings import elements
from sklearn.cluster import DBSCAN
from spatialq.udfs.unmodelled import Options
from spatialq.udfs.unmodelled.cpu import run

from spatialq.demo import scanner
from spatialq.geometry.nearest_faces import NearestFaces


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--things", type=int, default=20)
    parser.add_argument("--beams", type=int, default=100_000)
    options = parser.parse_args()
    worlds = {path.name: elements(path) for path in options.models}
    worlds = worlds or {"rooms 3 x 2": scanner.rooms(3, 2)[0]}
    head = ("points", "far", "found", "others", "s", "DBSCAN")
    print(f"{'model':32}" + "".join(f"{each:>10}" for each in head))
    for name, meshes in worlds.items():
        places = scanner.places_in(meshes)
        things = scanner.clutter(meshes, places, options.things)
        scan = scanner.scan(
            meshes, scanner.stations_in(meshes, 6), others=things, beams=options.beams
        )
        chosen = Options(min_points=100)
        run(scan.x[:1000], scan.y[:1000], scan.z[:1000], None, meshes, chosen)
        begin = time.perf_counter()
        found = run(scan.x, scan.y, scan.z, None, meshes, chosen)
        seconds = time.perf_counter() - begin
        faces = NearestFaces(meshes, chosen.max_distance)
        is_far = faces.find(scan.x, scan.y, scan.z).face < 0
        points = np.stack([scan.x, scan.y, scan.z], axis=1)[is_far]
        begin = time.perf_counter()
        DBSCAN(eps=chosen.gap, min_samples=1).fit(points)
        other = time.perf_counter() - begin
        low, high = (
            np.stack([found[f"{axis}{end}"] for axis in "xyz"], axis=1) for end in ("min", "max")
        )
        inside = [
            ((points >= a) & (points <= b)).all(axis=1) for a, b in zip(low, high, strict=True)
        ]
        is_thing = scan.element[is_far] < 0
        others = sum(not is_thing[each].mean() > 0.5 for each in inside)
        asked = right = 0
        for k in range(len(things)):
            corners = things.vertices[things.vertex_starts[k] : things.vertex_starts[k + 1]]
            own = (points >= corners.min(axis=0) - 0.02) & (points <= corners.max(axis=0) + 0.02)
            own = own.all(axis=1) & is_thing
            if own.sum() >= chosen.min_points:
                asked += 1
                right += any((own & each).sum() > 0.5 * own.sum() for each in inside)
        print(
            f"{name:32}{len(scan.x):>10}{len(points):>10}{f'{right}/{asked}':>10}{others:>10}"
            f"{seconds:>10.2f}{other / seconds:>10.1f}"
        )


if __name__ == "__main__":
    main()
