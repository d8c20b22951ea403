"""What may come next: names of the database, functions, operators, keywords, files."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from spatialq.cli.shell.text import SCRIPT_WORDS, language, open_quote

if TYPE_CHECKING:
    import duckdb

COMMANDS = {
    ".help": "what can be typed here",
    ".tables": "the tables, views and variables",
    ".sql": "the SQL of a variable: .sql name",
    ".quit": "ends the shell, as Ctrl-D does",
}
NAMES = """
SELECT DISTINCT table_name AS name, 'table' AS kind, 0 AS place
    FROM duckdb_tables() WHERE NOT internal
UNION ALL SELECT DISTINCT view_name, 'view', 0 FROM duckdb_views() WHERE NOT internal
UNION ALL SELECT DISTINCT column_name, 'column', 1 FROM duckdb_columns() WHERE NOT internal
UNION ALL SELECT DISTINCT function_name, 'function', if(function_type LIKE '%macro', 2, 3)
    FROM duckdb_functions() WHERE regexp_matches(function_name, '^[A-Za-z]\\w*$')
UNION ALL SELECT DISTINCT upper(keyword_name), 'keyword', 4 FROM duckdb_keywords()
ORDER BY place, name
"""
"""Names in SQL, those of the user first."""


class Suggestion(NamedTuple):
    """A word that may stand where the cursor is."""

    text: str
    start: int
    """How many characters before the cursor it replaces."""
    kind: str


@dataclass(frozen=True)
class Names:
    """What there is to name, each with its kind, in the order in which it is suggested."""

    sql: tuple[tuple[str, str], ...] = ()
    operators: tuple[str, ...] = ()
    classes: Mapping[str, str | None] = field(default_factory=dict)
    """The class of the objects of each variable, where it is known."""

    @classmethod
    def of(
        cls,
        con: "duckdb.DuckDBPyConnection",
        classes: Mapping[str, str | None],
        operators: Iterable[str],
    ) -> "Names":
        """Look up the names of a connection."""
        found = dict(reversed([(name, kind) for name, kind, _ in con.execute(NAMES).fetchall()]))
        return cls(tuple(reversed(found.items())), tuple(operators), classes)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of scripts."""
        return tuple(self.classes)


def suggest(text: str, names: Names) -> Iterator[Suggestion]:
    """Suggest what may come after a text; the word that it ends with has begun.

    Parameters
    ----------
    text : str
        From the beginning of the statement to the cursor.
    names : Names
    """
    quoted = open_quote(text)
    if quoted is not None:
        yield from _in_quotes(quoted, names)
        return
    kind = language(text)
    if kind == "command":
        yield from _of_command(text.lstrip(), names)
        return
    word = re.search(r"\w*\Z", text)
    assert word is not None  # it may be empty
    before = text[: word.start()].rstrip()
    if before.endswith("."):
        known = _attributes(before, names) if kind == "script" else _of_kind(names, "column")
        yield from _starting(word[0], ((name, "attribute") for name in known))
    elif not word[0]:
        return
    elif kind == "script" and re.search(r"\bis\Z", before):
        yield from _starting(word[0], _classes())
    elif kind == "script":
        yield from _starting(word[0], ((name, "variable") for name in names.variables))
        yield from _starting(word[0], ((name, "operator") for name in names.operators))
        yield from _starting(word[0], ((name, "keyword") for name in SCRIPT_WORDS))
    else:
        yield from _starting(word[0], names.sql)


def _of_command(text: str, names: Names) -> Iterator[Suggestion]:
    command, space, begun = text.partition(" ")
    if not space:
        yield from _starting(command, COMMANDS.items())
    elif command == ".sql":
        yield from _starting(begun, ((name, "variable") for name in names.variables))


def _in_quotes(begun: str, names: Names) -> Iterator[Suggestion]:
    """Suggest tables, which macros take by name, classes, and files."""
    if begun:
        tables = ((name, kind) for name, kind in names.sql if kind in ("table", "view"))
        yield from _starting(begun, tables)
        yield from _starting(begun, _classes() if begun.lower().startswith("ifc") else ())
    folder, _, start = begun.rpartition("/")
    try:
        paths = sorted(Path(f"{folder}/" if begun.startswith("/") else folder or ".").iterdir())
    except (OSError, ValueError):  # there is no such folder, or it cannot be read
        return
    for path in paths:
        if path.name.startswith(start) and (start or not path.name.startswith(".")):
            is_folder = path.is_dir()
            name = f"{path.name}/" if is_folder else path.name
            yield Suggestion(name, -len(start), "folder" if is_folder else "file")


def _classes() -> Iterator[tuple[str, str]]:
    """Give the classes of what a model's table of objects has, not of their geometries."""
    from spatialq.io.ifc.schemas import subtypes

    return ((name, "class") for name in sorted(subtypes("IfcObjectDefinition")))


def _attributes(before: str, names: Names) -> list[str]:
    """Give the attributes of a variable that stands before a dot."""
    from spatialq.io.ifc.schemas import attributes_of

    variable = re.search(r"(\w+)\s*\.\Z", before)
    ifc_class = names.classes.get(variable[1]) if variable else None
    return sorted(attributes_of(ifc_class or "IfcObjectDefinition"))


def _of_kind(names: Names, kind: str) -> Iterator[str]:
    return (name for name, each in names.sql if each == kind)


def _starting(begun: str, known: Iterable[tuple[str, str]]) -> Iterator[Suggestion]:
    """Suggest the names that begin so, in any case."""
    lower = begun.lower()
    for name, kind in known:
        if name.lower().startswith(lower) and name != begun:
            yield Suggestion(name, -len(begun), kind)
