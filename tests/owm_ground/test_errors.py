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
        ("window_size := 0", "owm_ground: window_size must be > 0 and <= 1e+09, got 0.0"),
        ("window_size := -3", "owm_ground: window_size must be > 0 and <= 1e+09, got -3.0"),
        (
            "window_size := 'nan'::DOUBLE",
            "owm_ground: window_size must be > 0 and <= 1e+09, got nan",
        ),
        (
            "window_size := 'inf'::DOUBLE",
            "owm_ground: window_size must be > 0 and <= 1e+09, got inf",
        ),
        ("window_size := 1e308", "window_size must be > 0 and <= 1e+09, got 1e+308"),
        ("window_size := NULL", "owm_ground: window_size must not be NULL"),
        ("overlap := 1", "owm_ground: overlap must be >= 0 and < 1, got 1.0"),
        ("overlap := -0.1", "owm_ground: overlap must be >= 0 and < 1, got -0.1"),
        ("overlap := 0.9999", "small enough for a step of 0.01"),
        ("min_points := 0", "owm_ground: min_points must be >= 1 or NULL, got 0"),
        ("cell_size := -1", "owm_ground: cell_size must be >= 0 and <= 1e+09, got -1.0"),
        ("cell_size := 1e308", "cell_size must be >= 0 and <= 1e+09, got 1e+308"),
        ("cell_size := 1e-9", "overlap 0.8 and cell_size 1e-09 give"),
        ("ties := 'first'", "owm_ground: ties must be 'lowest_id' or 'octree', got 'first'"),
        ("device := 'tpu'", "owm_ground: device must be 'auto', 'cpu' or 'gpu', got 'tpu'"),
    ],
)
def test_options(con, arguments, message):
    with pytest.raises(duckdb.InvalidInputException) as error:
        con.sql(f"FROM owm_ground('pts', {arguments})").fetchall()
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("'nan'::DOUBLE AS z", "x, y and z must be finite, got 50 points"),
        ("if(point_id = 9, 'inf'::DOUBLE, z) AS z", "or infinity, the first with point_id 9"),
        ("if(point_id = 8, '-inf'::DOUBLE, x) AS x", "the first with point_id 8"),
        ("if(point_id > 47, NULL, y) AS y", "y must not be NULL, got 2 of them, the first with "),
        ("if(point_id = 4, NULL, point_id) AS point_id", "owm_ground: point_id must not be NULL"),
    ],
)  # fmt: skip
def test_coordinates(con, columns, message):
    with pytest.raises(duckdb.InvalidInputException) as error:
        con.sql(
            f"WITH bad AS (SELECT * REPLACE ({columns}) FROM pts) FROM owm_ground(bad)"
        ).fetchall()
    assert message in str(error.value)


@pytest.mark.parametrize("column", ["point_id", "x", "y", "z"])
def test_a_missing_column_is_named(con, column):
    with pytest.raises(duckdb.BinderException, match=f'"{column}" not found'):
        con.sql(f"WITH bad AS (SELECT * EXCLUDE ({column}) FROM pts) FROM owm_ground(bad)")


def test_more_windows_than_memory_are_refused_before_they_are_made(con):
    with pytest.raises(duckdb.InvalidInputException, match="window borders along an extent of"):
        con.sql(
            "WITH far AS (SELECT point_id, x * 1e9 AS x, y, z FROM pts) FROM owm_ground(far)"
        ).fetchall()


@pytest.mark.parametrize("far", ["1e18", "-1e14"])
def test_coordinates_beyond_double_precision_are_refused(con, far):
    with pytest.raises(duckdb.InvalidInputException, match="small enough that double precision"):
        con.sql(
            f"WITH far AS (SELECT point_id, x + {far} AS x, y, z FROM pts) FROM owm_ground(far)"
        ).fetchall()


def test_an_error_is_in_the_log(con):
    query = "WITH bad AS (SELECT * REPLACE ('nan'::DOUBLE AS z) FROM pts) FROM owm_ground(bad)"
    with pytest.raises(duckdb.InvalidInputException):
        con.sql(query).fetchall()
    assert "must be finite" in con.sql("SELECT error FROM spatialq_log()").fetchall()[-1][0]
