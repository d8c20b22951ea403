"""Rows of clashes as BCF takes them: what people write into columns, understood or refused."""

from collections.abc import Callable, Mapping
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any

from spatialq.export.bcf import Comment


def understood(caller: str, path: Path, row: Mapping[str, Any]) -> dict[str, Any]:
    """Give a row whose columns have the types that topics need.

    Texts may be numbers, and ids of groups anything; `labels` and `comments` may be one instead of
    a list; a place or penetration that is not finite is none.

    Raises
    ------
    ValueError
        If a value cannot be understood; the message names the column.
    """
    given = dict(row)
    for name, (read, right) in COLUMNS.items():
        value = row.get(name)
        if value is None:
            continue
        try:
            given[name] = read(value)
        except (TypeError, ValueError):
            message = f"{caller}: {name} of '{path}' must be {right}, got {value!r}"
            raise ValueError(message) from None
    return given


def _finite(value: Any) -> float | None:
    number = float(value)
    return number if isfinite(number) else None


def _time(value: Any) -> datetime | None:
    """Understand a time, or what JSON has of it; a date is its midnight."""
    return datetime.fromisoformat(str(value)) if value else None


def _listed(value: Any) -> list[Any]:
    return [each for each in (value if isinstance(value, list) else [value]) if each is not None]


def _comment(value: Any) -> Comment:
    if not isinstance(value, Mapping):
        return Comment(str(value))
    said = {name: each for name, each in value.items() if each is not None}
    return Comment(**{"text": "", **said, "date": _time(said.get("date"))})


COLUMNS: dict[str, tuple[Callable[[Any], Any], str]] = {
    **dict.fromkeys(("a", "b", "a_file", "b_file", "file_name", "relation"), (str, "text")),
    **dict.fromkeys(("title", "status", "priority", "assigned_to", "description"), (str, "text")),
    **dict.fromkeys((*"xyz", "penetration"), (_finite, "metres")),
    "group_id": (lambda value: value if isinstance(value, int) else str(value), "a number or text"),
    "due": (_time, "a date or time such as '2030-01-31'"),
    "labels": (lambda value: [str(each) for each in _listed(value)], "texts"),
    "comments": (
        lambda value: [_comment(each) for each in _listed(value)],
        "texts, or structs of text, author and date",
    ),
}
"""How a column is understood, and what it must be."""
