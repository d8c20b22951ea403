"""`distance` as slow and obvious code: exact fractions, every pair of triangles."""

from fractions import Fraction
from itertools import combinations
from math import sqrt


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
