"""A script is the SQL that a person writes for it, but for names: scripts beside their SQL."""

import re
from pathlib import Path

import pytest

from spatialq.ql4bim.operators import operators
from spatialq.ql4bim.parser import parse
from spatialq.ql4bim.program import compile_script
from spatialq.ql4bim.text import Text

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.ql4bim"))
EMPTY_ON_THE_HOUSE = {
    "contains", "inside", "inside_short", "covers", "covers_short", "covered_by",
    "covered_by_short", "equals", "equals_short", "overlaps", "intersects", "east_relaxed",
    "east_strict", "west_relaxed", "west_strict", "property_filter_operator", "two_models",
}  # fmt: skip
TOKEN = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[\w.]+|[^\w\s]+?|\s+")
DEFINED = re.compile(r"(?:WITH|,)\s+(\w+) AS \(\s*(?=FROM|SELECT)")


def tokens(statement: str) -> list[str]:
    """Give the tokens of a statement, with numbers for the names of its parts."""
    statement = re.sub(r'"([a-z_]\w*)"', r"\1", statement)  # quotes that are not needed
    names = {name: f"part{k}" for k, name in enumerate(DEFINED.findall(statement))}

    def renamed(token: str) -> str:
        first = token.strip("'").partition(".")[0]
        return token.replace(first, names[first], 1) if first in names else token

    found = [each for each in TOKEN.findall(statement) if not each.isspace()]
    return [
        token if after == ":" else renamed(token)  # a named argument
        for token, after in zip(found, [*found[1:], ""], strict=True)
    ]


def test_names_do_not_matter_and_all_else_does():
    one = "WITH a AS (\n FROM t\n)\nFROM f('a') SEMI JOIN a ON a.x = y"
    assert tokens(one) == tokens("WITH b AS (FROM t) FROM f('b') SEMI JOIN b ON b.x = y")
    assert tokens(one) != tokens("WITH b AS (FROM t) FROM f('a') SEMI JOIN b ON b.x = y")
    assert tokens(one) != tokens("WITH b AS (FROM t) FROM f('b') SEMI JOIN b ON b.x = z")


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_script_is_its_sql(path):
    program = compile_script(path.read_text(encoding="utf-8"))
    by_hand = path.with_suffix(".sql").read_text(encoding="utf-8")
    assert tokens(program.sql()) == tokens(by_hand)


@pytest.mark.slow
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_both_give_the_same_rows(path, con):
    if path.stem == "import_cloud":
        pytest.skip("the scan is a table here")
    program = compile_script(path.read_text(encoding="utf-8"))
    by_hand = path.with_suffix(".sql").read_text(encoding="utf-8")
    ours = con.sql(f"FROM ({program.sql()}) ORDER BY ALL").fetchall()
    assert ours == con.sql(f"FROM ({by_hand.rstrip(';')}) ORDER BY ALL").fetchall()
    assert bool(ours) != (path.stem in EMPTY_ON_THE_HOUSE)


def test_each_operator_has_a_script_by_its_long_and_its_short_name():
    called = set()

    def look(call):
        called.add(str(call.operator))
        for each in call.arguments:
            if hasattr(each, "operator"):
                look(each)

    for path in GOLDEN:
        statements, functions = parse(Text(path.read_text(encoding="utf-8"), path.name))
        for each in [*statements, *(s for function in functions for s in function.statements)]:
            look(each.call)
    assert {name for each in operators() for name in (each.name, each.shorts[0])} <= called


FURTHER = {other: each.name for each in operators() for other in each.shorts[1:]}


@pytest.mark.parametrize("other", FURTHER)
def test_a_further_name_is_the_operator(other):
    name = re.compile(rf"\b{FURTHER[other]}\(")
    scripts = [each.read_text(encoding="utf-8") for each in GOLDEN]
    scripts = [each for each in scripts if name.search(each)]
    assert scripts
    for each in scripts:
        renamed = compile_script(name.sub(f"{other}(", each))
        assert tokens(renamed.sql()) == tokens(compile_script(each).sql())


def test_the_examples_of_the_table_compile():
    known = """
    m = ImportModel("house.ifc")  w = TypeFilter(m is IfcWall)  s = TypeFilter(m is IfcSlab)
    o[host|open] = Deassociater(m.HasOpenings)  c = ImportCloud("scan.laz")
    """
    for each in operators():
        program = compile_script(f"{known}\n{each.example}")
        assert program.variables
