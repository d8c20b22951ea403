"""What the commands that run QL4BIM scripts share."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from spatialq.cli.results import show_rows
from spatialq.functions.sql_text import identifier
from spatialq.ql4bim.program import Program
from spatialq.query.steps import write

if TYPE_CHECKING:
    import duckdb

BRIEF = ("global_id", "ifc_class", "name", "storey")
"""The columns that a table shows of a set of objects."""
THINGS = {"set": "objects", "relation": "rows", "cloud": "points", "planes": "planes"}
"""What the rows of a variable are."""
NAMES = {"name": "name", "ifc_class": "class", "storey": "storey"}
"""The columns that are added to an object of a relation, and how they end there."""
NAMED = re.compile(r"([^\W\dA-Z]\w*)=(.+)", re.DOTALL)
"""A file for the variable of a model, as `--model` has it."""


def models_of(given: Sequence[str]) -> str | dict[str, str] | None:
    """Read the values of `--model`: one file, or files by variable.

    Raises
    ------
    ValueError
        If several files are not each for a variable of its own.
    """
    files = {match[1]: match[2] for match in map(NAMED.fullmatch, given) if match}
    if len(given) == 1 and not files:
        return given[0]
    if len(files) < len(given):
        message = (
            "run: model must be one file, or VARIABLE=FILE with another variable for each, got "
            f"{', '.join(given)}"
        )
        raise ValueError(message)
    return files or None


def show_variable(
    con: "duckdb.DuckDBPyConnection",
    program: Program,
    variable: str | None = None,
    *,
    names: bool = False,
    limit: int,
    as_json: bool,
    is_brief: bool = False,
) -> None:
    """Print the rows of a variable; of a set, a table has the main columns only.

    With `is_brief` a line before the table says how many there are.
    """
    relation = con.sql(named(program, variable) if names else program.sql(variable))
    kind = program.variable(variable).kind
    if kind == "set" and not as_json:
        relation = relation.select(*BRIEF)
    title = f"{variable}: {{}} {THINGS[kind]}" if is_brief else None
    show_rows(relation, limit=limit, as_json=as_json, title=title)


def named(program: Program, variable: str | None = None) -> str:
    """Write the statement for a variable, with the names of the objects of a relation.

    Raises
    ------
    ScriptError
        If the script has no such variable.
    """
    relation = program.variable(variable)
    columns: list[str] = []
    joins: list[str] = []
    for number, column in enumerate(relation.columns):
        name = identifier(column.name)
        columns.append(f"r.{name}")
        if column.domain is not None and column.domain.kind == "set":
            o = f"o{number}"
            columns += (
                f"{o}.{own} AS {identifier(f'{column.name}_{added}')}"
                for own, added in NAMES.items()
            )
            objects = write(program.step_of(column.domain))
            once = f"SELECT DISTINCT ON (global_id) * FROM (\n{objects}\n)"
            joins.append(f"LEFT JOIN (\n{once}\n) AS {o} ON {o}.global_id = r.{name}")
    if not joins:
        return program.sql(variable)
    rows = f"SELECT {', '.join(columns)}\nFROM (\n{program.sql(variable)}\n) AS r"
    return "\n".join([rows, *joins])
