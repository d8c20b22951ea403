"""What the commands that run QL4BIM scripts share."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.cli.results import show_rows
from spatialq.ql4bim.program import Program
from spatialq.query.steps import write

if TYPE_CHECKING:
    import duckdb

BRIEF = ("global_id", "ifc_class", "name", "storey")
"""The columns that a table shows of a set of objects."""
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


def run_program(
    con: "duckdb.DuckDBPyConnection", program: Program, after: Program | None = None
) -> list[Path]:
    """Look whether the data have what a program names, and write its files.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    program : Program
    after : Program, optional
        Its beginning, which has run: the files of that are not written again.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    ScriptError
        If the script names what is not there.
    FileError
        If a file cannot be read or written.
    """
    from spatialq.ql4bim.run import require_bound, require_met, write_exports

    if after is not None:
        program = replace(
            program,
            exports=program.exports[len(after.exports) :],
            required=program.required[len(after.required) :],
        )
    require_bound(con, program)
    require_met(con, program)
    return write_exports(con, program)


def show_variable(
    con: "duckdb.DuckDBPyConnection",
    program: Program,
    variable: str | None = None,
    *,
    names: bool = False,
    limit: int,
    as_json: bool,
) -> None:
    """Print the rows of a variable; of a set, a table has the main columns only."""
    relation = con.sql(statement_of(program, variable, names=names))
    if program.variable(variable).kind == "set" and not as_json:
        relation = relation.select(*BRIEF)
    show_rows(relation, limit=limit, as_json=as_json)


def statement_of(program: Program, variable: str | None = None, *, names: bool = False) -> str:
    """Write the statement for a variable, with the names of the objects of a relation or not."""
    return write(program.with_names(variable) if names else program.step(variable))
