"""The formats of files that can be read: a module of this package each, found by itself.

A module defines `READER`. What a format needs beyond NumPy and PyArrow is imported when a file is
opened.
"""

import importlib
import os
import pkgutil
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from spatialq.errors import FileError, files_read_by
from spatialq.functions.sql_text import is_quoted
from spatialq.io import access
from spatialq.io.files import find_files, has_match, is_pattern, matches, open_once, require_file
from spatialq.io.storage import as_path, is_url, require_url

Kind = Literal["points", "grid", "ifc", "bcf"]
LOADED: tuple[Kind, ...] = ("points", "grid", "ifc")
"""What is loaded into tables; issues are read where they are."""
READ_BY_DUCKDB = (".csv",)
"""Endings by which DuckDB itself reads a file whose name stands for a table."""
OF_DUCKDB = (
    *(".avro", ".csv", ".fgb", ".geojson", ".gpkg", ".gz", ".json", ".jsonl", ".ndjson"),
    *(".parquet", ".shp", ".tsv", ".txt", ".xlsx", ".zst"),
)
"""Endings of what DuckDB and its extensions read."""
OF_ANYTHING = (".csv", ".txt")
"""Endings of point clouds that other files in a folder of them have as well."""
MACROS = {"points": "read_points", "grid": "read_grid", "ifc": "read_ifc", "bcf": "read_bcf"}
"""What reads files in SQL."""
QUALIFIED = re.compile(r"\w+\.\w+")
"""A name that may be that of a table behind its schema."""
SLASHES = ("/", os.sep)
NAMES = {
    "points": "point cloud", "grid": "grid", "ifc": "building model", "bcf": "BCF archive"
}  # fmt: skip


@dataclass(frozen=True)
class Reader:
    """A format of files that can be read."""

    name: str
    suffixes: tuple[str, ...]
    """In lower case, with the dot; or a whole name, of a file that stands for its folder."""
    kind: Kind
    open: Callable[[Path], Any] | None
    """Makes of a path a `spatialq.io.source.Source`; None of models and archives, which are several
    tables."""
    skips: str
    """What of a file need not be read where a query does not need it."""
    keeps: str
    loses: str
    extra: str = ""
    """The optional dependencies that it needs, as `pip install 'spatialq[extra]'` names them."""


@cache
def readers() -> tuple[Reader, ...]:
    """List the formats, in the order of their names."""
    modules = (
        importlib.import_module(f"{__name__}.{found.name}")
        for found in pkgutil.iter_modules(__path__)
    )
    return tuple(sorted((module.READER for module in modules), key=lambda each: each.name.lower()))


def find_reader(path: str | Path) -> Reader | None:
    """Find the format of a file by the ending of its name."""
    ends = Path(path).suffix.lower(), Path(path).name.lower()
    return next((each for each in readers() if not set(ends).isdisjoint(each.suffixes)), None)


def reader_of(
    caller: str, path: Path, kinds: Sequence[Kind] | None = None, others: Iterable[str] = ()
) -> Reader:
    """Find the format of a file that is there.

    Parameters
    ----------
    caller : str
        Whose errors they are.
    path : Path
    kinds : sequence of str, optional
        What the caller takes; by default all.
    others : iterable of str
        Names of files that the caller takes besides, for the message.

    Raises
    ------
    FileError
        If it is no file, or there is no reader for the ending.
    """
    require_file(caller, path)
    found = find_reader(path)
    if found is not None and (kinds is None or found.kind in kinds):
        return found
    there = [suffix for each in readers() for suffix in each.suffixes
             if kinds is None or each.kind in kinds]  # fmt: skip
    there.extend(others)
    is_known = kinds is not None and (found is not None or kinds != LOADED)
    what = f"no {_named(kinds or ())}" if is_known else "of no known format"
    reason = f"is {what}: its name must end in one of {', '.join(sorted(there))}"
    raise FileError.of(caller, path, reason)


def _named(kinds: Sequence[Kind]) -> str:
    return " or ".join(NAMES[kind] for kind in kinds)


def open_source(caller: str, path: Path, kinds: Sequence[Kind] = ("points", "grid")) -> Any:
    """Open a file of rows, or give it as it was opened before if it has not changed since.

    Raises
    ------
    FileError
        If there is no reader for it, or it cannot be read.
    """
    found = reader_of(caller, path, kinds)
    assert found.open is not None
    with files_read_by(caller):
        return open_once(found.open, path)


def find_sources(caller: str, given: str | Path | Sequence[str | Path], kind: Kind) -> list[Path]:
    """Give the files that are named together: by a path, a pattern, a folder, or a list of these.

    A folder stands for the files in it that are of the kind, a pattern for those that match it,
    each in the order of their names.

    Raises
    ------
    FileError
        If nothing matches a pattern, a folder has no such file, or a file is named twice.
    ValueError
        If a path is empty.
    """
    several = [given] if isinstance(given, str | os.PathLike) else given
    found = [path for each in several for path in files_of(caller, each, (kind,))]
    there = set()
    for path in found:
        if path.resolve() in there:
            raise FileError.of(caller, path, "is named twice")
        there.add(path.resolve())
    return found


def files_of(
    caller: str, path: str | os.PathLike[str] | None, kinds: Sequence[Kind] | None = None
) -> list[Path]:
    """Give a file, the files that match a pattern, or those in a folder, in the order of names.

    Parameters
    ----------
    caller : str
        Whose errors they are.
    path : path-like
    kinds : sequence of str, optional
        What the files of a folder are; by default all that can be read. Those whose ending says
        little, such as readme.txt, count if there are no others.

    Raises
    ------
    FileError
        If a pattern matches nothing, a folder has no such file, or it must not be listed.
    ValueError
        If there is no path.
    """
    if path and is_url(path):
        path = require_url(caller, path)
        access.require(caller, path)
        try:
            is_folder = find_reader(path) is None and not is_pattern(path) and path.is_dir()
        except OSError as error:
            raise FileError.of(caller, path, str(error.strerror)) from None
    else:
        is_folder = path is not None and _is_folder(path or "")
    if not path or not is_folder:
        return find_files(caller, path)
    found = sorted(
        each
        for each in as_path(path).iterdir()
        if not each.name.startswith(".")
        and each.is_file()
        and (reader := find_reader(each)) is not None
        and (kinds is None or reader.kind in kinds)
    )
    if not found:
        what = "file that can be read" if kinds in (None, LOADED) else _named(kinds)
        raise FileError.of(caller, path, f"there is no {what} in this folder")
    return [each for each in found if each.suffix.lower() not in OF_ANYTHING] or found


def would_match(
    given: str | os.PathLike[str], path: Path, kinds: Sequence[Kind] = ("points",)
) -> bool:
    """Whether a file that is not there yet would be one of those that a folder or pattern means."""
    if _is_folder(given):
        reader = find_reader(path)
        is_read = reader is not None and reader.kind in kinds
        is_new = is_read and path.suffix.lower() not in OF_ANYTHING
        return is_new and path.resolve().parent == Path(given).resolve()
    return is_pattern(given) and matches(given, path)


def means_files(given: str | Sequence[str]) -> bool:
    """Whether what a function is given means files, not a table.

    A list does, and so does the name of a folder with a slash in it; `.` and `..` name no table.
    """
    if not isinstance(given, str):
        return True
    may_be_folder = any(slash in given for slash in SLASHES) or given in (os.curdir, os.pardir)
    is_folder = may_be_folder and _is_folder(given)
    return is_url(given) or is_folder or given.endswith(SLASHES) or means_file(given)


def _is_folder(path: str | os.PathLike[str]) -> bool:
    """Whether there is a folder of that name; a name that no file can have is none."""
    try:
        return access.allows(path) and Path(path).is_dir()
    except (OSError, ValueError):
        return False


def means_file(name: str) -> bool:
    """Whether a text means a file or a pattern of them, not a table.

    What must not be opened is not looked for.

    `main.pts` is the table `pts`, and a name in double quotes is a table, unless there is a file of
    that name, or no schema `main`. A pattern without a folder and without an ending of a format,
    such as `a*b`, is the name of a table, unless it matches files.
    """
    path = Path(name)
    if is_url(name):
        return True
    if is_quoted(name) and not _is_file(path):
        return False
    if QUALIFIED.fullmatch(name) and not (access.is_no_schema(path.stem) or _is_file(path)):
        return False
    known = find_reader(path) is not None
    if is_pattern(name):
        return known or any(slash in name for slash in SLASHES) or has_match(name)
    return known or (path.suffix != "" and _is_file(path))


def means_no_rows(name: str) -> str:
    """Say what there is at a path that neither spatialq nor DuckDB reads; '' of other names.

    A name without a slash is a path if it has an ending behind a dot, and before it no schema.
    """
    path = Path(name)
    is_path = any(slash in name for slash in SLASHES)
    is_path = is_path or (bool(QUALIFIED.fullmatch(name)) and access.is_no_schema(path.stem))
    if not is_path or is_url(name) or is_quoted(name) or is_pattern(name):
        return ""
    if not access.allows(path):
        return ""
    if _is_folder(name):
        return f"the folder {name!r}"
    if not _is_file(path):
        return f"{name!r}: there is no such file"
    is_read = find_reader(path) is not None or not set(OF_DUCKDB).isdisjoint(path.suffixes)
    return "" if is_read else f"{name!r}: the file is of no known format"


def _is_file(path: Path) -> bool:
    """Whether there is a file that may be opened; to ask for that takes a query."""
    return access.allows(path) and path.is_file()
