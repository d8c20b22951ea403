"""Clouds that several kernels read are kept in memory while a query runs, where that pays.

It pays where rows go as lists, since each kernel would collect the columns anew: the chain of
`benchmarks/query_builder.py` then takes half to two thirds of the time. The rows go to a temporary
table, which is pinned; both are gone when the query has run. With the extension, kernels collect
and upload columns faster than a table is made and its pin is checked, also for a GPU.
"""

import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

from spatialq.database.pinning import pin, unpin
from spatialq.planner import devices
from spatialq.query.binding import statement_of
from spatialq.query.calls import calls
from spatialq.query.plans import transport
from spatialq.query.steps import Step, Table, in_order, with_tables

if TYPE_CHECKING:
    import duckdb

Pins = tuple[tuple[Step | Table, Literal["cpu", "gpu"]], ...]
"""Clouds that are to be pinned, and where."""
SEVERAL = 2
"""Calls of kernels on one cloud, from which on it is pinned."""
_numbers = itertools.count(1)


@contextlib.contextmanager
def pinned(
    con: "duckdb.DuckDBPyConnection", step: Step | Table, asked: Pins
) -> Iterator[Step | Table]:
    """Give the step that is to run while clouds are pinned for it.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    step : Step or Table
    asked : Pins
        Clouds that are pinned wherever kernels read them, also through conditions.
    """
    wanted = {**_worthwhile(con, step), **dict(asked)}
    used = {part for each in calls(step) if each.is_of_points for part in in_order(each.rows)}
    tables: dict[Step | Table, Table] = {}
    with contextlib.ExitStack() as undo:
        for cloud, device in wanted.items():
            if cloud in used:
                tables[cloud] = _kept(con, with_tables(cloud, tables), device, undo)
        yield with_tables(step, tables) if tables else step


def _worthwhile(
    con: "duckdb.DuckDBPyConnection", step: Step | Table
) -> dict[Step | Table, Literal["cpu", "gpu"]]:
    """Say which clouds several kernels read, and where they are best kept."""
    if transport(con) != "lists":
        return {}
    readers = Counter(each.rows for each in calls(step) if each.is_of_points)
    several = [cloud for cloud, count in readers.items() if count >= SEVERAL]
    is_gpu_there = not devices.gpu().problem
    return dict.fromkeys(several, "gpu" if is_gpu_there else "cpu")


def _kept(
    con: "duckdb.DuckDBPyConnection",
    cloud: Step | Table,
    device: Literal["cpu", "gpu"],
    undo: contextlib.ExitStack,
) -> Table:
    """Make a temporary table of a cloud, and pin it."""
    name = f"spatialq_pinned_{next(_numbers)}"
    con.execute(f"CREATE TEMP TABLE {name} AS {statement_of(con, cloud)}")
    undo.callback(_tried, con.execute, f"DROP TABLE IF EXISTS temp.{name}")
    pin(con, name, device=device)
    undo.callback(_tried, unpin, con, name)
    return Table(name)


def _tried(action: Callable[..., object], *args: object) -> None:
    """Clear up, where that still goes: a transaction that an error has ended takes its tables."""
    with contextlib.suppress(Exception):
        action(*args)
