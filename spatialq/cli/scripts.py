"""What the commands that run QL4BIM scripts share."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from spatialq.cli.results import show_rows
from spatialq.ql4bim.program import Program
from spatialq.query.steps import write

if TYPE_CHECKING:
    import duckdb

BRIEF = ("global_id", "ifc_class", "name", "storey")
"""The columns that a table shows of a set of objects."""
THINGS = {"set": "objects", "relation": "rows", "cloud": "points", "planes": "planes"}
"""What the rows of a variable are."""
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
    relation = con.sql(statement_of(program, variable, names=names))
    kind = program.variable(variable).kind
    if kind == "set" and not as_json:
        relation = relation.select(*BRIEF)
    title = f"{variable}: {{}} {THINGS[kind]}" if is_brief else None
    show_rows(relation, limit=limit, as_json=as_json, title=title)


def statement_of(program: Program, variable: str | None = None, *, names: bool = False) -> str:
    """Write the statement for a variable, with the names of the objects of a relation or not."""
    return write(program.with_names(variable) if names else program.step(variable))
