"""`classify_ground` through DuckDB."""

import pytest
from spatialq.udfs.classify_ground import Options, cpu

import spatialq

N = 5000
COLUMNS = ["point_id", "height", "is_ground", "margin"]


@pytest.fixture
def con():
    with spatialq.connect() as con:
        con.execute("SELECT setseed(0.5)")
        con.execute(
            f"CREATE TABLE pts AS SELECT 7 * range AS point_id, round(random() * 100, 2) AS x, "
            f"round(random() * 100, 2) AS y, random() ^ 9 * 9 AS z FROM range({N})"
        )
        yield con


def kernel(con, where="true", **options):
    columns = con.sql(f"SELECT point_id, x, y, z FROM pts WHERE {where}").fetchnumpy()
    result = cpu.run(*(columns[c] for c in "xyz"), columns["point_id"], Options(**options))
    return list(zip(*(result[c].tolist() for c in COLUMNS), strict=True))


def test_columns_and_types(con):
    relation = con.sql("FROM classify_ground('pts')")
    assert relation.columns == COLUMNS
    assert list(map(str, relation.types)) == ["BIGINT", "DOUBLE", "BOOLEAN", "FLOAT"]


@pytest.mark.parametrize(
    "call",
    [
        "classify_ground(pts)",
        "classify_ground('pts')",
        "classify_ground('pts', window_size := 10, overlap := 0.8, cell_size := 20, unit := 1)",
        "classify_ground('pts', device := 'cpu', min_points := NULL, object_width := 60)",
        "classify_ground('pts', max_distance := 0.4, distance_per_slope := 0.85)",
    ],
)
def test_all_ways_to_call_it_give_what_the_kernel_gives(con, call):
    assert con.sql(f"FROM {call}").fetchall() == kernel(con)


@pytest.mark.parametrize(
    "option",
    [
        {"window_size": 31.0},
        {"overlap": 0.0},
        {"min_points": 100_000},
        {"cell_size": 90.0},
        {"object_width": 4.0},
        {"max_distance": 0.2},
        {"distance_per_slope": 0.1},
        {"unit": 0.3048},
    ],
)
def test_each_option_reaches_the_kernel(con, option):
    ((name, value),) = option.items()
    found = con.sql(f"FROM classify_ground('pts', {name} := {value})").fetchall()
    assert found == kernel(con, **option)
    of_the_seeds = {"window_size", "overlap", "min_points", "cell_size"}
    # other seeds need not give other ground
    assert name in of_the_seeds or found != kernel(con)


def test_group_by_runs_each_group_by_itself(con):
    rows = con.sql(
        "SELECT tile, classify_ground_list(point_id, x, y, z, "
        "object_width := 20) FROM (SELECT *, x > 50 AS tile FROM pts) GROUP BY tile"
    ).fetchall()
    assert len(rows) == 2
    for tile, found in rows:
        expected = kernel(con, "x > 50" if tile else "x <= 50", object_width=20.0)
        assert sorted(tuple(row.values()) for row in found) == sorted(expected)


def test_heights_join_the_points(con):
    found = con.sql(
        "SELECT count(*) FROM pts JOIN classify_ground('pts') USING (point_id) "
        "WHERE abs(height) <= 0.4 AND is_ground OR abs(height) > 0.4"
    ).fetchall()
    assert found == [(N,)]


def test_an_empty_table_gives_an_empty_result(con):
    con.execute("CREATE TABLE nothing AS FROM pts LIMIT 0")
    assert con.sql("FROM classify_ground('nothing')").fetchall() == []


def test_the_log_says_what_ran(con):
    con.sql("FROM classify_ground('pts')").fetchall()
    query = (
        "SELECT function, row_count, device, reason <> '', seconds > 0, error FROM spatialq_log()"
    )
    assert con.sql(query).fetchall()[-1] == ("classify_ground", N, "cpu", True, True, None)
