"""Every parameter of every function rejects what its declaration excludes, in the same sentence
from SQL and from Python. The cases follow from the declarations; what a sentence must say is
written here a second time.
"""

from functools import partial
from math import inf, isinf, nan

import duckdb
import numpy as np
import pytest

import spatialq
from spatialq.functions.catalogue import catalogue
from spatialq.functions.declaration import (
    ElementsInput,
    GridInput,
    PointsAndElementsInput,
    PointsAndOtherInput,
    PointsAndTableInput,
    PointsInput,
)

from .kernels import beside, other_of, put_others

CUBE = "{vertices: [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1]::DOUBLE[], faces: [0, 2, 1, 0, 1, 3, 1, 2, 3, 2, 0, 3]::INTEGER[]}"  # noqa: E501
CALLS = {
    "deviation": "deviation('pts', 'walls', {})",
    "direction": None,  # its macros have names of their own
    "distance": "distance('walls', NULL, {})",
    "intersects_with": "intersects_with('walls', {})",
    "coverage": "coverage('pts', 'walls', {})",
    "plane_elements": "plane_elements('pts', 'walls', {})",
    "pops_features": "pops_features('cells', {})",
    "pops_patches": "pops_patches('cells', {})",
    "registration": "registration('pts', 'walls', {})",
    "cloud_distance": "cloud_distance('pts', 'before', {})",
    "points_within": "points_within('pts', 'plots', {})",
    "unmodelled": "unmodelled('pts', 'walls', {})",
    "contours": "contours('cells', {})",
    "terrain_derivatives": "terrain_derivatives('cells', {})",
}
NOT_IN_MACROS = {("intersects_with", "relations"), ("distance", "k")}


def limits_of(each):
    """What is just outside of a parameter's limits: value, and whether it is below or above."""
    step = 1 if each.type is int else 0.001
    if not isinf(each.above):
        yield each.type(each.above)
    if not isinf(each.at_least):
        yield each.type(each.at_least - step)
    if not isinf(each.below):
        yield each.type(each.below)
    if not isinf(each.at_most):
        yield each.type(each.at_most + step * max(1, abs(each.at_most)))


def must_be(each):
    """What an error must say of a value that is out of range."""
    if each.choices:
        return " or ".join(f"'{choice}'" for choice in each.choices)
    parts = []
    for sign, limit in (("> ", each.above), (">= ", each.at_least), ("< ", each.below),
                        ("<= ", each.at_most)):  # fmt: skip
        if not isinf(limit):
            power = {2**32: "2**32", 2**63: "2**63"}.get(limit, f"{limit:g}")
            parts.append(sign + power)
    return " and ".join(parts)


def wrong_values():
    for function in catalogue().values():
        for each in function.parameters:
            if each.must_be:  # checked by the function itself, see its own tests
                continue
            values = list(limits_of(each))
            values += ["nonsense"] if each.choices else []
            values += [nan, inf, -inf] if each.type is float else []
            for value in values:
                yield function.name, each, [value] if each.is_list else value


WRONG = list(wrong_values())
IDS = [f"{name}-{each.name}-{value}" for name, each, value in WRONG]


def in_sql(value):
    if isinstance(value, list):
        return f"[{', '.join(map(in_sql, value))}]"
    if isinstance(value, float) and not np.isfinite(value):
        return f"'{value}'::DOUBLE"
    return repr(value)


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        con.execute(
            "CREATE TABLE pts AS SELECT range AS point_id, range * 1.0 AS x, "
            "range % 7 * 1.0 AS y, 1.0 AS z FROM range(50)"
        )
        con.execute(
            "CREATE TABLE cells AS SELECT x.range * 100.0 AS x, y.range * 100.0 AS y, 1.0 AS z "
            "FROM range(40) AS x, range(40) AS y"
        )
        con.execute(f"CREATE TABLE walls AS SELECT 'a' AS global_id, {CUBE} AS mesh")
        put_others(con, 0, 0, 5, 5)
        yield con


@pytest.mark.parametrize(("name", "each", "value"), WRONG, ids=IDS)
def test_python_rejects_it(name, each, value):
    with pytest.raises(ValueError, match="must be") as error:
        catalogue()[name].choose({each.name: value})
    assert str(error.value).startswith(f"{name}: {each.name} must be {must_be(each)}")
    assert str(error.value).endswith(f"got {value!r}")
    assert ("NULL" in str(error.value)) == each.is_optional


def test_sql_rejects_it_in_the_same_words(con):
    differences = []
    for name, each, value in WRONG:
        call = CALLS.get(name, f"{name}('pts', {{}})")
        if call is None or (name, each.name) in NOT_IN_MACROS:
            continue
        with pytest.raises(ValueError, match="must be") as expected:
            catalogue()[name].choose({each.name: value})
        try:
            con.sql(f"FROM {call.format(f'{each.name} := {in_sql(value)}')}").fetchall()
            found = "no error"
        except duckdb.Error as error:
            found = str(error)
        sentence = str(expected.value)
        if "inf" in str(value) or "nan" in str(value):  # which JSON, as functions of files take
            sentence = sentence.split(", got")[0]  # it, has as null or cannot have
        if sentence not in found and f"{each.name} must not be NULL" not in found:
            differences.append((name, each.name, value, found))
    assert not differences


def test_sql_rejects_null_where_a_value_must_be(con):
    for name, function in catalogue().items():
        call = CALLS.get(name, f"{name}('pts', {{}})")
        for each in function.parameters:
            if call is None or (name, each.name) in NOT_IN_MACROS or each.is_optional:
                continue
            with pytest.raises(duckdb.Error, match=f"{name}: {each.name} must not be NULL"):
                con.sql(f"FROM {call.format(f'{each.name} := NULL')}").fetchall()


@pytest.mark.parametrize("name", catalogue())
def test_other_types_and_unknown_names_are_rejected(name):
    function = catalogue()[name]
    for each in function.parameters:
        for value in (object(), {"a": 1}, 1.5 if each.type is int else b"bytes"):
            given = [value] if each.is_list else value
            with pytest.raises(ValueError, match=f"{name}: {each.name} must be ") as error:
                function.choose({each.name: given})
            assert f"got {given!r}" in str(error.value)
    with pytest.raises(ValueError, match=f"{name}: no option 'windowsize'; there is "):
        function.choose({"windowsize": 1})


@pytest.mark.parametrize("name", catalogue())
def test_every_default_is_allowed_and_reaches_the_kernel(name):
    function = catalogue()[name]
    chosen = function.choose({})
    assert chosen.values() == {each.name: each.default for each in function.parameters}
    assert function.choose(chosen.values()) == chosen


@pytest.mark.parametrize("name", catalogue())
def test_a_wrong_device_is_rejected(name):
    """Before anything is computed, whatever the function is of."""
    sentence = f"{name}: device must be 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1', got 'tpu'"
    points = [np.arange(9.0)] * 3
    mesh = [(np.eye(4, 3), np.array([[0, 1, 2]]))]
    match catalogue()[name].inputs:
        case ElementsInput():
            call = partial(spatialq.run_elements, name, mesh)
        case GridInput():
            call = partial(spatialq.run_grid, name, np.zeros((50, 50)), dx=100)
        case PointsAndElementsInput():
            call = partial(spatialq.run, name, *points, elements=mesh)
        case PointsAndTableInput():
            call = partial(spatialq.run, name, *points, **other_of(name, 0, 0, 1, 1))
        case _:
            call = partial(spatialq.run, name, *points)
    with pytest.raises(ValueError, match=sentence):
        call(device="tpu")


OF_POINTS = [
    name for name, each in catalogue().items()
    if isinstance(each.inputs, PointsInput | PointsAndOtherInput)
]  # fmt: skip


@pytest.mark.parametrize("name", OF_POINTS)
@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ("'nan'::DOUBLE AS z", "x, y and z must be finite, got 50 points with NaN or infinity, "),
        ("if(point_id = 9, 'inf'::DOUBLE, z) AS z", "got 1 points with NaN or infinity, the first"),
        ("if(point_id = 8, '-inf'::DOUBLE, x) AS x", "the first with point_id 8"),
        ("if(point_id > 47, NULL, y) AS y", "y must not be NULL, got 2 of them, the first with "),
        ("if(point_id = 4, NULL, point_id) AS point_id", "point_id must not be NULL, got 1 of"),
    ],
)
def test_coordinates_must_be_there_and_finite(con, name, columns, sentence):
    axes = catalogue()[name].inputs.columns
    if columns.endswith(" z"):
        columns = columns.replace("z)", f"{axes[-1]})").replace(" z", f" {axes[-1]}")
    bad = f"WITH bad AS (SELECT * REPLACE ({columns}) FROM pts)"
    with pytest.raises(duckdb.Error) as error:
        con.sql(f"{bad} FROM {name}('bad'{beside(name, 'walls')})").fetchall()
    assert f"{name}: " in str(error.value)
    all_of_them = f"{', '.join(axes[:-1])} and {axes[-1]} must"
    assert sentence.replace("x, y and z must", all_of_them) in str(error.value)


@pytest.mark.parametrize("name", OF_POINTS)
@pytest.mark.parametrize("column", ["point_id", "x", "y", "z"])
def test_a_missing_column_is_named(con, name, column):
    bad = f"WITH bad AS (SELECT * EXCLUDE ({column}) FROM pts)"
    call = con.sql(f"{bad} FROM {name}('bad'{beside(name, 'walls')})")
    if column not in ("point_id", *catalogue()[name].inputs.columns):
        call.fetchall()
        return
    with pytest.raises(duckdb.Error, match=f"must have a column {column} of numbers"):
        call.fetchall()


@pytest.mark.parametrize("function", [b"owm_ground", None, 3, ["owm_ground", 3]])
def test_what_is_no_function_name_is_rejected(function):
    with pytest.raises(ValueError, match="run: function must be a name or a list of names, got "):
        spatialq.run(function, [1.0], [1.0], [1.0])
