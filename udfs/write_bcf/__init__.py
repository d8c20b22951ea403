"""Declaration of `write_bcf`: rows of clashes as an archive of issues."""

from dataclasses import dataclass
from typing import Literal

from spatialq.functions.declaration import Parameters, parameter, parameters_of
from spatialq.functions.file_macros import FileFunction


@dataclass(frozen=True)
class Options(Parameters):
    """Parameters of `write_bcf`."""

    FUNCTION = "write_bcf"

    models: str | None = parameter(
        None,
        "File or pattern of the models that the elements are from; NULL takes those that the "
        "columns a_file and b_file, or file_name, name.",
    )
    bcf_version: Literal["2.1", "3.0"] = parameter("2.1", "Version of BCF.")
    author: str = parameter("spatialq", "Who made the topics.")


WRITE_BCF = FileFunction(
    "write_bcf",
    "Write clashes as a BCF archive, with a camera and a picture for each.",
    "",
    "File that ends in .bcf or .bcfzip.",
    parameters_of(Options),
    {"topics": "BIGINT", "outputs": "VARCHAR[]"},
    "FROM write_bcf('clashes', 'clashes.bcf')",
    has_one_output=True,
)

SQL_FUNCTIONS = (WRITE_BCF.function,)
