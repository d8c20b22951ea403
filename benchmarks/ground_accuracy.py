"""How well `classify_ground` finds the ground of labelled clouds, all with the default options.

python benchmarks/ground_accuracy.py [--data FOLDER] [--smrf] [--json FILE]

T1: ground points lost, T2: other points taken as ground, TE: wrong points, K: Cohen's kappa, in
percent; means are over clouds, unweighted. Ground truth is class 2; points of the classes 7 and
18 (noise) are left out of the tiles, but not of the sites. With --smrf the same for the Simple
Morphological Filter with its usual parameters (`pip install pysmrf`), on the same points.

Sparse tiles are one of 0.29 points per square metre, and a dense one thinned to 0.3 at random with
three seeds. The terrain that they are compared with is linear between the delivered ground points
of the whole tile: roof points (class 6) more than 1 m above it that are taken for ground, and the
share of all points at which the terrain found is more than 1 m off. This part needs SciPy.
"""

import argparse
import json
import os
from functools import partial
from pathlib import Path

import laspy
import numpy as np
from spatialq.udfs.classify_ground import Options, cpu

DATA = Path(os.environ.get("SPATIALQ_TEST_DATA", Path(__file__).parents[2] / "shared"))
TILES = [
    "ahn3_cropped_1.laz",
    "test_semis_2023_0292_6833_LA93_IGN69.laz",
    "test_data_77050_627755_LA93_IGN69.laz",
    "4_6_crop.las",
    "hexbin-crop.las",
    "Coromandel_points.laz",
    # class 2 is only a part of the ground, or the rest is not classified at all
    "bcts_1.laz",
    "bcts_2.laz",
    "bcts_4.laz",
    "Topography.laz",
    "870000_6618000.subset.postValidation.laz",
]
PARTLY = TILES.index("bcts_1.laz")
SPARSE = TILES[1]
THINNED = TILES[0]
DENSITY = 0.3  # points per square metre


def read(path):
    file = laspy.read(path)
    cloud = [np.array(values, np.float64) for values in (file.x, file.y, file.z)]
    return cloud, np.asarray(file.classification)


def classified(cloud):
    return cpu.run(*cloud, np.arange(cloud[0].size), Options())


def ours(cloud):
    return classified(cloud)["is_ground"]


def smrf(cloud):
    from pysmrf import smrf

    *_, is_object = smrf(
        *cloud, cellsize=1, windows=18, slope_threshold=0.15, elevation_threshold=0.5,
        elevation_scaler=1.25, low_outlier_fill=True,
    )  # fmt: skip
    return ~is_object


def scores(found, true):
    """T1, T2, total error, kappa."""
    right = np.mean(found == true)
    chance = found.mean() * true.mean() + (1 - found.mean()) * (1 - true.mean())
    lost, taken = np.mean(~found[true]), np.mean(found[~true])
    return [100 * value for value in (lost, taken, 1 - right, (right - chance) / (1 - chance))]


def samples(folder, method):
    """Score the ISPRS samples, each by itself."""
    for path in sorted(folder.glob("isprs_samp??.laz")):
        cloud, classes = read(path)
        yield path.stem[-2:], method(cloud), classes == 2


def sites(folder, method):
    """Score the whole sites, with their outliers, at the points of the samples within them."""
    for path in sorted(folder.glob("isprs_?Site?_*.laz")):
        cloud, _ = read(path)
        within = sorted(folder.glob(f"isprs_samp{path.stem[11]}?.laz"))
        if not within:
            continue
        found = method(cloud)
        place = {xyz: k for k, xyz in enumerate(zip(*np.round(cloud, 2).tolist(), strict=True))}
        for sample in within:
            points, classes = read(sample)
            at = [place.get(xyz, -1) for xyz in zip(*np.round(points, 2).tolist(), strict=True)]
            at = np.array(at)
            share = f" ({np.mean(at >= 0):.0%} of it)" if np.mean(at >= 0) < 0.99 else ""
            name = f"{sample.stem[-2:]} in {path.stem[6:12]}{share}"
            yield name, found[at[at >= 0]], classes[at >= 0] == 2


def tiles(folder, method, names):
    """Score other clouds, without the points that are classified as noise."""
    for name in names:
        if not (folder / name).exists():
            continue
        cloud, classes = read(folder / name)
        kept = (classes != 7) & (classes != 18)
        yield name, method([values[kept] for values in cloud]), classes[kept] == 2


def sparse(folder, method):
    """Give roof points taken for ground, all roof points, and the share of terrain that is off."""
    from scipy.interpolate import LinearNDInterpolator

    for name in (SPARSE, THINNED):
        if not (folder / name).exists():
            continue
        cloud, classes = read(folder / name)
        kept = (classes != 7) & (classes != 18)
        x, y, z = (values[kept] - values[kept].min() for values in cloud)
        classes = classes[kept]
        is_ground = classes == 2
        true = LinearNDInterpolator(np.c_[x, y][is_ground], z[is_ground])(x, y)
        for seed in range(1 if name == SPARSE else 3):
            n = x.size if name == SPARSE else int(DENSITY * x.max() * y.max())
            some = np.sort(np.random.default_rng(seed).choice(x.size, n, replace=False))
            found = method([values[kept][some] for values in cloud])
            roofs = (classes[some] == 6) & (z[some] - true[some] > 1)
            off = np.abs(z[some] - found["height"] - true[some])
            off = off[np.isfinite(off)] > 1
            title = name if name == SPARSE else f"{name}, thinned, {seed}"
            taken = int(np.sum(roofs & found["is_ground"]))
            yield title, taken, int(np.sum(roofs)), float(100 * off.mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA / "data" / "lidar")
    parser.add_argument("--smrf", action="store_true", help="score that too")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    arguments = parser.parse_args()
    methods = {"classify_ground": ours} | ({"SMRF": smrf} if arguments.smrf else {})
    parts = {
        "ISPRS samples": samples,
        "samples within their sites": sites,
        "other tiles": partial(tiles, names=TILES[:PARTLY]),
        "tiles whose ground is labelled in part: T1 counts": partial(tiles, names=TILES[PARTLY:]),
    }
    results = {}
    for title, part in parts.items():
        columns = [
            {name: scores(found, true) for name, found, true in part(arguments.data, method)}
            for method in methods.values()
        ]
        if not columns[0]:
            continue
        for column in columns:
            column["mean"] = np.mean(list(column.values()), axis=0).tolist()
        print(f"\n{title}\n{'':44}" + "".join(f"{name:>30}" for name in methods))
        print(" " * 44 + f"{'T1':>9}{'T2':>7}{'TE':>7}{'K':>7}" * len(methods))
        for name in columns[0]:
            figures = [
                "  " + "".join(f"{value:7.2f}" for value in column[name]) for column in columns
            ]
            print(f"{name:44}" + "".join(figures), flush=True)
        results[title] = dict(zip(methods, columns, strict=True))
    if not results:
        parser.exit(
            1, f"ground_accuracy: --data {arguments.data} has none of the labelled clouds\n"
        )
    rows = {name: row for name, *row in sparse(arguments.data, classified)}
    if rows:
        print(f"\n{'sparse tiles':44}{'roof points taken':>20}{'of':>8}{'terrain off, %':>16}")
        for name, (taken, roofs, off) in rows.items():
            print(f"{name:44}{taken:20}{roofs:8}{off:16.2f}")
        results["sparse tiles"] = rows
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
