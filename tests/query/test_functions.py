"""Every table macro of rows is a method, with the signature of its declaration, and runs."""

import inspect
import re
from typing import Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from spatialq.udfs.registration import MATRIX

import spatialq as sq
from spatialq.functions.catalogue import catalogue
from spatialq.functions.generator import table_macros
from spatialq.functions.methods import ONE_FILE

MACROS = {macro.name: macro for macro in table_macros()}
OF_FILES = {"write_bcf", "write_ground", "write_lod", "write_tiles"}
"""Macros that take no rows."""
KINDS = (sq.Points, sq.Elements, sq.Objects, sq.Pairs, sq.Nodes, sq.Grid)
METHODS = {
    name: method
    for kind in KINDS
    for name, method in vars(kind).items()
    if inspect.isfunction(method) and not name.startswith("_")
}
SMALL = {
    "pops_features": {"scales": [20.0], "steps": [4.0], "example_scale": 20},
    "pops_patches": {"scales": [20.0], "steps": [4.0], "example_scale": 20},
    "build_lod": {"max_points": 500},
    "ground_surface": {"resolution": 5.0},
}
"""Arguments where the data of the tests are smaller than what the defaults are for."""
NEEDED = {
    "closer_than": {"d": 0.5},
    "farther_than": {"d": 5.0},
    "point_elements": {"max_distance": 0.5},
    "to_model": {"matrix": [1.0, 0, 0, 5, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]},
}


def test_each_macro_is_a_method():
    assert METHODS.keys() == MACROS.keys() - OF_FILES


@pytest.mark.parametrize("name", METHODS)
def test_the_signature_is_that_of_the_declaration(name):
    arguments = MACROS[name].arguments[1:]
    declared = [each for each in arguments if each.parameter or each.name not in ONE_FILE]
    found = dict([*inspect.signature(METHODS[name]).parameters.items()][1:])
    assert [*found] == [each.name for each in declared]
    hints = get_type_hints(METHODS[name])
    for each in declared:
        default = found[each.name].default
        if each.default is None:
            assert default is inspect.Parameter.empty
        elif each.parameter is not None:
            assert default == each.parameter.default
            assert type(default) is type(each.parameter.default)
        else:
            known = {"NULL": None, "true": True, "false": False}
            assert known.get(each.default, each.default.strip("'")) in (default, str(default))
        if each.parameter is None:
            continue
        hint = hints[each.name]
        if each.parameter.is_optional:
            assert type(None) in get_args(hint)
            hint = Union[tuple(part for part in get_args(hint) if part is not type(None))]  # noqa: UP007
        if each.parameter.is_list:
            (hint,) = get_args(hint)
        elif each.parameter.unit == "metres":  # a length may be a text with its unit
            assert set(get_args(hint)) == {float, str}
            hint = float
        if each.parameter.choices:
            assert get_origin(hint) is Literal
            assert get_args(hint) == each.parameter.choices
        else:
            assert hint is each.parameter.type


@pytest.mark.parametrize("name", METHODS)
def test_help_says_what_a_function_takes_and_gives(name):
    text = " ".join(inspect.getdoc(METHODS[name]).split())
    for each in inspect.signature(METHODS[name]).parameters:
        assert each == "self" or f" {each} : " in text
    for each in MACROS[name].arguments:
        if each.parameter is not None and each.parameter.unit in ("metres", "degrees", "points"):
            assert f"({each.parameter.unit}" in text
    if name in catalogue() and "the columns of" not in MACROS[name].gives:
        for column in catalogue()[name].output.columns:
            known = ("point_id", "distance") if name != "distance" else ()
            gives = text.partition(" Returns ")[2]
            in_sql = "matrix" if name == "registration" and column in MATRIX else column
            assert column in known or re.search(rf"\b{in_sql}\b", gives)


def rows_of(site, name):
    """The rows that a method is called on."""
    (kind,) = (kind for kind in KINDS if name in vars(kind))
    tables = {sq.Points: "points", sq.Elements: "elements", sq.Grid: "cells"}
    if name in ("deviation", "plane_elements", "point_elements"):  # beside the house
        moved = "x - 650000 AS x, y - 5600000 AS y, z - 100 AS z"
        site.execute(f"CREATE TEMP VIEW scan AS SELECT * REPLACE ({moved}) FROM points")
        return sq.table(site, "scan")
    return sq.table(site, tables[kind])


@pytest.mark.filterwarnings("ignore::spatialq.errors.PlacementWarning")  # no house there
@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_each_method_gives_the_rows_of_its_macro(site, name):
    rows = rows_of(site, name)
    others = []
    declared = inspect.signature(METHODS[name]).parameters
    if declared.keys() & {"b", "elements"}:
        others = ["elements"]
    elif declared.keys() & {"after", "terrain"}:
        others = ["cells"]
    elif "polygons" in declared:
        site.execute(
            "CREATE OR REPLACE TEMP VIEW plots AS SELECT 1 AS polygon_id, "
            "'POLYGON ((652110 5606110, "
            "652150 5606110, 652110 5606150, 652110 5606110))'::GEOMETRY AS geometry"
        )
        others = ["plots"]
    named = NEEDED.get(name, {}) | SMALL.get(name, {})
    found = getattr(rows, name)(*others, **named)
    is_replaced = name == "classify_noise"  # of which the rows have new classes
    assert found.sql().startswith("SELECT * EXCLUDE" if is_replaced else "FROM ")
    declared_kind = inspect.signature(METHODS[name]).return_annotation
    assert type(found).__name__ == {"Self": type(rows).__name__}.get(declared_kind, declared_kind)
    required = [value for key, value in named.items() if key in NEEDED.get(name, {})]
    given = [f"'{rows.step.name}'", *(f"'{each}'" for each in others), *map(str, required)]
    given += [f"{key} := {value}" for key, value in SMALL.get(name, {}).items()]
    expected = site.sql(f"FROM {name}({', '.join(given)})")
    assert [*expected.columns] == [each for each in found.columns if each in expected.columns]
    found = found.select(*(f'"{each}"' for each in expected.columns))
    assert sorted(map(str, found.fetchall())) == sorted(map(str, expected.fetchall()))


@pytest.mark.filterwarnings("ignore::spatialq.errors.PlacementWarning")  # no house there
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(METHODS.keys() & catalogue().keys()))
def test_arguments_arrive(site, name):
    """Each parameter, by the error for a value that it must not have."""
    rows = rows_of(site, name)
    declared = inspect.signature(METHODS[name]).parameters
    others = ["elements"] if declared.keys() & {"b", "elements"} else []
    if "polygons" in declared:
        others = ["plots"]
        site.execute(
            "CREATE OR REPLACE TEMP VIEW plots AS SELECT 1 AS polygon_id, "
            "'POLYGON EMPTY'::GEOMETRY AS geometry"
        )
    for each in MACROS[name].arguments:
        if each.parameter is None or each.parameter.type is bool:
            continue
        wrong = [True] if each.parameter.is_list else "?"
        with pytest.raises(sq.QueryError, match=rf"^{name}: {each.name}(: PROJ| must be)"):
            getattr(rows, name)(*others, **{each.name: wrong}).fetchall()


def test_a_method_is_called_as_its_signature_says(site):
    elements = sq.table(site, "elements")
    assert elements.distance("elements").sql() == elements.distance(b="elements").sql()
    with pytest.raises(sq.QueryError, match=r"^distance: no argument 'c'"):
        elements.distance(c="elements")
    with pytest.raises(TypeError, match=r"^closer_than: missing a required argument: 'd'"):
        elements.closer_than("elements")
    with pytest.raises(TypeError, match=r"^owm_ground: too many positional arguments"):
        sq.table(site, "points").owm_ground(3)


def test_help_names_a_method_as_its_class_does():
    for kind in KINDS:
        for name in METHODS.keys() & vars(kind).keys():
            assert vars(kind)[name].__qualname__ == f"{kind.__name__}.{name}"
            assert vars(kind)[name].__module__ == kind.__module__
            assert vars(kind)[name].__annotations__.keys() >= {"return"}


def test_values_are_those_of_python_and_numpy(site):
    points = sq.table(site, "points")
    given = points.classify_ground(object_width=np.float64(40), min_points=np.int32(3))
    assert "min_points := 3, object_width := 40.0)" in given.sql()
    assert points.classify_ground(object_width=60, device="auto").sql().count(":=") == 0
    features = sq.table(site, "cells").pops_features
    assert (
        "scales := [20.0, 30.0]"
        in features(scales=np.array([20.0, 30.0]), steps=(4.0, 4.0), example_scale=20).sql()
    )
    with pytest.raises(sq.QueryError, match="object_width must be a number, a text"):
        points.classify_ground(object_width={"metres": 4})
    with pytest.raises(sq.QueryError, match=r"classify_ground: .*nan"):
        points.classify_ground(max_distance=float("nan")).fetchall()


def test_nodes_are_chosen_for_a_view(site):
    nodes = sq.table(site, "points").build_lod(max_points=500)
    camera = {"eye": [650000, 5600000, 500], "target": (650020.0, 5600020.0, 100.0), "width": 640}
    chosen = nodes.lod_select(camera, pixels=2, max_samples=5000)
    assert isinstance(chosen, sq.Nodes)
    by_hand = site.sql(
        "WITH lod AS (FROM build_lod('points', max_points := 500)) SELECT node, octants FROM "
        "lod_select('lod', {eye: [650000, 5600000, 500], target: [650020.0, 5600020.0, 100.0], "
        "width: 640}, pixels := 2, max_samples := 5000)"
    ).fetchall()
    assert sorted(chosen.select("node", "octants").fetchall()) == sorted(by_hand)
    assert len(by_hand) > 0
    with pytest.raises(sq.QueryError, match="lod_select: camera"):
        nodes.lod_select({"eye": [1, 2, 3]}).fetchall()
