"""Named ground points for `ground_surface`, as lists of (point_id, x, y, z); for every device."""

import random


def _scatter(n, seed, *, step=0.01, x0=0.0, y0=0.0, side=20.0):
    rng = random.Random(seed)
    cells = round(side / step)
    return [
        (i, x0 + rng.randint(0, cells) * step, y0 + rng.randint(0, cells) * step, rng.random() * 9)
        for i in range(n)
    ]


def _lattice(side, gap=1.0, x0=0.0, y0=0.0):
    """Every square has four corners on one circle; heights make its two diagonals differ."""
    return [
        (side * i + j, x0 + i * gap, y0 + j * gap, float((3 * i + 5 * j) % 7))
        for i in range(side)
        for j in range(side)
    ]


CASES = {
    "empty": ([], {}),
    "one point": ([(7, 3.2, 4.1, 5.0)], {}),
    "one point in a corner of cells": ([(7, 3.0, 4.0, 5.0)], {}),
    "two points": ([(1, 0.3, 0.2, 1.0), (2, 6.6, 3.3, 2.0)], {}),
    "three points": ([(1, 0.3, 0.2, 1.0), (2, 6.6, 3.3, 2.0), (3, 1.2, 7.7, 4.0)], {}),
    "a line along x": ([(i, i * 0.7, 2.5, float(i % 3)) for i in range(9)], {}),
    "a line along y": ([(i, 2.5, i * 0.7, float(i % 3)) for i in range(9)], {}),
    "a diagonal": ([(i, float(i), float(i), float(i)) for i in range(9)], {}),
    "all the same place": ([(i, 3.2, 4.1, 5.0 - i) for i in range(5)], {}),
    "each place twice": (
        [(i + 200 * k, x, y, z + k) for k in (1, 0) for i, x, y, z in _scatter(30, 1)],
        {},
    ),
    "scattered": (_scatter(30, 2), {}),
    "few": (_scatter(6, 3), {}),
    "fine cells": (_scatter(40, 4, side=5.0), {"resolution": 0.1}),
    "coarse cells": (_scatter(30, 5), {"resolution": 3.0}),
    "an odd resolution": (_scatter(30, 6), {"resolution": 0.7}),
    "utm": (_scatter(30, 7, x0=500_000.0, y0=5_800_000.0), {}),
    "negative": (_scatter(30, 8, x0=-10.0, y0=-5_000.5), {}),
    "a lattice": (_lattice(5), {}),
    "a lattice of cell centres": (_lattice(5, x0=0.5, y0=0.5), {}),
    "a lattice between the centres": (_lattice(5, gap=2.0, x0=0.25, y0=0.25), {}),
    "a utm lattice": (_lattice(5, gap=0.5, x0=714_947.25, y0=4_286_501.75), {"resolution": 0.5}),
    "centimetres in one cell": (_scatter(30, 9, side=0.9), {"resolution": 0.1}),
    "one neighbour": (_scatter(30, 10), {"neighbours": 1}),
    "more neighbours than points": (_scatter(7, 11), {"neighbours": 30}),
    "two islands": (
        [
            *_scatter(20, 12, side=5.0),
            *((i + 99, x + 20, y + 3, z) for i, x, y, z in _scatter(20, 13, side=5.0)),
        ],
        {},
    ),
}
