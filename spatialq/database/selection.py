"""A set of elements as a person writes it: a selector of IfcOpenShell, or an SQL condition."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

SELECTOR = re.compile(r"\s*!?\s*(?:(?i:ifc[a-z])\w*|[0-3][A-Za-z0-9_$]{21}(?![\w$]))")
"""How a selector begins: with a class or a GlobalId, perhaps after `!`. No column is called so.

A class in any case is meant as one: the error of the selector says how it is written."""
KIND = re.compile(r"^[\w ]+ Error: (?:Python exception .*? UDF: \w+: )?")
"""How the text of an error of DuckDB begins."""


def is_selector(text: str) -> bool:
    """Say whether a text is a selector: it begins with a class or a GlobalId."""
    return SELECTOR.match(text) is not None


def elements(caller: str, argument: str, text: str | None) -> str:
    """Write the rows of the table `elements` that a text means, for the FROM of a query.

    Raises
    ------
    ValueError
        If a selector is none, or names a class or an attribute that no schema has.
    """
    from spatialq.database.selectors import query

    if text is None:
        return "elements"
    if is_selector(text):
        chosen = query.selector_sql(f"{caller}: {argument}", text, "objects")
        return f"(FROM elements SEMI JOIN ({chosen}) USING (file_name, step_id))"
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

    from spatialq.io.ifc.tables import SCHEMAS

    rows = elements(caller, argument, text)
    if text is None or is_selector(text):
        return
    for name, schema in SCHEMAS.items():
        con.register(name, schema.empty_table())
    try:
        con.execute(f"SELECT 1 FROM {rows}")
    except duckdb.Error as error:
        # without the kind of error, and the excerpt of the query below it
        reason = KIND.sub("", " ".join(str(error).partition("\n\n")[0].split()))
        message = (
            f"{caller}: {argument} must be a condition over the columns of read_ifc, or a selector "
            f"that begins with a class or a GlobalId, got {text!r}: {reason}"
        )
        raise ValueError(message) from None
    finally:
        for name in SCHEMAS:
            con.unregister(name)
