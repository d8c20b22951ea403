"""Arguments and data that `classify_ground` rejects, and its error sentences."""

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
        ("overlap := 0.9999", "classify_ground: overlap must be small enough for a step of 0.01"),
    ],
)
def test_options(con, arguments, message):
    with pytest.raises(duckdb.InvalidInputException) as error:
        con.sql(f"FROM classify_ground('pts', {arguments})").fetchall()
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("x * 1e11 AS x", "must have at most 4.2e+06 cells of 367002 m, got 4.9e+12 x 6 m"),
        ("x * 1.6e11 AS x", "remove stray points, or go tile by tile"),
        ("x + 1e15 AS x", "classify_ground: x must be from -8e+12 to 8e+12, where double"),
    ],
)  # fmt: skip
def test_coordinates(con, columns, message):
    with pytest.raises(duckdb.InvalidInputException) as error:
        con.sql(
            f"WITH bad AS (SELECT * REPLACE ({columns}) FROM pts) FROM classify_ground(bad)"
        ).fetchall()
    assert message in str(error.value)


def test_a_cloud_as_wide_as_double_precision_is_refused(con):
    with pytest.raises(duckdb.InvalidInputException, match=r"x must be from .* got 1\.7e\+308"):
        con.sql(
            "WITH far AS (SELECT 1 AS point_id, 5.0 AS x, 6.0 AS y, 7.0 AS z UNION ALL "
            "SELECT 2, 1.7e308, -1.7e308, 7) FROM classify_ground(far, unit := 1)"
        ).fetchall()


@pytest.mark.parametrize("far", ["1e5", "1e7"])
def test_a_grid_that_would_be_nearly_empty_is_refused(con, far):
    message = "the extent of 20011 points must have at most 5.5e.06 cells .* remove stray points"
    with pytest.raises(duckdb.InvalidInputException, match=message):
        con.sql(
            "WITH stray AS (SELECT range AS point_id, range % 100 AS x, range // 100 AS y, 0 AS z "
            f"FROM range(20000) UNION ALL SELECT -range - 1, {far}, {far}, 0 FROM range(11)) "
            "FROM classify_ground(stray)"
        ).fetchall()


def test_a_unit_that_makes_coordinates_infinite_is_refused(con):
    with pytest.raises(
        duckdb.InvalidInputException, match="x must be from -8e\\+02 to 8e\\+02, where"
    ):
        con.sql(
            "WITH far AS (SELECT * REPLACE (x * 1e300 AS x) FROM pts) "
            "FROM classify_ground(far, unit := 1e10)"
        ).fetchall()
