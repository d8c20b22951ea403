"""Cut and fill against sums of NumPy, and against the volume of bodies."""

import duckdb
import numpy as np
import pytest

import spatialq

RNG = np.random.default_rng(3)


@pytest.fixture
def con():
    with spatialq.connect() as con:
        yield con


def load(con, name, z, x0=1000.25, y0=2000.5, dx=0.5, dy=1.0):
    """A table of cells in any order; NaN as NULL, row 0 in the south."""
    rows, columns = np.indices(z.shape)
    x, y, heights = x0 + columns.ravel() * dx, y0 + rows.ravel() * dy, z.ravel()
    con.execute(
        f"CREATE TABLE {name} AS SELECT unnest($1) AS x, unnest($2) AS y, nullif(unnest($3), "
        "'nan'::DOUBLE) AS z",
        [x.tolist(), y.tolist(), heights.tolist()],
    )
    con.execute(f"CREATE OR REPLACE TABLE {name} AS FROM {name} ORDER BY hash(x + 17 * y)")


def between(con, *arguments):
    result = con.execute(f"FROM volume_between({', '.join(arguments)})")
    names = [each[0] for each in result.description]
    return dict(zip(names, *result.fetchall(), strict=True))


@pytest.mark.parametrize("least", [0.0, 0.4, 1.96 * np.hypot(0.1, 0.2)])
def test_sums_are_those_of_numpy(con, least):
    before, after = RNG.normal(size=(2, 40, 30))
    before[RNG.random(before.shape) < 0.1] = np.nan
    after[RNG.random(before.shape) < 0.1] = np.nan
    load(con, "before", before)
    load(con, "after", after)
    found = between(con, "'before'", "'after'", f"level_of_detection := {least}")
    change = (after - before)[np.isfinite(after - before)]
    cut, fill = change[change < -least], change[change > least]
    assert (found["cells"], found["missing"]) == (change.size, 1200 - change.size)
    assert found["unchanged"] == change.size - cut.size - fill.size
    assert found["area"] == change.size * 0.5
    assert found["cut"] == pytest.approx(-cut.sum() * 0.5)
    assert found["fill"] == pytest.approx(fill.sum() * 0.5)
    assert found["net"] == pytest.approx(found["fill"] - found["cut"])
    assert (found["cut_area"], found["fill_area"]) == (cut.size * 0.5, fill.size * 0.5)


def test_a_heap_and_a_pit(con):
    """A cone of height 6 and radius 10 added, a box of 8 x 4 x 2 dug."""
    y, x = np.mgrid[-30:30, -30:30] * 0.5 + 0.25
    level = np.full(x.shape, 100.0)
    changed = level + np.maximum(0, 6 * (1 - np.hypot(x - 4, y) / 10))
    changed[5:13, 4:20] -= 2
    load(con, "before", level, dx=0.5, dy=0.5)
    load(con, "after", changed, dx=0.5, dy=0.5)
    found = between(con, "'before'", "'after'")
    assert found["cut"] == pytest.approx(8 * 4 * 2)
    assert found["fill"] == pytest.approx(np.pi * 100 * 6 / 3, rel=2e-3)


def test_grids_of_another_extent_share_some_cells(con):
    load(con, "before", np.zeros((6, 8)))
    load(con, "after", np.ones((6, 8)), x0=1000.25 + 3 * 0.5 + 1e-7, y0=2000.5 - 2)
    found = between(con, "'before'", "'after'")
    assert (found["cells"], found["missing"]) == (5 * 4, 2 * 48 - 2 * 20)
    assert found["fill"] == 5 * 4 * 0.5


def test_what_is_refused(con):
    load(con, "before", np.zeros((6, 8)))
    load(con, "after", np.zeros((6, 8)), x0=1000.35)
    with pytest.raises(duckdb.Error, match=r"after must have the cells of before, got some off "
                       r"its places by 0.2 of a cell: resample one of them"):  # fmt: skip
        between(con, "'before'", "'after'")
    with pytest.raises(duckdb.Error, match="level_of_detection must be a number >= 0, got -1"):
        between(con, "'before'", "'before'", "level_of_detection := -1")


def test_tables_without_rows(con):
    load(con, "before", np.zeros((3, 3)))
    con.execute("CREATE TABLE none AS FROM before WHERE false")
    assert between(con, "'before'", "'none'")["missing"] == 9
    assert between(con, "'none'", "'none'")["cells"] == 0


def test_the_builder(con):
    load(con, "before", np.zeros((3, 4)))
    load(con, "after", np.ones((3, 4)))
    rows = spatialq.table(con, "before").volume_between(spatialq.table(con, "after"))
    assert rows.select("cells", "fill").fetchall() == [(12, 6.0)]
