"""Small groups are one call: their rows are those of calls of their own."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import spatialq
from spatialq.database.native import loading
from spatialq.errors import StrayPointsWarning
from spatialq.functions.catalogue import catalogue
from spatialq.functions.declaration import PointsInput
from spatialq.planner import devices, log

FUNCTIONS = [
    name
    for name, function in catalogue().items()
    if isinstance(function.inputs, PointsInput) and name != "plane_peaks"  # as plane_nodes
]
SIZES = [10, 1, 0, 300, 2, 57, 20_000, 10, 3, 1000, 10]
"""Points of the groups: one has so many that it is a call of its own, one has none."""
AT_ONE_PLACE = 10
"""The group whose points are all at one place."""


@pytest.fixture(scope="module", params=["native", "lists"])
def con(request):
    if request.param == "native" and loading.problem():
        pytest.skip(f"the extension: {loading.problem()}")
    con = spatialq.connect() if request.param == "native" else duckdb.connect()
    if request.param == "lists":
        spatialq.install(con)
    rng = np.random.default_rng(3)
    n = sum(SIZES)
    tile = rng.permutation(np.repeat(np.arange(len(SIZES)), SIZES))
    x, y = np.where(tile == AT_ONE_PLACE, 0.5, 30 * rng.random((2, n))) + 100 * tile
    given = pa.table({  # noqa: F841 - DuckDB finds it by its name
        "point_id": rng.permutation(n), "tile": tile, "x": x, "y": y,
        "z": np.where(tile == AT_ONE_PLACE, 1.25, np.round(rng.random(n), 2)),
        "red": pa.array(rng.integers(0, 255, n), pa.uint16(), mask=tile == 7),
    })  # fmt: skip
    con.execute("CREATE TABLE pts AS FROM given")
    yield con
    con.close()


def sorted_rows(rows):
    """Rows in an order of their own: that of points is DuckDB's, which has several threads."""
    return sorted(rows, key=repr)


def lists(function):
    more = ", red" if function == "build_lod" else ""
    return f"{function}_list(point_id, x, y, z{more}, unit := 1{{}})"


@pytest.mark.parametrize("more", ["", ", bounds := [310, 305, 625, 620]"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_rows_are_those_of_calls_of_their_own(con, function, more):
    call = lists(function).format(more)
    query = f"SELECT tile, {call} FROM pts GROUP BY tile"
    together = {tile: sorted_rows(rows) for tile, rows in con.execute(query).fetchall()}
    alone = {
        tile: sorted_rows(con.execute(f"SELECT {call} FROM pts WHERE tile = {tile}").fetchone()[0])
        for tile, size in enumerate(SIZES)
        if size
    }
    assert together == alone
    assert any(together.values())


def test_a_run_of_groups_is_one_call_of_the_log(con):
    log._entries.clear()
    con.execute("SET threads = 1")
    con.execute(
        "SELECT owm_ground_list(point_id, x, y, z) FROM pts WHERE tile <> 6 GROUP BY tile"
    ).fetchall()
    (entry,) = log.entries()
    assert entry.rows == sum(SIZES) - 20_000
    assert entry.reason.endswith("9 groups")
    assert entry.estimated_seconds is None


def test_groups_that_ask_for_different_things_get_them(con):
    query = (
        "SELECT tile, len(owm_ground_list(point_id, x, y, z, cell_size := 1.0 + tile % 2)) "
        "FROM pts WHERE tile < 6 GROUP BY tile ORDER BY tile"
    )
    each = [
        con.execute(
            f"SELECT {tile}, len(owm_ground_list(point_id, x, y, z, cell_size := {1.0 + tile % 2}))"
            f" FROM pts WHERE tile = {tile}"
        ).fetchone()
        for tile in (0, 1, 3, 4, 5)
    ]
    assert con.execute(query).fetchall() == each


def test_stray_points_of_a_group_are_left_out(con):
    con.execute("CREATE OR REPLACE TEMP TABLE far AS FROM pts WHERE tile IN (0, 3, 5)")
    con.execute("INSERT INTO far VALUES (1000000, 3, 1e9, 1e9, 1e9, 0)")
    query = "SELECT tile, classify_ground_list(point_id, x, y, z, unit := 1) FROM far GROUP BY tile"
    with pytest.warns(StrayPointsWarning):
        rows = dict(con.execute(query).fetchall())
    assert {"point_id": 1000000, "height": None, "is_ground": False, "margin": None} in rows[3]
    assert sum(row["height"] is None for row in rows[3]) == 1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("point_id = 7, tile = 0", "point_id must be unique, got 7 more than once"),
        ("z = 'nan'", "z must be finite"),
        ("z = NULL", "z must not be NULL"),
        ("x = 1e14", "x must be from"),
    ],
)
def test_what_is_wrong_in_one_group_is_said(con, change, sentence):
    con.execute("CREATE OR REPLACE TEMP TABLE bad AS FROM pts WHERE tile < 6")
    con.execute(f"UPDATE bad SET {change} WHERE tile = 0")
    query = "SELECT owm_ground_list(point_id, x, y, z) FROM bad GROUP BY tile"
    with pytest.raises(Exception, match=sentence):
        con.execute(query)


def test_ids_may_be_the_same_in_different_groups(con):
    query = (
        "SELECT sum(len(classify_ground_list(i, x, y, z, unit := 1))) OVER () FROM "
        "(SELECT *, row_number() OVER (PARTITION BY tile) - 1 AS i FROM pts) GROUP BY tile"
    )
    assert con.execute(query).fetchone() == (sum(SIZES),)


def test_a_memory_limit_that_is_no_size_is_refused(con):
    query = "SELECT owm_ground_list(point_id, x, y, z, memory := 'much') FROM pts GROUP BY tile"
    with pytest.raises(Exception, match="memory must be"):
        con.execute(query)


@pytest.mark.parametrize("function", ["owm_ground", "classify_ground", "detect_planes"])
def test_groups_on_the_gpu_have_the_rows_of_the_cpu(con, function):
    if problem := devices.gpu().problem:
        pytest.skip(problem)
    call = f"{function}_list(point_id, x, y, z, unit := 1, device := '{{}}')"
    found = {
        device: {
            tile: sorted_rows(rows)
            for tile, rows in con.execute(
                f"SELECT tile, {call.format(device)} FROM pts GROUP BY tile"
            ).fetchall()
        }
        for device in ("cpu", "gpu")
    }
    assert found["gpu"] == found["cpu"]
    assert {entry.device for entry in log.entries()[-4:]} >= {"gpu"}
