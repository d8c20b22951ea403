"""QL4BIM in the box: a script becomes the statement of its result."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spatialq.serve.limits import QueryRefusedError

if TYPE_CHECKING:
    import duckdb


def statement(con: "duckdb.DuckDBPyConnection", text: str, paths: Sequence[str]) -> str:
    """Give the statement for the result of a script about models.

    They are its variables `model`, `model_2` and so on, in their order.

    Raises
    ------
    ScriptError
        If the script is wrong.
    QueryRefusedError
        If it writes files, or the files of the models are not there.
    """
    from spatialq.ql4bim.program import compile_script
    from spatialq.ql4bim.run import run_program

    names = ["model", *(f"model_{number}" for number in range(2, len(paths) + 1))]
    program = compile_script(text, name="the box", models=dict(zip(names, paths, strict=True)))
    if program.exports:
        message = "view: a script of the box must not write files, but it has ExportModel"
        raise QueryRefusedError(message)
    return run_program(con, program).sql()
