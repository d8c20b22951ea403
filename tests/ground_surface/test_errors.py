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
        ("x + 1e17 AS x", "x must be from -8e+12 to 8e+12, where double precision"),
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


@pytest.mark.parametrize("source", ["seeds", "points"])
def test_places_that_double_precision_does_not_tell_apart_are_refused(con, source):
    with pytest.raises(duckdb.InvalidInputException, match=r"1000 places in a cell of 0\.1"):
        con.sql(
            "WITH far AS (SELECT * REPLACE (x + 7e12 AS x) FROM pts) "
            f"FROM ground_surface(far, source := '{source}', resolution := 0.1)"
        ).fetchall()
