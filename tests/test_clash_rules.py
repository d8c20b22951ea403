"""`spatialq clash --rules`: several tests of the same models at once."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest

import spatialq
from spatialq.errors import FileError, FileWarning
from spatialq.io.ifc import cache
from spatialq.workflows.clash import find_clashes
from spatialq.workflows.clash_rules import KEYS, OTHER_WAY, SEVERITIES, read_rules

from .command_line import rows, spatialq_command

pytestmark = pytest.mark.slow  # as a whole

RULES = """
- name: services through walls
  a: IfcFlowSegment
  b: "ifc_class = 'IfcWall'"
  severity: critical
  tolerance: 2mm
- name: near walls
  a: IfcWall
  b: IfcFlowSegment
  clearance: 50mm
  severity: minor
- name: one in another
  relation: inside
- name: all
  exclude: [default, duplicates]
  severity: normal
"""
ALONE = (
    ({"a": "IfcFlowSegment", "b": "ifc_class = 'IfcWall'", "tolerance": 0.002}, "critical", None),
    ({"a": "IfcWall", "b": "IfcFlowSegment", "closer_than": 0.05}, "minor", None),
    ({}, "normal", {"inside", "contains"}),
    ({"exclude": "default, duplicates"}, "normal", None),
)
"""The calls that the rules stand for."""
NAMES = ("services through walls", "near walls", "one in another", "all")


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "rules.yml"
    path.write_text(RULES)
    return path


def test_each_pair_is_a_clash_of_the_gravest_rule_that_finds_it(world, rules):
    expected, left_out = {}, {}
    for name, (options, severity, relations) in zip(NAMES, ALONE, strict=True):
        with find_clashes([world.ifc], **options) as con:
            for row in con.execute("SELECT * EXCLUDE (flags) FROM clashes").fetchall():
                rank = SEVERITIES.index(severity)
                known = expected.get(frozenset(row[:2]))
                if (not relations or row[10] in relations) and (known is None or rank < known[0]):
                    expected[frozenset(row[:2])] = (rank, (*row, name, severity))
            for row in con.execute("SELECT a, b, excluded FROM left_out").fetchall():
                left_out.setdefault(frozenset(row[:2]), row[2])
    with find_clashes([world.ifc], rules=read_rules(rules)) as con:
        found = con.execute("SELECT * EXCLUDE (flags) FROM clashes").fetchall()
        excluded = con.execute("SELECT a, b, excluded FROM left_out").fetchall()
    assert sorted(map(repr, found)) == sorted(repr(row) for _, row in expected.values())
    assert {row[-2] for row in found} == {*NAMES} - {"one in another"} | {
        row[-2] for _, row in expected.values()
    }
    ranks = [SEVERITIES.index(row[-1]) for row in found]
    assert ranks == sorted(ranks)
    assert {frozenset(row[:2]): row[2] for row in excluded} == {
        pair: rule for pair, rule in left_out.items() if pair not in expected
    }


def test_models_are_read_once(world, rules, monkeypatch):
    calls, read = [], cache.read_models
    monkeypatch.setattr(
        cache, "read_models", lambda *args, **more: calls.append(args) or read(*args, **more)
    )
    find_clashes([world.ifc], rules=read_rules(rules)).close()
    assert len(calls) == 1


def test_what_the_command_says_holds_where_a_rule_says_nothing(world, tmp_path):
    path = tmp_path / "rules.yml"
    path.write_text("- name: deep\n- {name: shallow, tolerance: 1mm, severity: minor}\n")
    found = rows("clash", world.ifc, "--rules", path, "--tolerance", "6cm", "--exclude", "none")
    deep = rows("clash", world.ifc, "--tolerance", "6cm", "--exclude", "none")["clashes"]
    every = rows("clash", world.ifc, "--exclude", "none")["clashes"]
    assert [row["rule"] for row in found["clashes"]] == ["deep"] * len(deep) + ["shallow"] * (
        len(every) - len(deep)
    )
    assert 0 < len(deep) < len(every)
    assert [(row["rule"], row["clashes"]) for row in found["rules"]] == [
        ("deep", len(deep)), ("shallow", len(every) - len(deep)),
    ]  # fmt: skip


def test_rules_in_files_and_groups(world, rules, tmp_path):
    shown = rows("clash", world.ifc, "--rules", rules)
    groups = rows("clash", world.ifc, "--rules", rules, "--group", "rule")["groups"]
    counted = {row["rule"]: row["clashes"] for row in shown["rules"]}
    assert {row["group_name"]: row["clashes"] for row in groups} == {
        name: count for name, count in counted.items() if count
    }
    assert [*counted] == [*NAMES]
    sheet, issues = tmp_path / "x.xlsx", tmp_path / "x.bcf"
    rows("clash", world.ifc, "--rules", rules, "-o", sheet)
    rows("clash", world.ifc, "--rules", rules, "-o", issues)
    with spatialq.connect() as con:
        assert con.sql(f"FROM read_bcf('{issues}')").columns
        said = con.sql(f"SELECT priority, count(*) FROM read_bcf('{issues}') GROUP BY 1").fetchall()
        labels = con.sql(f"SELECT labels FROM read_bcf('{issues}')").fetchall()
    by_severity = {}
    for row in shown["clashes"]:
        priority = row["severity"].capitalize()
        by_severity[priority] = by_severity.get(priority, 0) + 1
    assert dict(said) == by_severity
    assert {label[0] for (label,) in labels} == {row["rule"] for row in shown["clashes"]}
    # what people say of a clash goes before its rule
    with spatialq.connect() as con:
        told = con.sql(
            "SELECT a.global_id AS a, b.global_id AS b, 'On hold' AS priority, "
            "a.file_name AS a_file, b.file_name AS b_file "
            f"FROM read_ifc('{world.ifc}') AS a, read_ifc('{world.ifc}') AS b "
            f"WHERE a.global_id = '{shown['clashes'][0]['a']}' "
            f"AND b.global_id = '{shown['clashes'][0]['b']}'"
        )
        spatialq.write(told, tmp_path / "told.bcf")
    rows("clash", world.ifc, "--rules", rules, "--bcf-in", tmp_path / "told.bcf", "-o", issues)
    with spatialq.connect() as con:
        again = dict(
            con.sql(f"SELECT priority, count(*) FROM read_bcf('{issues}') GROUP BY 1").fetchall()
        )
    assert again.pop("On hold") == 1
    assert sum(again.values()) == len(shown["clashes"]) - 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: b: c", "is no YAML: "),
        ("name: one", "must be a list of rules, each with a name, such as "),
        ("[]", "must be a list of rules, each with a name"),
        ("- a: IfcWall", "rule 1: name must be text, got None"),
        ("- name: x\n- name: x", "rule 'x': name is that of a rule above"),
        ("- {name: x, tolerence: 1mm}", "rule 'x': there is no key 'tolerence'; did you mean tol"),
        ("- {name: x, colour: red}", "rule 'x': there is no key 'colour'; keys are name, a, b"),
        ("- {name: x, tolerance: 5}", "rule 'x': tolerance must say its unit, got '5'"),
        ("- {name: x, clearance: near}", "rule 'x': clearance must be a length >= 0 such as"),
        ("- {name: x, severity: high}", "rule 'x': severity must be one of critical, major, nor"),
        ("- {name: x, exclude: twins}", "rule 'x': exclude must be 'none', 'default', or one or"),
        ("- {name: x, relation: cuts}", "rule 'x': relation must be one or a list of overlap, "),
        ("- {name: x, relation: touch}", "rule 'x': relation 'touch' needs a clearance"),
        ("- {name: x, a: [IfcWall]}", "rule 'x': a must be a selector or a condition, got ["),
        ("- name: x\n  a: &a [y, y]\n  b: &b [*a, *a]\n  exclude: [*b, *b]", "rule 'x': b must be"),
        ("- {name: x, relation: {a: b}}", "rule 'x': relation must be text, or a list of texts, g"),
        ("- {name: x, tolerance: 2026-99-99}", "is no YAML: month must be in 1..12"),
        ('- name: "\\ud800"', "rule '\ud800': 'utf-8' codec can't encode character '\\ud800' in"),
        ("[" * 3000 + "]" * 3000, "is no YAML: maximum recursion depth exceeded"),
        ("- {name: x, b: IfcWal}", "rule 'x': b: a class of the selector must be a class of"),
        ("- {name: x, a: ifc_clas = 1}", "rule 'x': a must be a condition over the columns of"),
    ],
)
def test_what_is_wrong_names_file_rule_and_key(tmp_path, text, said):
    path = tmp_path / "rules.yml"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(f"clash: '{path}': {said}")) as caught:
        read_rules(path)
    assert "\n" not in str(caught.value)


def test_aliases_make_no_endless_message(tmp_path):
    path = tmp_path / "rules.yml"
    lists = [
        f"  {key}: &{key} [{', '.join(['*' + above] * 9)}]" for above, key in pairwise("sabcd")
    ]
    start = f"  s: &s [{', '.join('x' * 9)}]"
    path.write_text("\n".join(["-", start, *lists, "  name: *d"]))
    with pytest.raises(FileError, match=r"rule 1: name must be text, got \[\[\[") as caught:
        read_rules(path)
    assert len(str(caught.value)) < 1000


def test_a_key_without_a_value_says_nothing(tmp_path):
    path = tmp_path / "rules.yml"
    path.write_text("- {name: x}\n- {name: y, " + ": , ".join(KEYS[1:]) + ": }")
    one, other = read_rules(path)
    assert replace(one, name="y") == other


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileError, match=r"clash: .*none.yml': there is no such file"):
        read_rules(tmp_path / "none.yml")
    with pytest.raises(FileError, match=r"clash: .*: is a folder, no file"):
        read_rules(tmp_path)
    path = tmp_path / "rules.yml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match=r"clash: '.*rules.yml': is no YAML: "):
        read_rules(path)


def test_sets_without_elements_are_warned_of_with_the_rule(world, tmp_path):
    path = tmp_path / "rules.yml"
    path.write_text("- {name: x, a: IfcPile}")
    message = "clash: rule 'x': no element of the models matches a: IfcPile"
    with (
        pytest.warns(FileWarning, match=message),
        find_clashes([world.ifc], rules=read_rules(path)) as con,
    ):
        assert con.execute("FROM clashes").fetchall() == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--a", "IfcWall"], "clash: with rules there must be no a, b, closer_than and project"),
        (["--project", "x.duckdb"], "clash: with rules there must be no a, b, closer_than and"),
        (["--executor", "serial", "-o", "job"], "clash: --rules is no option of a job"),
    ],
)
def test_what_does_not_go_with_rules(world, rules, tmp_path, more, said):
    result = spatialq_command("clash", world.ifc, "--rules", rules, *more, cwd=tmp_path)
    assert result.returncode == 1
    assert said in result.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["rules.yml"]


def test_the_other_way_of_each_relation_is_its_own():
    assert all(OTHER_WAY[OTHER_WAY[each]] == each for each in OTHER_WAY)
