"""What the table macro `ql4bim` calls."""

from spatialq.functions.sql_text import literal
from spatialq.ql4bim.program import Program, compile_script
from spatialq.ql4bim.text import read_script
from spatialq.query.steps import Step, Table, plain, sql, write

REASON = "\x01"
"""Stands for the reason in an error that SQL makes: no text that is shown holds it."""


def ql4bim_sql(script: str | None, variable: str | None, model: str | None) -> str:
    """Write the statement for a variable of a script, None for the result.

    Raises
    ------
    ScriptError
        If the script is wrong, has no such variable, or writes a file.
    ValueError
        If there is no script.
    """
    if script is None:
        message = "ql4bim: script must be a text, got NULL"
        raise ValueError(message)
    text, name = read_script(script)
    program = compile_script(text, name=name, models=model)
    if program.exports:
        reason = "ExportModel: a query writes no file; spatialq.run_script does"
        raise program.text.error(program.exports[0].place, reason)
    return write(_checked(program, variable))


def _checked(program: Program, variable: str | None) -> Step | Table:
    """Give a step that fails, even without any row, where the data are not as they must be."""
    found, step = program.variable(variable), program.step(variable)
    column = found.columns[0].name if found.kind == "relation" else found.key
    parts: list[Step | Table | str] = [step]
    for each in program.required:
        before, _, after = str(program.text.error(each.place, REASON)).partition(REASON)
        sentence = f"{literal(before)} || reason || {literal(after)}"
        nothing = f" UNION ALL BY NAME SELECT NULL AS {plain(column)} FROM "
        parts += [nothing, each.wrong, f" WHERE error({sentence})::BOOLEAN"]
    return Step("checked", sql("(FROM ", *parts, ")")) if program.required else step
