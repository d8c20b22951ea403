"""OWM: seeds and valid windows by window size and overlap, and how many seeds are valid.

The measure is that of section 5.1 of the paper: a seed is valid if a seed of the gold surface is
within half a step and differs in height by less than 1 cm. Gold are the seeds of the sequential
program, which `ties := 'octree'` gives to the id (tests/owm_ground/test_oracle.py) where windows
are even; they are compared with those of the default, where the lowest point_id decides. Of
generated clouds the terrain is known: a seed is on it within five times the noise. Of the ISPRS
samples it is ground if its class says so.
"""

import time
from pathlib import Path

import clouds
import laspy
import numpy as np
from registry import DATA
from scipy.spatial import cKDTree
from spatialq.udfs.owm_ground import Options, cpu
from spatialq.udfs.owm_ground.rounding import window_step
from spatialq.udfs.owm_ground.windows import Box, default_min_points, window_borders

SIZES = (5.0, 10.0, 15.0, 20.0)
OVERLAPS = (0.5, 2 / 3, 0.8, 0.9)
PUBLISHED = (10.0, 0.8)
SAME_HEIGHT = 0.01
ON_TERRAIN = 5 * clouds.NOISE


def add_arguments(parser):
    parser.add_argument("--points", type=int, help="of a tiny cloud, instead of all others")
    parser.add_argument("--samples", type=Path, default=DATA / "lidar", help="of ISPRS")


def figures(chosen):
    """Sweep one cloud; take the published setting for clouds of the published size, and samples."""
    sweep = [(size, overlap) for size in SIZES for overlap in OVERLAPS]
    clouds_of = {"tiny": sweep} if chosen.points else {"small": sweep}
    if not (chosen.small or chosen.points):
        clouds_of |= {kind: [PUBLISHED] for kind in ("sparse", "arzua", "forest", "dense")}
    found = []
    for kind, settings in clouds_of.items():
        cloud = clouds.make_cloud(kind, n=chosen.points)
        is_ground = near_terrain(cloud, clouds.KINDS[kind])
        found += [{"cloud": kind, **row(cloud, is_ground, *setting)} for setting in settings]
    samples = [] if chosen.points else sorted(chosen.samples.glob("isprs_samp??.laz"))
    for path in samples:
        file = laspy.read(path)
        cloud = tuple(np.array(values, np.float64) for values in (file.x, file.y, file.z))
        is_ground = np.asarray(file.classification) == 2
        found.append({"cloud": path.stem, **row(cloud, is_ground, *PUBLISHED)})
    return {"rows": found}


def row(cloud, is_ground, size, overlap):
    """One setting."""
    options = Options(size, overlap)
    processor = time.process_time()
    ours = cpu.run(*cloud, None, options)
    processor = time.process_time() - processor
    gold = cpu.run(*cloud, None, Options(size, overlap, ties="octree"))
    windows, valid_windows = count_windows(cloud, options)
    same, valid = compare(ours, gold, window_step(size, overlap) / 2)
    seeds = ours["point_id"][~ours["filled"]]
    result = {
        "points": int(cloud[0].size), "window_size": size, "overlap": round(overlap, 4),
        "windows": windows, "valid_windows_percent": percent(valid_windows, windows),
        "seeds": int(seeds.size), "filled": int(ours["filled"].sum()),
        "gold": int(gold["point_id"].size), "same_id_percent": percent(same, ours["point_id"].size),
        "valid_seeds_percent": percent(valid, ours["point_id"].size),
        "ground_percent_of_seeds": percent(is_ground[seeds].sum(), seeds.size),
        "ground_percent_of_points": percent(is_ground.sum(), is_ground.size),
        "processor_ms": round(1e3 * processor, 1),
    }  # fmt: skip
    print(*(f"{name}={value}" for name, value in result.items()), flush=True)
    return result


def percent(part, whole):
    return round(100.0 * float(part) / whole, 3) if whole else None


def compare(ours, gold, radius):
    """Count the seeds with an id of the gold, and the valid ones."""
    is_same = np.isin(ours["point_id"], gold["point_id"])
    others = np.flatnonzero(~is_same)
    if not (others.size and gold["point_id"].size):
        return is_same.sum(), is_same.sum()
    tree = cKDTree(np.column_stack([gold["x"], gold["y"]]))
    places = np.column_stack([ours["x"], ours["y"]])[others]
    valid = sum(
        bool(np.any(np.abs(gold["z"][near] - ours["z"][at]) < SAME_HEIGHT))
        for at, near in zip(others, tree.query_ball_point(places, radius), strict=True)
        if near
    )
    return is_same.sum(), is_same.sum() + valid


def count_windows(cloud, options):
    """Count the windows, and those with enough points, from sums over the cells between borders.

    A border is a cell of its own, since windows are open.
    """
    x, y, _ = cloud
    box = Box(x.min(), x.max(), y.min(), y.max())
    cells, runs, shape = [], [], []
    for values, (low, high) in zip((x, y), box.sides, strict=True):
        half = options.half(options.window_size)
        lower, upper = window_borders(low, high, options.window_size, options.overlap, half)
        borders = np.unique(np.concatenate([lower, upper]))
        left, right = (np.searchsorted(borders, values, side) for side in ("left", "right"))
        cells.append(left + right)  # 2 k + 1 on border k, 2 k below it
        first, last = (np.searchsorted(borders, each) for each in (lower, upper))
        runs.append((2 * first + 2, 2 * last + 1))
        shape.append(2 * borders.size + 1)
    sums = np.zeros((shape[0] + 1, shape[1] + 1), np.int64)
    at = cells[0] * shape[1] + cells[1]
    sums[1:, 1:] = np.bincount(at, minlength=shape[0] * shape[1]).reshape(shape)
    np.cumsum(np.cumsum(sums, 0, out=sums), 1, out=sums)
    (west, east), (south, north) = runs
    inside = (
        sums[np.ix_(east, north)] - sums[np.ix_(west, north)]
        - sums[np.ix_(east, south)] + sums[np.ix_(west, south)]
    )  # fmt: skip
    enough = default_min_points(x.size, box, options.window_size)
    return inside.size, int(np.count_nonzero(inside >= enough))


def near_terrain(cloud, kind):
    """Whether each point of a generated cloud lies on its terrain."""
    x, y, z = cloud
    return clouds.is_on_terrain(x - kind.west, y - kind.south, z, ON_TERRAIN)
