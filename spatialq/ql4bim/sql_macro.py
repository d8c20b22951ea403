"""What the table macro `ql4bim` calls."""

from typing import Any

import pyarrow as pa

from spatialq.functions.sql_text import literal
from spatialq.ql4bim.compiler import Requirement
from spatialq.ql4bim.program import Program, compile_script
from spatialq.ql4bim.run import data_requirements, names_of_properties
from spatialq.ql4bim.text import read_script
from spatialq.query.steps import plain, write


def ql4bim_sql(scripts: Any, variables: Any, models: Any) -> pa.Array:
    """Write the statements for variables of scripts, NULL for the result.

    Raises
    ------
    ScriptError
        If a script is wrong, has no such variable, or writes a file.
    """
    columns = (column.to_pylist() for column in (scripts, variables, models))
    return pa.array([_statement(*row) for row in zip(*columns, strict=True)], pa.string())


def _statement(script: str | None, variable: str | None, model: str | None) -> str:
    if script is None:
        message = "ql4bim: script must be a text, got NULL"
        raise ValueError(message)
    text, name = read_script(script)
    program = compile_script(text, name=name, models=model)
    if program.exports:
        reason = "ExportModel: a query writes no file; spatialq.run_script does"
        raise program.text.error(program.exports[0].place, reason)
    statement = write(program.step(variable))
    for each in data_requirements(program):
        statement = _checked(program, variable, statement, each)
    return statement


def _checked(program: Program, variable: str | None, statement: str, each: Requirement) -> str:
    """Have a statement fail, even without any row, where no object has a property."""
    found = program.variable(variable)
    column = found.columns[0].name if found.kind == "relation" else found.key
    wanted = each.prop if each.pset is None else f"{each.pset}.{each.prop}"
    reason = f"{each.caller}: no object has a property {wanted}"
    sentence = str(program.text.error(each.place, reason))
    pset = "" if each.pset is None else f" AND pset = {literal(each.pset)}"
    rows = f"FROM names WHERE property = {literal(each.prop)}{pset}"
    check = f"CASE WHEN EXISTS ({rows}) THEN false ELSE error({literal(sentence)})::BOOLEAN END"
    return (
        f"WITH names AS ({write(names_of_properties(each))})\n"
        f"FROM (\n{statement}\n) UNION ALL BY NAME SELECT NULL AS {plain(column)} WHERE {check}"
    )
