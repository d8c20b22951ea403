"""Which DuckDB database instance a function is called in, and whether it is still open."""

import contextlib
import itertools
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import duckdb

from spatialq.runtime import forks

_numbers = itertools.count(1)
_lock = forks.lock()
_on_close: "list[Callable[[int], None]]" = []
_left: "deque[Instance]" = deque()
"""Instances of which a connection was collected, to be looked at by `settle`."""


class Instance:
    """One database instance of this process; in SQL ``spatialq_instance(0)`` gives its number.

    DuckDB has functions once an instance, for all its connections. It keeps no reference to those
    written in Python, so that these small objects stay for good.
    """

    def __init__(self) -> None:
        self.number = next(_numbers)
        self._connections: weakref.WeakSet[duckdb.DuckDBPyConnection] = weakref.WeakSet()

    def __call__(self, calls: Any) -> Any:
        """Answer ``spatialq_instance``."""
        import pyarrow as pa

        return pa.array([self.number] * len(calls), pa.int64())

    def add(self, con: duckdb.DuckDBPyConnection) -> None:
        """Note a connection: the instance counts as open while one of those noted is."""
        with _lock:
            if con in self._connections:
                return
            self._connections.add(con)
        # it may run in any moment, also while this thread holds a lock
        weakref.finalize(con, _left.append, self).atexit = False

    @property
    def is_used(self) -> bool:
        """Whether one of its connections is left, open or not."""
        return len(self._connections) > 0

    def cursor(self) -> duckdb.DuckDBPyConnection | None:
        """Open another connection; None if those that were noted are closed or refuse it."""
        with _lock:
            known = list(self._connections)
        for each in known:
            with contextlib.suppress(duckdb.Error):  # it is closed, or busy in another thread
                return each.cursor()
        return None

    def close_if_unused(self) -> None:
        """Close the instance once all its connections are closed."""
        with _lock:
            known = list(self._connections)
        if not any(map(_is_open, known)):
            self.close()

    def close(self) -> None:
        """Tell those that keep something for the instance."""
        for forget in _on_close:
            forget(self.number)


_instances: list[Instance] = []


def new() -> Instance:
    """Make the object of a new instance."""
    instance = Instance()
    _instances.append(instance)
    return instance


def of(con: duckdb.DuckDBPyConnection) -> Instance:
    """Give the instance of a connection on which the functions are, and note the connection."""
    close_unused()
    with con.cursor() as cursor:  # outside of the transaction of the connection
        (number,) = cursor.execute("SELECT spatialq_instance(0)").fetchall()[0]
    instance = next(each for each in _instances if each.number == number)
    instance.add(con)
    return instance


def cursor(number: int) -> duckdb.DuckDBPyConnection | None:
    """Open a connection of its own to an instance: it sees what has been committed."""
    return next(each for each in _instances if each.number == number).cursor()


def all_used() -> list[Instance]:
    """List the instances with connections, open or not."""
    return [instance for instance in _instances if instance.is_used]


def settle() -> None:
    """Close the instances of which no connection is left; also for queries that are under way."""
    while _left:
        instance = _left.popleft()
        if not instance.is_used:
            instance.close()


def close_unused() -> None:
    """Look for instances whose connections were closed."""
    settle()
    for instance in _instances:
        instance.close_if_unused()


def on_close(forget: Callable[[int], None]) -> None:
    """Have something called with the number of each instance that is closed."""
    _on_close.append(forget)


def _is_open(con: duckdb.DuckDBPyConnection) -> bool:
    try:
        con.cursor().close()
    except duckdb.ConnectionException:
        return False
    except duckdb.Error:  # it may refuse while another thread uses it
        return True
    return True
