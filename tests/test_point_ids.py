"""Every function of points with ids of all kinds: missing, NULL, fractions, texts, repeated."""

import re

import duckdb
import numpy as np
import pytest

import spatialq
from spatialq.functions.catalogue import catalogue
from spatialq.functions.declaration import PointsAndOtherInput, PointsInput
from tests.element_tables import box, put
from tests.kernels import beside, put_others

FUNCTIONS = sorted(
    name
    for name, each in catalogue().items()
    if isinstance(each.inputs, PointsInput | PointsAndOtherInput)
)
NAMES_POINTS = [name for name in FUNCTIONS if "point_id" in catalogue()[name].output.columns]
"""Functions whose rows are of points."""
N = 1500
IDS = {
    "good": "i",
    "small": "i::SMALLINT",
    "gaps": "(i * 7919) % 7001 - 3000",
    "far": "i * 1_000_000_007_000",
    "fractions": "i + 0.5",
    "doubles": "i::DOUBLE",
    "texts": "'p' || i",
    "nulls": "nullif(i, 77)",
    "large": "i::HUGEINT + 9_223_372_036_854_775_000",
    "twice": "i // 2",
    "far_twice": "(i // 2) * 1_000_000_007_000",
}


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        con.execute("SELECT setseed(0.5)")
        con.execute(
            "CREATE TABLE bare AS SELECT 10 * random() AS x, 10 * random() AS y, "
            "0.01 * random() AS z, i FROM range(1500) r(i)"
        )
        for name, text in IDS.items():
            con.execute(f"CREATE TABLE {name} AS SELECT {text} AS point_id, x, y, z FROM bare")
        con.execute("ALTER TABLE bare DROP i")
        put(con, "elements", global_id=["a"], mesh=[box((0, 0, -1), (5, 5, 0))])
        put_others(con, 0, 0, 5, 5)
        yield con


def call(name: str, table: str) -> str:
    return f"FROM {name}('{table}'{beside(name)}, unit := 1)"


def refused(con, statement: str) -> str:
    with pytest.raises(duckdb.Error) as raised:
        con.sql(statement).fetchall()
    return str(raised.value)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_whole_numbers_of_any_type_and_order(con, name):
    found = [
        len(con.sql(call(name, table)).fetchall()) for table in ("good", "small", "gaps", "far")
    ]
    assert len(set(found)) == 1 or name not in NAMES_POINTS


@pytest.mark.parametrize("name", FUNCTIONS)
def test_without_ids_the_error_has_the_line_that_adds_them(con, name):
    said = refused(con, call(name, "bare"))
    assert f"{name}: 'bare' must have a column point_id of numbers; " in said
    line = re.search(r"CREATE VIEW bare_numbered AS .*? FROM bare", said)[0]
    assert said.endswith(f"{line} makes a view that has one")
    con.execute(line)
    try:
        numbered = con.sql("SELECT * FROM bare_numbered").fetchnumpy()
        np.testing.assert_array_equal(numbered["point_id"], np.arange(N))
        expected = con.sql(f"{call(name, 'good')} ORDER BY ALL").fetchall()
        assert con.sql(f"{call(name, 'bare_numbered')} ORDER BY ALL").fetchall() == expected
    finally:
        con.execute("DROP VIEW bare_numbered")


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("table", ["fractions", "doubles", "texts", "large"])
def test_ids_that_are_not_whole_are_never_rounded(con, name, table):
    assert f"{name}: point_id must be whole numbers of 64 bits" in refused(con, call(name, table))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_null_is_no_id(con, name):
    assert f"{name}: point_id must not be NULL, got 1 of them" in refused(con, call(name, "nulls"))


@pytest.mark.parametrize("table", ["twice", "far_twice"])
@pytest.mark.parametrize("name", [*NAMES_POINTS, "build_lod"])
def test_ids_by_which_rows_are_named_are_unique(con, name, table):
    sentence = rf"{name}: point_id must be unique, got (\d+) more than once"
    found = re.search(sentence, refused(con, call(name, table)))
    ((count,),) = con.sql(f"SELECT count(*) FROM {table} WHERE point_id = {found[1]}").fetchall()
    assert count == 2


def test_functions_that_name_points():
    assert NAMES_POINTS == [
        "classify_ground", "classify_noise", "cloud_distance", "deviation", "owm_ground",
        "plane_points", "point_features", "points_within", "thin",
    ]  # fmt: skip


def test_ids_of_point_elements(con):
    """A macro of its own, which takes points for elements."""
    text = "FROM point_elements('{}', 'elements', 1.0, unit := 1) ORDER BY ALL"
    assert con.sql(text.format("good")).fetchall() == con.sql(text.format("small")).fetchall() != []
    said = refused(con, text.format("bare"))
    assert "point_elements: points must have a column point_id of numbers; CREATE VIEW" in said
    assert said.endswith("* FROM bare makes a view that has one")
    for table in ("fractions", "texts", "large"):
        said = refused(con, text.format(table))
        assert "point_elements: point_id must be a whole number, got" in said
