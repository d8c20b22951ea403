"""Ground by the steps of README.md, cell by cell in double precision; nothing of spatialq's.

The seeds are those of the brute force that `owm_ground` is tested against.
"""

import math

import numpy as np

from ..owm_ground.oracle import owm_ground


def in_disc(radius):
    steps = range(-math.floor(radius), math.floor(radius) + 1)
    return [(r, c) for r in steps for c in steps if r * r + c * c <= radius * radius]


def erode(z, radius, outside, pick=min):
    """Least value in the disc around each cell, and around cells so far outside the grid."""
    rows, columns = z.shape
    result = np.empty((rows + 2 * outside, columns + 2 * outside))
    for i in range(-outside, rows + outside):
        for j in range(-outside, columns + outside):
            result[i + outside, j + outside] = pick(
                z[i + r, j + c]
                for r, c in in_disc(radius)
                if 0 <= i + r < rows and 0 <= j + c < columns
            )
    return result


def opening(z, radius, outside=0):
    frame = erode(erode(z, radius, outside), radius, 0, max)
    return frame[outside : outside + z.shape[0], outside : outside + z.shape[1]]


def fill(z, known, first=(0, 0)):
    """Pyramid of means, bilinear on the way down, eight damped Jacobi sweeps a level.

    Each 2 x 2 begins at an even row and column, where `first` is that of the first cell; where
    there are but one or two rows (columns), at the first one.
    """
    if max(z.shape) == 1:
        return np.where(known, z, 0.0)
    begin = [number % 2 if n > 2 else 0 for n, number in zip(z.shape, first, strict=True)]
    pairs = [(np.arange(n) + b) // 2 for n, b in zip(z.shape, begin, strict=True)]
    shape = pairs[0][-1] + 1, pairs[1][-1] + 1
    coarse, coarse_known = np.zeros(shape), np.zeros(shape, bool)
    for i, j in np.ndindex(shape):
        block = np.ix_(pairs[0] == i, pairs[1] == j)
        if known[block].any():
            coarse[i, j], coarse_known[i, j] = z[block][known[block]].mean(), True
    coarse = fill(coarse, coarse_known, [math.floor(number / 2) for number in first])
    filled = np.array(z, float)
    for i, j in np.argwhere(~known):
        # where it lies among the coarse cells
        r, c = (i + begin[0] - 0.5) / 2, (j + begin[1] - 0.5) / 2
        filled[i, j] = sum(
            (1 - abs(r - p)) * (1 - abs(c - q))
            * coarse[min(max(p, 0), shape[0] - 1), min(max(q, 0), shape[1] - 1)]
            for p in (math.floor(r), math.floor(r) + 1)
            for q in (math.floor(c), math.floor(c) + 1)
        )  # fmt: skip
    for _ in range(8):
        before = np.pad(filled, 1, mode="edge")
        for i, j in np.argwhere(~known):
            around = (
                before[i, j + 1] + before[i + 2, j + 1] + before[i + 1, j] + before[i + 1, j + 2]
            )
            filled[i, j] += 0.8 * (around / 4 - filled[i, j])
    return filled


def box_mean(z, radius):
    for axis in (1, 0):
        widths = [(radius, radius) if k == axis else (0, 0) for k in (0, 1)]
        padded = np.pad(z, widths, mode="edge")
        z = np.lib.stride_tricks.sliding_window_view(padded, 2 * radius + 1, axis).mean(axis=-1)
    return z


def planes(z, cell):
    """Slopes along x and y and rms of the least-squares plane through 3 x 3 cells."""
    padded = np.pad(z, 1, mode="edge")
    y, x = np.mgrid[-1:2, -1:2] * cell
    matrix = np.column_stack([x.ravel(), y.ravel(), np.ones(9)])
    result = np.empty((3, *z.shape))
    for i, j in np.ndindex(z.shape):
        values = padded[i : i + 3, j : j + 3].ravel()
        solution = np.linalg.lstsq(matrix, values, rcond=None)[0]
        rest = values - matrix @ solution
        result[:, i, j] = solution[0], solution[1], math.sqrt((rest**2).mean())
    return result


def objects(z, cell, object_width):
    flags = np.zeros(z.shape, bool)
    for radius in range(1, math.floor(object_width / 2 / cell) + 1):
        opened = opening(z, radius, math.floor(0.1 * radius))
        flags |= z - opened > 0.08 * radius * cell
        z = opened
    return flags


def grow(z, plane, ground, cell):
    for _ in range(5):
        before = ground.copy()
        for i, j in np.argwhere(~before):
            n = 0
            for r in range(max(i - 1, 0), min(i + 2, z.shape[0])):
                for c in range(max(j - 1, 0), min(j + 2, z.shape[1])):
                    if before[r, c] and plane[2, r, c] <= 0.15:
                        slope = (plane[:2, r, c] + plane[:2, i, j]) / 2
                        rise = slope[0] * (c - j) * cell + slope[1] * (r - i) * cell
                        n += abs(z[r, c] - z[i, j] - rise) <= 0.15
            ground[i, j] = plane[2, i, j] <= 0.15 and n >= 2
    return ground


def extend(z, plane, ground, known, above, cell):
    for _ in range(4):
        before = ground.copy()
        for i, j in np.argwhere(~before & known & (above >= 1)):
            cells = []  # direction in eighths of a turn, whether it is ground, whether that fits
            for r, c in in_disc(6 / cell):
                p, q = i + r, j + c
                if (r, c) == (0, 0) or not (0 <= p < z.shape[0] and 0 <= q < z.shape[1]):
                    continue
                if known[p, q]:
                    at_cell = z[p, q] - (plane[0, p, q] * c + plane[1, p, q] * r) * cell
                    meets = abs(z[i, j] - at_cell) <= 0.2 + 0.15 * math.hypot(r, c) * cell
                    octant = math.floor(math.degrees(math.atan2(r, c)) % 360 / 45 + 1e-9) % 8
                    cells.append((octant, before[p, q], before[p, q] and meets))
            for first in range(8):
                half = [each for each in cells if (each[0] - first) % 8 < 4]
                n_ground, n_met = (sum(each[k] for each in half) for k in (1, 2))
                if n_met >= 3 and n_met >= 0.9 * n_ground and n_met >= 0.25 * len(half):
                    ground[i, j] = True
    return ground


def join_cliffs(z, ground, known, above, cell):
    before = ground.copy()
    for i, j in np.argwhere(~before & known & (above >= 2)):
        for dr, dc in ((0, 1), (1, -1), (1, 0), (1, 1)):
            length = math.hypot(dr, dc) * cell
            ends = []
            for way in (1, -1):
                for s in range(1, math.floor(6 / length + 1e-6) + 1):
                    r, c = i + way * s * dr, j + way * s * dc
                    if not (0 <= r < z.shape[0] and 0 <= c < z.shape[1]):
                        break
                    if before[r, c]:
                        ends.append((z[r, c], s * length))
                        break
            if len(ends) == 2:
                (foot, to_foot), (top, to_top) = sorted(ends)
                steep = top - foot >= to_foot + to_top
                if steep and foot - 0.1 <= z[i, j] <= top + 0.1 + 0.05 * to_top:
                    ground[i, j] = True
    return ground


def rung(spacing):
    """The nearest of the powers of two and of four spacings between each and the next."""
    if spacing == 0:
        return 0.0
    power = 2.0 ** math.floor(math.log2(spacing))
    return min((power * (1 + k / 5) for k in range(6)), key=lambda each: abs(each - spacing))


def limits(slope, max_distance, distance_per_slope):
    """How far below and above the terrain ground may be."""
    most = max_distance + distance_per_slope * slope
    return -2 * most, most


def is_near(above, slope, *rule):
    low, high = limits(slope, *rule)
    return (above <= high) & (above >= low)


def classify_ground(
    points, window_size=10.0, overlap=0.8, min_points=None, cell_size=20.0, object_width=60.0,
    max_distance=0.4, distance_per_slope=0.85, unit=1.0,
):  # fmt: skip
    """Points are (point_id, x, y, z); returns {point_id: (height, is ground, margin)}."""
    if not points:
        return {}
    points = [(p, x * unit, y * unit, z * unit) for p, x, y, z in points]
    xs, ys = [p[1] for p in points], [p[2] for p in points]
    west, south = min(xs), min(ys)
    box = (max(xs) - west) * (max(ys) - south)
    side = max(10.0, 3 * rung(math.sqrt(box / len(points))))
    squares = {(math.floor(y / side), math.floor(x / side)) for _, x, y, _ in points}
    area = min(box, side**2 * len(squares))
    spacing = rung(math.sqrt(area / len(points)))
    cell = max(1.0, 0.5 * spacing)
    west, south = math.floor(west / cell) * cell, math.floor(south / cell) * cell
    shape = int((max(ys) - south) / cell) + 1, int((max(xs) - west) / cell) + 1

    lowest = {}
    for p, x, y, z in points:
        key = int((y - south) / cell), int((x - west) / cell)
        lowest[key] = min(lowest.get(key, (math.inf, 0)), (z, p))
    level = float(np.median([z for z, _ in lowest.values()]))
    low, known = np.zeros(shape), np.zeros(shape, bool)
    for key, (z, _) in lowest.items():
        low[key], known[key] = min(max(z - level, -1e5), 1e5), True
    first = round(south / cell), round(west / cell)
    surface = fill(low, known, first)
    known &= ~(-opening(-surface, 1) - surface > 5 * cell)
    surface = fill(low, known, first)

    cut = objects(surface, cell, object_width)
    window_size = max(window_size, 8 * cell)
    cell_size = max(cell_size, 2 * window_size) if cell_size else 0.0
    density = 1 / spacing**2 if area else 0.0
    needed = min_points or max(1, int(0.5 * density * window_size**2))
    apart = cell_size or math.floor(100 * window_size * (1 - overlap) + 0.5) / 100
    corners = [
        (math.floor(west / apart) * apart, math.floor(south / apart) * apart),
        (west + shape[1] * cell, south + shape[0] * cell),
    ]
    seeds, filled = owm_ground(points, window_size, overlap, needed, cell_size, corners=corners)
    is_support = np.zeros(shape, bool)
    for key, (_, p) in lowest.items():
        is_support[key] = p in {**seeds, **filled} and known[key] and not cut[key]
    base = fill(surface, is_support, first)
    for _ in range(2):
        base = box_mean(base, round(15 / cell))
    cut &= objects(surface - base, cell, object_width)

    above = surface - fill(low, known & ~cut, first)
    plane = planes(surface, cell)
    ground = grow(surface, plane, ~cut, cell) & known
    ground = extend(surface, plane, ground, known, above, cell)
    ground = join_cliffs(surface, ground, known, above, cell)
    rule = max_distance, distance_per_slope
    for left in reversed(range(7)):
        terrain = fill(low, ground, first)
        slope = np.hypot(*planes(terrain, cell)[:2])
        again = known & is_near(low - terrain, slope, *rule)
        if left == 0 or (again == ground).all():
            break
        ground = again

    def at(grid, x, y):
        u = min(max((x - west) / cell - 0.5, 0), shape[1] - 1)
        v = min(max((y - south) / cell - 0.5, 0), shape[0] - 1)
        return sum(
            (1 - abs(v - r)) * (1 - abs(u - c)) * grid[min(r, shape[0] - 1), min(c, shape[1] - 1)]
            for r in (int(v), int(v) + 1)
            for c in (int(u), int(u) + 1)
        )

    result = {}
    for p, x, y, z in points:
        height = z - level - at(terrain, x, y)
        low, high = limits(at(slope, x, y), *rule)
        nearest = min(abs(height - low), abs(height - high))
        is_ground = low <= height <= high
        result[p] = height / unit, is_ground, (nearest if is_ground else -nearest) / unit
    return result
