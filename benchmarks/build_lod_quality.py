"""How near pictures of the octree come to those of all points, by strategy: mean PSNR of views.

python benchmarks/build_lod_quality.py [CLOUD ...] [--points N] [--pictures FOLDER]

As in section 6.2 and table 2 of Schütz et al. 2023. The reference of a view has all points of the
cloud; the others the nodes that the view needs so that a voxel is at most a pixel. Both are drawn
with blending: a pixel has the mean colour of what is at most 1 % farther than its nearest point.
Errors are those of the pixels that both pictures have, in colours from 0 to 1; they are the same
pixels for all strategies.

The scene is generated: hills under writing, stripes and speckles much finer than a pixel, walls
with posters, two scans of different exposure one after the other. CLOUD is a coloured LAS or LAZ
file of one's own.
"""

import argparse
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
from build_lod import of_file
from numba import njit
from spatialq.udfs.build_lod import MAX_GRID, Options, Strategy, cpu
from spatialq.udfs.build_lod.tree import Cube, Points

WIDTH, HEIGHT = 960, 540
FOV = np.radians(40.0)  # of the height
FOCAL = HEIGHT / 2 / np.tan(FOV / 2)
BEHIND = 1.01
AZIMUTHS = 6
VIEWS = {"zoomed out": 1.0, "closer": 0.5}  # share of the cloud's width in the picture
WALLS = 14


class View(NamedTuple):
    eye: np.ndarray
    axes: np.ndarray  # right, down, forward


def look(eye, target):
    forward = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    return View(eye, np.array([right, np.cross(forward, right), forward]))


def views(points, share):
    """Look at a cloud from several sides, so that a share of it fills the picture."""
    places = np.column_stack([points.x, points.y, points.z])
    low, high = np.percentile(places, [1, 99], axis=0)
    target, reach = (low + high) / 2, share * np.linalg.norm((high - low)[:2]) / 2
    far = reach / np.tan(FOV / 2)
    for k in range(AZIMUTHS):
        around, up = 2 * np.pi * (k + 0.3) / AZIMUTHS, np.radians((25, 40, 60)[k % 3])
        aside = reach * (1 - share) * np.array([np.cos(3 * around), np.sin(3 * around), 0])
        direction = [np.cos(around) * np.cos(up), np.sin(around) * np.cos(up), np.sin(up)]
        yield look(target + aside + far * np.array(direction), target + aside)


@njit(nogil=True)
def nearest(places, eye, axes, focal, depth, pixel, distance):
    """Find the pixel of each point, and the nearest point of each pixel."""
    height, width = depth.shape
    for i in range(len(places)):
        pixel[i] = -1
        x = y = z = 0.0
        for k in range(3):
            d = places[i, k] - eye[k]
            x += d * axes[0, k]
            y += d * axes[1, k]
            z += d * axes[2, k]
        if z > 0:
            u, v = focal * x / z + width / 2, focal * y / z + height / 2
            if 0 <= u < width and 0 <= v < height:
                pixel[i] = int(v) * width + int(u)
                distance[i] = z
                depth[int(v), int(u)] = min(depth[int(v), int(u)], z)


@njit(nogil=True)
def blend(colours, pixel, distance, depth, behind, sums):
    """Add the colours of points that are not far behind the nearest."""
    width = depth.shape[1]
    for i in range(len(pixel)):
        if pixel[i] >= 0:
            row, column = divmod(pixel[i], width)
            if distance[i] <= behind * depth[row, column]:
                for c in range(3):
                    sums[row, column, c] += colours[i, c]
                sums[row, column, 3] += 1


def picture(places, colours, view):
    """Draw points of the colours uint16[n, 3]: float64[height, width, 3], NaN where nothing is."""
    depth, sums = np.full((HEIGHT, WIDTH), np.inf), np.zeros((HEIGHT, WIDTH, 4))
    pixel, distance = np.empty(len(places), np.int64), np.empty(len(places))
    nearest(places, view.eye, view.axes, FOCAL, depth, pixel, distance)
    blend(colours, pixel, distance, depth, BEHIND, sums)
    with np.errstate(invalid="ignore"):
        return sums[..., :3] / sums[..., 3:] / 65535


def cells(code):
    """Take Morton codes apart: int64[n, 3]."""
    steps = 3 * np.arange(MAX_GRID.bit_length() - 1)[:, None]
    axes = [((code >> (steps + shift) & 1) << steps // 3).sum(axis=0) for shift in (2, 1, 0)]
    return np.column_stack(axes)


def select(tree, points, places, cube, options, view):
    """Places and colours of the samples that a view needs: section 5."""
    edge = cube.size / 2.0**tree.level
    low = np.array([cube.x0, cube.y0, cube.z0]) + tree.cell * edge[:, None]
    off = np.maximum(np.maximum(low - view.eye, view.eye - low - edge[:, None]), 0)
    spacing = edge / options.grid_size
    is_refined = spacing * FOCAL > np.linalg.norm(off, axis=1)
    is_drawn = np.zeros(len(edge), bool)
    chosen = []
    for node, parent in enumerate(tree.parent):  # which comes before
        is_drawn[node] = parent < 0 or (is_drawn[parent] and is_refined[parent])
        if not is_drawn[node]:
            continue
        if tree.children[node] == 0:
            inside = tree.order[tree.first[node] : tree.first[node] + tree.points[node]]
            chosen.append((places[inside], points.colour[inside, :3]))
        elif not is_refined[node]:  # else its children stand for it, in all octants
            span = slice(tree.voxel_first[node], tree.voxel_first[node + 1])
            middles = low[node] + (cells(tree.code[span]) + 0.5) * spacing[node]
            chosen.append((middles, tree.colour[span, :3]))
    return (np.concatenate(each) for each in zip(*chosen, strict=True))


GLYPHS = np.random.default_rng(5).random((32, 7, 5)) < 0.5
PAPER = np.array([0.95, 0.95, 0.9])
INKS = np.array([[0.05, 0.05, 0.1], [0.8, 0.1, 0.1], [0.1, 0.3, 0.7]])


def is_written(u, v, letter):
    """Whether there is ink where letters of a width are written in lines."""
    column, row = np.floor(u / letter), np.floor(v / (1.5 * letter))
    which = (column * 7 + row * 13 + (column * row) % 11).astype(int) % len(GLYPHS)
    across = np.floor((u / letter - column) * 6).astype(int)
    down = np.floor((v / (1.5 * letter) - row) * 9).astype(int)
    is_inside = (across < 5) & (down < 7)
    return is_inside & GLYPHS[which, np.minimum(down, 6), np.minimum(across, 4)]


def painted(u, v):
    """Colours of a surface: fields of 12 m with writing, stripes, squares or speckles."""
    i, j = np.floor(u / 12).astype(int), np.floor(v / 12).astype(int)
    field = 5 * i + 3 * j
    written = is_written(u, v, 0.5 + 0.4 * (field % 4))
    stripes = np.floor((u + 0.4 * v) / (0.1 + 0.1 * (field % 4))) % 2 == 0
    squares = (np.floor(u / 0.4) + np.floor(v / 0.4)) % 2 == 0
    speckles = np.sin(9 * u) * np.sin(8.3 * v) + 0.5 * np.sin(31 * u + 17 * v) > 0.4
    is_inked = np.choose((i + 3 * j) % 4, [written, stripes, squares, speckles])
    paper = PAPER * (0.6 + 0.1 * (field % 5))[:, None]
    return np.where(is_inked[:, None], INKS[field % 3], paper)


def scene(n, seed=1):
    """Points of hills of 100 m with walls on them: two scans, the second a quarter darker."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(0, 100, (2, n))
    u, v, above = x.copy(), y.copy(), np.zeros(n)
    on_wall = rng.random(n) < 0.3
    which = rng.integers(0, WALLS, on_wall.sum())
    (west, south), turn = rng.uniform(10, 80, (2, WALLS)), rng.uniform(0, np.pi, WALLS)
    along, above[on_wall] = rng.uniform(0, 20, which.size), rng.uniform(0, 9, which.size)
    x[on_wall] = west[which] + along * np.cos(turn[which])
    y[on_wall] = south[which] + along * np.sin(turn[which])
    u[on_wall], v[on_wall] = along + 30 * which, above[on_wall]
    z = 6 * np.sin(x / 17) * np.cos(y / 23) + above
    places = np.array([x, y, z]) + rng.normal(0, 0.01, (3, n))
    exposure = np.where(np.arange(n) < n // 2, 1.0, 0.75)[:, None]
    shades = (painted(u, v) + rng.normal(0, 0.05, (n, 3))) * exposure
    colour = np.zeros((n, 4), np.uint16)
    colour[:, :3] = np.clip(shades, 0, 1) * 65535
    return Points(*places, colour, np.arange(n))


def psnr(found, truth):
    """Peak signal-to-noise ratio in decibels, and the share of the pixels that it is of.

    Of pictures without a difference it is infinite.
    """
    is_truth, is_found = (np.isfinite(each[..., 0]) for each in (truth, found))
    both = is_truth & is_found
    error = ((found - truth)[both] ** 2).mean()
    with np.errstate(divide="ignore"):
        return -10 * np.log10(error), both.sum() / is_truth.sum()


def save(pictures, target):
    from PIL import Image

    rows = [np.nan_to_num(each, nan=1.0) for each in pictures]
    Image.fromarray((np.concatenate(rows) * 255).astype(np.uint8)).save(target)


def report(name, points, folder):
    places = np.column_stack([points.x, points.y, points.z])
    cube = Cube.around(places.min(axis=0), places.max(axis=0))
    trees = {
        strategy: cpu.build(points, cube, Options(strategy=strategy))
        for strategy in get_args(Strategy)
    }
    for kind, share in VIEWS.items():
        measures = {strategy: [] for strategy in trees}
        counts = []
        for k, view in enumerate(views(points, share)):
            pictures = [picture(places, points.colour[:, :3], view)]
            for strategy, tree in trees.items():
                at, colours = select(tree, points, places, cube, Options(), view)
                counts.append(len(at))
                pictures.append(picture(at, colours, view))
                measures[strategy].append(psnr(pictures[-1], pictures[0]))
            if folder and k == 1:
                save(pictures, folder / f"{name}, {kind}.png")
        print(f"{name}, {kind}: {len(places)} points, {np.mean(counts):.0f} drawn of the octree")
        for strategy, several in measures.items():
            decibels, common = np.transpose(several)
            print(
                f"  {strategy:9} {decibels.mean():6.2f} dB ({decibels.min():.2f} to "
                f"{decibels.max():.2f}), {100 * common.mean():.1f} % of the pixels"
            )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("clouds", nargs="*", help="LAS or LAZ files with colours")
    parser.add_argument("--points", type=int, default=8_000_000, help="of the generated scene")
    parser.add_argument("--pictures", type=Path, help="folder for a picture of each kind of view")
    arguments = parser.parse_args()
    report("scene", scene(arguments.points), arguments.pictures)
    for path in arguments.clouds:
        report(Path(path).stem, of_file(path), arguments.pictures)


if __name__ == "__main__":
    main()
