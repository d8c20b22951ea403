"""Functions that go from files to files, such as `write_ground`: their macro, and what it calls."""

from collections.abc import Mapping
from dataclasses import dataclass

from spatialq.functions.declaration import Parameter
from spatialq.functions.macros import (
    DEVICE,
    MEMORY,
    Argument,
    Macro,
    arguments_of,
    checked,
    indent,
    struct,
)
from spatialq.functions.sql_function import SqlFunction, struct_type

OUTPUTS = ONE, SEVERAL = "output", "outputs"
"""The argument that says what is written: a file, or a list of files."""
ONE_CLOUD = "a pattern or folder of them, or a list of these, which together is one cloud"


@dataclass(frozen=True)
class FileFunction:
    """A function that reads point clouds and writes files.

    Parameters
    ----------
    name : str
        In SQL and in Python.
    summary : str
    clouds : str
        What it reads, in the help about its argument `path`.
    outputs : str
        What it writes by the endings of names, or what the one file is, in the help about its
        argument.
    parameters : tuple of Parameter
    result : mapping of str to str
        SQL types of the columns of its one row; NULL where the workflow gives none.
    workflow : str
        ``"module:attribute"``: what is called with path, outputs and parameters by name.
    example : str
    first : tuple of str
        The parameters that stand before `device` in SQL, by default all.
    target : 'outputs' or 'output'
        The argument that says what is written.
    """

    name: str
    summary: str
    clouds: str
    outputs: str
    parameters: tuple[Parameter, ...]
    result: Mapping[str, str]
    workflow: str
    example: str
    first: tuple[str, ...] = ()
    target: str = SEVERAL

    @property
    def function(self) -> SqlFunction:
        """What the macro calls."""
        return SqlFunction(
            f"spatialq_{self.name}_udf",
            ("VARCHAR", "VARCHAR[]", "VARCHAR"),
            # a list, since unnesting a bare struct would call it once for each of its fields
            f"{struct_type(self.result)}[]",
            "spatialq.workflows.sql_calls:written",
            (self,),
        )

    @property
    def macro(self) -> Macro:
        """The table macro."""
        first = self.first or tuple(each.name for each in self.parameters)
        texts = checked("texts", self.name, SEVERAL, "a list of files")
        if self.target == ONE:
            texts = f"[{checked('text', self.name, ONE, 'a file')}]"
            targets = Argument(ONE, f"{self.outputs}.")
        else:
            targets = Argument(SEVERAL, f"List of files, by their endings: {self.outputs}.")
        others = [each for each in self.parameters if each.name not in first]
        return Macro(
            self.name,
            self.summary,
            (
                Argument("path", f"{self.clouds}, or {ONE_CLOUD}."),
                targets,
                *arguments_of(self.parameters, *first),
                DEVICE,
                *(arguments_of(others) if others else ()),
                MEMORY,
            ),
            f"""SELECT unnest(
    spatialq_{self.name}_udf(
        {checked("tables", self.name, "path", "a file, or a list of files")},
        {texts},
        to_json({indent(struct(self.parameters), 2)})::VARCHAR
    ),
    recursive := true
)""",
            (self.example,),
            " ".join(self.result),
        )
