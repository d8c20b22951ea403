"""Terrain grids by brute force: every cell against every triangle or point, in fractions.

The triangles are any that are Delaunay; which of them is right where four points lie on one
circle is open, so a cell has a set of right heights.
"""

from fractions import Fraction
from itertools import combinations
from math import ceil, floor


def lowest_of_each_place(points):
    places = {}
    for _, x, y, z in points:
        places[x, y] = min(z, places.get((x, y), z))
    return [(x, y, z) for (x, y), z in places.items()]


def centres(points, resolution):
    """Cell centres over the box of the points, north to south, west to east."""

    def along(values):
        first = floor(min(values) / resolution)
        last = max(first + 1, ceil(max(values) / resolution))
        return [(k + 0.5) * resolution for k in range(first, last)]

    if not points:
        return []
    xs, ys = along([p[1] for p in points]), along([p[2] for p in points])
    return [(x, y) for y in reversed(ys) for x in xs]


def side(a, b, p):
    return (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])


def delaunay(points):
    """All triangles with no point inside their circle, counterclockwise, in fractions.

    Circles are of the decimals that the coordinates stand for: four corners of a square of
    centimetres are on one circle, though not to the last bit.
    """
    exact = [tuple(map(Fraction, point)) for point in points]
    meant = [(round(1000 * x), round(1000 * y)) for x, y, _ in points]
    triangles = []
    for i, j, k in combinations(range(len(points)), 3):
        if side(meant[i], meant[j], meant[k]) < 0:
            j, k = k, j
        corners = meant[i], meant[j], meant[k]
        if side(*corners) != 0 and not any(in_circle(*corners, d) for d in meant):
            triangles.append((exact[i], exact[j], exact[k]))
    return triangles


def in_circle(a, b, c, d):
    rows = [(u[0] - d[0], u[1] - d[1]) for u in (a, b, c)]
    (ax, ay), (bx, by), (cx, cy) = rows
    aa, bb, cc = (x * x + y * y for x, y in rows)
    return aa * (bx * cy - by * cx) - bb * (ax * cy - ay * cx) + cc * (ax * by - ay * bx) > 0


def heights_in(triangles, p):
    """Heights at p of all triangles that contain it."""
    p = (Fraction(p[0]), Fraction(p[1]))
    heights = set()
    for a, b, c in triangles:
        if not all(min(a[k], b[k], c[k]) <= p[k] <= max(a[k], b[k], c[k]) for k in (0, 1)):
            continue
        to_a, to_b, to_c = side(b, c, p), side(c, a, p), side(a, b, p)
        if min(to_a, to_b, to_c) >= 0:
            heights.add((to_a * a[2] + to_b * b[2] + to_c * c[2]) / side(a, b, c))
    return heights


def squares(points, p):
    """Squared distance, height of each point, the nearest first."""
    return sorted(((x - p[0]) ** 2 + (y - p[1]) ** 2, z) for x, y, z in points)


def idw(points, p, neighbours):
    near = squares(points, p)[:neighbours]
    if near[0][0] == 0:
        return near[0][1]
    return sum(z / d for d, z in near) / sum(1 / d for d, _ in near)
