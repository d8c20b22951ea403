"""Parts of the building models that a query is about, and clashes as a model of their own."""

from pathlib import Path

from spatialq.database.partial_models import PAIR, export_ifc
from spatialq.database.statements import one_statement
from spatialq.database.writers import Result, Writer
from spatialq.export.ifc import ENDINGS, EXPORTER
from spatialq.functions.implementations import call

CLASHES = {*PAIR, *(f"{side}_file" for side in PAIR)}
"""Columns by which rows are clashes, perhaps of several models."""


def write(result: Result, path: Path) -> int:
    """Write the objects with the GlobalIds of the rows, or the elements that clash."""
    statement = one_statement(EXPORTER, result.con, result.statement)
    if CLASHES.issubset(result.con.sql(f"SELECT * FROM ({statement}\n)").columns):
        return int(call("query_to_clash_model", result, path))
    return export_ifc(result.con, result.statement, path)


WRITER = Writer(
    name="IFC",
    suffixes=ENDINGS,
    takes="GlobalIds",
    write=write,
    keeps="the objects and all that they refer to, as in their file; of rows with a, b, a_file and "
    "b_file the elements that clash, coloured, of all files",
    loses="columns of the query",
    extra="ifc",
)
