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
        ("window_size := 0", "classify_ground: window_size must be > 0, got 0.0"),
        ("window_size := 'nan'::DOUBLE", "classify_ground: window_size must be > 0, got nan"),
        ("overlap := 1", "classify_ground: overlap must be >= 0 and < 1, got 1.0"),
        ("overlap := 0.9999", "classify_ground: overlap must be small enough for a step of 0.01"),
        ("min_points := 0", "classify_ground: min_points must be >= 1 or NULL, got 0"),
        ("cell_size := -1", "classify_ground: cell_size must be >= 0, got -1.0"),
        ("object_width := -1", "classify_ground: object_width must be >= 0 and <= 1000, got -1.0"),
        ("object_width := 'inf'::DOUBLE", "object_width must be >= 0 and <= 1000, got inf"),
        ("max_distance := -0.1", "classify_ground: max_distance must be >= 0, got -0.1"),
        ("max_distance := NULL", "classify_ground: max_distance must not be NULL"),
        ("distance_per_slope := 'inf'::DOUBLE", "distance_per_slope must be >= 0, got inf"),
        ("unit := 0", "classify_ground: unit must be > 0, got 0.0"),
        ("device := 'tpu'", "classify_ground: device must be 'auto', 'cpu' or 'gpu', got 'tpu'"),
    ],
)
def test_options(con, arguments, message):
    with pytest.raises(duckdb.InvalidInputException) as error:
        con.sql(f"FROM classify_ground('pts', {arguments})").fetchall()
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("'nan'::DOUBLE AS z", "classify_ground: x, y and z must be finite, got 50 points"),
        ("if(point_id = 9, 'inf'::DOUBLE, z) AS z", "or infinity, the first with point_id 9"),
        ("if(point_id = 8, '-inf'::DOUBLE, x) AS x", "the first with point_id 8"),
        ("if(point_id > 47, NULL, y) AS y", "y must not be NULL, got 2 of them, the first with "),
        ("x * 1e11 AS x", "must have at most 4.2e+06 cells of 383406 m, got 4.9e+12 x 6 m"),
        ("(x - 20) * 6e306 AS x", "got inf x 6 m; remove stray points, or go tile by tile"),
        ("x * 1e300 AS x", "remove stray points, or go tile by tile"),
        ("x + 1e15 AS x", "classify_ground: x and y must be small enough that double precision"),
    ],
)  # fmt: skip
def test_coordinates(con, columns, message):
    with pytest.raises(duckdb.InvalidInputException) as error:
        con.sql(
            f"WITH bad AS (SELECT * REPLACE ({columns}) FROM pts) FROM classify_ground(bad)"
        ).fetchall()
    assert message in str(error.value)


@pytest.mark.parametrize("far", ["1e5", "1e7"])
def test_a_grid_that_would_be_nearly_empty_is_refused(con, far):
    message = "the extent of 20001 points must have at most 5.5e.06 cells .* remove stray points"
    with pytest.raises(duckdb.InvalidInputException, match=message):
        con.sql(
            "WITH stray AS (SELECT range AS point_id, range % 100 AS x, range // 100 AS y, 0 AS z "
            f"FROM range(20000) UNION ALL SELECT -1, {far}, {far}, 0) FROM classify_ground(stray)"
        ).fetchall()


def test_a_unit_that_makes_coordinates_infinite_is_refused(con):
    with pytest.raises(duckdb.InvalidInputException, match="must be finite, got 49 points"):
        con.sql(
            "WITH far AS (SELECT * REPLACE (x * 1e300 AS x) FROM pts) "
            "FROM classify_ground(far, unit := 1e10)"
        ).fetchall()
