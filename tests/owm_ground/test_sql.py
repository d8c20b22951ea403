"""`owm_ground` through DuckDB."""

import threading

import numpy as np
import pytest
from spatialq.udfs.owm_ground import Options, cpu

import spatialq
from spatialq.planner import log

N = 5000


@pytest.fixture
def con():
    with spatialq.connect() as con:
        con.execute("SELECT setseed(0.5)")
        con.execute(
            f"CREATE TABLE pts AS SELECT range AS point_id, round(random() * 100, 2) AS x, "
            f"round(random() * 100, 2) AS y, round(random() * 9, 2) AS z FROM range({N})"
        )
        yield con


def kernel(con, where="true", **options):
    columns = con.sql(f"SELECT point_id, x, y, z FROM pts WHERE {where}").fetchnumpy()
    return cpu.run(*(columns[c] for c in "xyz"), columns["point_id"], Options(**options))


def ids(relation):
    return sorted(row[0] for row in relation.select("point_id").fetchall())


def test_columns_and_types(con):
    relation = con.sql("FROM owm_ground('pts')")
    assert relation.columns == ["point_id", "x", "y", "z", "hits", "filled"]
    assert list(map(str, relation.types)) == [
        "BIGINT", "DOUBLE", "DOUBLE", "DOUBLE", "INTEGER", "BOOLEAN",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "call",
    [
        "owm_ground(pts)",
        "owm_ground('pts')",
        "owm_ground('pts', window_size := 10, overlap := 0.8, cell_size := 20)",
        "owm_ground('pts', device := 'cpu', ties := 'lowest_id', min_points := NULL)",
    ],
)
def test_all_ways_to_call_it_give_what_the_kernel_gives(con, call):
    assert ids(con.sql(f"FROM {call}")) == sorted(kernel(con)["point_id"].tolist())


def test_options_reach_the_kernel(con):
    options = {"window_size": 7.0, "overlap": 0.5, "min_points": 4, "cell_size": 0.0}
    call = ", ".join(f"{name} := {value}" for name, value in options.items())
    expected = sorted(kernel(con, **options)["point_id"].tolist())
    assert ids(con.sql(f"FROM owm_ground('pts', {call})")) == expected


def test_coordinates_are_those_of_the_table(con):
    wrong = con.sql(
        "SELECT count(*) FROM owm_ground('pts') g JOIN pts p USING (point_id) "
        "WHERE (g.x, g.y, g.z) <> (p.x, p.y, p.z)"
    ).fetchall()
    assert wrong == [(0,)]


@pytest.mark.parametrize(
    "relation",
    ["CREATE VIEW v AS FROM pts WHERE x < 50", "CREATE TEMP TABLE v AS FROM pts WHERE x < 50"],
)
def test_views_and_temporary_tables(con, relation):
    con.execute(relation)
    expected = sorted(kernel(con, "x < 50")["point_id"].tolist())
    assert ids(con.sql("FROM owm_ground('v')")) == expected


def test_a_common_table_expression_and_an_open_transaction(con):
    query = "WITH v AS (FROM pts WHERE x < 50) FROM owm_ground(v)"
    expected = sorted(kernel(con, "x < 50")["point_id"].tolist())
    assert ids(con.sql(query)) == expected
    con.execute("BEGIN; DELETE FROM pts WHERE x >= 50")
    assert ids(con.sql("FROM owm_ground('pts')")) == expected
    con.execute("ROLLBACK")


def test_group_by_runs_each_group_by_itself(con):
    rows = con.sql(
        "SELECT tile, owm_ground_list(point_id, x, y, z, cell_size := 0) "
        "FROM (SELECT *, x > 50 AS tile FROM pts) GROUP BY tile"
    ).fetchall()
    assert len(rows) == 2
    for tile, seeds in rows:
        expected = kernel(con, "x > 50" if tile else "x <= 50", cell_size=0.0)
        assert [seed["point_id"] for seed in seeds] == expected["point_id"].tolist()


@pytest.mark.slow
def test_many_groups_on_many_threads(con):
    con.execute("SET threads = 4")
    query = (
        "SELECT tile, len(owm_ground_list(point_id, x, y, z, "
        "window_size := 2, overlap := 0.5)) FROM (SELECT *, point_id % 997 AS tile FROM pts) "
        "GROUP BY tile ORDER BY tile"
    )
    assert con.sql(query).fetchall() == con.sql(query).fetchall()


def test_other_number_types_are_taken(con):
    con.execute(
        "CREATE TABLE narrow AS SELECT point_id::UBIGINT AS point_id, x::FLOAT AS x, "
        "y::DECIMAL(10, 2) AS y, round(z)::TINYINT AS z FROM pts"
    )
    assert con.sql("SELECT count(*) > 10 FROM owm_ground('narrow')").fetchall() == [(True,)]


def test_an_empty_table_gives_an_empty_result(con):
    con.execute("CREATE TABLE nothing AS FROM pts LIMIT 0")
    assert con.sql("FROM owm_ground('nothing')").fetchall() == []


def test_connections_and_threads_at_once(con):
    expected = ids(con.sql("FROM owm_ground('pts')"))
    results = []

    def work(connection):
        results.extend(ids(connection.sql("FROM owm_ground('pts')")) for _ in range(3))

    threads = [threading.Thread(target=work, args=(con.cursor(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 12


def test_explain_does_not_run_it(con):
    log._entries.clear()
    con.sql("EXPLAIN FROM owm_ground('pts')").fetchall()
    assert con.sql("FROM spatialq_log()").fetchall() == []


def test_the_log_says_what_ran(con):
    con.sql("FROM owm_ground('pts')").fetchall()
    query = (
        "SELECT function, row_count, device, reason <> '', seconds > 0, error FROM spatialq_log()"
    )
    assert con.sql(query).fetchall()[-1] == ("owm_ground", N, "cpu", True, True, None)


def test_every_point_of_a_large_table_is_seen(con):
    """More rows than one list buffer of DuckDB, on both threads."""
    con.execute(
        "CREATE TABLE large AS SELECT range AS point_id, (range % 1000)::DOUBLE AS x, "
        "(range // 1000)::DOUBLE AS y, 1000000 - range AS z FROM range(1000000)"
    )
    found = con.sql("SELECT min(z), count(*) FROM owm_ground('large')").fetchall()[0]
    columns = con.sql("SELECT point_id, x, y, z::DOUBLE AS z FROM large").fetchnumpy()
    expected = cpu.run(*(columns[c] for c in "xyz"), columns["point_id"], Options())
    assert found == (float(np.min(expected["z"])), expected["z"].size)
