"""How well `detect_planes` finds planes: generated rooms with truth, real scans without.

python benchmarks/plane_quality.py [--open3d PYTHON] [--points N] [--seed N] [--only NAME ...]
                                   [--data FOLDER] [--golden FOLDER] [--methods NAME ...]
                                   [--distance METRES] [--json FILE]

Rivals run in the same run, in the Python given by --open3d (open3d_rival.py says which and how);
without it they are left out. Every method has the same points and the same distance within which
points belong to a plane: 3 standard deviations of the noise, on scans the local one (below), or on
generated scenes what --distance says.

Generated scenes:

P, R    precision and recall of planes at 80 % overlap (Hoover et al. 1996, 10.1109/34.506791): a
        plane counts where it has 80 % of the points of a true one, and the true one 80 % of its.
found   true planes with one found within 3 degrees and 5 cm at the middle of its points
more    planes that are nobody's, second ones of one true plane included
p, r    share of the points with a plane that have the right one; of the points of planes that do
angle, offset   largest error of the found planes, degrees and mm

Scans. The cloud is cut into cells of 1/64 of its extent (98 % of it along the longest axis).
Through the points within 2.5 cells of each cell's mean a plane is fitted: the cell is flat where
they are less than a fifth as thick as wide. The noise is the median of their thickness.

cover   share of the points of flat cells that have a plane within the distance that agrees with
        the cell's normal to 15 degrees
agree   share of those that have any plane for which that holds
planes, half   how many planes there are, and how many of the largest cover half of the flat points
rms     distance of the agreeing points from their planes, in units of the noise
P, R    as above, on flat points, with the regions as truth that grow from the flattest cells on:
        over cells within the distance of the region's plane and 10 degrees of its normal; regions
        of one plane taken together. Of both only what has 1 % of the flat points or more
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from numba import njit
from rooms import SCENES, Scene, turn
from scipy.spatial import cKDTree

DATA = Path(os.environ.get("SPATIALQ_TEST_DATA", Path(__file__).parents[2] / "shared"))
RIVAL = Path(__file__).with_name("open3d_rival.py")
RIVALS = ["patches", "patches-100", "patches-voxel", "patches-random", "ransac"]
SPARSER = {"patches-voxel", "patches-random"}
SPARSE = 100_000  # points that these have: nothing of theirs is new on smaller clouds
OVERLAP = 0.8
ANGLE, OFFSET = 3.0, 0.05  # degrees, metres
CELLS = 64  # along the longest axis
SEARCH_RADIUS = 2.5  # cells
FLAT = 1 / 5
AGREE = 15.0
GROWN_ANGLE, GROWN_SHARE = 10.0, 0.01
MOVED = ["room", "box", "roofs", "partitions"]
KINECT = 525.0, 319.5, 239.5, 0.001  # focal length, middle in pixels; metres of a step of depth


# Methods: a cloud, a distance and a limit in; planes, label and seconds out.


def detect_planes(cloud, distance, _limit):
    from spatialq.udfs.detect_planes import Options, cpu

    ids, options = np.arange(cloud[0].size), Options(max_distance=distance)
    start = time.perf_counter()
    found = cpu.run(*cloud, ids, options, ["detect_planes"])["detect_planes"]
    seconds = time.perf_counter() - start
    label = cpu.run(*cloud, ids, options, ["plane_points"])["plane_points"]["plane_id"]
    planes = np.column_stack([found[name] for name in ("nx", "ny", "nz", "d")])
    return planes, label - 1, seconds


def detect_planes_alone(cloud, _distance, limit):
    """With its own distance: three times the noise of each plane."""
    return detect_planes(cloud, None, limit)


def ask_open3d(python, method, cloud, distance, limit):
    """What open3d_rival.py writes."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in.npz"), Path(folder, "out.npz")
        np.savez(source, **dict(zip("xyz", cloud, strict=True)), distance=distance, limit=limit)
        subprocess.run([python, RIVAL, method, source, target], check=True)
        with np.load(target) as out:
            return dict(out)


def rival(python, method):
    def run(cloud, distance, limit):
        out = ask_open3d(python, method, cloud, distance, limit)
        planes, label, seconds = out["planes"], out["label"], float(out["seconds"])
        if method != "ransac":
            planes, label = one_each(planes, label, np.column_stack(cloud), distance)
        return planes, label, seconds

    return run


def one_each(planes, label, points, distance):
    """Patches of one plane as one, as they are of `detect_planes` without split."""
    kept = np.flatnonzero(np.bincount(label[label >= 0], minlength=len(planes)))
    fits = [(points[label == k].mean(axis=0), planes[k, :3]) for k in kept]
    plane_of = np.full(len(planes) + 1, -1)
    plane_of[kept] = one_plane_each(fits, distance)
    _, first = np.unique(plane_of[kept], return_index=True)
    return planes[kept[first]], plane_of[label]


def methods(python):
    known = {"detect_planes": detect_planes, "detect_planes, alone": detect_planes_alone}
    if subprocess.run([python, "-c", "import open3d"], capture_output=True, check=False).returncode:
        print(f"rivals left out: {python} has no open3d (pip install open3d-cpu, libusb-1.0)")
        return known
    return known | {name: rival(python, name) for name in RIVALS}


# Measures.


def overlaps(true, found, n_true, n_found):
    """Points of each true plane in each found one, of each true plane and of each found one."""
    both = (true >= 0) & (found >= 0)
    pairs = np.bincount(true[both] * n_found + found[both], minlength=n_true * n_found)
    of_true = np.bincount(true[true >= 0], minlength=n_true)
    of_found = np.bincount(found[found >= 0], minlength=n_found)
    return pairs.reshape(n_true, n_found), of_true, of_found


def at_80_percent(true, found, n_true, n_found):
    """Precision and recall of planes, in percent."""
    pairs, of_true, of_found = overlaps(true, found, n_true, n_found)
    correct = (pairs >= OVERLAP * of_true[:, None]) & (pairs >= OVERLAP * of_found) & (pairs > 0)
    return 100 * correct.sum() / max(n_found, 1), 100 * correct.sum() / max(n_true, 1)


def against_truth(scene, planes, label):
    points = np.column_stack([scene.x, scene.y, scene.z])
    n_true, n_found = len(scene.planes), len(planes)
    precision, recall = at_80_percent(scene.plane, label, n_true, n_found)
    middles = np.array([points[scene.plane == k].mean(axis=0) for k in range(n_true)])
    cosines = np.abs(scene.planes[:, :3] @ planes[:, :3].T)
    angles = np.degrees(np.arccos(np.minimum(cosines, 1.0)))
    offsets = np.abs(middles @ planes[:, :3].T - planes[:, 3]) / scene.unit
    cost = np.where((angles < ANGLE) & (offsets < OFFSET), offsets, np.inf)
    match = np.full(n_true, -1)
    for t, f in zip(*np.unravel_index(np.argsort(cost, axis=None), cost.shape), strict=True):
        if np.isfinite(cost[t, f]) and match[t] < 0 and f not in match:
            match[t] = f
    found = match >= 0
    right = (scene.plane >= 0) & (label >= 0) & (label == match[scene.plane])
    return {
        "P": precision,
        "R": recall,
        "found": int(found.sum()),
        "of": n_true,
        "more": n_found - int(found.sum()),
        "p": right.sum() / max((label >= 0).sum(), 1),
        "r": right.sum() / (scene.plane >= 0).sum(),
        "angle": angles[found, match[found]].max(initial=0.0),
        "offset": 1000 * offsets[found, match[found]].max(initial=0.0),
    }


@njit
def _local(means, moments, counts, near, starts):
    """Normal, thickness and flatness (thickness by width) of what is around each cell's mean."""
    n = len(counts)
    normals, thickness, flatness = np.empty((n, 3)), np.empty(n), np.empty(n)
    for i in range(n):
        around = near[starts[i] : starts[i + 1]]
        total, middle, spread = 0.0, np.zeros(3), np.zeros((3, 3))
        for j in around:
            total += counts[j]
            middle += counts[j] * means[j]
        middle /= total
        for j in around:
            off = means[j] - middle
            spread += moments[j] + counts[j] * np.outer(off, off)
        values, vectors = np.linalg.eigh(spread / total)
        normals[i] = vectors[:, 0]
        thickness[i] = np.sqrt(max(values[0], 0.0))
        flatness[i] = thickness[i] / np.sqrt(max(values[1], 1e-300))
    return normals, thickness, flatness


@njit
def _grow(means, counts, normals, near, starts, order, distance, cosine):
    """Regions from the first cells of `order` on; each is refitted as it doubles."""
    label = np.full(len(counts), -2, np.int64)
    label[order] = -1
    queue = np.empty(len(counts), np.int64)
    regions = 0
    for seed in order:
        if label[seed] != -1:
            continue
        normal, middle = normals[seed].copy(), means[seed].copy()
        queue[0] = seed
        label[seed] = regions
        head, tail, refit = 0, 1, 20
        while head < tail:
            i = queue[head]
            head += 1
            for j in near[starts[i] : starts[i + 1]]:
                if (
                    label[j] == -1
                    and abs((normals[j] * normal).sum()) > cosine
                    and abs(((means[j] - middle) * normal).sum()) < distance
                ):
                    label[j] = regions
                    queue[tail] = j
                    tail += 1
            if tail >= refit:
                refit = 2 * tail
                middle, normal = _fit(means[queue[:tail]], counts[queue[:tail]])
        regions += 1
    return label


@njit
def _fit(points, weights):
    middle = np.zeros(3)
    for k in range(len(points)):
        middle += weights[k] * points[k]
    middle /= weights.sum()
    spread = np.zeros((3, 3))
    for k in range(len(points)):
        off = points[k] - middle
        spread += weights[k] * np.outer(off, off)
    return middle, np.linalg.eigh(spread)[1][:, 0].copy()


def one_plane_each(fits, distance):
    """Number of the plane of each region: one for those within the distance of each other."""
    joined = np.arange(len(fits))
    for a, (m, u) in enumerate(fits):
        for b, (q, v) in enumerate(fits[:a]):
            apart = max(abs(u @ (m - q)), abs(v @ (m - q)))
            if abs(u @ v) > np.cos(np.radians(2)) and apart < distance:
                joined[joined == joined[a]] = joined[b]
    return np.unique(joined, return_inverse=True)[1]


class Scan:
    """What is measured of a cloud before any method sees it."""

    def __init__(self, cloud):
        self.points = np.column_stack(cloud) - [values.mean() for values in cloud]
        low, high = np.quantile(self.points, [0.01, 0.99], axis=0)
        cells = np.floor(self.points / ((high - low).max() / CELLS)).astype(np.int64)
        _, cell, counts = np.unique(cells, axis=0, return_inverse=True, return_counts=True)
        cell = cell.reshape(-1)
        means = np.column_stack([np.bincount(cell, v) for v in self.points.T]) / counts[:, None]
        off = self.points - means[cell]
        moments = np.stack([np.bincount(cell, a * b) for a in off.T for b in off.T], axis=-1)
        moments = moments.reshape(-1, 3, 3)
        near = cKDTree(means).query_ball_point(means, SEARCH_RADIUS * (high - low).max() / CELLS)
        starts = np.concatenate([[0], np.cumsum([len(each) for each in near])])
        near = np.concatenate(near).astype(np.int64)

        normals, thickness, flatness = _local(means, moments, counts, near, starts)
        order = np.argsort(flatness)[: np.sum(flatness < FLAT)]
        self.normals, self.flat = normals[cell], (flatness < FLAT)[cell]
        self.noise = float(np.median(thickness[cell][self.flat]))
        self.distance = 3 * self.noise
        label = _grow(
            means, counts, normals, near, starts, order, self.distance,
            np.cos(np.radians(GROWN_ANGLE)),
        )  # fmt: skip
        sizes = np.bincount(label[label >= 0], counts[label >= 0])
        large = np.flatnonzero(sizes >= GROWN_SHARE * self.flat.sum())
        fits = [_fit(means[label == k], counts[label == k]) for k in large]
        plane_of = np.full(sizes.size + 2, -1)  # the last two for cells of no region
        plane_of[large] = one_plane_each(fits, self.distance)
        self.region = plane_of[label][cell]
        self.regions = plane_of.max() + 1

    def measures(self, planes, label, middle):
        has = self.flat & (label >= 0)
        own = planes[label[has]]
        off = np.einsum("ij,ij->i", own[:, :3], self.points[has] + middle) - own[:, 3]
        cosines = np.abs(np.einsum("ij,ij->i", own[:, :3], self.normals[has]))
        agree = cosines > np.cos(np.radians(AGREE))
        near = agree & (np.abs(off) <= self.distance)
        sizes = np.sort(np.bincount(label[has][near], minlength=max(len(planes), 1)))[::-1]
        enough = np.flatnonzero(np.cumsum(sizes) >= self.flat.sum() / 2)
        found = np.where(self.flat, label, -1)
        counts = np.bincount(found + 1, minlength=len(planes) + 1)
        found[counts[found + 1] < GROWN_SHARE * self.flat.sum()] = -1
        large, found = np.unique(found, return_inverse=True)
        precision, recall = at_80_percent(
            self.region, found - (large[0] < 0), self.regions, np.sum(large >= 0)
        )
        return {
            "cover": near.sum() / self.flat.sum(),
            "agree": agree.sum() / max(has.sum(), 1),
            "planes": len(planes),
            "half": int(enough[0]) + 1 if enough.size else None,
            "rms": np.sqrt(np.mean(off[near] ** 2)) / self.noise if near.any() else 0.0,
            "P": precision,
            "R": recall,
        }


# Clouds.


def scenes(n, seed, golden):
    """Name and scene; each is made when it is asked for."""
    for name, make in SCENES.items():
        yield name, lambda make=make: make(n, seed=seed)
    for name in MOVED:
        for move, moved in moves(seed).items():
            yield (
                f"{name}, {move}",
                lambda name=name, moved=moved: moved(SCENES[name](n, seed=seed)),
            )
    if golden.exists():
        yield "room of the reference", lambda: of_the_reference(golden)


def moves(seed):
    """What must not change the planes that are found."""
    return {
        "turned": lambda scene: scene.moved(turn=turn(seed)),
        "UTM": lambda scene: scene.moved(shift=(5e5, 5.8e6, 100), turn=turn(seed + 1)),
        "feet": lambda scene: scene.moved(scale=1 / 0.3048),
        "mm": lambda scene: scene.moved(scale=1000),
        "a tenth": thinned,
    }


def thinned(scene):
    """Every tenth point: they are in random order."""
    every = {name: getattr(scene, name)[::10].copy() for name in ("x", "y", "z", "plane", "patch")}
    return replace(scene, **every)


def of_the_reference(folder):
    points = np.fromfile(folder / "room_100000.f32", np.float32).reshape(-1, 3).astype(np.float64)
    label = np.fromfile(folder / "room_100000.lab", np.int32)
    planes = np.load(folder / "room_truth.npy")
    x, y, z = np.ascontiguousarray(points.T)
    return Scene(x, y, z, label, label, planes)


def scans(folder):
    import laspy
    from PIL import Image

    for path in sorted(folder.glob("*.laz")):
        file = laspy.read(path)
        yield path.stem, [np.array(values, np.float64) for values in (file.x, file.y, file.z)]
    for path in sorted(folder.glob("*.png")):
        depth = np.array(Image.open(path), np.float64)
        focal, across, down, step = KINECT
        row, column = np.nonzero(depth)
        z = step * depth[row, column]
        yield path.stem, [z * (column - across) / focal, z * (row - down) / focal, z]


def line(cloud, method, measures, seconds):
    figures = (
        f"{name} {value:5.3f}" if name in ("p", "r", "cover", "agree")
        else f"{name} {value:6.2f}" if isinstance(value, float)
        else f"{name} {'-' if value is None else value:>3}"
        for name, value in measures.items()
    )  # fmt: skip
    print(f"{cloud:38} {method:21}" + "  ".join(figures) + f"  {seconds:7.2f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--open3d", default=sys.executable, help="a Python that has Open3D")
    parser.add_argument("--points", type=int, default=100_000, help="of the generated scenes")
    parser.add_argument("--seed", type=int, default=1, help="of the generated scenes")
    parser.add_argument("--only", nargs="+", help="clouds of these names")
    parser.add_argument("--data", type=Path, default=DATA / "data" / "indoor")
    parser.add_argument("--golden", type=Path, default=DATA / "golden" / "planes")
    parser.add_argument("--distance", type=float, help="of generated scenes")
    parser.add_argument("--methods", nargs="+", help="these only")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    arguments = parser.parse_args()
    chosen = methods(arguments.open3d)
    if arguments.methods:
        chosen = {name: chosen[name] for name in arguments.methods}
    results = {}

    def measure(name, cloud, distance, limit, measured):
        for method, run in chosen.items():
            if method in SPARSER and cloud[0].size <= SPARSE:
                continue
            planes, label, seconds = run(cloud, distance, limit)
            figures = measured(planes, label)
            line(name, method, figures, seconds)
            results.setdefault(name, {})[method] = {**figures, "seconds": seconds}

    def asked(name):
        return not arguments.only or name in arguments.only

    for name, make in scenes(arguments.points, arguments.seed, arguments.golden):
        if asked(name):
            scene = make()
            distance = scene.unit * (arguments.distance or max(3 * scene.noise / scene.unit, 0.001))
            measure(
                name, (scene.x, scene.y, scene.z), distance,
                len(scene.planes) + 2, lambda *found, scene=scene: against_truth(scene, *found),
            )  # fmt: skip
    for name, cloud in scans(arguments.data):
        if asked(name):
            scan = Scan(cloud)
            middle = np.array([values.mean() for values in cloud])
            measure(
                f"{name} (noise {scan.noise:.4g}, {scan.regions} regions)", cloud, scan.distance,
                30, lambda *found, scan=scan, middle=middle: scan.measures(*found, middle),
            )  # fmt: skip
    if not results:
        parser.exit(1, f"plane_quality: there is no cloud of the names {arguments.only}\n")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1, default=float) + "\n")


if __name__ == "__main__":
    main()
