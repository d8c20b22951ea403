"""Which DuckDB database instance a function is called in, and whether it is still open.

An instance owns what is kept for it, which ends with it: the functions that DuckDB calls, pins, the
calls that its log does not have yet, files that a query has read in part. DuckDB keeps no reference
to functions written in Python but by the connection that created them, which may be closed long
before the last one.
"""

import contextlib
import itertools
import secrets
import weakref
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from inspect import Signature
from typing import Any

import duckdb

from spatialq.database.native.library import closed_instances
from spatialq.functions.sql_function import SqlFunction
from spatialq.io.access import UNKNOWN, Access, asked_by, calling_instance, schemas_of
from spatialq.io.source import close_scans
from spatialq.planner import log
from spatialq.runtime import forks

_lock = forks.rlock()
_numbers = itertools.count(1)
_left: "deque[Instance]" = deque()
"""Instances of which a connection was collected, to be looked at by `settle`."""


@dataclass
class Pin:
    """What is kept of one table."""

    name: str
    device: str
    """Where it is kept: 'cpu' or 'gpu'."""
    columns: tuple[str, ...]
    rows: int
    nbytes: int
    state: str
    """What the table was, as `pins.state_of` writes it."""
    serves: frozenset[str]
    """Columns that a function may take: those that are kept, and those that the table lacks."""
    kept: Any
    """Of points, the arrays by column; of elements, what `transport.elements` makes of them."""
    number: int = field(default_factory=lambda: next(_numbers))
    uses: int = 0
    misses: int = 0
    """Queries that found another state under the name."""
    pinned_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def note(self) -> str:
        """What the log says of a call that uses it."""
        return f"on {self.name!r} as pinned at {self.pinned_at:%Y-%m-%d %H:%M:%S} UTC"


class InstanceFunction:
    """A SQL function of one instance, for which it opens only the files that this may open."""

    __slots__ = ("_function", "_instance")

    def __init__(self, function: SqlFunction, instance: "Instance") -> None:
        self._function, self._instance = function, instance

    @property
    def __signature__(self) -> Signature:
        """By which DuckDB counts the arguments."""
        return self._function.__signature__

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        instance = self._instance
        with asked_by(instance.access, instance.number, instance.schemas):
            return self._function(*arguments)


class Instance:
    """One database instance of this process; in SQL ``spatialq_instance(0)`` gives its number.

    DuckDB has functions once an instance, for all its connections. The object that owns them goes
    when the extension tells that the instance is no more; without the extension it stays for good.
    """

    def __init__(self) -> None:
        self.number = 1 + secrets.randbelow(2**62)  # which nobody guesses in another instance
        self._connections: weakref.WeakSet[duckdb.DuckDBPyConnection] = weakref.WeakSet()
        self._functions: list[InstanceFunction] = []
        self.pins: dict[str, Pin] = {}
        """By their names, folded."""
        self.calls: deque[log.Entry] = deque(maxlen=log.CALLS_KEPT)
        """Those that `call_log` has not written yet."""
        self.systems: dict[str, str | None] = {}
        """CRS of the point clouds and grids that queries have read, PROJJSON, by path."""
        self._kept: duckdb.DuckDBPyConnection | None = None
        """Asked when no connection that was noted is left, but others are."""
        self._last = UNKNOWN
        """What was allowed when the last connection was collected."""
        self.without_extension = "the database was not opened by spatialq.connect()"
        """Why it has no extension, if it has none."""

    def __call__(self, calls: Any) -> Any:
        """Answer ``spatialq_instance``."""
        import pyarrow as pa

        return pa.array([self.number] * len(calls), pa.int64())

    def own(self, function: SqlFunction) -> InstanceFunction:
        """Make what DuckDB is to call for a function, and keep it."""
        self._functions.append(InstanceFunction(function, self))
        return self._functions[-1]

    def schemas(self) -> frozenset[str] | None:
        """Give the names that may stand before that of a table; None where nobody can be asked."""
        cursor = self.cursor()
        if cursor is None:
            return None
        with cursor:
            return schemas_of(cursor)

    def access(self) -> Access:
        """Say which files may be opened."""
        cursor = self.cursor()
        if cursor is None:
            return self._last
        with cursor:
            return Access.of(cursor)

    def add(self, con: duckdb.DuckDBPyConnection) -> None:
        """Note a connection: the instance counts as open while one of those noted is."""
        with _lock:
            if con in self._connections:
                return
            self._connections.add(con)
            self._last = UNKNOWN
            self.let_go()
        # it may run in any moment, also while this thread holds a lock
        weakref.finalize(con, self._lose, con.cursor()).atexit = False

    def _lose(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Keep a cursor of a connection that is collected, if there are others that nobody noted.

        Where there are none, nobody can change what is allowed, and a result that is still read
        needs to know it. A connection that was closed has closed its cursors.
        """
        _left.append(self)
        with contextlib.suppress(duckdb.Error), _lock:
            if not self.is_used:
                if _count(cursor) > 2:  # more than the cursor and the connection itself
                    self._kept = cursor
                    return
                self._last = Access.of(cursor)
            cursor.close()

    @property
    def is_left_to_others(self) -> bool:
        """Whether a cursor is kept, and there are connections besides."""
        with contextlib.suppress(duckdb.Error):
            return self._kept is not None and _count(self._kept) > 1
        return False

    def let_go(self) -> None:
        """Close the cursor that is kept for connections that nobody noted."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()

    @property
    def is_used(self) -> bool:
        """Whether one of its connections is left, open or not."""
        with _lock:
            return any(True for _ in self._connections)  # its length counts one being collected

    def cursor(self) -> duckdb.DuckDBPyConnection | None:
        """Open another connection, which sees what has been committed.

        None if those that were noted are closed or refuse it.
        """
        with _lock:
            known = [*self._connections, *([self._kept] if self._kept else [])]
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
        """Give up what is kept for the instance, but for the functions, which may be called."""
        self.pins = {}
        self.calls.clear()
        close_scans(self.number)


_instances: dict[int, Instance] = {}


def keep(instance: Instance) -> None:
    """Keep the object of a new instance, whose functions DuckDB calls from now on.

    Those of instances that are no more go.
    """
    settle()
    for number in closed_instances():
        if gone := _instances.pop(number, None):
            gone.close()
    _instances[instance.number] = instance


def find(number: int) -> Instance:
    """Give the instance of a number; where it is not known, one that may open no files."""
    return _instances.get(number) or Instance()


def current() -> Instance:
    """Give the instance that calls."""
    return find(calling_instance())


def of(con: duckdb.DuckDBPyConnection) -> Instance:
    """Give the instance of a connection on which the functions are, and note the connection."""
    close_unused()
    with con.cursor() as cursor:  # outside of the transaction of the connection
        (number,) = cursor.execute("SELECT system.main.spatialq_instance(0)").fetchall()[0]
    instance = _instances[number]
    instance.add(con)
    return instance


def all_used() -> list[Instance]:
    """List the instances with connections, open or not."""
    return [instance for instance in list(_instances.values()) if instance.is_used]


def all_pins() -> list[Pin]:
    """List the pins of all instances, which share the memory."""
    return [pin for each in list(_instances.values()) for pin in list(each.pins.values())]


def settle() -> None:
    """Close the instances of which no connection is left; also for queries that are under way."""
    for _ in range(len(_left)):
        try:
            instance = _left.popleft()
        except IndexError:  # another thread has looked at it
            return
        if not instance.is_used:
            instance.close()
            if instance.is_left_to_others:
                _left.append(instance)
            else:
                instance.let_go()


def close_unused() -> None:
    """Look for instances whose connections were closed."""
    settle()
    for instance in list(_instances.values()):
        instance.close_if_unused()


def close_connections() -> None:
    """Close all connections, at the end of the process."""
    for instance in list(_instances.values()):
        instance.let_go()
        for con in list(instance._connections):
            with contextlib.suppress(Exception):
                con.close()


def _count(cursor: duckdb.DuckDBPyConnection) -> int:
    """Count the connections to the instance of a cursor, that one included."""
    counted = cursor.execute("SELECT count FROM system.main.duckdb_connection_count()")
    return int(counted.fetchall()[0][0])


def _is_open(con: duckdb.DuckDBPyConnection) -> bool:
    try:
        con.cursor().close()
    except duckdb.ConnectionException:
        return False
    except duckdb.Error:  # it may refuse while another thread uses it
        return True
    return True
