"""Which files a connection of DuckDB may open: its settings hold for our readers and writers, too.

DuckDB keeps queries away from files by `enable_external_access = false`, and lets them open those
of `allowed_directories` and `allowed_paths` all the same. Whoever works for a connection says so
by `asked_by`; readers and writers call `require` before they look at a file. Outside of such a
block, as for functions of Python that get no connection, every file may be opened.
"""

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from spatialq.errors import FileError
from spatialq.io.storage import as_path, is_url

if TYPE_CHECKING:
    import duckdb

P = ParamSpec("P")
R = TypeVar("R")

SETTINGS = ("enable_external_access", "allowed_directories", "allowed_paths", "access_mode")
# in the catalogue of DuckDB itself, as a macro of the user's may have the name
QUERY = f"SELECT {', '.join(f'system.main.current_setting({name!r})' for name in SETTINGS)}"
SCHEMAS = "SELECT lower(database_name), lower(schema_name) FROM system.main.duckdb_schemas()"


@dataclass(frozen=True)
class Access:
    """What the settings of a database allow.

    Parameters
    ----------
    is_free : bool
        Whether every file may be opened: `enable_external_access`, which stays false once it is.
    folders, paths : tuple of str
        What may be opened all the same: `allowed_directories` and `allowed_paths`.
    is_read_only : bool
        Whether the database was opened to be read only.
    is_known : bool
        False where no connection could be asked, and so nothing may be opened.
    """

    is_free: bool = True
    folders: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    is_read_only: bool = False
    is_known: bool = True

    @classmethod
    def of(cls, con: "duckdb.DuckDBPyConnection") -> "Access":
        """Ask a connection; what it is about to do, or to give, stays."""
        with con.cursor() as cursor:
            is_free, folders, paths, mode = cursor.execute(QUERY).fetchall()[0]
        read_only = mode.lower() == "read_only"
        return cls(is_free is True, tuple(folders or ()), tuple(paths or ()), read_only)

    def allows(self, path: str | os.PathLike[str]) -> bool:
        """Whether a file may be opened, or a folder listed; links count as what they point to."""
        if self.is_free:
            return True
        if is_url(path):
            name = str(as_path(path))
            inside = any(name.startswith(folder) for folder in self.folders if is_url(folder))
            return name in self.paths or (inside and os.pardir not in name.split("/"))
        meant = _resolved(path)
        return any(meant == _resolved(each) for each in self.paths if not is_url(each)) or any(
            meant.is_relative_to(_resolved(each)) for each in self.folders if not is_url(each)
        )


def schemas_of(con: "duckdb.DuckDBPyConnection") -> frozenset[str]:
    """Give the names that may stand before that of a table, in lower case."""
    with con.cursor() as cursor:
        return frozenset(chain.from_iterable(cursor.execute(SCHEMAS).fetchall()))


UNKNOWN = Access(is_free=False, is_known=False)


class _Asked:
    """One call for somebody who has settings, which are looked at once, and only if need be."""

    def __init__(
        self, ask: Callable[[], Access], instance: int, schemas: Callable[[], frozenset[str] | None]
    ) -> None:
        self._ask, self.instance, self._schemas = ask, instance, schemas

    @cached_property
    def access(self) -> Access:
        return self._ask()

    @cached_property
    def schemas(self) -> frozenset[str] | None:
        return self._schemas()


_asked: ContextVar[tuple[_Asked, ...]] = ContextVar("who asks for files", default=())


@contextmanager
def asked_by(
    ask: Callable[[], Access],
    instance: int = 0,
    schemas: Callable[[], frozenset[str] | None] = lambda: None,
) -> Iterator[None]:
    """Open files within the block only as the settings allow, and those of blocks around it.

    Parameters
    ----------
    ask : callable
        Gives the settings; it is called if a file is to be opened.
    instance : int
        The number of the database instance that calls, 0 for none.
    schemas : callable
        Gives what `schemas_of` does, or None where it is not known.
    """
    token = _asked.set((*_asked.get(), _Asked(ask, instance, schemas)))
    try:
        yield
    finally:
        _asked.reset(token)


def for_connection(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function, whose first argument is a connection, open only what that may open."""

    @functools.wraps(function)
    def asking(*args: P.args, **kwargs: P.kwargs) -> R:
        con: Any = args[0] if args else kwargs.get("con")
        if con is None:
            return function(*args, **kwargs)  # which says what it lacks
        known = functools.partial(schemas_of, con)
        with asked_by(functools.partial(Access.of, con), schemas=known):
            return function(*args, **kwargs)

    return asking


def calling_instance() -> int:
    """Give the number of the database instance that calls; 0 where none does."""
    return next((each.instance for each in reversed(_asked.get()) if each.instance), 0)


def allows(path: str | os.PathLike[str]) -> bool:
    """Whether a file may be opened, or a folder listed, for whoever asks for it."""
    return all(each.access.allows(path) for each in _asked.get())


def is_no_schema(name: str) -> bool:
    """Whether no schema or database of whoever asks has a name; false where nobody does."""
    return any(
        each.schemas is not None and name.lower() not in each.schemas for each in _asked.get()
    )


def require(caller: str, path: str | os.PathLike[str]) -> None:
    """Reject a file that must not be opened, or a folder that must not be listed.

    Raises
    ------
    FileError
        If the settings of the connection do not allow it.
    """
    if allows(path):
        return
    reason = (
        "must not be opened, as enable_external_access is false for this connection, and neither "
        "allowed_directories nor allowed_paths has it"
    )
    if not all(each.access.is_known for each in _asked.get()):
        reason = (
            "cannot be opened, as the connection on which spatialq was installed is closed; "
            "spatialq.install(con) on this one tells what may be"
        )
    raise FileError.of(caller, path, reason)


def require_writing(caller: str) -> None:
    """Reject a query that writes files where the database is open to be read only.

    Raises
    ------
    ValueError
    """
    if any(each.access.is_read_only for each in _asked.get()):
        message = (
            f"{caller}: the connection must not be read-only, since this query writes files; a "
            "connection to ':memory:' may write them"
        )
        raise ValueError(message)


def _resolved(path: str | os.PathLike[str]) -> Path:
    """Give the absolute path without links, of which not every part need be there."""
    return Path(os.path.realpath(os.fspath(path).removeprefix("file://")))
