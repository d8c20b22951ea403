"""What a user writes into a query: one expression, or a list of them, as DuckDB's parser reads it.

The texts go into the SQL as they are. So each must be what it is taken for: an expression that
goes on as another clause, a second statement or an open parenthesis is refused.
"""

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from spatialq.errors import QueryError
from spatialq.query.steps import OpenSql, Sql
from spatialq.query.values import require_text
from spatialq.runtime import forks

if TYPE_CHECKING:
    import duckdb

OTHER_CLAUSES = ("where_clause", "group_expressions", "having", "qualify", "sample")
TAILS = {"select_list": ", 1", "orders": "LIMIT 1"}
"""What follows the text: it must let that be a part of the same clause, or the next one."""
_lock = forks.lock()


def condition(verb: str, text: str) -> Sql:
    """Check a condition, and give it as it may stand behind WHERE; `a OR b` is an `OpenSql`.

    Raises
    ------
    QueryError
        If it is not one expression.
    """
    found = _listed(verb, "a condition", text, "SELECT", "select_list")
    _require(len(found) == 1 and not found[0]["alias"], verb, "a condition", text)
    is_open = found[0]["type"] == "CONJUNCTION_OR"
    return (OpenSql if is_open else Sql)((_ended(text),))


def expression(verb: str, text: str) -> str:
    """Check one expression without a name."""
    found = _listed(verb, "an expression", text, "SELECT", "select_list")
    _require(len(found) == 1 and not found[0]["alias"], verb, "an expression", text)
    return _ended(text)


def selected(verb: str, text: str) -> tuple[str, list[str] | None]:
    """Check what stands behind SELECT, and give the columns if it names columns and nothing else.

    Returns
    -------
    str
        The text.
    list of str, or None
        Names of columns.
    """
    found = _listed(verb, "a list of expressions", text, "SELECT", "select_list")
    names = [_column(each) for each in found]
    plain = [name for name in names if name is not None]
    return _ended(text), plain if len(plain) == len(names) else None


def ordered(verb: str, text: str) -> tuple[str, list[str] | None]:
    """Check what stands behind ORDER BY, and give the columns if it names nothing else."""
    found = _listed(
        verb, "a list of terms such as 'height DESC'", text, "SELECT 1 ORDER BY", "orders"
    )
    names = [_column(each["expression"]) for each in found]
    plain = [name for name in names if name is not None]
    return _ended(text), plain if len(plain) == len(names) else None


def is_positional(text: str) -> bool:
    """Whether a term of ORDER BY means columns by their places: `2 DESC`, `ALL`."""
    found = _listed("order", "a list of terms", text, "SELECT 1 ORDER BY", "orders")
    terms = [each["expression"] for each in found]
    return any(each["class"] == "CONSTANT" or '"STAR"' in json.dumps(each) for each in terms)


def has_fields(text: str) -> bool:
    """Whether a list behind SELECT has fields of structs, `a.b`: ORDER BY knows none as `b`."""
    found = _listed("select", "a list of expressions", text, "SELECT", "select_list")
    return any(
        each["class"] == "COLUMN_REF" and not each["alias"] and _column(each) is None
        for each in found
    )


def _column(node: dict[str, Any]) -> str | None:
    if node["class"] == "COLUMN_REF" and not node["alias"] and len(node["column_names"]) == 1:
        name: str = node["column_names"][0]
        return name
    return None


def _listed(verb: str, what: str, text: str, head: str, part: str) -> list[dict[str, Any]]:
    """Give the nodes of a list of expressions behind some words of a SELECT."""
    begun = f"{head}\n{require_text(verb, what, text)}\n"
    parsed = _parse(begun + TAILS[part])
    if parsed["error"]:
        reason = " ".join(_parse(begun).get("error_message", "nothing can stand behind it").split())
        message = f"{verb}: {text!r} is not {what}: {reason}"
        raise QueryError(message)
    statements = parsed["statements"]
    _require(len(statements) == 1, verb, what, text)
    node = statements[0]["node"]
    is_plain = (
        node["type"] == "SELECT_NODE"
        and node["from_table"]["type"] == "EMPTY"
        and not node["cte_map"]["map"]
        and not any(node[clause] for clause in OTHER_CLAUSES)
    )
    _require(is_plain, verb, what, text)
    modifiers = node["modifiers"]
    if part == "select_list":
        _require(not modifiers, verb, what, text)
        nodes: list[dict[str, Any]] = node["select_list"][:-1]
        return nodes
    kinds = [each["type"] for each in modifiers]
    _require(kinds == ["ORDER_MODIFIER", "LIMIT_MODIFIER"], verb, what, text)
    orders: list[dict[str, Any]] = modifiers[0]["orders"]
    return orders


def _require(holds: object, verb: str, what: str, text: str) -> None:
    if not holds:
        message = f"{verb}: {text!r} is not {what}"
        raise QueryError(message)


def _ended(text: str) -> str:
    """Cut spaces off; a comment at the end is closed by a line break."""
    text = text.strip()
    return f"{text}\n" if "--" in text else text


def _parse(statement: str) -> dict[str, Any]:
    with _lock:
        rows = _parser().execute("SELECT json_serialize_sql(?)", [statement]).fetchall()
    parsed: dict[str, Any] = json.loads(rows[0][0])
    return parsed


@cache
def _parser() -> "duckdb.DuckDBPyConnection":
    """Open a database that only parses: a result that the user's connection holds stays."""
    import duckdb

    return duckdb.connect()
