"""Named clouds for `owm_ground`, as lists of (point_id, x, y, z); used on every device."""

import random


def _scatter(n, seed, *, step=0.01, x0=0.0, y0=0.0, side=60.0, levels=400):
    """Points on a lattice of `step`, so that many lie on window borders and tie in z."""
    rng = random.Random(seed)
    cells = round(side / step)
    return [
        (
            point_id,
            x0 + rng.randint(0, cells) * step,
            y0 + rng.randint(0, cells) * step,
            rng.randint(0, levels) * 0.05,
        )
        for point_id in rng.sample(range(10 * n), n)
    ]


CASES = {
    "empty": ([], {}),
    "one point": ([(7, 3.0, 4.0, 5.0)], {}),
    "one point without overlap": ([(7, 3.0, 4.0, 5.0)], {"overlap": 0.0}),
    "all the same": ([(i, 3.0, 4.0, 5.0) for i in range(9)], {}),
    "a line along x": ([(i, float(i), 4.0, float(i % 3)) for i in range(40)], {}),
    "a line along y": ([(i, 4.0, float(i), float(i % 3)) for i in range(40)], {}),
    "a diagonal": ([(i, float(i), float(i), float(i % 5)) for i in range(50)], {}),
    "scattered": (_scatter(700, 1), {}),
    "on metre borders": (_scatter(700, 2, step=1.0), {}),
    "all of one height": (_scatter(400, 3, levels=0), {}),
    "utm": (_scatter(600, 4, x0=714947.98, y0=4286501.93), {}),
    "negative": (_scatter(600, 5, x0=-30.0, y0=-500000.0), {}),
    "two islands": (
        [
            *_scatter(60, 6, side=20.0),
            *((p + 900, x + 300, y + 200, z) for p, x, y, z in _scatter(60, 7)),
        ],
        {"min_points": 2},
    ),
    "two thirds": (_scatter(500, 8), {"overlap": 2 / 3}),
    "half": (_scatter(500, 9), {"overlap": 0.5}),
    "little overlap": (_scatter(500, 10), {"overlap": 0.3}),
    "no overlap": (_scatter(500, 11), {"overlap": 0.0}),
    "much overlap": (_scatter(200, 12, side=20.0), {"overlap": 0.93}),
    "odd window": (_scatter(500, 13), {"window_size": 15.0}),
    "odd window of the reference": (
        _scatter(500, 13),
        {"window_size": 15.0, "odd_sizes": "reference"},
    ),
    "less overlap along y": (_scatter(500, 23), {"overlap": 0.8, "overlap_y": 0.5}),
    "overlap along y only": (_scatter(500, 24), {"overlap": 0.0, "overlap_y": 2 / 3}),
    "overlap along x only": (_scatter(500, 25), {"overlap": 0.75, "overlap_y": 0.0}),
    "window with a fraction": (_scatter(500, 14), {"window_size": 7.5, "overlap": 0.75}),
    "window of one": (_scatter(500, 15, side=8.0), {"window_size": 1.0, "overlap": 0.5}),
    "odd cells": (_scatter(300, 16), {"cell_size": 7.0, "min_points": 20}),
    "odd cells of the reference": (
        _scatter(300, 16),
        {"cell_size": 7.0, "min_points": 20, "odd_sizes": "reference"},
    ),
    "no cells": (_scatter(300, 17), {"cell_size": 0.0}),
    "window larger than the cloud": (_scatter(300, 18, side=5.0), {"window_size": 50.0}),
    "bounds": (_scatter(500, 20), {"bounds": [-12.5, -40.0, 75.0, 61.3]}),
    "bounds of one point": ([(7, 3.0, 4.0, 5.0)], {"bounds": [0.0, 0.0, 30.0, 30.0]}),
    "bounds as wide as the cloud": (
        _scatter(500, 21, step=1.0),
        {"bounds": [0.0, 0.0, 60.0, 60.0], "window_size": 15.0},
    ),
    "bounds of a far larger survey": (
        _scatter(60, 22, x0=200.0, y0=80.0, side=20.0),
        {"bounds": [0.0, 0.0, 300.0, 200.0], "min_points": 3},
    ),
    "bounds without overlap": (
        _scatter(500, 23),
        {"bounds": [-3.0, -7.0, 66.0, 80.0], "overlap": 0.0},
    ),
    "one point is enough": (_scatter(60, 19), {"min_points": 1}),
}
