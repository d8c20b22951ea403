"""DuckDB's errors as one sentence each, that of the method which the user called."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache

from spatialq import errors
from spatialq.database.macros import macros
from spatialq.database.sql_functions import sql_functions
from spatialq.errors import QueryError, SpatialqError

OURS = re.compile(r"UDF: (?:[\w.]+\.)?(\w+): (.*)", re.DOTALL)
"""An error of one of our functions, in DuckDB's."""
COLUMN = re.compile(
    r'(?:Referenced column|Column) (?:with name )?"?([^"\n]+?)"? '
    r"(?:not found|in .* not found|does not exist)"
)
TABLE = re.compile(r"(Table|Schema|Catalog) with name (.+?) does not exist")
FUNCTION = re.compile(r"Function with name \"?(\w+)\"? does not exist")
SCANNED = re.compile(r'Python Object "([^"]+)" of type')
"""A table that is not there is looked for among Python's variables."""
SYSTEM = r"(?:pg_|duckdb_|sqlite_|pragma_|information_schema\.)"
MEANT = re.compile(rf'Did you mean "(?!{SYSTEM})([^"]+)"')
GROUPED = re.compile(r'column "?(.+?)"? must appear in the GROUP BY clause')
KIND = re.compile(r"^[\w ]+ Error: ")
NAMED = re.compile(r"^\w+: ")
"""A sentence of ours, which names the function."""
CLOSED = re.compile("already (been )?closed")


def near(name: str, known: Iterable[str]) -> str:
    """Say which names are near one that is not known, or which there are."""
    known = list(known)
    lowered = {each.lower(): each for each in known}
    found = [lowered[each] for each in get_close_matches(name.lower(), lowered, n=3, cutoff=0.5)]
    if found:
        return f"near names are {', '.join(found)}"
    shown = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
    return f"there are {shown}" if known else "there are none"


@contextmanager
def said_by(verb: str, columns: Iterable[str] = ()) -> Iterator[None]:
    """Turn DuckDB's errors into those of a method.

    Parameters
    ----------
    verb : str
        The method, with which the sentence begins.
    columns : iterable of str
        The columns that the user may mean.

    Raises
    ------
    QueryError
        Or FileError, CrsError, DeviceError, where a function of ours raised that.
    """
    import duckdb

    try:
        yield
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:
        raise sentence(verb, str(error), columns) from error
    except SpatialqError:
        raise
    except ValueError as error:
        message = f"{verb}: {NAMED.sub('', str(error), count=1)}"
        raise QueryError(message) from error


@cache
def _installed() -> frozenset[str]:
    """Name what `install` puts on a connection."""
    names = {each.name for each in macros("lists")}
    return frozenset(names | {each.name for each in sql_functions("lists")})


def sentence(verb: str, text: str, columns: Iterable[str]) -> SpatialqError:
    """Write the error for the text of one of DuckDB's."""
    if CLOSED.search(text):
        return QueryError(f"{verb}: the connection of this query was closed")
    if ours := OURS.search(text):
        kind = getattr(errors, ours[1], QueryError)
        said = ours[2].strip()
        return kind(said) if issubclass(kind, SpatialqError) else QueryError(said)
    meant = f"; near names are {found[1]}" if (found := MEANT.search(text)) else ""
    if found := COLUMN.search(text):
        return QueryError(f"{verb}: no column {found[1]!r}; {near(found[1], columns)}")
    if found := SCANNED.search(text):
        return QueryError(f"{verb}: no table {found[1]!r}")
    if found := TABLE.search(text):
        return QueryError(f"{verb}: no {found[1].lower()} {found[2]!r}{meant}")
    if found := GROUPED.search(text):
        return QueryError(
            f"{verb}: {found[1]!r} is no aggregate, such as max({found[1]}), and not in group; "
            "select and distinct give values as they are"
        )
    if (found := FUNCTION.search(text)) and found[1] in _installed():
        return QueryError(
            f"{verb}: this connection has no functions of spatialq: call spatialq.install(con), "
            "or open it with spatialq.connect"
        )
    if found:
        return QueryError(f"{verb}: no function {found[1]!r}{meant}")
    said = KIND.sub("", " ".join(text.partition("\n\n")[0].split()))
    return QueryError(said if NAMED.match(said) else f"{verb}: {said}")
