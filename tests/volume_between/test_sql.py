"""Cut and fill against sums of NumPy, and against the volume of bodies."""

import duckdb
import numpy as np
import pytest

import spatialq

RNG = np.random.default_rng(3)


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


@pytest.mark.parametrize("width", [2, 3, 4, 5])
def test_cells_of_another_width_are_refused(con, width):
    """Also of an odd number of cells, whose centres are centres of the others."""
    load(con, "before", np.zeros((60, 60)), x0=0.5, y0=0.5, dx=1.0)
    count = 60 // width
    load(con, "after", np.ones((count, count)), x0=width / 2, y0=width / 2, dx=width, dy=width)
    with pytest.raises(duckdb.Error, match=rf"after must have the cells of before, of 1.0 by 1.0, "
                       rf"got some of {width}.0 by {width}.0: resample one"):  # fmt: skip
        between(con, "'before'", "'after'")
    with pytest.raises(duckdb.Error, match=r"off its places by 0\.\d+ of a cell"):
        between(con, "'after'", "'before'")


def test_few_cells_of_the_same_width(con):
    """Cells that are far from each other are no wider than the others."""
    load(con, "before", np.zeros((60, 60)))
    after = np.full((60, 60), np.nan)
    after[[3, 9, 30, 57], [57, 6, 12, 3]] = 1
    load(con, "after", after)
    con.execute("DELETE FROM after WHERE z IS NULL")
    found = between(con, "'before'", "'after'")
    assert (found["cells"], found["fill"]) == (4, 4 * 0.5)


def test_a_cell_counts_once(con):
    """Tiles that overlap have cells twice."""
    load(con, "before", np.zeros((6, 8)))
    con.execute("CREATE TABLE twice AS FROM before UNION ALL FROM before WHERE x < 1000.5")
    message = r"twice must have each cell once, got the cell at 1000.25, 200\d.5 2 times"
    for pair in (("before", "twice"), ("twice", "before")):
        names = dict(zip(pair, ("before", "after"), strict=True))
        with pytest.raises(duckdb.Error, match=message.replace("twice", names["twice"])):
            between(con, *(f"'{each}'" for each in pair))


def test_grids_of_one_row_or_cell(con):
    load(con, "wide", np.ones((6, 8)))
    load(con, "row", np.zeros((1, 8)))
    load(con, "cell", np.zeros((1, 1)))
    for narrow, cells in (("row", 8), ("cell", 1)):
        found = between(con, f"'{narrow}'", "'wide'")
        assert (found["cells"], found["missing"], found["fill"]) == (cells, 48 - cells, cells / 2)
        assert between(con, "'wide'", f"'{narrow}'")["cut"] == cells / 2
        with pytest.raises(
            duckdb.Error, match="before or after must have several rows and columns"
        ):
            between(con, f"'{narrow}'", f"'{narrow}'")


@pytest.mark.parametrize("value", ["'nan'::DOUBLE", "'inf'::DOUBLE", "NULL"])
def test_places_are_finite(con, value):
    load(con, "whole", np.zeros((6, 8)))
    con.execute(f"CREATE TABLE broken AS FROM whole UNION ALL SELECT {value}, 2000.5, 1")
    for pair, name in ((("whole", "broken"), "after"), (("broken", "whole"), "before")):
        with pytest.raises(duckdb.Error, match=f"x and y of {name} must be finite numbers"):
            between(con, *(f"'{each}'" for each in pair))


def test_tables_without_rows(con):
    load(con, "before", np.zeros((3, 3)))
    con.execute("CREATE TABLE none AS FROM before WHERE false")
    assert between(con, "'before'", "'none'")["missing"] == 9
    assert between(con, "'none'", "'before'")["missing"] == 9
    assert between(con, "'none'", "'none'")["cells"] == 0


def test_the_builder(con):
    load(con, "before", np.zeros((3, 4)))
    load(con, "after", np.ones((3, 4)))
    rows = spatialq.table(con, "before").volume_between(spatialq.table(con, "after"))
    assert rows.select("cells", "fill").fetchall() == [(12, 6.0)]
