"""How fast neighbours are found and used, against SciPy's k-d tree in the same run.

    python benchmarks/neighbours.py [--points 1000000] [--repeat 3]

Processor time of all threads, the least of several turns, so that ratios do not depend on how many
cores there are or what else they do. Clouds: "survey", 10 points/m² on rough terrain with trees, in
the order of strips; "random", the same in any order; "scan", points whose density falls with the
square of the distance from a scanner. Per cloud: "tree" makes the search, "nearest" finds the 8
nearest of each point and the point itself, "within" those within a distance that a tenth of the
points has from the farthest of these; SciPy only counts them, as its lists would take longer.
"""

import argparse
import time

import numpy as np
from scipy.spatial import cKDTree

from spatialq.functions.catalogue import catalogue
from spatialq.geometry.neighbours import Neighbours

K = 9


def survey(n, rng):
    """Terrain with trees, in strips of 10 m."""
    side = np.sqrt(n / 10)
    x, y = rng.random((2, n)) * side
    z = 5 * np.sin(x / 20) + rng.normal(size=n) * 0.03 + (rng.random(n) < 0.3) * rng.random(n) * 15
    points = np.round(np.column_stack([x + 500_000, y + 5_400_000, z]), 2)
    return points[np.lexsort((y, x // 10))]


def scan(n, rng):
    """A room around a scanner, on rays in all directions."""
    rays = rng.normal(size=(n, 3))
    rays[:, 2] *= 0.3
    rays /= np.linalg.norm(rays, axis=1)[:, None]
    with np.errstate(divide="ignore"):
        reach = (np.array([15.0, 6.0, 1.6]) / np.abs(rays)).min(axis=1)
    return rays * reach[:, None] + rng.normal(size=(n, 3)) * 0.002


def timed(work, repeat):
    """Give the least processor time of several turns, and what the last one gave."""
    taken = []
    for _ in range(repeat):
        start = time.process_time()
        found = work()
        taken.append(time.process_time() - start)
    return min(taken), found


def call(function, points, **options):
    """Run a function's kernel on the CPU."""
    declared = catalogue()[function]
    x, y, z = np.ascontiguousarray(points.T)
    return lambda: declared.kernel("cpu")(x, y, z, None, declared.choose(options))


def make(kind, *given):
    """Make a search; there is nothing to compare."""
    kind(*given)


def works_of(points):
    """Say what is compared: the search, and the same of SciPy."""
    x, y, z = np.ascontiguousarray(points.T)
    rival, near = cKDTree(points), Neighbours(x, y, z)
    radius = float(np.quantile(rival.query(points, K)[0][:, -1], 0.1))
    farthest, counts = np.zeros(len(x)), np.zeros(len(x), np.int64)

    def gather(some):
        farthest[near.order[some.first : some.stop]] = some.squared[some.starts[1:] - 1]

    def count(some):
        m = some.stop - some.first
        counts[near.order[some.first : some.stop]] = np.diff(some.starts[: m + 1])

    def find():
        near.nearest(near.points, K, gather)
        return np.sqrt(farthest)

    def count_all():
        near.within(near.points, radius, count)
        return counts

    return {
        "tree": (lambda: make(Neighbours, x, y, z), lambda: make(cKDTree, points)),
        "nearest": (find, lambda: rival.query(points, K)[0][:, -1]),
        "within": (
            count_all, lambda: rival.query_ball_point(points, radius, return_length=True),
        ),
    }  # fmt: skip


def main(description, works_of):
    """Compare what is done with each cloud: pairs of calls of ours and of a rival.

    Results of the two that are arrays must be equal.
    """
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    n, rng = arguments.points, np.random.default_rng(1)
    ordered = survey(n, rng)
    clouds = {"survey": ordered, "random": ordered[rng.permutation(n)], "scan": scan(n, rng)}
    print(f"{n} points: seconds of processor time, and how many times as long the rival takes")
    for name, points in clouds.items():
        for what, (ours, theirs) in works_of(points).items():
            ours()  # compiled
            taken, found = timed(ours, arguments.repeat)
            of_rival, expected = timed(theirs, arguments.repeat)
            print(f"  {name:8}{what:16}{taken:8.2f} s{of_rival / taken:8.1f} x")
            if found is not None:
                np.testing.assert_allclose(found, expected, rtol=1e-12)


if __name__ == "__main__":
    main(__doc__, works_of)
