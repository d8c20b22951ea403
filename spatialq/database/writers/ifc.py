"""Parts of the building models that a query is about."""

from pathlib import Path

from spatialq.database.partial_models import export_ifc
from spatialq.database.writers import Result, Writer
from spatialq.export.ifc import ENDINGS


def write(result: Result, path: Path) -> int:
    """Write the objects with the GlobalIds of the rows."""
    return export_ifc(result.con, result.statement, path)


WRITER = Writer(
    name="IFC",
    suffixes=ENDINGS,
    takes="GlobalIds",
    write=write,
    keeps="the objects and all that they refer to, as in their file",
    loses="columns of the query",
    extra="ifc",
)
