"""Transactions on a connection that is the user's."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import duckdb


def is_open(con: duckdb.DuckDBPyConnection) -> bool:
    """Tell whether a transaction is open; a BEGIN that fails would abort it."""
    number = "SELECT txid_current()"  # of its own for each statement that is alone
    return con.execute(number).fetchall() == con.execute(number).fetchall()


@contextmanager
def transaction(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Keep what a block does, or nothing of it when it fails."""
    con.execute("BEGIN TRANSACTION")
    try:
        yield
        con.execute("COMMIT")
    except BaseException:
        with suppress(duckdb.TransactionException):  # a full disk has ended it already
            con.execute("ROLLBACK")
        raise
