"""A scalar function that DuckDB calls; users call the macros that call these."""

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any

import pyarrow as pa

from spatialq.data.arrow import arrow_type
from spatialq.functions.implementations import call
from spatialq.functions.sql_text import identifier


@dataclass(frozen=True)
class SqlFunction:
    """One scalar function in SQL.

    Parameters
    ----------
    name : str
        Its name in SQL.
    parameters : tuple of str
        The SQL types of its arguments.
    returns : str
        The SQL type of its result.
    implementation : str
        ``"module:attribute"``, imported at the first call, so that connecting stays fast; or a name
        that `spatialq.functions.implementations` has for one of a layer above. It gets `bound`,
        then one `pyarrow.ChunkedArray` for each argument (at most 2048 rows, NULLs included), and
        returns an array of as many rows. DuckDB may call it from several threads at once.
    bound : tuple
        Arguments that are always the same, such as the `Function` whose kernel it runs.
    volatile : bool
        True for work that must run when the query runs. False for functions of constants that
        DuckDB may evaluate while it plans, such as those that write SQL for `query()`.
    by_rows : bool
        True if the implementation gets the values of one row instead of arrays, and returns that of
        its result.
    """

    name: str
    parameters: tuple[str, ...]
    returns: str
    implementation: str
    bound: tuple[Any, ...] = ()
    volatile: bool = True
    by_rows: bool = False

    @property
    def __signature__(self) -> Signature:
        """By which DuckDB counts the arguments."""
        names = [f"argument{k}" for k in range(len(self.parameters))]
        return Signature([Parameter(name, Parameter.POSITIONAL_ONLY) for name in names])

    @property
    def is_native(self) -> bool:
        """Whether DuckDB gives it Python's values, not arrays, which take longer for one row.

        Structs go in arrays, as fields that a dict lacks are NULL there, and an error else. Texts,
        numbers, booleans and lists, which all others give, are the same either way.
        """
        return self.by_rows and "STRUCT" not in self.returns

    def __call__(self, *arguments: Any) -> Any:
        """Import the implementation and call it."""
        if self.is_native or not self.by_rows:
            return call(self.implementation, *self.bound, *arguments)
        rows = zip(*(each.to_pylist() for each in arguments), strict=True)
        found = [call(self.implementation, *self.bound, *row) for row in rows]
        return pa.array(found, arrow_type(self.returns))


def struct_type(columns: Mapping[str, str]) -> str:
    """Write the SQL type of a struct of columns and their types."""
    return f"STRUCT({', '.join(f'{identifier(name)} {kind}' for name, kind in columns.items())})"
