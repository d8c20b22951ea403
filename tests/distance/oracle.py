"""`distance` as slow and obvious code: exact fractions, every pair of triangles."""

from fractions import Fraction
from functools import cache
from itertools import combinations
from math import dist, inf, sqrt


def rows(a, b, *, max_distance=None, k=None):
    """What `distance` gives: (row of a, row of b, distance)."""
    within = b is None
    found = []
    for i, one in enumerate(a):
        nearest = []
        for j, other in enumerate(a if within else b):
            if not (one[1] and other[1]) or (within and (i == j if k else i >= j)):
                continue
            distance = element_distance(one, other)
            if max_distance is None or distance <= max_distance:
                nearest.append((distance, j))
        if k:
            nearest = sorted(nearest)[:k]
        found += [(i, j, distance) for distance, j in nearest]
    return found


def element_distance(one, other):
    """0 if a part of one is inside the other, else the least distance of two triangles."""
    a, b = corners(one), corners(other)
    nearest = inf
    # exact measures are slow: those whose boxes are near each other first, and then no more
    for gap, p, q in sorted((box_gap(p, q), p, q) for p in a for q in b):
        if gap >= nearest * (1 - 1e-12):
            break
        nearest = min(nearest, triangle_distance(p, q))
    for inner, outer in ((a, b), (b, a)):
        if nearest and any(is_inside(p, outer) for p in {p for t in inner for p in t}):
            return 0.0
    return nearest


def corners(mesh):
    vertices, faces = mesh
    return [tuple(tuple(map(float, vertices[v])) for v in face) for face in faces]


def box_gap(a, b):
    gaps = (
        max(min(q) - max(p), min(p) - max(q), 0.0) for p, q in zip(axes(a), axes(b), strict=True)
    )
    return dist((0.0, 0.0, 0.0), tuple(gaps))


def axes(corners):
    return zip(*corners, strict=True)


def is_inside(point, triangles):
    """Whether a closed surface, whichever side is out, goes round a point that is not on it."""
    edges = [(t[i], t[i - 1]) for t in triangles for i in range(3)]
    if sorted(edges) != sorted((q, p) for p, q in edges):
        return False
    ray = (Fraction(1, 7), Fraction(3, 11), Fraction(1))  # meets no edge of any case
    turns = 0
    for triangle in triangles:
        u, v, w = (
            tuple(Fraction(x) - Fraction(y) for x, y in zip(corner, point, strict=True))
            for corner in triangle
        )
        if u == v == w:
            continue  # a point
        sides = [triple(ray, u, v), triple(ray, v, w), triple(ray, w, u)]
        assert all(sides) or min(sides) < 0 < max(sides)
        if (min(sides) > 0 or max(sides) < 0) and triple(u, v, w) * sides[0] > 0:
            turns += 1 if sides[0] > 0 else -1
    return turns != 0


def triple(u, v, w):
    return (
        u[0] * (v[1] * w[2] - v[2] * w[1])
        + u[1] * (v[2] * w[0] - v[0] * w[2])
        + u[2] * (v[0] * w[1] - v[1] * w[0])
    )


@cache
def triangle_distance(a, b):
    """The least distance of two triangles, rounded once.

    It is that of the origin and the convex hull of the nine differences of their corners, so
    of the origin and a corner, an edge, a face or a tetrahedron of these (Caratheodory).
    """
    points = [
        tuple(Fraction(p) - Fraction(q) for p, q in zip(x, y, strict=True)) for x in a for y in b
    ]
    found = (square_to(some) for n in (1, 2, 3, 4) for some in combinations(set(points), n))
    return sqrt(min(square for square in found if square is not None))


def square_to(corners):
    """The squared distance of the origin and a simplex, None where its boundary is nearest."""
    start, *others = corners
    sides = [tuple(x - y for x, y in zip(other, start, strict=True)) for other in others]
    shares = solve([[dot(u, v) for v in sides] for u in sides], [-dot(u, start) for u in sides])
    if shares is None or sum(shares) > 1 or any(share < 0 for share in shares):
        return None
    foot = [
        x + sum(share * side[axis] for share, side in zip(shares, sides, strict=True))
        for axis, x in enumerate(start)
    ]
    return dot(foot, foot)


def solve(matrix, right):
    """Gauss elimination; None where the matrix is singular."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i in range(len(rows)):
        pivot = next((k for k in range(i, len(rows)) if rows[k][i]), None)
        if pivot is None:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for k, row in enumerate(rows):
            if k != i:
                rows[k] = [x - row[i] * y for x, y in zip(row, rows[i], strict=True)]
    return [row[-1] for row in rows]


def dot(u, v):
    return sum(x * y for x, y in zip(u, v, strict=True))
