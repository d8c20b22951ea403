"""The names that Schweizer's thesis has for spatial operators are found here."""

import re
from pathlib import Path

import pytest

import spatialq
from spatialq.errors import ScriptError
from spatialq.ql4bim.operators import BY_NAME
from spatialq.ql4bim.program import compile_script

PAGE = Path(__file__).parents[2] / "docs/ql4bim.md"
TOPOLOGY = {  # section 2.3, figure 2.1 and section 2.4 of the thesis
    "IntersectsWith": "Intersects",
    "Touch": "Touches",
    "Contains": "Contains",
    "Contain": "Contains",
    "Within": "Inside",
    "Inside": "Inside",
    "Equal": "Equals",
    "Equals": "Equals",
    "Overlap": "Overlaps",
    "Covers": "Covers",
    "CoveredBy": "CoveredBy",
    "Disjoint": "Disjoint",
}
METRIC = {name: name for name in ("Distance", "CloserThan", "FartherThan")}
DIRECTIONS = {
    f"{name}{kind}": f"{name.removesuffix('Of')}{kind or 'Relaxed'}"
    for name in ("Above", "Below", "NorthOf", "SouthOf", "EastOf", "WestOf")
    for kind in ("", "Strict", "Relaxed")
}
NAMES = {**TOPOLOGY, **METRIC, **DIRECTIONS}
SECTION = PAGE.read_text(encoding="utf-8").partition("## Names of the publications\n")[2]
ROWS = [
    tuple(re.findall(r"`([^`]*)`", cell) for cell in line.strip("| ").split(" | "))
    for line in SECTION.partition("\n## ")[0].splitlines()
    if line.startswith("| `")
]
MODEL = 'm = ImportModel("house.ifc")\n'
SETS = MODEL + "slabs = TypeFilter(m is IfcSlab)\nwalls = TypeFilter(m is IfcWall)\n"


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_an_operator_and_a_row_of_the_page(name):
    assert BY_NAME[name].name == NAMES[name]
    (script,) = {row[1][0].partition("(")[0] for row in ROWS if name in row[0]}
    assert script == NAMES[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_misspelt_name_has_it_as_a_near_one(name):
    for wrong in (name.lower(), name.upper(), name[:-1], f"{name}x", name.replace("t", "", 1)):
        if wrong in BY_NAME:
            continue
        with pytest.raises(ScriptError, match=rf"near names are .*\b{name}\b"):
            compile_script(f"{MODEL}x[a|b] = {wrong}(m, m)")


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1][0])
def test_the_script_the_sql_and_the_python_of_a_row_give_the_same_pairs(row, folder, monkeypatch):
    monkeypatch.chdir(folder)
    _, (script,), (macro,), (python,) = row
    con = spatialq.connect()
    program = spatialq.run_script(con, f"{SETS}x[a|b] = {script}")
    pairs = sorted(program["x"].fetchall())
    for name, ifc_class in (("slabs", "IfcSlab"), ("walls", "IfcWall")):
        rows = f"FROM read_ifc('house.ifc') WHERE is_a(ifc_class, '{ifc_class}')"
        con.execute(f"CREATE TABLE {name} AS {rows}")
    assert sorted(con.sql(f"SELECT a, b FROM {macro}").fetchall()) == pairs
    sets = {name: spatialq.table(con, name) for name in ("slabs", "walls")}
    assert sorted(eval(python, {}, sets).select("a", "b").fetchall()) == pairs
