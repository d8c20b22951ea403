"""Rule sets of clashes, read from YAML: behind `spatialq clash --rules`."""

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.data.units import metres
from spatialq.database.element_sets import rules_of
from spatialq.errors import FileError
from spatialq.functions.sql_text import literal
from spatialq.io.files import require_file
from spatialq.workflows.clash_models import COMMAND
from spatialq.workflows.tables import dicts

if TYPE_CHECKING:
    import duckdb

SEVERITIES = ("critical", "major", "normal", "minor")
"""The gravest first; as the priority of an issue they begin with a capital."""
KEYS = (
    "name", "a", "b", "relation", "tolerance", "min_thickness", "clearance", "severity", "exclude",
)  # fmt: skip
LENGTHS = ("tolerance", "min_thickness", "clearance")
OTHER_WAY = {
    "contains": "inside", "inside": "contains", "covers": "covered_by", "covered_by": "covers",
}  # fmt: skip
NEAR = ("touch", "disjoint")
"""Relations that only a clearance finds."""
RELATIONS = ("overlap", *OTHER_WAY, "equals", *NEAR)
BRIEF = reprlib.Repr()
BRIEF.maxlevel = 2

# A pair is one clash, whichever rules find it and in which order of its elements.
CHOOSE = """
CREATE TABLE clashes AS
SELECT * EXCLUDE (excluded, a_row, b_row, number) FROM (
    SELECT * FROM found WHERE excluded IS NULL
    QUALIFY row_number() OVER (
        PARTITION BY least(a_row, b_row), greatest(a_row, b_row)
        ORDER BY list_position({severities}, severity), number, a_row
    ) = 1
)
ORDER BY list_position({severities}, severity), penetration DESC NULLS LAST, distance, a_row, b_row;
CREATE TABLE left_out AS
SELECT * EXCLUDE (a_row, b_row, number) FROM (
    SELECT * FROM found
    WINDOW pair AS (PARTITION BY least(a_row, b_row), greatest(a_row, b_row))
    QUALIFY bool_and(excluded IS NOT NULL) OVER pair
        AND row_number() OVER (pair ORDER BY number, a_row) = 1
)
"""
COUNTS = """
SELECT r.rule, r.severity, count(c.rule) AS clashes, round(max(c.penetration), 4) AS deepest
FROM (
    SELECT unnest({names}) AS rule, unnest({severities}) AS severity, unnest({numbers}) AS number
) AS r
LEFT JOIN clashes AS c USING (rule)
GROUP BY r.number, r.rule, r.severity
ORDER BY r.number
"""


@dataclass(frozen=True)
class Rule:
    """What is tested against what, and how grave it is.

    Parameters
    ----------
    name : str
    a, b : str or None
        As for `find_clashes`.
    severity : str
        One of `SEVERITIES`.
    relations : tuple of str
        Those that count; empty stands for all.
    clearance : float or None
        Metres, see `closer_than` of `find_clashes`.
    exclude : str or None
        As for `find_clashes`; None is what the command says.
    options : mapping
        Options of `intersects_with` that the rule has of its own.
    """

    name: str
    a: str | None = None
    b: str | None = None
    severity: str = "normal"
    relations: tuple[str, ...] = ()
    clearance: float | None = None
    exclude: str | None = None
    options: Mapping[str, float] = field(default_factory=dict)

    def pairs(self, query: str) -> str:
        """Write those of a query's pairs whose relation counts."""
        if not self.relations:
            return query
        # of pairs within one set the order says nothing
        other_ways = {OTHER_WAY.get(each, each) for each in self.relations if self.b is None}
        wanted = sorted({*self.relations, *other_ways})
        return f"SELECT * FROM ({query}) WHERE relation IN ({', '.join(map(literal, wanted))})"


def read_rules(path: Path) -> list[Rule]:
    """Read the rules of a file.

    Raises
    ------
    FileError
        If the file is none of rules; the sentence names the rule and the key.
    """
    import yaml

    require_file(COMMAND, path)
    try:
        given = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError.of(COMMAND, path, str(error.strerror or error)) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # no UTF-8, no day, too deep
        reason = " ".join(str(error).split())
        raise FileError.of(COMMAND, path, f"is no YAML: {reason}") from None
    if not isinstance(given, list) or not given:
        reason = "must be a list of rules, each with a name, such as '- name: pipes through beams'"
        raise FileError.of(COMMAND, path, reason)
    rules: list[Rule] = []
    for number, each in enumerate(given, 1):
        name = each.get("name") if isinstance(each, dict) else None
        if not isinstance(name, str) or not name.strip():
            reason = f"rule {number}: name must be text, got {BRIEF.repr(name)}"
            raise FileError.of(COMMAND, path, reason)
        try:
            rule = _rule(each)
        except ValueError as error:
            raise FileError.of(COMMAND, path, f"rule '{name}': {error}") from None
        if any(name == other.name for other in rules):
            raise FileError.of(COMMAND, path, f"rule '{name}': name is that of a rule above")
        rules.append(rule)
    _require_sides(path, rules)
    return rules


def _rule(given: dict[Any, Any]) -> Rule:
    for key in given:
        if key not in KEYS:
            near = get_close_matches(str(key), KEYS, 1)
            meant = f"; did you mean {near[0]}?" if near else f"; keys are {', '.join(KEYS)}"
            message = f"there is no key {key!r}{meant}"
            raise ValueError(message)
    # what is empty says nothing
    given = {key: value for key, value in given.items() if value is not None}
    for key, value in given.items():
        _require_plain(key, value)
    sides = {}
    for side in "ab":
        sides[side] = given.get(side)
        if not isinstance(sides[side], str | None):
            message = f"{side} must be a selector or a condition, got {sides[side]!r}"
            raise ValueError(message)
    lengths = {key: _length(key, given[key]) for key in LENGTHS if key in given}
    clearance = lengths.pop("clearance", None)
    severity = given.get("severity", "normal")
    if severity not in SEVERITIES:
        message = f"severity must be one of {', '.join(SEVERITIES)}, got {severity!r}"
        raise ValueError(message)
    exclude = given.get("exclude")
    exclude = ", ".join(map(str, exclude)) if isinstance(exclude, list) else exclude
    if exclude is not None:
        try:
            rules_of("", exclude)
        except ValueError as error:
            raise ValueError(str(error).removeprefix(": ")) from None
    relations = given.get("relation", [])
    relations = relations if isinstance(relations, list) else [relations]
    for each in relations:
        if each not in RELATIONS:
            message = f"relation must be one or a list of {', '.join(RELATIONS)}, got {each!r}"
            raise ValueError(message)
        if each in NEAR and clearance is None:
            message = f"relation {each!r} needs a clearance, such as 50mm: nothing else finds it"
            raise ValueError(message)
    return Rule(
        given["name"],
        sides["a"],
        sides["b"],
        severity,
        tuple(relations),
        clearance,
        exclude,
        lengths,
    )


def _require_plain(key: str, value: Any) -> None:
    """Refuse lists in lists, of which a few aliases make endless ones, and halves of characters."""
    values = value if isinstance(value, list) else [value]
    for each in values:
        if isinstance(each, str):
            each.encode()
    if any(isinstance(each, list | tuple | dict | set) for each in values):
        message = f"{key} must be text, or a list of texts, got {BRIEF.repr(value)}"
        raise ValueError(message)


def _length(key: str, given: Any) -> float:
    try:
        return metres("", key, str(given))
    except ValueError as error:
        raise ValueError(str(error).removeprefix(": ")) from None


def _require_sides(path: Path, rules: Sequence[Rule]) -> None:
    """Make sure that sets mean elements, before a model is read."""
    from spatialq.database import selection
    from spatialq.database.connection import connect_quietly

    with connect_quietly() as con:
        for rule in rules:
            for side, text in (("a", rule.a), ("b", rule.b)):
                selection.require(con, f"{COMMAND}: '{path}': rule '{rule.name}'", side, text)


def choose(con: "duckdb.DuckDBPyConnection") -> None:
    """Make `clashes` and `left_out` of `found`, where each pair has a row for each rule.

    A pair is a clash once, of the gravest rule that finds it; of equally grave ones, of the first.
    What one rule excludes and another finds is a clash.
    """
    con.execute(CHOOSE.format(severities=list(SEVERITIES)))


def counts(con: "duckdb.DuckDBPyConnection", rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """Count the clashes of each rule."""
    listed = {"names": [rule.name for rule in rules], "severities": [r.severity for r in rules]}
    sql = {name: f"[{', '.join(map(literal, values))}]" for name, values in listed.items()}
    return dicts(con.execute(COUNTS.format(**sql, numbers=list(range(len(rules))))))
