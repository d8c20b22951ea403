"""The macros of `sql/*.sql`: statements, with the comment lines above them."""

import re
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from typing import NamedTuple

from spatialq.database.transport.request import Transport
from spatialq.functions.macros import AGGREGATE
from spatialq.functions.sql_text import identifier, literal

STATEMENT = re.compile(
    r"((?:^--[^\n]*\n)+)^(CREATE OR REPLACE MACRO (\w+)\(.*?;)$", re.DOTALL | re.MULTILINE
)
"""Of our own files: comment lines, then a statement that ends at the end of a line."""
CREATE = "CREATE OR REPLACE MACRO "


class Macro(NamedTuple):
    """One macro as DuckDB gets it."""

    name: str
    is_table: bool
    comment: str
    """In DuckDB's catalogue; it ends in the version and a digest of the statement, by which a
    database is known to have another one."""
    statement: str

    def statements(self, database: str) -> str:
        """Write what creates it in a database, with its comment; 'temp' is for one connection."""
        place = f"{identifier(database)}.main.{self.name}"
        verb = "CREATE OR REPLACE TEMP MACRO " if database == "temp" else CREATE
        body = self.statement.removeprefix(f"{CREATE}{self.name}")
        kind = "MACRO TABLE" if self.is_table else "MACRO"
        return f"{verb}{place}{body}\nCOMMENT ON {kind} {place} IS {literal(self.comment)};\n"


@cache
def macros(transport: Transport) -> tuple[Macro, ...]:
    """All macros for a transport, each after those that it calls."""
    found: dict[str, Macro] = {}
    made_by = f"spatialq {version('spatialq')}"
    for file in sorted(files("spatialq.sql").iterdir(), key=lambda file: file.name):
        if file.name.endswith(".sql"):
            for about, statement, name in STATEMENT.findall(file.read_text(encoding="utf-8")):
                is_table = re.search(r"\)\s*AS TABLE\b", statement) is not None
                text = re.sub(r"^-- ?", "", about.strip(), flags=re.MULTILINE)
                digest = sha256(statement.encode()).hexdigest()[:8]
                comment = f"{text}\n\n{made_by}, {digest}"
                found[name] = Macro(name, is_table, comment, statement)
    ordered: dict[str, Macro] = {}

    def add(macro: Macro) -> None:
        for name in re.findall(r"\w+(?=\()", macro.statement):
            if name in found and name not in ordered and name != macro.name:
                add(found[name])
        ordered[macro.name] = macro

    for macro in found.values():
        if macro.name not in ordered:
            add(macro)
    return tuple(
        macro
        for macro in ordered.values()
        if transport == "lists" or not macro.name.endswith(AGGREGATE)
    )
