"""`bounds` of every function of points: what `WHERE` gives, by every transport; `memory` beside."""

import duckdb
import numpy as np
import pytest

import spatialq
from spatialq.execution import bounds
from spatialq.functions.catalogue import catalogue
from spatialq.functions.declaration import PointsAndOtherInput, PointsInput
from spatialq.runtime import budget
from tests.element_tables import box, put
from tests.kernels import on_device
from tests.owm_ground import oracle

from .kernels import WITH_ELEMENTS, WITH_TABLE, beside, other_of, put_others

FUNCTIONS = sorted(
    name
    for name, each in catalogue().items()
    if isinstance(each.inputs, PointsInput | PointsAndOtherInput)
)
AS_WHERE = [name for name in FUNCTIONS if name not in ("owm_ground", "ground_surface")]
"""The windows of the others' seeds divide the box."""
BOUNDS = [10.0, 4.1, 60.0, 33.3]
N = 6000
INSIDE = "x BETWEEN 10 AND 60 AND y BETWEEN 4.1::DOUBLE AND 33.3::DOUBLE"


def made_up():
    """Level ground and a roof, coordinates in tenths so that some lie on the border."""
    rng = np.random.default_rng(4)
    x, y = rng.integers(0, 800, N) / 10, rng.integers(0, 400, N) / 10
    z = 0.01 * rng.random(N) + np.where((x > 20) & (x < 30) & (y > 10) & (y < 20), 6.0, 0.0)
    ids = rng.permutation(10 * N)[:N]
    red = rng.integers(0, 65536, N).astype(np.uint16)
    return {"point_id": ids, "x": x, "y": y, "z": z, "red": red}


@pytest.fixture(scope="module")
def points():
    return made_up()


@pytest.fixture(scope="module", params=["native", "lists"])
def con(request, points):
    made = spatialq.connect() if request.param == "native" else duckdb.connect()
    with made as con:
        if request.param == "lists":
            spatialq.install(con)
        import pyarrow as pa

        cloud = pa.table(points)  # noqa: F841 (named in the query)
        con.execute("CREATE TABLE pts AS FROM cloud")
        con.execute(f"CREATE VIEW cut AS FROM pts WHERE {INSIDE}")
        con.execute("CREATE TABLE narrow AS SELECT * REPLACE (x::FLOAT AS x) FROM pts")
        con.execute("CREATE TABLE holes AS SELECT * REPLACE (nullif(x, 3) AS x) FROM pts")
        put(con, "elements", global_id=["a"], mesh=[box((20, 10, 0), (30, 20, 6))])
        put_others(con, 5, 5, 70, 20)
        yield con


SPARSE = {"unmodelled": ", gap := 10, min_points := 1"}
"""Arguments with which there are rows of so few points."""


def call(name, table, more=""):
    return f"{name}('{table}'{beside(name)}, unit := 1{SPARSE.get(name, '')}{more})"


def rows(con, query):
    """Give the rows; pairs with polygons, which come in no order, sorted."""
    found = con.execute(query).fetchall()
    return sorted(found) if any(f" {name}(" in query for name in WITH_TABLE) else found


@pytest.mark.parametrize("name", AS_WHERE)
def test_bounds_are_a_condition_on_x_and_y(con, name):
    expected = rows(con, f"FROM {call(name, 'cut')}")
    assert len(expected) > 0
    assert rows(con, f"FROM {call(name, 'pts', f', bounds := {BOUNDS}')}") == expected


@pytest.mark.parametrize("name", FUNCTIONS)
def test_bounds_around_all_points_and_around_none(con, name):
    all_of_it = "bounds := [0, 0, 79.9, 39.9]"
    expected = rows(con, f"FROM {call(name, 'pts')}")
    assert rows(con, f"FROM {call(name, 'pts', f', {all_of_it}')}") == expected
    assert rows(con, f"FROM {call(name, 'pts', ', bounds := NULL')}") == expected
    nothing = rows(con, f"FROM {call(name, 'pts', ', bounds := [900, 0, 901, 1]')}")
    if name == "coverage":  # which has a row of each element
        assert {row[2] for row in nothing} == {"no data"}
    else:
        assert nothing == []


def test_the_windows_of_seeds_divide_the_bounds(con, points):
    cut = rows(con, "SELECT point_id, x, y, z FROM cut")
    seeds, filled = oracle.owm_ground(cut, min_points=2, bounds=BOUNDS)
    query = f"SELECT point_id, hits, filled FROM {call('owm_ground', 'pts', f', min_points := 2, bounds := {BOUNDS}')}"  # noqa: E501
    found = rows(con, query)
    assert {i: hits for i, hits, is_filled in found if not is_filled} == seeds
    assert {i: hits for i, hits, is_filled in found if is_filled} == filled


def test_terrain_of_bounds_is_that_of_their_seeds(con):
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE seeds AS "
        f"FROM {call('owm_ground', 'pts', f', bounds := {BOUNDS}')}"
    )
    found = rows(con, f"FROM {call('ground_surface', 'pts', f', bounds := {BOUNDS}')}")
    of_seeds = rows(con, f"FROM {call('ground_surface', 'seeds', ', source := $$points$$')}")
    assert {row for row in found if row[2] is not None} == {
        row for row in of_seeds if row[2] is not None
    }


@pytest.mark.parametrize("name", AS_WHERE)
def test_arrays_are_cut_before_the_kernel(con, points, name):
    given = dict(points)
    if name != "build_lod":
        del given["red"]
    if name in WITH_ELEMENTS:
        vertices, faces = box((20, 10, 0), (30, 20, 6))
        given["elements"] = [(np.reshape(vertices, (-1, 3)), np.reshape(faces, (-1, 3)))]
    given |= other_of(name, 5, 5, 70, 20)
    x, y = points["x"], points["y"]
    inside = (x >= BOUNDS[0]) & (x <= BOUNDS[2]) & (y >= BOUNDS[1]) & (y <= BOUNDS[3])
    cut = {n: v[inside] if isinstance(v, np.ndarray) else v for n, v in given.items()}
    found = spatialq.run(name, **given, bounds=np.array(BOUNDS))
    expected = spatialq.run(name, **cut)
    for column, values in expected.items():
        if isinstance(values, np.ndarray):
            np.testing.assert_array_equal(found[column], values)
    assert not np.array_equal(len(x), np.count_nonzero(inside))


def test_without_ids_they_are_the_positions(points):
    xyz = (points[axis] for axis in "xyz")
    found = spatialq.run("classify_ground", *xyz, bounds=BOUNDS)["point_id"]
    x, y = points["x"], points["y"]
    inside = (x >= BOUNDS[0]) & (x <= BOUNDS[2]) & (y >= BOUNDS[1]) & (y <= BOUNDS[3])
    assert found.tolist() == np.flatnonzero(inside).tolist()


def test_masked_attributes_are_cut_with_the_points(points):
    red = np.ma.MaskedArray(points["red"], points["red"] % 3 == 0)
    found = spatialq.run("build_lod", **{**points, "red": red}, bounds=BOUNDS)
    x, y = points["x"], points["y"]
    inside = (x >= BOUNDS[0]) & (x <= BOUNDS[2]) & (y >= BOUNDS[1]) & (y <= BOUNDS[3])
    cut = {name: values[inside] for name, values in {**points, "red": red}.items()}
    expected = spatialq.run("build_lod", **cut)
    for name, values in expected["samples"].columns.items():
        np.testing.assert_array_equal(found["samples"].columns[name], values)


def test_groups_are_cut_one_by_one(con):
    grouped = "SELECT point_id % 3 AS k, unnest(classify_ground_list(point_id, x, y, z{}), max_depth := 2) FROM {} GROUP BY k ORDER BY ALL"  # noqa: E501
    expected = rows(con, grouped.format(", unit := 1", "cut"))
    assert rows(con, grouped.format(f", unit := 1, bounds := {BOUNDS}", "pts")) == expected


def test_pinned_columns_are_cut(con):
    expected = rows(con, f"FROM {call('classify_ground', 'cut')} ORDER BY ALL")
    spatialq.pin(con, "pts")
    try:
        query = f"FROM {call('classify_ground', 'pts', f', bounds := {BOUNDS}')} ORDER BY ALL"
        assert rows(con, query) == expected
        assert rows(con, "SELECT uses FROM spatialq_pins()") == [(1,)]
    finally:
        con.execute("FROM spatialq_unpin('pts')").fetchall()


def test_bounds_are_compared_as_kernels_get_the_coordinates(con):
    query = "SELECT count(*) FROM {}"
    low = 20.1
    for table in ("pts", "narrow"):
        where = f"SELECT count(*) FROM {table} WHERE x::DOUBLE >= '{low!r}'::DOUBLE"
        found = call("classify_ground", table, f", bounds := [{low!r}::DOUBLE, 0, 80, 40]")
        assert rows(con, query.format(found)) == rows(con, where)


def test_points_without_a_coordinate_are_in_no_box(con):
    found = call("classify_ground", "holes", f", bounds := {BOUNDS}")
    assert rows(con, f"FROM {found}") == rows(con, f"FROM {call('classify_ground', 'cut')}")
    with pytest.raises(duckdb.Error, match="x must not be NULL"):
        rows(con, f"FROM {call('classify_ground', 'holes')}")


WRONG = [
    "[1, 2, 3]", "[]", "[3, 0, 1, 1]", "[0, 3, 1, 1]", "['nan'::DOUBLE, 0, 1, 1]",
    "[0, 0, 'inf'::DOUBLE, 1]", "[0, NULL, 1, 1]", "'box'", "5",
]  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("value", WRONG)
def test_what_is_no_box_is_refused(con, name, value):
    with pytest.raises(duckdb.Error, match=rf"{name}: bounds must be (\[xmin, |a list of )"):
        rows(con, f"FROM {call(name, 'pts', f', bounds := {value}')}")


@pytest.mark.parametrize(
    "value", [[1, 2, 3], [3, 0, 1, 1], [0, 0, np.inf, 1], "box", 5, [None] * 4]
)
def test_what_is_no_box_is_refused_in_python(points, value):
    with pytest.raises(ValueError, match=r"owm_ground: bounds must be (\[xmin, |a list of )"):
        spatialq.run("owm_ground", [0.0], [0.0], [0.0], bounds=value)


@pytest.mark.parametrize("far", [1e160, 1e308])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_box_whose_area_double_precision_cannot_hold(con, name, far):
    box = f", bounds := [-{far}, -{far}, {far}, {far}]"
    if name in AS_WHERE:
        assert rows(con, f"FROM {call(name, 'pts', box)}") == rows(con, f"FROM {call(name, 'pts')}")
    else:
        with pytest.raises(duckdb.Error, match=f"{name}: x and y must be small enough"):
            rows(con, f"FROM {call(name, 'pts', box)}")


# -- memory


@pytest.fixture
def seen(monkeypatch):
    """The budgets that kernels of `classify_ground` and `pops_features` ran with."""
    found = []
    for name in ("classify_ground", "pops_features", "distance"):
        module = __import__(f"spatialq.udfs.{name}.cpu", fromlist=["run"])
        kernel = module.run

        def run(*arguments, kernel=kernel, **named):
            found.append(budget.current())
            return kernel(*arguments, **named)

        monkeypatch.setattr(module, "run", run)
    return found


@pytest.mark.parametrize(("text", "size"), [("'2GB'", 2 * 10**9), ("1.5", 3 << 29), ("1", 1 << 30)])
def test_memory_reaches_the_kernel(con, seen, text, size):
    more = f"device := 'cpu', memory := {text}"
    rows(con, f"FROM {call('classify_ground', 'pts', f', {more}')}")
    rows(con, f"FROM distance('elements', NULL, {more})")
    rows(con, f"SELECT classify_ground_list(point_id, x, y, z, unit := 1, {more}) FROM pts")
    assert seen == [size] * 3


def test_memory_reaches_the_kernel_from_python(seen, points):
    spatialq.run("classify_ground", *(points[a] for a in "xyz"), device="cpu", memory="512MB")
    spatialq.run_grid("pops_features", np.zeros((40, 40)), dx=100, device="cpu", memory=2)
    spatialq.run_elements(
        "distance", [(np.eye(4, 3), np.array([[0, 1, 2]]))], device="cpu", memory="1GiB"
    )
    assert seen == [512 * 10**6, 2 << 30, 1 << 30]


@pytest.mark.parametrize("value", ["'abc'", "0", "-1", "true", "[1]", "''"])
def test_what_is_no_size_is_refused(con, value):
    with pytest.raises(duckdb.Error, match="classify_ground: memory must be a size above 0"):
        rows(con, f"FROM {call('classify_ground', 'pts', f', memory := {value}')}")


@pytest.mark.parametrize("value", ["abc", 0, True])
def test_what_is_no_size_is_refused_in_python(value):
    with pytest.raises(ValueError, match="owm_ground: memory must be a size above 0"):
        spatialq.run("owm_ground", [0.0], [0.0], [0.0], memory=value)


# -- arrays of a GPU


def test_arrays_of_a_gpu_are_cut_there(device, points, monkeypatch):
    monkeypatch.setattr(bounds, "on_gpu", device.is_here)
    red = np.ma.MaskedArray(points["red"], points["red"] % 3 == 0)
    there = {name: on_device(device, points[name]) for name in ("x", "y", "z", "point_id")}
    options = catalogue()["build_lod"].choose({"bounds": BOUNDS})
    found = bounds.within({**there, "red": red}, options)
    expected = bounds.within({**points, "red": red}, options)
    assert found.keys() == expected.keys()
    for name in there:
        assert device.download(found[name]).tolist() == expected[name].tolist()
    assert found["red"].tolist() == expected["red"].tolist()
    counted = bounds.within({**there, "point_id": None}, options)["point_id"]
    x, y = points["x"], points["y"]
    inside = (x >= BOUNDS[0]) & (x <= BOUNDS[2]) & (y >= BOUNDS[1]) & (y <= BOUNDS[3])
    assert device.download(counted).tolist() == np.flatnonzero(inside).tolist()
    whole = catalogue()["build_lod"].choose({"bounds": [0, 0, 80, 40]})
    assert bounds.within({**there, "red": None}, whole)["x"] is there["x"]
