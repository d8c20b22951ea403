"""A set of elements as a person writes it: a selector of IfcOpenShell, or an SQL condition."""

import re
from typing import TYPE_CHECKING

from spatialq.functions.sql_text import literal

if TYPE_CHECKING:
    import duckdb

SELECTOR = re.compile(r"\s*!?\s*(?:Ifc[A-Z]\w*|[0-3][A-Za-z0-9_$]{21}(?![\w$]))")
"""How a selector begins: with a class or a GlobalId, perhaps after `!`. No column is called so."""


def is_selector(text: str) -> bool:
    """Say whether a text is a selector: it begins with a class or a GlobalId."""
    return SELECTOR.match(text) is not None


def elements(text: str | None) -> str:
    """Write the rows of the table `elements` that a text means, for the FROM of a query."""
    if text is None:
        return "elements"
    if is_selector(text):
        return f"elements_where({literal(text)})"
    return f"(FROM elements WHERE ({text}\n))"  # a comment may end it


def require(con: "duckdb.DuckDBPyConnection", caller: str, argument: str, text: str | None) -> None:
    """Make sure that a text means elements of any model, before one is read.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
        Without tables of the names of `spatialq.io.ifc.columns.TABLES`.
    caller, argument : str
        What the error names.
    text : str or None

    Raises
    ------
    ValueError
        If a selector is none or names an unknown class or attribute, or if DuckDB does not
        understand a condition: the sentence has the near names.
    """
    import duckdb

    from spatialq.database.selectors import query
    from spatialq.io.ifc.tables import SCHEMAS

    if text is None:
        return
    if is_selector(text):
        query.write(f"{caller}: {argument}", text, "objects")
        return
    for name, schema in SCHEMAS.items():
        con.register(name, schema.empty_table())
    try:
        con.execute(f"EXPLAIN SELECT 1 FROM {elements(text)}")
    except duckdb.Error as error:
        # its first lines, without the kind of error and the excerpt of the query below them
        reason = " ".join(str(error).partition("\n\n")[0].partition(": ")[2].split())
        message = (
            f"{caller}: {argument} must be a condition over the columns of read_ifc, or a selector "
            f"that begins with a class or a GlobalId, got {text!r}: {reason}"
        )
        raise ValueError(message) from None
    finally:
        for name in SCHEMAS:
            con.unregister(name)
