"""LOD: PSNR and SSIM over views by strategy, as table 2, and times by strategy, as table 1.

Views, pictures and PSNR are those of build_lod_quality.py, with high-quality shading: the mean of
what is near the nearest point of a pixel. SSIM is that of Wang et al. 2004, equation 13
(10.1109/TIP.2003.819861; Gaussian window of 11 pixels with sigma 1.5, K1 = 0.01, K2 = 0.03) of the
luminance, the mean over the pixels that both pictures have; where one of them has none, both are
black. LPIPS needs a network's weights and is left out. Times are processor milliseconds of the tree
with its samples, the best of so many rounds in turns.
"""

from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np
from build_lod import of_file
from build_lod_quality import VIEWS, picture, psnr, save, scene, select, views
from measure import in_turns
from registry import DATA
from scipy.ndimage import gaussian_filter
from spatialq.udfs.build_lod import Options, Strategy, cpu
from spatialq.udfs.build_lod.tree import Cube

SMALL, FULL = 4_000_000, 8_000_000
K1, K2, SIGMA, RADIUS = 0.01, 0.03, 1.5, 5
LUMINANCE = np.array([0.299, 0.587, 0.114])


def add_arguments(parser):
    parser.add_argument("--points", type=int, help="of the generated scene")
    parser.add_argument(
        "--clouds", type=Path, nargs="*", help="LAS or LAZ files with colours; by default Autzen"
    )
    parser.add_argument("--pictures", type=Path, help="folder for a picture of each kind of view")


def figures(chosen):
    """Compare the strategies on the generated scene, and on clouds where they are there."""
    made = scene(chosen.points or (SMALL if chosen.small else FULL))
    default = [] if chosen.small or chosen.points else [DATA / "rgb" / "autzen_2010_rgb_west.laz"]
    paths = default if chosen.clouds is None else chosen.clouds
    files = (of_cloud(path.stem, of_file(path), chosen) for path in paths if path.exists())
    return {"clouds": [of_cloud("scene", made, chosen), *files]}


def of_cloud(name, points, chosen):
    """All figures of a cloud."""
    places = np.column_stack([points.x, points.y, points.z])
    cube = Cube.around(places.min(axis=0), places.max(axis=0))
    works = {
        strategy: partial(cpu.build, points, cube, Options(strategy=strategy))
        for strategy in get_args(Strategy)
    }
    timed = in_turns(works, chosen.repeat, keep=True)
    trees = {strategy: each.results[-1] for strategy, each in timed.items()}
    rows = []
    for kind, share in VIEWS.items():
        measures = {strategy: [] for strategy in trees}
        for k, view in enumerate(views(points, share)):
            pictures = [picture(places, points.colour[:, :3], view)]
            for strategy, tree in trees.items():
                at, colours = select(tree, points, places, cube, Options(), view)
                pictures.append(picture(at, colours, view))
                decibels, common = psnr(pictures[-1], pictures[0])
                measures[strategy].append((decibels, ssim(pictures[-1], pictures[0]), common))
            if chosen.pictures and k == 1:
                save(pictures, chosen.pictures / f"{name}, {kind}.png")
        for strategy, several in measures.items():
            decibels, similar, common = np.transpose(several)
            row = {
                "view": kind, "strategy": strategy, "views": len(several),
                "psnr_db": rounded(decibels.mean()), "psnr_least_db": rounded(decibels.min()),
                "ssim": round(float(similar.mean()), 4),
                "ssim_least": round(float(similar.min()), 4),
                "pixels_percent": round(100 * float(common.mean()), 1),
            }  # fmt: skip
            print(name, *(f"{key}={value}" for key, value in row.items()), flush=True)
            rows.append(row)
    milliseconds = {
        strategy: round(1e3 * each.best_processor, 1) for strategy, each in timed.items()
    }
    print(name, *(f"{strategy}={value} ms" for strategy, value in milliseconds.items()), flush=True)
    return {"cloud": name, "points": len(places), "processor_ms": milliseconds, "views": rows}


def rounded(decibels):
    """Two digits; None where no picture differs, which is infinite."""
    return round(float(decibels), 2) if np.isfinite(decibels) else None


def ssim(found, truth):
    """Structural similarity of two pictures, over the pixels that both have."""
    both = np.isfinite(found[..., 0]) & np.isfinite(truth[..., 0])
    one, other = (np.where(both, each @ LUMINANCE, 0.0) for each in (found, truth))
    blurred = partial(gaussian_filter, sigma=SIGMA, truncate=RADIUS / SIGMA)
    mean, mean_other = blurred(one), blurred(other)
    spread = blurred(one**2) - mean**2
    spread_other = blurred(other**2) - mean_other**2
    together = blurred(one * other) - mean * mean_other
    index = (2 * mean * mean_other + K1**2) * (2 * together + K2**2)
    index /= (mean**2 + mean_other**2 + K1**2) * (spread + spread_other + K2**2)
    return float(index[both].mean())
