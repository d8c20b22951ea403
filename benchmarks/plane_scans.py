"""Which large planes of real scans `detect_planes` finds, beside Open3D's patches and RANSAC.

python benchmarks/plane_scans.py [--open3d PYTHON] [--data FOLDER] [--only NAME ...] [--moves]
                                 [--json FILE]

Large planes are found without any of the methods. The noise is the median thickness of 40
neighbours. RANSAC at 3 and at 6 times the noise looks for the plane with most points, again and
again; of its points the largest connected patch counts, and slices of one sheet are united. What
has 4 % of the points at 6 times the noise, and at 3 times, too (within 3 degrees, and with at least
half of the points, so that slices of a bent sheet do not count), is a large plane.

found      large planes of which more than half of the points are on planes within 5 degrees of
           them and 18 times the noise of their middle
coverage   share of the points of each large plane for which that holds
planes     how many planes there are
on planes  share of the points that have a plane; for patches also of those in the oriented boxes of
           patches themselves, which are as thick as Open3D makes them
slanted    planes with 1 % of the points or more that cut through a surface or through two: where
           the 150 neighbours of their points are less than a fifth as thick as wide, the direction
           of these is off by more than 15 degrees in the median, and that is so at a fifth of their
           points or more (elsewhere the direction is that of the noise or of layers of depth); or
           they have a quarter of the points of each of two large planes more than 10 degrees apart

Open3D has 6 times the noise as distance, and as patches those of one plane merged, on one point a
voxel where there are more than 100,000; RANSAC looks for 12 planes. `detect_planes` chooses its own
distance. A * marks the scans on which its constants were chosen.

--moves: `detect_planes` on each scan turned, in other units, elsewhere, thinned to a tenth and with
a stray point twice and a thousand times the extent away, against the same large planes.
"""

import argparse
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from plane_quality import DATA, FLAT, SPARSE, ask_open3d, detect_planes_alone, one_each, scans
from rooms import turn
from scipy.ndimage import label as connected
from scipy.spatial import cKDTree

CHOSEN_ON = {
    "3dtk_scan000", "caixa", "indoor", "pcl_capture0001", "pcl_room_scan1", "redkitchen_000",
}  # fmt: skip
NEIGHBOURS, WIDE = 40, 150
SAMPLE = 20_000
FINE, COARSE = 3.0, 6.0  # times the noise
SHARE = 0.04  # of the points, of a large plane
SEARCHES, DRAWS, REFITS = 16, 800, 4  # of RANSAC
CROWDED = 3  # points of a pixel that connects
UNITED = 5.0  # degrees between slices of one sheet
SAME = 3.0  # degrees between a plane at both scales
FOUND, NEAR = 5.0, 3.0  # degrees, and times the distance of the points of the large plane
SLANT, APART = 15.0, 10.0  # degrees
TOLD = 1 / 5  # of a plane's points, in flat neighbourhoods that tell a slant
LIMIT = 12  # planes that RANSAC looks for


def parallel(u, v, degrees):
    return np.abs(np.dot(u, v)) > np.cos(np.radians(degrees))


# Large planes.


class Large(NamedTuple):
    """Normal, middle, and indices of the points."""

    normal: np.ndarray
    middle: np.ndarray
    points: np.ndarray


def neighbourhoods(points, at, size):
    """Normals of what is around some of the points, its thickness, and that by its width."""
    around = points[cKDTree(points).query(points[at], size)[1]]
    around -= around.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(np.einsum("nki,nkj->nij", around, around) / size)
    thickness, width, _ = np.sqrt(np.maximum(values, 0.0)).T
    return vectors[:, :, 0], thickness, thickness / np.maximum(width, 1e-300)


def fit(points):
    """Middle and directions of some points, the normal last."""
    middle = points.mean(axis=0)
    few = (points - middle)[:: max(1, len(points) // SAMPLE)]
    return middle, np.linalg.svd(few, full_matrices=False)[2]


def ransac(points, distance, rng):
    """Middle, directions and points of the plane that has most, or None."""
    few = points[rng.choice(len(points), min(len(points), SAMPLE), replace=False)]
    a, b, c = (few[rng.integers(len(few), size=DRAWS)] for _ in range(3))
    normals = np.cross(b - a, c - a)
    length = np.linalg.norm(normals, axis=1)
    normals, a = normals[length > 1e-12] / length[length > 1e-12, None], a[length > 1e-12]
    votes = [np.sum(np.abs((few - p) @ n) < distance) for p, n in zip(a, normals, strict=True)]
    middle, axes = a[np.argmax(votes)], normals[[np.argmax(votes)]]
    for _ in range(REFITS):
        on = np.abs((points - middle) @ axes[-1]) < distance
        if np.sum(on) < 10:
            return None
        middle, axes = fit(points[on])
    return middle, axes, np.abs((points - middle) @ axes[-1]) < distance


def largest_patch(points, middle, axes, distance):
    """Whether each point is in the largest connected patch of pixels with enough of them."""
    pixels = np.floor((points - middle) @ axes[:2].T / (4 * distance)).astype(int)
    pixels -= pixels.min(axis=0)
    counts = np.zeros(pixels.max(axis=0) + 1, int)
    np.add.at(counts, tuple(pixels.T), 1)
    patches, n = connected(counts >= CROWDED, np.ones((3, 3)))
    patch = patches[tuple(pixels.T)]
    return patch == np.bincount(patch[patch > 0]).argmax() if n else np.ones(len(points), bool)


def sheets(points, distance, rng):
    """Planes with their largest patches, one after the other, those of one sheet united."""
    found, rest = [], np.arange(len(points))
    for _ in range(SEARCHES):
        if rest.size < SHARE * len(points):
            break
        plane = ransac(points[rest], distance, rng)
        if plane is None or np.sum(plane[2]) < SHARE / 4 * len(points):
            break
        middle, axes, on = plane
        on = rest[on]
        on = on[largest_patch(points[on], middle, axes, distance)]
        rest = np.setdiff1d(rest, on)
        for k, sheet in enumerate(found):
            apart = middle - sheet.middle
            extent = np.ptp(points[sheet.points], axis=0).max()
            if (
                parallel(sheet.normal, axes[2], UNITED)
                and abs(apart @ sheet.normal) < 3 * distance
                and np.abs(apart).max() < extent
            ):
                found[k] = sheet._replace(points=np.concatenate([sheet.points, on]))
                break
        else:
            found.append(Large(axes[2], middle, on))
    return [sheet for sheet in found if sheet.points.size >= SHARE * len(points)]


class Yardstick:
    """What is known of a scan before any method sees it."""

    def __init__(self, points):
        rng = np.random.default_rng(1)
        at = rng.choice(len(points), min(1500, len(points)), replace=False)
        noise = np.median(neighbourhoods(points, at, NEIGHBOURS)[1])
        self.noise = noise or 1e-6 * np.ptp(points, axis=0).max()
        self.distance = COARSE * self.noise
        fine = sheets(points, FINE * self.noise, rng)
        self.large = [
            sheet
            for sheet in sheets(points, self.distance, rng)
            if any(
                parallel(sheet.normal, each.normal, SAME)
                and np.isin(sheet.points, each.points).mean() >= 0.5
                for each in fine
            )
        ]
        at = rng.choice(len(points), min(SAMPLE, len(points)), replace=False)
        normals, _, flatness = neighbourhoods(points, at, WIDE)
        self.at, self.normals, self.flat = at, normals, flatness < FLAT

    def coverage(self, planes, label, kept):
        """Share of the points of each large plane that its planes have, of the points kept."""
        shares = []
        for normal, middle, points in self.large:
            near = np.abs(planes[:, :3] @ middle - planes[:, 3]) < NEAR * self.distance
            own = np.flatnonzero(near & parallel(planes[:, :3], normal, FOUND))
            shares.append(float(np.isin(label[points[kept[points]]], own).mean()))
        return shares

    def slanted(self, planes, label):
        """How many planes cut through surfaces."""
        counts = np.bincount(label[label >= 0], minlength=len(planes))
        has = [np.bincount(label[each.points] + 1, minlength=len(planes) + 1)[1:] / each.points.size
               for each in self.large]  # fmt: skip
        slanted = 0
        for k in np.flatnonzero(counts >= 0.01 * label.size):
            on = label[self.at] == k
            told = on & self.flat
            off = False
            if np.sum(told) > TOLD * np.sum(on):
                cosine = np.median(np.abs(self.normals[told] @ planes[k, :3]))
                off = cosine < np.cos(np.radians(SLANT))
            cut = [
                each.normal for each, share in zip(self.large, has, strict=True) if share[k] > 0.25
            ]
            crossed = any(not parallel(u, v, APART) for u in cut for v in cut)
            slanted += bool(off or crossed)
        return slanted


# The table.


def measures(yardstick, planes, label, boxed):
    coverage = yardstick.coverage(planes, label, np.ones(label.size, bool))
    return {
        "found": sum(share > 0.5 for share in coverage),
        "large": len(coverage),
        "coverage": coverage,
        "planes": len(planes),
        "on planes": float(np.mean(label >= 0)),
        **({} if boxed is None else {"in boxes": float(np.mean(boxed))}),
        "slanted": yardstick.slanted(planes, label),
    }


def against(python):
    """Name and method of the rivals: planes, label and whether points are in boxes of patches."""

    def patches(points, distance):
        method = "patches-voxel" if len(points) > SPARSE else "patches"
        out = ask_open3d(python, method, points.T, distance, LIMIT)
        return *one_each(out["planes"], out["label"], points, distance), out["boxed"]

    def ransac(points, distance):
        out = ask_open3d(python, "ransac", points.T, distance, LIMIT)
        return out["planes"], out["label"], None

    return {"patches": patches, "RANSAC": ransac}


def ours(points, _distance=None):
    planes, label, _ = detect_planes_alone(list(np.ascontiguousarray(points.T)), None, None)
    return planes, label, None


class Move(NamedTuple):
    """Turn, scale, shift; share of the points that is left; extents to a stray point."""

    turn: np.ndarray = np.eye(3)
    scale: float = 1.0
    shift: tuple[float, float, float] = (0.0, 0.0, 0.0)
    left: float = 1.0
    stray: float = 0.0


MOVES = {
    "turned": Move(turn=turn(1)),
    "mm": Move(scale=1000.0),
    "feet": Move(scale=1 / 0.3048),
    "UTM": Move(shift=(5e5, 5.8e6, 100.0)),
    "a tenth": Move(left=0.1),
    "stray 2": Move(stray=2.0),
    "stray 1000": Move(stray=1000.0),
}


def after(move, points, yardstick):
    """Coverage of the large planes, number of planes and share of points on them."""
    kept = np.random.default_rng(1).random(len(points)) < move.left
    moved = move.scale * (points[kept] @ move.turn.T) + move.shift
    if move.stray:
        extent = np.ptp(moved, axis=0).max()
        moved = np.concatenate([moved, [moved.max(axis=0) + move.stray * extent]])
    planes, found, _ = ours(moved)
    label = np.full(len(points), -1)
    label[kept] = found[: kept.sum()]
    back = np.column_stack(
        [planes[:, :3] @ move.turn, (planes[:, 3] - planes[:, :3] @ move.shift) / move.scale]
    )
    return {
        "coverage": yardstick.coverage(back, label, kept),
        "planes": len(planes),
        "on planes": float(np.mean(label[kept] >= 0)),
    }


def line(scan, method, values):
    figures = "  ".join(
        f"{name} {' '.join(f'{share:.2f}' for share in value)}" if isinstance(value, list)
        else f"{name} {value:.2f}" if isinstance(value, float)
        else f"{name} {value}"
        for name, value in values.items()
    )  # fmt: skip
    print(f"{scan:36} {method:14} {figures}", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--open3d", help="a Python that has Open3D")
    parser.add_argument("--data", type=Path, default=DATA / "data" / "indoor")
    parser.add_argument("--only", nargs="+", help="scans of these names")
    parser.add_argument("--moves", action="store_true", help="detect_planes on moved scans")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    arguments = parser.parse_args()
    chosen = {"detect_planes": ours}
    if arguments.open3d:
        chosen |= against(arguments.open3d)
    results = {}
    for name, cloud in scans(arguments.data):
        if arguments.only and name not in arguments.only:
            continue
        points = np.column_stack(cloud)
        points = np.unique(points[np.isfinite(points).all(axis=1)], axis=0)
        yardstick = Yardstick(points)
        of_scan = results.setdefault(name, {})
        for method, run in chosen.items():
            planes, label, boxed = run(points, yardstick.distance)
            of_scan[method] = measures(yardstick, planes, label, boxed)
            line(name + " *" * (name in CHOSEN_ON), method, of_scan[method])
        for move in MOVES if arguments.moves else ():
            of_scan[move] = after(MOVES[move], points, yardstick)
            line(name, move, of_scan[move])
    if not results:
        names = arguments.only or "that can be read"
        parser.exit(1, f"plane_scans: --data {arguments.data} has no scans {names}\n")
    for method in chosen:
        each = [of_scan[method] for of_scan in results.values()]
        found, large = (sum(values[what] for values in each) for what in ("found", "large"))
        print(f"{method}: {found} of {large} large planes")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
