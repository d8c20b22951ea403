"""How fast points are reprojected against a plain loop over pyproj, in one run.

Rates are given as ratios to the loop, whose time is taken anew in each round: a ratio above 1 is
faster. Run it as ``python benchmarks/reproject.py --points 4000000``.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import duckdb
import numpy as np
from pyproj import Transformer

import spatialq
from spatialq.io.crs import from_text
from spatialq.io.reproject import reprojection

PAIRS = [
    ("EPSG:25832", "EPSG:4258"),
    ("EPSG:25832", "EPSG:25833"),
    ("EPSG:31467", "EPSG:25832"),
]
BOX = {"EPSG:25832": (4e5, 5.5e6, 6e5, 5.7e6), "EPSG:31467": (3.4e6, 5.5e6, 3.6e6, 5.7e6)}
CHUNK = 122_880


def seconds(work: Callable[[], object]) -> float:
    """Take the time of a call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(con: duckdb.DuckDBPyConnection, source: str, target: str, n: int, rounds: int) -> str:
    """Measure a pair of systems."""
    west, south, east, north = BOX[source]
    random = np.random.default_rng(1)
    points = random.uniform(west, east, n), random.uniform(south, north, n), np.zeros(n)
    parts = [[axis[first : first + CHUNK] for axis in points] for first in range(0, n, CHUNK)]
    move = reprojection("benchmark", from_text(source), from_text(target))
    plain = Transformer.from_pipeline(move.pipeline)
    con.register("given", dict(zip("xyz", points, strict=True)))
    con.execute("CREATE OR REPLACE TABLE points AS FROM given")
    query = (
        f"SELECT max(t.x), max(t.y) FROM (SELECT spatialq_transform(x, y, z, '{source}', "
        f"'{target}') AS t FROM points)"
    )
    times = [
        (
            seconds(lambda: [plain.transform(x, y) for x, y, _ in parts]),
            seconds(lambda: [move(*part) for part in parts]),
            seconds(lambda: con.execute(query).fetchall()),
        )
        for _ in range(rounds)
    ]
    rate = n / statistics.median(each[0] for each in times) / 1e6
    ratios = [statistics.median(each[0] / each[k] for each in times) for k in (1, 2)]
    return (
        f"{source} -> {target}: pyproj {rate:.2f} M points/s; times that: readers "
        f"{ratios[0]:.2f}, spatialq_transform {ratios[1]:.2f}"
    )


def main() -> None:
    """Measure each pair of systems."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with spatialq.connect() as con:
        for source, target in PAIRS:
            print(measure(con, source, target, given.points, given.rounds))


if __name__ == "__main__":
    main()
