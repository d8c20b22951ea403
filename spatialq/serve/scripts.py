"""QL4BIM in the box: a script becomes the statement of its result."""

from typing import TYPE_CHECKING

from spatialq.serve.queries import QueryRefusedError
from spatialq.serve.sources import MODELS

if TYPE_CHECKING:
    import duckdb

    from spatialq.serve.scene import Scene


def statement(con: "duckdb.DuckDBPyConnection", text: str, scene: "Scene") -> str:
    """Give the statement for the result of a script about the models of the scene.

    The models are its variables `model`, `model_2` and so on, in the order of the scene.

    Raises
    ------
    ScriptError
        If the script is wrong.
    QueryRefusedError
        If it writes files, or the files of the models are not there.
    """
    from spatialq.ql4bim.program import compile_script
    from spatialq.ql4bim.run import run_program

    paths = [each.path for each in scene.models if each.path and each.path.endswith(MODELS)]
    names = ["model", *(f"model_{number}" for number in range(2, len(paths) + 1))]
    program = compile_script(text, name="the box", models=dict(zip(names, paths, strict=True)))
    if program.exports:
        message = "view: a script of the box must not write files, but it has ExportModel"
        raise QueryRefusedError(message)
    return run_program(con, program).sql()
