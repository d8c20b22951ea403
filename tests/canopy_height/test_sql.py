"""Surface models and canopies against loops in NumPy."""

import duckdb
import numpy as np
import pytest

import spatialq

RNG = np.random.default_rng(8)


@pytest.mark.parametrize("side", [1.0, 0.5, 2.5])
def test_a_surface_model_has_the_highest_points(con, side):
    x, y, z = RNG.uniform(-20, 20, (3, 4000))
    con.execute(
        "CREATE TABLE points AS SELECT unnest($1) AS x, unnest($2) AS y, unnest($3) AS z",
        [x.tolist(), y.tolist(), z.tolist()],
    )
    rows = con.sql(f"FROM surface_model('points', resolution := {side})").fetchall()
    highest, counts = {}, {}
    for a, b, c in zip(x, y, z, strict=True):
        cell = ((np.floor(a / side) + 0.5) * side, (np.floor(b / side) + 0.5) * side)
        highest[cell] = max(c, highest.get(cell, -np.inf))
        counts[cell] = counts.get(cell, 0) + 1
    assert {(a, b): c for a, b, c, _ in rows} == highest
    assert {(a, b): n for a, b, _, n in rows} == counts


def filled(height, depth):
    """Fill pits, cell by cell."""
    z, pits = height.copy(), np.zeros(height.shape, bool)
    for r in range(z.shape[0]):
        for c in range(z.shape[1]):
            around = [
                height[i, j]
                for i in range(max(r - 1, 0), min(r + 2, z.shape[0]))
                for j in range(max(c - 1, 0), min(c + 2, z.shape[1]))
                if (i, j) != (r, c) and np.isfinite(height[i, j])
            ]
            if len(around) >= 5 and not height[r, c] >= np.median(around) - depth:
                z[r, c], pits[r, c] = np.median(around), True
    return z, pits


@pytest.mark.parametrize("depth", [0.5, 5.0, None])
def test_pits_are_filled(con, depth):
    terrain = RNG.normal(100, 1, (25, 30))
    surface = terrain + RNG.uniform(-1, 20, terrain.shape)
    surface[RNG.random(surface.shape) < 0.1] = np.nan
    terrain[20:, 25:] = np.nan
    rows, columns = np.indices(terrain.shape)
    for name, z in (("surface", surface), ("terrain", terrain)):
        con.execute(
            f"CREATE TABLE {name} AS SELECT unnest($1) AS x, unnest($2) AS y, nullif(unnest($3), "
            "'nan'::DOUBLE) AS z",
            [(columns + 0.5).ravel().tolist(), (rows + 0.5).ravel().tolist(), z.ravel().tolist()],
        )
    con.execute("DELETE FROM surface WHERE z IS NULL")  # as surface_model has them
    given = "NULL" if depth is None else depth
    found = con.execute(
        f"FROM canopy_height('surface', 'terrain', pit_depth := {given})"
    ).fetchnumpy()
    height = np.where(np.isfinite(surface - terrain), np.maximum(surface - terrain, 0), np.nan)
    # where there is no terrain there is no row, also where its neighbours are looked at
    z, pits = filled(height, np.inf if depth is None else depth)
    if depth is None:
        z, pits = height, np.zeros(z.shape, bool)
    there = np.isfinite(terrain)
    assert len(found["x"]) == there.sum()
    at = (found["y"] - 0.5).astype(int), (found["x"] - 0.5).astype(int)
    assert np.array_equal(found["is_pit"], pits[at])
    assert np.allclose(np.ma.filled(found["z"], np.nan), z[at], equal_nan=True)


def test_what_is_refused(con):
    con.execute("CREATE TABLE t AS SELECT a::DOUBLE AS x, b::DOUBLE AS y, 0.0 AS z FROM range(4) "
                "AS r(a), range(4) AS s(b)")  # fmt: skip
    with pytest.raises(duckdb.Error, match="pit_depth must be a number from 0 or NULL, got -1"):
        con.sql("FROM canopy_height('t', 't', pit_depth := -1)").fetchall()
    with pytest.raises(duckdb.Error, match="resolution must be a number > 0, got 0"):
        con.sql("FROM surface_model('t', resolution := 0)").fetchall()
    con.execute("CREATE TABLE u AS SELECT x + 0.5 AS x, y, z FROM t")
    with pytest.raises(duckdb.Error, match="surface must have the cells of terrain"):
        con.sql("FROM canopy_height('u', 't')").fetchall()


@pytest.mark.parametrize("value", ["'nan'::DOUBLE", "'inf'::DOUBLE", "NULL"])
@pytest.mark.parametrize("column", ["x", "y", "z"])
def test_a_surface_of_finite_points_only(con, column, value):
    """Of a cell with a NaN the highest point would be NaN, and a tree no surface at all."""
    con.execute(f"CREATE TABLE points AS SELECT * REPLACE (if(z = 3, {value}, {column}) AS "
                f"{column}) FROM (SELECT 0.5 AS x, 0.5::DOUBLE AS y, range::DOUBLE AS z FROM "
                "range(9))")  # fmt: skip
    with pytest.raises(duckdb.Error, match="surface_model: x, y and z must be finite numbers"):
        con.sql("FROM surface_model('points')").fetchall()


def test_from_points_to_a_raster(con, tmp_path):
    """Ground at 50 m, trees of 12 m on half of it, one laser pulse through a crown."""
    con.execute(
        "CREATE TABLE points AS SELECT row_number() OVER () AS point_id, (i + 0.5) / 2 AS x, "
        "(j + 0.5) / 2 AS y, if(tree AND i > 40 AND NOT (i // 2 = 30 AND j // 2 = 20), 62.0, 50.0) "
        "AS z, if(z > 50, 5, 2) AS classification "
        "FROM range(80) AS a(i), range(80) AS b(j), (VALUES (true), (false)) AS c(tree)"
    )
    con.execute("CREATE VIEW ground AS FROM points WHERE classification = 2")
    con.execute("CREATE TABLE surface AS FROM surface_model('points')")
    con.execute(
        "CREATE TABLE terrain AS FROM ground_surface('ground', source := 'points', "
        "extrapolate := true)"
    )
    rows = con.sql("SELECT x, y, z FROM canopy_height('surface', 'terrain')")
    spatialq.write(rows, tmp_path / "chm.tif")
    found = con.sql(
        f"SELECT z, count(*) FROM read_grid('{tmp_path}/chm.tif') GROUP BY z ORDER BY z"
    )
    assert found.fetchall() == [(0.0, 20 * 40), (12.0, 20 * 40)]
