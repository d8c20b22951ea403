"""The language of what was typed, and whether it is complete."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spatialq.cli.shell.text import is_complete, language, name_in, open_quote


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1;", "sql"),
        ("FROM t", "sql"),
        ("update t set a = 1;", "sql"),
        ("-- x = Op(y)\nFROM t;", "sql"),
        ('m = ImportModel("a.ifc")', "script"),
        ("_m=IM(", "script"),
        ("r[a|b] = Touches(w, w)", "script"),
        ("r[] = Touches(w, w)", "script"),
        ("// a comment\n/* another */ w = TypeFilter(m is IfcWall)", "script"),
        ("äußere_wände = TypeFilter(m is IfcWall)", "script"),
        ("func Name(x) (", "script"),
        ("M = 1", "script"),
        ("w", "name"),
        ("w // the walls\n;", "name"),
        ("help", "name"),
        ("select", "sql"),
        ("Touches(a, b)", "sql"),
        ("a == b", "sql"),
        (".tables", "command"),
        ("  .help", "command"),
        ("", "nothing"),
        ("-- a comment", "nothing"),
        ("// a comment\n /* another */\n", "nothing"),
    ],
)
def test_the_language(text, expected):
    assert language(text) == expected


def test_a_variable_may_be_a_keyword_of_sql():
    assert language("level") == "sql"
    assert language("level", ["level"]) == "name"
    assert name_in(" level ;") == "level"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SELECT 1;",
        "SELECT 1; -- done",
        "SELECT ';' AS \";\";",
        "SELECT 1; SELECT 2;",
        ".tables",
        "-- nothing",
        "w = TypeFilter(m is IfcWall)",
        "w = TypeFilter(m is IfcWall) // done",
        "w = TypeFilter(m is IfcWall);",
        'w = AttributeFilter(m, m.Name = ")(")',
        'w = AttributeFilter(m, m.Name = "\\"(")',
        "r[a|b] = Touches(w,\n  w)",
        "func Twice(x) (\n y = TypeFilter(x is IfcWall)\n)",
        "w = Op(x) v = Op(w)",
        "w = Op(x))",
        "w",
        "W1 = 3",
        "SELEC 1",
        "TypeFilter(m is IfcWall)",
        ") 1",
    ],
)
def test_what_can_be_run(text):
    assert is_complete(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "SELECT ';",
        "SELECT 'it''s;",
        'SELECT ";',
        "SELECT $$;",
        "SELECT 1 -- ;",
        "SELECT 1; /* ;",
        "SELECT 1; SELECT 2",
        "w =",
        "w = TypeFilter(m is",
        "r[a|b] = Touches(w,",
        'w = AttributeFilter(m, m.Name = "x)',
        "w = TypeFilter(m) /* )",
        "func Twice(x)",
        "func Twice(x) (\n y = TypeFilter(x is IfcWall)\n",
        "w = Op(x) v =",
    ],
)
def test_what_goes_on(text):
    assert not is_complete(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1", None),
        ("FROM read_ifc('ho", "ho"),
        ("FROM read_ifc('", ""),
        ("FROM read_ifc('a.ifc')", None),
        ("SELECT 'it', 's", "s"),
        ('m = ImportModel("data/ho', "data/ho"),
        ('m = ImportModel("a.ifc")', None),
        ("FROM t /* 'a", None),
        ("FROM t -- it's", None),
    ],
)
def test_the_string_that_is_open(text, expected):
    assert open_quote(text) == expected


@given(st.text(alphabet="aA1 \n;.()[]|='\"$/*-\\äis", max_size=40))
def test_nothing_that_is_typed_breaks_it(text):
    language(text)
    is_complete(text)
    open_quote(text)
