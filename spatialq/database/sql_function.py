"""What DuckDB calls: a scalar function over Arrow arrays, as the engine registers it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SqlFunction:
    """One scalar function that DuckDB calls with Arrow arrays.

    Parameters
    ----------
    name : str
        Its name in SQL. Users call the macros of `sql/*.sql`, which call these.
    parameters : tuple of str
        The SQL types of its arguments.
    returns : str
        The SQL type of its result.
    call : callable
        Gets one `pyarrow.ChunkedArray` an argument (at most 2048 rows, NULLs included) and
        returns an array of as many rows. DuckDB may call it from several threads at once.
    volatile : bool
        True for work that must run when the query runs. False for functions of constants
        that DuckDB may evaluate while it plans, such as those that write SQL for `query()`.
    """

    name: str
    parameters: tuple[str, ...]
    returns: str
    call: Callable[..., Any]
    volatile: bool = True
