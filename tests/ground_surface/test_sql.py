"""`ground_surface` through DuckDB."""

import numpy as np
import pytest
from spatialq.udfs.ground_surface import Options, cpu

import spatialq

N = 3000


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        con.execute("SELECT setseed(0.5)")
        con.execute(
            "CREATE TABLE pts AS SELECT range AS point_id, 500000 + round(random() * 60, 2) AS x, "
            f"round(random() * 40, 2) AS y, round(random() * 9, 2) AS z FROM range({N})"
        )
        yield con


def kernel(con, where="true", **options):
    columns = con.sql(f"SELECT point_id, x, y, z FROM pts WHERE {where}").fetchnumpy()
    result = cpu.run(*(columns[c] for c in "xyz"), columns["point_id"], Options(**options))
    z = [None if np.isnan(value) else value for value in result["z"].tolist()]
    return list(zip(result["x"].tolist(), result["y"].tolist(), z, strict=True))


def test_columns_and_types(con):
    relation = con.sql("FROM ground_surface('pts')")
    assert relation.columns == ["x", "y", "z"]
    assert list(map(str, relation.types)) == ["DOUBLE"] * 3


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ("pts", {}),
        ("'pts'", {}),
        (
            "'pts', window_size := 8, overlap := 0.5, cell_size := 0",
            {"window_size": 8.0, "overlap": 0.5, "cell_size": 0.0},
        ),
        (
            "'pts', min_points := 3, ties := 'octree', device := 'cpu'",
            {"min_points": 3, "ties": "octree"},
        ),
        ("'pts', source := 'points'", {"source": "points"}),
        (
            "'pts', source := 'points', thin := true, resolution := 2",
            {"source": "points", "thin": True, "resolution": 2.0},
        ),
        ("'pts', method := 'idw', neighbours := 4", {"method": "idw", "neighbours": 4}),
        ("'pts', extrapolate := true", {"extrapolate": True}),
    ],
)
def test_options_reach_the_kernel_and_rows_come_from_north_to_south(con, arguments, options):
    assert con.sql(f"FROM ground_surface({arguments})").fetchall() == kernel(con, **options)


def test_missing_cells_are_rows_without_a_height(con):
    counts = "SELECT count(*), count(z), count(*) FILTER (isnan(z)) FROM ground_surface"
    cells, known, nan = con.sql(f"{counts}('pts')").fetchall()[0]
    assert cells == 60 * 40
    assert 0 < known < cells
    assert nan == 0
    filled = con.sql(f"{counts}('pts', extrapolate := true)").fetchall()
    assert filled == [(cells, cells, 0)]


def test_ground_of_a_view(con):
    con.execute("CREATE OR REPLACE VIEW ground AS FROM pts WHERE z < 1")
    result = con.sql("FROM ground_surface('ground', source := 'points')").fetchall()
    assert result == kernel(con, "z < 1", source="points")


def test_group_by_makes_a_grid_a_tile(con):
    rows = con.sql(
        "SELECT tile, ground_surface_list(point_id, x, y, z) "
        "FROM (SELECT *, y > 20 AS tile FROM pts) GROUP BY tile"
    ).fetchall()
    assert len(rows) == 2
    for tile, cells in rows:
        expected = kernel(con, "y > 20" if tile else "y <= 20")
        assert [tuple(cell.values()) for cell in cells] == expected


def test_an_empty_table_gives_an_empty_result(con):
    con.execute("CREATE OR REPLACE TABLE nothing AS FROM pts LIMIT 0")
    assert con.sql("FROM ground_surface('nothing')").fetchall() == []


def test_the_log_says_what_ran(con):
    con.sql("FROM ground_surface('pts')").fetchall()
    query = "SELECT function, row_count, device, error FROM spatialq_log()"
    assert con.sql(query).fetchall()[-1] == ("ground_surface", N, "cpu", None)
