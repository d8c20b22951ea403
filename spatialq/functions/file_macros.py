"""Functions that go from files to files, such as `write_ground`: their macro, and what it calls."""

from collections.abc import Mapping
from dataclasses import dataclass

from spatialq.functions.declaration import Parameter
from spatialq.functions.macros import (
    DEVICE,
    MEMORY,
    TRUTH,
    Argument,
    Macro,
    arguments_of,
    checked,
    indent,
    struct,
)
from spatialq.functions.sql_function import SqlFunction, struct_type

OVERWRITE = Argument(
    "overwrite",
    "Whether files that are there are replaced; else they are an error.",
    "false",
    "truth",
)
CLOUDS = "or a pattern or folder of point clouds, or a list of these, which together is one cloud"

TO_CRS = "CRS to reproject the points to before, such as 'EPSG:25832'."
SCALE = (
    "Steps of x, y and z to which coordinates are rounded, or one for all three; NULL takes those "
    "of the first file."
)


@dataclass(frozen=True)
class FileFunction:
    """A function that reads files and writes files.

    Parameters
    ----------
    name : str
        In SQL and in Python. The workflow that `spatialq.functions.implementations` has under it is
        called with path, outputs and parameters by name.
    summary : str
    reads : str
        In the help about its argument `path`.
    writes : str
        In the help about its outputs.
    parameters : tuple of Parameter
    result : mapping of str to str
        SQL types of the columns of its one row.
    example : str
    first : tuple of str
        The parameters that stand before `device` in SQL, by default all.
    has_one_output : bool
        Whether it writes one file, `output`, instead of a list, `outputs`.
    """

    name: str
    summary: str
    reads: str
    writes: str
    parameters: tuple[Parameter, ...]
    result: Mapping[str, str]
    example: str
    first: tuple[str, ...] = ()
    has_one_output: bool = False

    @property
    def target(self) -> str:
        """The argument that names what is written."""
        return "output" if self.has_one_output else "outputs"

    @property
    def function(self) -> SqlFunction:
        """What the macro calls."""
        return SqlFunction(
            f"spatialq_{self.name}_udf",
            ("VARCHAR", "VARCHAR" if self.has_one_output else "VARCHAR[]", "VARCHAR", "BOOLEAN"),
            # a list, since unnesting a bare struct would call it once for each of its fields
            f"{struct_type(self.result)}[]",
            "write_files",
            (self,),
            by_rows=True,
        )

    @property
    def macro(self) -> Macro:
        """The table macro."""
        first = self.first or tuple(each.name for each in self.parameters)
        others = [each for each in self.parameters if each.name not in first]
        kind, wanted = ("text", "a file") if self.has_one_output else ("texts", "a list of files")
        return Macro(
            self.name,
            self.summary,
            (
                Argument("path", f"{self.reads}, {CLOUDS}."),
                Argument(self.target, self.writes),
                *arguments_of(self.parameters, *first),
                DEVICE,
                *(arguments_of(others) if others else ()),
                OVERWRITE,
                MEMORY,
            ),
            f"""SELECT unnest(
    spatialq_{self.name}_udf(
        {checked("tables", self.name, "path", "a file, or a list of files")},
        {checked(kind, self.name, self.target, wanted)},
        to_json({indent(struct(self.parameters), 2)})::VARCHAR,
        {checked("truth", self.name, OVERWRITE.name, TRUTH)}
    ),
    recursive := true
)""",
            (self.example,),
            " ".join(self.result),
        )
