"""Broad phase of `intersects_with`: R-tree, a sweep along x and a join in DuckDB.

python benchmarks/broad_phase.py [MODEL.ifc] [--elements 800 8000 40000 160000] [--repeat 3]

Boxes are those of a model's elements, copied side by side, or of random buildings. All times of a
line are from one run, in which the methods take turns; growth is that of the R-tree's time over
that of n log n since the line before.
"""

import argparse
from math import log

import duckdb
import numpy as np
import pyarrow as pa
from measure import in_turns
from numba import njit

import spatialq
from spatialq.geometry import rtree
from spatialq.runtime.threads import n_threads

DISTANCE = 0.001
MAX_FOR_JOIN = 8_000  # elements; the join looks at all pairs
MAX_FOR_SWEEP = 40_000


def of_model(path):
    """Boxes of the elements of a model, without spaces and openings."""
    columns = "xmin", "ymin", "zmin", "xmax", "ymax", "zmax"
    with spatialq.connect() as con:
        found = con.execute(
            f"SELECT {', '.join(columns)} FROM read_ifc(?) "
            "WHERE ifc_class NOT IN ('IfcSpace', 'IfcOpeningElement')",
            [path],
        ).fetchnumpy()
    return np.column_stack([found[name] for name in columns]).astype(np.float64)


def random_building(n=800):
    """Boxes in a building of 60 x 30 x 10 m: walls, slabs and many small parts."""
    rng = np.random.default_rng(1)
    low = rng.random((n, 3)) * [60.0, 30.0, 10.0]
    extent = np.exp(rng.normal(-1.0, 0.8, (n, 3)))
    kind = rng.random(n)
    extent[kind < 0.25] = [4.0, 0.2, 3.0]
    extent[(kind >= 0.25) & (kind < 0.5)] = [0.2, 4.0, 3.0]
    extent[kind > 0.97] = [30.0, 30.0, 0.3]
    return np.hstack([low, low + extent])


def copies(boxes, n):
    """Put copies side by side in a square until there are n boxes."""
    count = -(-n // len(boxes))
    columns = int(np.ceil(np.sqrt(count)))
    step = boxes[:, 3:].max(axis=0) - boxes[:, :3].min(axis=0) + 5.0
    place = np.arange(count)
    shift = np.column_stack([place % columns, place // columns, 0 * place]) * step
    return (boxes + np.tile(shift, 2)[:, None]).reshape(-1, 6)[:n]


@njit(cache=True)
def sweep(boxes, distance):
    """Count pairs of boxes, sorted by xmin, by looking ahead as far as they reach."""
    n = 0
    for a in range(boxes.shape[0]):
        for b in range(a + 1, boxes.shape[0]):
            if boxes[b, 0] - boxes[a, 3] > distance:
                break
            n += (
                (boxes[b, 1] - boxes[a, 4] <= distance)
                & (boxes[a, 1] - boxes[b, 4] <= distance)
                & (boxes[b, 2] - boxes[a, 5] <= distance)
                & (boxes[a, 2] - boxes[b, 5] <= distance)
            )
    return n


def join(boxes):
    """Count pairs of boxes with a join of DuckDB."""
    names = "x0", "y0", "z0", "x1", "y1", "z1"
    table = pa.table({"id": np.arange(len(boxes)), **dict(zip(names, boxes.T, strict=True))})
    with duckdb.connect() as con:
        con.register("boxes", table)
        apart = " AND ".join(
            f"b.{axis}0 - a.{axis}1 <= {DISTANCE} AND a.{axis}0 - b.{axis}1 <= {DISTANCE}"
            for axis in "xyz"
        )
        query = f"SELECT count(*) FROM boxes a JOIN boxes b ON a.id < b.id AND {apart}"
        return con.sql(query).fetchall()[0][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--elements", type=int, nargs="+", default=[800, 8000, 40_000, 160_000])
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    building = of_model(arguments.model) if arguments.model else random_building()
    rtree.pairs(building[:9], None, DISTANCE)  # compiles
    sweep(building[:9], DISTANCE)
    print(f"{n_threads()} threads; sweep and join as multiples of the R-tree")
    print(f"{'elements':>9} {'pairs':>9} {'R-tree':>10} {'sweep':>7} {'join':>7} growth")
    before = None
    for n in arguments.elements:
        boxes = copies(building, n)
        tasks = {"rtree": lambda boxes=boxes: len(rtree.pairs(boxes, None, DISTANCE)[0])}
        if n <= MAX_FOR_SWEEP:
            tasks["sweep"] = lambda boxes=boxes: sweep(boxes[np.argsort(boxes[:, 0])], DISTANCE)
        if n <= MAX_FOR_JOIN:
            tasks["join"] = lambda boxes=boxes: join(boxes)
        timed = in_turns(tasks, arguments.repeat, warm_up=False, keep=True)
        seconds = {name: each.best for name, each in timed.items()}
        found = {name: each.results[-1] for name, each in timed.items()}
        assert len(set(found.values())) == 1, found
        own = seconds.pop("rtree")
        cost = own / (n * log(n))
        ratios = [
            f"{seconds[name] / own:7.1f}" if name in seconds else "      -"
            for name in ("sweep", "join")
        ]
        growth = f"{cost / before:6.2f}" if before else "     -"
        print(f"{n:9,} {found['rtree']:9,} {own * 1e3:7.1f} ms", *ratios, growth)
        before = cost


if __name__ == "__main__":
    main()
