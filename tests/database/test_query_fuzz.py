# ruff: noqa: E501 - queries are written as they read
"""Random queries around functions: with both transports the same rows, or an error on both, no crash.

`SPATIALQ_FUZZ` says how many; a query that fails is in the message, and its seed repeats it.
"""

import math
import os
import random

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import spatialq
from spatialq.database.native import loading

pytestmark = pytest.mark.skipif(bool(loading.problem()), reason=f"extension: {loading.problem()}")

QUERIES = int(os.environ.get("SPATIALQ_FUZZ", "150"))
BATCHES = 10
ROWS = 240
FUNCTIONS = {
    "owm_ground": ("min_points := 1, cell_size := {n}.0", "point_id", "z"),
    "classify_ground": ("object_width := {n}.0, cell_size := 5.0", "point_id", "height"),
    "plane_points": ("min_points := {n} + 3", "point_id", "distance"),
    "ground_surface": ("resolution := {n}.0", "x", "z"),
    "build_lod": ("max_points := 10 * {n}, grid_size := 16", "level", "count"),
}
JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN")


class Writer:
    """Writes queries of random shapes; each gives columns k and v."""

    def __init__(self, seed):
        self._random = random.Random(seed)
        self._names = 0

    def query(self):
        rows = self.rows(2)
        return (
            f"SELECT k, count(*) AS n, sum(v) AS s FROM ({rows}) GROUP BY k ORDER BY k NULLS LAST"
        )

    def _name(self):
        self._names += 1
        return f"t{self._names}"

    def _number(self):
        return self._random.randint(1, 9)

    def table(self, depth):
        """Rows of point_id, x, y, z."""
        kinds = ["pts", "filtered", "united", "ordered"] + ["nested"] * (depth > 0)
        match self._random.choice(kinds):
            case "pts":
                return "FROM pts"
            case "filtered":
                return f"FROM pts WHERE point_id % {self._number() + 1} <> 0"
            case "united":
                half = ROWS // 2
                return (
                    f"FROM pts WHERE point_id < {half} UNION ALL FROM pts WHERE point_id >= {half}"
                )
            case "ordered":
                return f"FROM pts ORDER BY z, point_id LIMIT {ROWS // self._number()}"
        return f"SELECT point_id, x, y, z FROM pts SEMI JOIN ({self.call(depth - 1)}) AS c ON c.k = point_id"

    def call(self, depth):
        """Rows of a function, as k and v."""
        function, (options, k, v) = self._random.choice(list(FUNCTIONS.items()))
        options = options.format(n=self._number())
        if self._random.random() < 0.3:
            return f"SELECT {k} AS k, {v} AS v FROM {function}('pts', {options})"
        if self._random.random() < 0.25:
            tile = f"point_id % {self._number()}"
            return (
                f"SELECT r.{k} AS k, r.{v} AS v FROM (SELECT unnest({function}_list(point_id, x, y, "
                f"z, {options})) AS r FROM pts GROUP BY {tile})"
            )
        name = self._name()
        return (
            f"WITH {name} AS ({self.table(depth)}) "
            f"SELECT {k} AS k, {v} AS v FROM {function}('{name}', crs := 'EPSG:25832', {options})"
        )

    def rows(self, depth):
        """Rows of k and v, with a function somewhere in them."""
        if depth == 0:
            return self.call(1)
        a, b = self._name(), self._name()
        inner = self.rows(depth - 1)
        match self._random.randrange(11):
            case 0:
                return inner
            case 1:
                join = self._random.choice(JOINS)
                v = f"{a}.v" if join in ("SEMI JOIN", "ANTI JOIN") else "small.v"
                return f"SELECT {a}.k AS k, {v} AS v FROM ({inner}) {a} {join} small ON {a}.k = small.k"
            case 2:
                join = self._random.choice(JOINS[:4])
                return (
                    f"SELECT {b}.k AS k, {a}.v AS v FROM ({inner}) {a} {join} "
                    f"({self.rows(0)}) {b} ON {a}.k = {b}.k"
                )
            case 3:
                word = self._random.choice(["UNION ALL", "UNION", "EXCEPT", "INTERSECT"])
                return f"({inner}) {word} ({self.rows(0)})"
            case 4:
                word = self._random.choice(["EXISTS", "NOT EXISTS"])
                return f"FROM small WHERE {word} (FROM ({inner}) {a} WHERE {a}.k = small.k)"
            case 5:
                word = self._random.choice(["IN", "NOT IN"])
                return f"FROM small WHERE k {word} (SELECT {a}.k FROM ({inner}) {a} WHERE {a}.k IS NOT NULL)"
            case 6:
                return f"SELECT k, (SELECT sum({a}.v) FROM ({inner}) {a} WHERE {a}.k = small.k) AS v FROM small"
            case 7:
                return (
                    f"SELECT k, sum(v) OVER (PARTITION BY k % {self._number()}) AS v FROM ({inner})"
                )
            case 8:
                return f"WITH {a} AS ({inner}) SELECT p.k, q.v FROM {a} p JOIN {a} q ON p.k = q.k"
            case 9:
                return (
                    f"FROM ({inner}) {a} WHERE {a}.k < {self._number()} * 20 ORDER BY ALL LIMIT 100"
                )
        return f"SELECT s.k, {a}.v FROM small s, LATERAL (FROM ({inner}) {b} WHERE {b}.k = s.k) {a}"


def connection(transport):
    rng = np.random.default_rng(3)
    x, y = rng.uniform(0, 30, (2, ROWS))
    z = np.where(rng.random(ROWS) < 0.3, rng.uniform(1, 9, ROWS), 0.1 * x)
    pts = pa.table({"point_id": np.arange(ROWS), "x": x, "y": y, "z": z})  # noqa: F841
    con = spatialq.connect() if transport == "native" else duckdb.connect()
    spatialq.install(con)
    con.execute("CREATE TABLE pts AS FROM pts")
    con.execute("CREATE TABLE small AS SELECT range * 7 AS k, range * 0.5 AS v FROM range(30)")
    con.execute("SET threads = 2")
    return con


@pytest.fixture(scope="module")
def connections():
    found = {transport: connection(transport) for transport in ("native", "lists")}
    yield found
    for con in found.values():
        con.close()


def answer(con, query):
    try:
        return con.execute(query).fetchall()
    except duckdb.Error as error:
        return type(error).__name__


def same(one, other):
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str)
    return len(one) == len(other) and all(
        a == b
        or (a is not None and b is not None and math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9))
        for left, right in zip(one, other, strict=True)
        for a, b in zip(left, right, strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_queries(connections, batch):
    errors = 0
    for seed in range(batch, QUERIES, BATCHES):
        query = Writer(seed).query()
        found = {transport: answer(con, query) for transport, con in connections.items()}
        assert same(*found.values()), f"seed {seed}: {query}\n{found}"
        errors += isinstance(found["native"], str)
    assert errors <= 0.2 * QUERIES / BATCHES
