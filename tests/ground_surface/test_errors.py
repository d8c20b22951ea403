"""Arguments and data that `ground_surface` rejects, and its error sentences."""

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
        ("window_size := 0", "ground_surface: window_size must be > 0 and <= 1e+09, got 0.0"),
        ("overlap := 1", "ground_surface: overlap must be >= 0 and < 1, got 1.0"),
        ("resolution := 0", "ground_surface: resolution must be > 0, got 0.0"),
        ("resolution := 'nan'::DOUBLE", "ground_surface: resolution must be > 0, got nan"),
        ("resolution := NULL", "ground_surface: resolution must not be NULL"),
        ("method := 'kriging'", "ground_surface: method must be 'tin' or 'idw', got 'kriging'"),
        ("source := 'all'", "ground_surface: source must be 'seeds' or 'points', got 'all'"),
        ("neighbours := 0", "ground_surface: neighbours must be 1 to 100, got 0"),
        ("neighbours := 101", "ground_surface: neighbours must be 1 to 100, got 101"),
        ("extrapolate := NULL", "ground_surface: extrapolate must not be NULL"),
        ("device := 'tpu'", "ground_surface: device must be 'auto', 'cpu' or 'gpu', got 'tpu'"),
        ("resolution := 1e-7", "resolution 1e-07 cuts the extent of the points into 490,000,"),
    ],
)
def test_options(con, arguments, message):
    with pytest.raises(duckdb.InvalidInputException) as error:
        con.sql(f"FROM ground_surface('pts', {arguments})").fetchall()
    assert message in str(error.value)


@pytest.mark.parametrize("source", ["seeds", "points"])
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("'nan'::DOUBLE AS z", "ground_surface: x, y and z must be finite, got 50 points"),
        ("if(point_id = 9, 'inf'::DOUBLE, z) AS z", "or infinity, the first with point_id 9"),
        ("if(point_id > 47, NULL, y) AS y", "ground_surface: y must not be NULL, got 2 of them"),
        ("x + 1e17 AS x", "small enough that double precision tells apart 1000 places in a cell"),
        ("x * 1e9 AS x", "cuts the extent of the points into"),
    ],
)
def test_coordinates(con, source, columns, message):
    with pytest.raises(duckdb.InvalidInputException) as error:
        con.sql(
            f"WITH bad AS (SELECT * REPLACE ({columns}) FROM pts) "
            f"FROM ground_surface(bad, source := '{source}')"
        ).fetchall()
    assert message in str(error.value)


@pytest.mark.parametrize("column", ["point_id", "x", "y", "z"])
def test_a_missing_column_is_named(con, column):
    with pytest.raises(duckdb.BinderException, match=f'"{column}" not found'):
        con.sql(f"WITH bad AS (SELECT * EXCLUDE ({column}) FROM pts) FROM ground_surface(bad)")
