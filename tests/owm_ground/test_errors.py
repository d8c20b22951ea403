"""Arguments and data that `owm_ground` rejects, and its error sentences."""

import duckdb
import pytest

import spatialq


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        con.execute(
            "CREATE TABLE pts AS SELECT range AS point_id, range * 1.0 AS x, range % 7 * 1.0 AS y, "
            "1.0 AS z FROM range(50)"
        )
        yield con


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("overlap := 0.9999", "small enough for a step of 0.01"),
        ("cell_size := 1e-9", "overlap 0.8 and cell_size 1e-09 give"),
    ],
)
def test_options(con, arguments, message):
    with pytest.raises(duckdb.InvalidInputException) as error:
        con.sql(f"FROM owm_ground('pts', {arguments})").fetchall()
    assert message in str(error.value)


def test_more_windows_than_memory_are_refused_before_they_are_made(con):
    with pytest.raises(duckdb.InvalidInputException, match="window borders along an extent of"):
        con.sql(
            "WITH far AS (SELECT point_id, x * 1e9 AS x, y, z FROM pts) FROM owm_ground(far)"
        ).fetchall()


@pytest.mark.parametrize("far", ["7.9e12", "-7e12"])
def test_coordinates_beyond_double_precision_are_refused(con, far):
    with pytest.raises(duckdb.InvalidInputException, match="small enough that double precision"):
        con.sql(
            f"WITH far AS (SELECT point_id, x + {far} AS x, y, z FROM pts) "
            "FROM owm_ground(far, window_size := 1)"
        ).fetchall()


def test_an_error_is_in_the_log(con):
    query = "WITH bad AS (SELECT * REPLACE ('nan'::DOUBLE AS z) FROM pts) FROM owm_ground(bad)"
    with pytest.raises(duckdb.InvalidInputException):
        con.sql(query).fetchall()
    assert "must be finite" in con.sql("SELECT error FROM spatialq_log()").fetchall()[-1][0]
