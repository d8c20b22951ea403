"""Which pairs of elements are left out by named rules: for the macros of elements and `clash`."""

from collections.abc import Mapping
from typing import Any

from spatialq.database.model_tables import beside_elements
from spatialq.functions.sql_text import literal

DUPLICATES = "duplicates"
"""Pairs that are the same body in the same place."""
RELATED = ("openings", "coverings", "assemblies", "connections", "systems")
"""The rules of `related_elements`; a pair that several hold for is counted with the first."""
RULES = (DUPLICATES, *RELATED)
DEFAULT = ("openings", "coverings", "assemblies", "connections")
"""What is meant to meet. Members of one system may cross by mistake, and duplicates are one."""
NO_PAIRS = "SELECT NULL::VARCHAR AS a, NULL::VARCHAR AS b, NULL::VARCHAR AS rule WHERE false"


def rules_of(caller: str, exclude: Any, known: tuple[str, ...] = RULES) -> tuple[str, ...]:
    """Read which rules are named, such as 'openings, systems', 'default, duplicates' or 'none'.

    Returns
    -------
    tuple of str
        Each once, in the order of `RULES`.

    Raises
    ------
    ValueError
        If one is not known; `caller` is who is asked.
    """
    names = exclude.split(",") if isinstance(exclude, str) else [exclude]
    chosen: set[str] = set()
    for name in (each.strip() if isinstance(each, str) else each for each in names):
        if name in known:
            chosen.add(name)
        elif name == "default":
            chosen.update(DEFAULT)
        elif name != "none" or len(names) > 1:
            message = (
                f"{caller}: exclude must be 'none', 'default', or one or more of "
                f"{', '.join(known)} with commas between, got {literal(exclude)}"
            )
            raise ValueError(message)
    return tuple(rule for rule in known if rule in chosen)


def say_left_out(counted: Mapping[str, int]) -> str:
    """Say how many pairs were left out, such as '1,210 left out: 1,200 openings, 10 systems'."""
    named = ", ".join(f"{pairs:,} {rule}" for rule, pairs in counted.items())
    return f"{sum(counted.values()):,} left out: {named}"


def pairs_sql(rules: tuple[str, ...], relations: str) -> str:
    """Write the query for the pairs that rules of `related_elements` hold for, with the first."""
    rules = tuple(rule for rule in RELATED if rule in rules)
    if not rules:
        return NO_PAIRS
    listed = ", ".join(map(literal, rules))
    return (
        f"SELECT a, b, arg_min(rule, list_position([{listed}], rule)) AS rule "
        f"FROM related_elements({literal(relations)}) WHERE rule IN ({listed}) GROUP BY a, b"
    )


def related_sql(caller: str, exclude: str | None, a: str, relations: str | None) -> str:
    """Write the query for the pairs that a macro leaves out."""
    rules = rules_of(caller, exclude, RELATED)
    if not rules:
        return NO_PAIRS
    return pairs_sql(rules, relations or beside_elements(a, "relations"))
