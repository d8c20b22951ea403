"""OWM by its definition: every window looks at every point. Imports nothing of spatialq."""

import math


def round_half_away(value):
    return math.floor(abs(value) + 0.5) * (1 if value >= 0 else -1)


def half_of(size, odd_sizes):
    """Integer division for whole sizes where it is to be as in the reference."""
    is_whole = odd_sizes == "reference" and size == int(size) and size >= 2
    return float(int(size) // 2) if is_whole else size / 2


def windows_along(low, high, size, overlap, odd_sizes):
    step = round_half_away(100.0 * size * (1.0 - overlap)) / 100.0
    extent = round_half_away(100.0 * (high - low)) / 100.0
    if overlap > 0:
        count = round_half_away((extent + 2 * size * overlap) / step) - 1
    else:
        count = math.floor(extent / size) + 1
    half = half_of(size, odd_sizes)
    centres = [(low - half + step) + i * step for i in range(int(count))]
    return [(centre - half, centre + half) for centre in centres]


def fill_cells_along(low, high, size, odd_sizes):
    extent = round_half_away(100.0 * (high - low)) / 100.0
    starts = [low + j * size for j in range(math.floor(extent / size) + 1)]
    return [(start, start + 2 * half_of(size, odd_sizes)) for start in starts]


def owm_ground(
    points, window_size=10.0, overlap=0.8, min_points=None, cell_size=20.0, bounds=None,
    corners=(), overlap_y=None, odd_sizes="exact",
):  # fmt: skip
    """Points are (point_id, x, y, z); returns {point_id: hits} of seeds and of filled points.

    `bounds` is the box whose points count, and the extent; `corners` are places (x, y) that the
    extent of the points has besides.
    """
    xs, ys = ([p[k + 1] for p in points] + [corner[k] for corner in corners] for k in (0, 1))
    if bounds is not None:
        xs, ys = bounds[0::2], bounds[1::2]
        points = [p for p in points if xs[0] <= p[1] <= xs[1] and ys[0] <= p[2] <= ys[1]]
    if not points:
        return {}, {}
    width = round_half_away(100.0 * (max(xs) - min(xs))) / 100.0
    height = round_half_away(100.0 * (max(ys) - min(ys))) / 100.0
    if min_points is None:
        area = width * height
        min_points = int(0.5 * len(points) / area * window_size**2) if area > 0 else 1
        min_points = max(1, min_points)

    def lowest_in(xlo, xhi, ylo, yhi):
        inside = [p for p in points if xlo < p[1] < xhi and ylo < p[2] < yhi]
        return len(inside), min(inside, key=lambda p: (p[3], p[0]), default=None)

    hits = {}
    overlap_y = overlap if overlap_y is None else overlap_y
    for xlo, xhi in windows_along(min(xs), max(xs), window_size, overlap, odd_sizes):
        for ylo, yhi in windows_along(min(ys), max(ys), window_size, overlap_y, odd_sizes):
            count, lowest = lowest_in(xlo, xhi, ylo, yhi)
            if lowest is not None and count >= min_points:
                hits[lowest[0]] = hits.get(lowest[0], 0) + 1
    needed = 1 if overlap == overlap_y == 0 else 2
    seeds = {point_id: n for point_id, n in hits.items() if n >= needed}
    filled = {}
    if cell_size > 0:
        place = {p[0]: p for p in points}
        for xlo, xhi in fill_cells_along(min(xs), max(xs), cell_size, odd_sizes):
            for ylo, yhi in fill_cells_along(min(ys), max(ys), cell_size, odd_sizes):
                seeded = any(xlo < place[s][1] < xhi and ylo < place[s][2] < yhi for s in seeds)
                _, lowest = lowest_in(xlo, xhi, ylo, yhi)
                if lowest is not None and not seeded:
                    filled[lowest[0]] = hits.get(lowest[0], 0)
    return seeds, filled
