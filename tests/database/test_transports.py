"""Shapes of queries around a function: the extension and the lists give the same rows, and each
kernel runs once for each call. The shapes are those in which a function is easily run too often,
too early, or not at all: joins in all orders, correlated subqueries, common table expressions.
"""

import itertools
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import spatialq
from spatialq.database import instances
from spatialq.database.native import loading
from spatialq.planner import log

from ..examples import combinations

ROWS = 3000
TRANSPORTS = ("native", "lists")
CALL = "classify_ground({table}, window_size := 5.0, cell_size := 10.0, object_width := 5.0)"
SHAPES = {
    "alone": "SELECT count(*), sum(height) FROM {q}",
    "join points": "SELECT count(*), sum(height) FROM pts JOIN {q} h USING (point_id)",
    "join small": "SELECT count(*), sum(height) FROM small JOIN {q} h USING (point_id)",
    "small joined": "SELECT count(*), sum(height) FROM {q} h JOIN small USING (point_id)",
    "star": (
        "SELECT name, count(*), sum(height) FROM {q} h JOIN small USING (point_id) JOIN "
        "tiny USING (k) GROUP BY ALL ORDER BY ALL"
    ),
    "big": (
        "SELECT count(*), sum(height) FROM big JOIN {q} h USING (point_id) JOIN small "
        "USING (point_id)"
    ),
    "two": "SELECT count(*), sum(a.height + b.height) FROM {q} a JOIN {r} b USING (point_id)",
    "two and tables": (
        "SELECT count(*), sum(a.height + b.height) FROM {q} a JOIN {r} b USING (point_id)"
        " JOIN small USING (point_id) JOIN tiny USING (k)"
    ),
    "planes and their points": (
        "SELECT plane_id, count(*), any_value(point_count) FROM pts JOIN "
        "plane_points('pts') USING (point_id) JOIN detect_planes('pts') USING (plane_id) "
        "GROUP BY ALL ORDER BY ALL"
    ),
    "in": (
        "SELECT count(*) FROM small WHERE point_id IN (SELECT point_id FROM {q} WHERE height > 1)"
    ),
    "not in": (
        "SELECT count(*) FROM small WHERE point_id NOT IN (SELECT point_id FROM {q} WHERE"
        " height > 1)"
    ),
    "limit": "SELECT count(*) FROM (FROM {q} LIMIT 10)",
    "order": "SELECT sum(height) FROM (SELECT height FROM {q} ORDER BY height DESC LIMIT 10)",
    "union all": "SELECT count(*) FROM (FROM {q} UNION ALL FROM {r})",
    "union": "SELECT count(*) FROM (FROM {q} UNION FROM {r})",
    "scalar": "SELECT count(*) FROM pts WHERE z > (SELECT avg(height) FROM {q})",
    "scalar twice": "SELECT (SELECT max(height) FROM {q}) - (SELECT min(height) FROM {r})",
    "left": "SELECT count(*), sum(height) FROM small LEFT JOIN {q} h USING (point_id)",
    "right": "SELECT count(*), sum(height) FROM small RIGHT JOIN {q} h USING (point_id)",
    "full": "SELECT count(*), sum(height) FROM small FULL JOIN {q} h USING (point_id)",
    "asof": "SELECT count(*) FROM small s ASOF JOIN {q} h ON s.point_id >= h.point_id",
    "cross": "SELECT count(*) FROM tiny, {q}",
    "positional": "SELECT count(*) FROM {q} POSITIONAL JOIN {r}",
    "nested": "SELECT count(*), sum(height) FROM ({nested})",
    "cte": "WITH g AS (FROM pts WHERE z > 1) SELECT count(*), sum(height) FROM {g}",
    "cte twice": "WITH h AS (FROM {q}) SELECT count(*) FROM h a JOIN h b USING (point_id)",
    "materialized": "WITH h AS MATERIALIZED (FROM {q}) SELECT count(*) FROM h a, h b",
    "filter": "SELECT count(*) FROM {q} WHERE point_id IN (1, 2, 3) AND height > -1",
    "window": (
        "SELECT sum(n) FROM (SELECT row_number() OVER (ORDER BY height, point_id) AS n FROM {q})"
    ),
    "grouping sets": "SELECT is_ground, count(*) FROM {q} GROUP BY ROLLUP (is_ground) ORDER BY ALL",
    "distinct": "SELECT count(*) FROM (SELECT DISTINCT is_ground FROM {q})",
    "lateral": (
        "SELECT sum(n) FROM tiny, LATERAL (SELECT count(*) + k AS n FROM {q} WHERE "
        "point_id % 7 = k)"
    ),
    "recursive": (
        "WITH RECURSIVE h AS MATERIALIZED (FROM {q}), r(i, n) AS (SELECT 0, 0::BIGINT "
        "UNION ALL SELECT i + 1, (SELECT count(*) FROM h WHERE point_id < i) FROM r WHERE"
        " i < 5) SELECT sum(n) FROM r"
    ),
    "aggregate": (
        "SELECT k, len(classify_ground_list(point_id, x, y, z)) FROM pts GROUP BY k ORDER BY k"
    ),
    "aggregate twice": (
        "SELECT k, len(classify_ground_list(point_id, x, y, z)), "
        "len(owm_ground_list(point_id, x, y, z)) FROM pts GROUP BY k ORDER BY k"
    ),
    "aggregate in a join": (
        "SELECT name, n FROM (SELECT k, len(owm_ground_list(point_id, x, y, z)) AS n FROM"
        " pts GROUP BY k) JOIN tiny USING (k) ORDER BY ALL"
    ),
}
RUNS = {
    "two": 2,
    "two and tables": 2,
    "planes and their points": 2,
    "union all": 2,
    "union": 2,
    "scalar twice": 2,
    "positional": 2,
    "nested": 2,
    "aggregate": 7,
    "aggregate twice": 14,
    "aggregate in a join": 7,
}
"""How many kernels a shape runs, where it is not one."""
CORRELATED = {
    "exists": (
        "SELECT count(*) FROM pts WHERE EXISTS (FROM {q} h WHERE h.point_id = "
        "pts.point_id AND is_ground)"
    ),
    "not exists": (
        "SELECT count(*) FROM pts WHERE NOT EXISTS (FROM {q} h WHERE h.point_id = "
        "pts.point_id AND is_ground)"
    ),
    "scalar": "SELECT sum((SELECT height FROM {q} h WHERE h.point_id = pts.point_id)) FROM pts",
    "any": (
        "SELECT count(*) FROM pts WHERE z > ANY (SELECT height FROM {q} h WHERE "
        "h.point_id = pts.point_id)"
    ),
    "lateral": "SELECT count(*) FROM small s, LATERAL (FROM {q} h WHERE h.point_id = s.point_id)",
}


def cloud():
    rng = np.random.default_rng(16)
    x, y = rng.uniform(0, 50, (2, ROWS))
    z = np.where(rng.random(ROWS) < 0.3, rng.uniform(1, 9, ROWS), 0.02 * x)
    return pa.table({"point_id": np.arange(ROWS), "x": x, "y": y, "z": z, "k": np.arange(ROWS) % 7})


def connection(transport):
    con = spatialq.connect() if transport == "native" else duckdb.connect()
    if transport == "lists":
        spatialq.install(con)
    assert loading.is_loaded(con) == (transport == "native")
    points = cloud()  # noqa: F841 - DuckDB finds it by its name
    con.execute("CREATE TABLE pts AS FROM points")
    con.execute("CREATE TABLE small AS SELECT point_id, k FROM pts WHERE point_id % 100 = 0")
    con.execute("CREATE TABLE tiny AS SELECT range AS k, 'n' || range AS name FROM range(7)")
    con.execute("CREATE TABLE big AS SELECT point_id, a FROM pts, range(20) t(a)")
    return con


@pytest.fixture(scope="module")
def connections():
    if loading.problem():
        pytest.skip(f"the extension: {loading.problem()}")
    found = {transport: connection(transport) for transport in TRANSPORTS}
    yield found
    for con in found.values():
        con.close()


def written(shape):
    q = CALL.format(table="'pts'")
    inner = f"SELECT point_id, height AS x, height AS y, height AS z FROM {q}"
    nested = f"WITH inside AS ({inner}) FROM {CALL.format(table='inside')}"
    return shape.format(q=q, r=q, g=CALL.format(table="g"), nested=nested)


def run(con, query):
    """The rows of a query, and how many kernels it ran."""
    log._entries.clear()
    rows = con.execute(query).fetchall()
    groups = (re.search(r"(\d+) groups", entry.reason) for entry in log.entries())
    return rows, sum(int(found[1]) if found else 1 for found in groups)


def same(one, other):
    """Whether rows are the same, up to the order in which DuckDB's threads add numbers."""
    return len(one) == len(other) and all(
        a == b or (isinstance(a, float) and a == pytest.approx(b, rel=1e-12))
        for left, right in zip(one, other, strict=True)
        for a, b in zip(left, right, strict=True)
    )


@pytest.mark.parametrize(("name", "threads"), combinations(SHAPES, [1, 2]))
def test_both_roads_give_the_same_rows_and_each_kernel_runs_once(connections, name, threads):
    found = {}
    for transport, con in connections.items():
        con.execute(f"SET threads = {threads}")
        found[transport], kernels = run(con, written(SHAPES[name]))
        assert kernels == RUNS.get(name, 1), transport
    assert same(*found.values())
    assert found["native"] != [(0,)]


def waits(node):
    """In a plan, the joins whose right side makes the rows of a function and whose left reads them.

    DuckDB makes the right side of a join before it reads the left.
    """
    children = node["children"]
    for child in children:
        yield from waits(child)
    if len(children) != 2:
        return
    scan, makes = children
    while scan["name"] in ("FILTER", "PROJECTION"):
        (scan,) = scan["children"]
    if called := re.fullmatch("SPATIALQ_(.*)_ROWS", scan["name"]):
        collect = f"spatialq_{called[1].lower()}_collect("
        yield node["name"], node["extra_info"], scan["extra_info"], collect in str(makes)


@pytest.mark.parametrize(
    ("name", "threads"),
    combinations([name for name in SHAPES if not name.startswith("aggregate")], [1, 2]),
)
def test_in_each_plan_rows_wait_for_the_kernel(connections, name, threads):
    """A DuckDB that plans otherwise would ask for rows before there are any."""
    con = connections["native"]
    con.execute(f"SET threads = {threads}")
    ((_, plan),) = con.execute(f"EXPLAIN (FORMAT json) {written(SHAPES[name])}").fetchall()
    found = list(waits(*json.loads(plan)))
    scans = re.findall('"name": "SPATIALQ_[A-Z_]*_ROWS"', plan)
    assert len(found) == len(scans) == RUNS.get(name, 1)
    for join, how, scan, makes in found:
        assert (join, how["Join Type"]) == ("BLOCKWISE_NL_JOIN", "LEFT")
        # as many as the extension says, but where there is no order of joins to choose
        assert scan["Estimated Cardinality"] == ("0" if name == "positional" else "1000000000")
        assert makes


@pytest.mark.parametrize("name", CORRELATED)
def test_a_correlated_subquery_runs_the_kernel_once(connections, name):
    query = written(CORRELATED[name])
    rows, kernels = run(connections["native"], query)
    assert kernels == 1
    uncorrelated = CALL.format(table="'pts'")
    ground, height = (
        connections["lists"]
        .execute(f"SELECT count(*) FILTER (is_ground), sum(height) FROM {uncorrelated}")
        .fetchall()[0]
    )
    expected = {"exists": ground, "not exists": ROWS - ground, "scalar": height, "lateral": 30}
    if name in expected:
        assert rows[0][0] == pytest.approx(expected[name], rel=1e-12)
    rows_of_lists, kernels = run(connections["lists"], query)
    assert same(rows, rows_of_lists)
    assert kernels == 1


def test_a_table_that_depends_on_the_outer_row_is_an_error_or_right(connections):
    query = (
        "SELECT k, (WITH c AS (FROM pts WHERE pts.k = tiny.k) SELECT count(*) FROM "
        f"{CALL.format(table='c')}) FROM tiny ORDER BY k"
    )
    expected = [(k, len(range(k, ROWS, 7))) for k in range(7)]
    for con in connections.values():
        try:
            assert con.execute(query).fetchall() == expected
        except duckdb.Error as error:
            assert "must not depend on a row of the query around it" in str(error)  # noqa: PT017


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_views_prepared_statements_and_transactions(connections, transport):
    con = connections[transport]
    q = CALL.format(table="'pts'")
    con.execute(f"CREATE OR REPLACE VIEW heights AS FROM {q}")
    expected = run(con, f"SELECT count(*), sum(height) FROM {q}")
    assert run(con, "SELECT count(*), sum(height) FROM heights") == expected
    con.execute(f"PREPARE counted AS SELECT count(*), sum(height) FROM {q} WHERE point_id >= $1")
    for _ in range(3):
        assert run(con, "EXECUTE counted(0)") == expected
    query = "SELECT count(*) FROM classify_ground('pts', window_size := ?)"
    for size in (5.0, 7.0):
        log._entries.clear()
        assert con.execute(query, [size]).fetchall() == [(ROWS,)]
        assert len(log.entries()) == 1
    con.execute("BEGIN")
    con.execute("DELETE FROM pts WHERE point_id >= 2000")
    assert run(con, f"SELECT count(*) FROM {q}") == ([(2000,)], 1)
    con.execute("ROLLBACK")
    assert run(con, f"SELECT count(*), sum(height) FROM {q}") == expected
    con.execute(f"CREATE OR REPLACE TABLE kept AS FROM {q}")
    assert con.execute("SELECT count(*), sum(height) FROM kept").fetchall() == expected[0]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_cursors_in_threads(connections, transport):
    expected = run(connections[transport], f"SELECT count(*) FROM {CALL.format(table='pts')}")[0]
    start = threading.Barrier(6)

    def work(_):
        with connections[transport].cursor() as cursor:
            start.wait()
            return [
                cursor.execute(f"SELECT count(*) FROM {CALL.format(table='pts')}").fetchall()
                for _ in range(5)
            ]

    with ThreadPoolExecutor(6) as pool:
        found = itertools.chain.from_iterable(pool.map(work, range(6)))
        assert all(rows == expected for rows in found)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_table_without_rows(connections, transport):
    con = connections[transport]
    con.execute("CREATE OR REPLACE TABLE nothing AS FROM pts LIMIT 0")
    for function in ("owm_ground", "classify_ground", "detect_planes", "build_lod"):
        assert con.execute(f"FROM {function}('nothing')").fetchall() == []
        query = f"SELECT {function}_list(point_id, x, y, z) FROM nothing"
        assert con.execute(query).fetchall() == [([],)]
        grouped = f"{query} GROUP BY k"
        assert con.execute(grouped).fetchall() == []


PINNED = (
    "alone", "join points", "big", "two and tables", "planes and their points", "in", "union",
    "scalar twice", "full", "positional", "nested", "cte twice", "materialized", "lateral",
    "recursive", "aggregate",
)  # fmt: skip


@pytest.fixture(params=TRANSPORTS)
def pinned(connections, request):
    con = connections[request.param]
    con.execute("SET threads = 2")
    spatialq.pin(con, "pts")
    yield con
    spatialq.unpin(con, "pts")


@pytest.mark.parametrize("shape", [*map(SHAPES.get, PINNED), *CORRELATED.values()])
def test_pinned_columns_give_the_same_rows_and_each_kernel_runs_once(pinned, shape):
    query, instance = written(shape), instances.of(pinned)
    held, instance.pins = instance.pins, {}
    expected = run(pinned, query)
    instance.pins = held
    rows, kernels = run(pinned, query)
    assert same(rows, expected[0])
    assert kernels == expected[1]
    of_table = query.count("'pts'")
    counts = "SELECT uses, misses FROM spatialq_pins()"
    assert pinned.execute(counts).fetchall() == [(of_table, 0)]
    # what has other rows in the transaction is collected
    pinned.execute("BEGIN")
    pinned.execute("DELETE FROM pts WHERE point_id % 5 = 0")
    held, instance.pins = instance.pins, {}
    expected = run(pinned, query)
    instance.pins = held
    rows, kernels = run(pinned, query)
    ((uses, misses),) = pinned.execute(counts).fetchall()
    pinned.execute("ROLLBACK")
    assert same(rows, expected[0])
    assert kernels == expected[1]
    assert uses == of_table
    assert bool(misses) == bool(of_table)


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_many_groups(connections, transport):
    query = (
        "SELECT point_id // 3 AS g, owm_ground_list(point_id, x, y, z, min_points := 1) AS seeds "
        "FROM pts GROUP BY g"
    )
    rows, kernels = run(
        connections[transport], f"SELECT count(*), sum(len(seeds)) > 0 FROM ({query})"
    )
    assert rows == [(1000, True)]
    assert kernels == 1000
