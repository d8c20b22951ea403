"""`spatialq formats`: what files can be read and written."""

from spatialq.cli.options import Json
from spatialq.cli.rendering import show

BRIEF = ("format", "endings", "use", "loses")
"""Columns that are printed; JSON has all."""


def formats(*, as_json: Json = False) -> None:
    """List the formats of files that are read and written, and what they lose.

    With --json also what they keep and need, and what a reader skips where a query does not need
    it.
    """
    from spatialq.workflows.formats import formats as list_formats

    found = list_formats()
    rows = found if as_json else [{name: row[name] for name in BRIEF} for row in found]
    show(rows, as_json=as_json)
