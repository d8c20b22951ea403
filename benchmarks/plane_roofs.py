"""Share of the roof faces of generated villages that `detect_planes` finds, by points per area.

python benchmarks/plane_roofs.py [--densities D ...] [--seeds N ...] [--out FOLDER] [--commit HASH]

A village is a scan by `spatialq.demo.write_village`, 400 m by 400 m, with so many returns per
square metre. Planes are looked for in its points of class 6, buildings: roofs and walls. The truth
are the upper faces of its roofs (`scene.roofs()`). A point belongs to a face if it is at most 0.1 m
from its plane (four standard deviations of a range) and within its corners seen from above; where
that holds for two faces, to the nearer one. Faces with ten points or more count.

A face is found by a plane if

- of the points of its house that are of the face or of the plane, more than half are of both: roofs
  of several houses may be one plane, as flat ones of one height are,
- the plane's normal is at most 5 degrees off,
- the face's points are on average at most 0.1 m from the plane.

Planes by which no face is found (walls, and false ones) are counted, and the greatest rmse is that
of all planes.
"""

import argparse
import platform
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import laspy
import measure
import numpy as np

from spatialq.demo import write_village

SIDE = 400.0
BUILDING = 6
NEAR, FEWEST, SHARED, DEGREES = 0.1, 10, 0.5, 5.0
PARAMETERS = {
    "defaults": {},
    "sparse": {"max_rmse": 0.1, "s_ms": 4, "min_points": 10, "s_level": 6},
}


def village(folder, density, seed):
    """Points of buildings, float64[n, 3], and the roof faces of a village."""
    path = Path(folder, "village.las")
    truth = write_village(path, n_points=round(density * SIDE**2), seed=seed)
    las = laspy.read(path)
    points = np.column_stack([las.x, las.y, las.z])
    return points[np.asarray(las.classification) == BUILDING], truth.roofs


def face_of_points(points, roofs):
    """Number of the face of each point, -1 for none: int64[n]."""
    face, nearest = np.full(len(points), -1), np.full(len(points), NEAR)
    for k, roof in enumerate(roofs):
        distance = np.abs(points @ roof.normal - roof.offset)
        mine = distance <= nearest
        for corner, following in zip(roof.corners, np.roll(roof.corners, -1, axis=0), strict=True):
            side, to = following - corner, points - corner
            mine &= side[0] * to[:, 1] >= side[1] * to[:, 0]
        face[mine], nearest[mine] = k, distance[mine]
    return face


def house_of_points(points, roofs):
    """House with the nearest middle to each point, and that of each face: two int64[]."""
    names = sorted({roof.house for roof in roofs})
    middles = np.array(
        [
            np.mean([roof.corners.mean(0)[:2] for roof in roofs if roof.house == name], axis=0)
            for name in names
        ]
    )
    squares = ((points[:, None, :2] - middles[None]) ** 2).sum(2)
    return squares.argmin(1), np.array([names.index(roof.house) for roof in roofs])


def count(points, roofs, parameters):
    """Find planes, and count the faces that are found by one."""
    from spatialq.udfs.detect_planes import Options, cpu

    axes = [np.ascontiguousarray(values) for values in points.T]
    found = cpu.run(*axes, None, Options(**parameters), ["detect_planes", "plane_points"])
    planes, plane = found["detect_planes"], found["plane_points"]["plane_id"]
    normals, n = np.column_stack([planes[name] for name in ("nx", "ny", "nz")]), len(planes["d"])
    face, (house, house_of_face) = face_of_points(points, roofs), house_of_points(points, roofs)
    n_faces, hits = 0, np.zeros((len(roofs), n), bool)
    for k, roof in enumerate(roofs):
        own, around = face == k, house == house_of_face[k]
        if np.count_nonzero(own) < FEWEST:
            continue
        n_faces += 1
        both = np.bincount(plane[own], minlength=n + 1)[1:]
        either = own.sum() + np.bincount(plane[around & ~own], minlength=n + 1)[1:]
        level = np.abs(normals @ roof.normal) >= np.cos(np.radians(DEGREES))
        offset = np.abs(normals @ points[own].mean(0) - planes["d"])
        hits[k] = (both > SHARED * either) & level & (offset <= NEAR)
    return {
        "faces": n_faces,
        "found": int(hits.any(1).sum()),
        "planes": n,
        "planes of no face": int(n - hits.any(0).sum()),
        "greatest rmse": float(planes["rmse"].max(initial=0.0)),
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--densities", type=float, nargs="+", default=[0.3, 1.0, 4.0, 10.0, 30.0],
        help="returns per square metre",
    )  # fmt: skip
    parser.add_argument("--seeds", type=int, nargs="+", default=[7, 8, 9])
    measure.add_arguments(parser)
    arguments = parser.parse_args()
    rows = []
    for density in arguments.densities:
        villages = []
        for seed in arguments.seeds:
            with tempfile.TemporaryDirectory() as folder:
                villages.append(village(folder, density, seed))
        for name, parameters in PARAMETERS.items():
            each = [count(points, roofs, parameters) for points, roofs in villages]
            row = {"points per m2": density, "parameters": name}
            row |= {what: sum(found[what] for found in each) for what in each[0]}
            row["greatest rmse"] = max(found["greatest rmse"] for found in each)
            rows.append(row)
            print("  ".join(f"{what} {value:.4}" if isinstance(value, float) else f"{what} {value}"
                            for what, value in row.items()), flush=True)  # fmt: skip
    report = {
        "device": platform.processor() or platform.machine(),
        "commit": arguments.commit,
        "date": datetime.now(UTC).date().isoformat(),
        "seeds": arguments.seeds,
        "parameters": PARAMETERS,
        "densities": rows,
    }
    measure.write(arguments.out, "plane_roofs", report)


if __name__ == "__main__":
    main()
