"""What the tables of one building model are called: each beside the others.

A schema may stand before the name, and each may be in quotes, as SQL has it.
"""

import re
from collections.abc import Callable

from spatialq.functions.sql_text import NAME, identifier, unquoted
from spatialq.io.ifc.columns import TABLES

PARTS = tuple(name for name in TABLES if name not in ("elements", "load_errors"))
"""The tables of a model beside its elements; all models share one table of errors."""
LAST = re.compile(rf"((?:(?:{NAME})\.)*)({NAME}|.*)", re.DOTALL)
"""What stands before the name of a table, and the name."""


def beside_elements(elements: str, table: str) -> str:
    """Name a table of the model whose elements are in the table `elements`.

    Beside `elements` it is called by its own name, beside `t` by `t_` and its name.
    """

    def beside(name: str) -> str:
        return table if name.lower() == "elements" else f"{name}_{table}"

    return elements if table == "elements" else _renamed(elements, beside)


def beside_objects(objects: str, table: str) -> str:
    """Name a table of the model whose objects are in the table `objects`."""

    def beside(name: str) -> str:
        is_ending = name.lower().endswith("objects")
        return f"{name[: -len('objects')] if is_ending else f'{name}_'}{table}"

    return objects if table == "objects" else _renamed(objects, beside)


def _renamed(name: str, change: Callable[[str], str]) -> str:
    """Change the name behind the schema; where it was in quotes, so is the other."""
    before, last = LAST.fullmatch(name).groups()  # type: ignore[union-attr]  # it matches all
    changed = change(unquoted(last))
    return before + (identifier(changed) if last.startswith('"') else changed)
