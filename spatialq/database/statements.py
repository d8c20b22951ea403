"""The text of a query as one statement that others can be made of."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


def one_statement(function: str, con: "duckdb.DuckDBPyConnection", query: str) -> str:
    """Give the one statement of a query, without a semicolon.

    Raises
    ------
    ValueError
        If the query is empty or has several.
    """
    statements = con.extract_statements(query)
    if len(statements) != 1:
        message = f"{function}: the query must be one statement, got {len(statements)}"
        raise ValueError(message)
    return without_semicolon(query)


def without_semicolon(query: str) -> str:
    """Cut one statement where it ends; a comment may follow."""
    import duckdb

    text = query.encode()
    for offset, kind in duckdb.tokenize(query):  # offsets are bytes
        if kind == duckdb.token_type.operator and text[offset : offset + 1] == b";":
            return text[:offset].decode()
    return query
