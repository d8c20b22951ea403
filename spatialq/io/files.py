"""Common parts of readers: find files, open them once, warn about them."""

import glob
import os
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

from spatialq.errors import FileError, FileWarning
from spatialq.io import access
from spatialq.io.source import Source
from spatialq.io.storage import ObjectPath, as_path, is_url, require_url
from spatialq.runtime import forks

S = TypeVar("S")


def find_files(reader: str, path: str | os.PathLike[str] | None) -> list[Path]:
    """Give the file, or the files that match a pattern, in the order of their names.

    Raises
    ------
    FileError
        If a pattern matches nothing, or means files that must not be opened.
    ValueError
        If there is no path.
    """
    if path is not None and is_url(path):
        path = require_url(reader, path)
        access.require(reader, path)
        return _find_objects(reader, path)
    if path is None or not os.fspath(path):
        got = "NULL" if path is None else repr(path)
        message = f"{reader}: path must be a file or a pattern such as 'tiles/*', got {got}"
        raise ValueError(message)
    access.require(reader, path)
    if not is_pattern(path):
        return [Path(path)]
    found = sorted(Path(match) for match in glob.glob(_literal(path), recursive=True))  # noqa: PTH207
    if not found:
        raise FileError.of(reader, path, "no file matches this pattern")
    for each in found:  # links, or ".." behind a star, may lead elsewhere
        access.require(reader, each)
    return found


def _find_objects(reader: str, path: ObjectPath) -> list[Path]:
    """Give the object, or the objects that match a pattern, in the order of their names."""
    parts = path.parts
    if not glob.has_magic(str(path)):
        return [path]
    at = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    if at < 2:
        raise FileError.of(reader, path, "a bucket must be named, not a pattern of them")
    above = ObjectPath(*parts[:at])
    try:
        objects = above.entries()[0] if at == len(parts) - 1 else above.objects()
        wanted = parts[2:]
        found = [path.other(each) for each in objects if _match(wanted, each.key.split("/"))]
    except OSError as error:
        raise FileError.of(reader, path, str(error.strerror)) from None
    if not found and not path.is_file():
        raise FileError.of(reader, path, "no object matches this pattern")
    return sorted(found) or [path]


def _literal(path: str | os.PathLike[str]) -> str:
    """Write a pattern whose first folders, as far as they exist, mean these: 'tiles [2]/*.laz'."""
    parts = Path(path).parts
    there = 0
    while Path(*parts[: there + 1]).is_dir() and there + 1 < len(parts):
        there += 1
    return os.path.join(glob.escape(os.path.join("", *parts[:there])), *parts[there:])  # noqa: PTH118


def is_pattern(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a pattern such as 'tiles/*', and not the name of an existing file."""
    if is_url(path):
        return glob.has_magic(str(path))
    is_magic = glob.has_magic(os.fspath(path))
    return is_magic and not (access.allows(path) and Path(path).exists())


def has_match(pattern: str | os.PathLike[str]) -> bool:
    """Whether there is a file or folder that matches a local pattern, and may be looked for."""
    found = glob.iglob(_literal(pattern), recursive=True)  # noqa: PTH207
    return access.allows(pattern) and any(True for _ in found)


def matches(pattern: str | os.PathLike[str], path: Path) -> bool:
    """Whether a pattern would find a file, if it were there."""
    if is_url(pattern) != is_url(path):
        return False
    if is_url(pattern):
        return _match(as_path(pattern).parts, path.parts)
    return _match(*(Path(os.path.abspath(each)).parts for each in (_literal(pattern), path)))  # noqa: PTH100


def _match(patterns: Sequence[str], parts: Sequence[str]) -> bool:
    if not patterns or not parts:
        return not parts and all(each == "**" for each in patterns)
    if patterns[0] == "**":
        return _match(patterns[1:], parts) or _match(patterns, parts[1:])
    return fnmatchcase(parts[0], patterns[0]) and _match(patterns[1:], parts[1:])


def require_name(reader: str, path: Path) -> None:
    """Reject a name that cannot be passed through SQL or JSON.

    Raises
    ------
    FileError
        If it is not UTF-8.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError:
        name = str(path).encode(errors="backslashreplace").decode()
        raise FileError.of(reader, name, "its name is not UTF-8; rename it") from None


def require_file(reader: str, path: Path) -> None:
    """Reject anything but a regular file: opening a pipe would wait for its writer.

    Raises
    ------
    FileError
        If there is nothing of that name, or a folder, a pipe, a device, or it must not be opened.
    """
    require_name(reader, path)
    access.require(reader, path)
    try:
        if path.is_file():
            return
        reason = "there is no such file"
        if path.exists():
            reason = "is a folder, no file" if path.is_dir() else "is no regular file"
    except OSError as error:  # such as a name that is too long
        reason = error.strerror or str(error)
    raise FileError.of(reader, path, reason)


_opened: OrderedDict[Any, Any] = OrderedDict()
_opened_lock = forks.lock()
_MAX_OPENED = 64


def open_once(kind: Callable[..., S], path: str | os.PathLike[str], **options: Any) -> S:
    """Open a file, or return the source that was opened before with these options.

    A file that has changed since is opened again. Sources keep headers and tables of chunks, no
    file handles and no rows.

    Raises
    ------
    FileError
        As `kind`, or if it must not be opened, also where it was opened before.
    """
    access.require("read_file", path)
    try:
        status = as_path(path).stat()
    except OSError:
        return kind(path, **options)  # raises the error
    key = (kind, str(path), status.st_mtime_ns, status.st_size, *sorted(options.items()))
    with _opened_lock:
        if key in _opened:
            _opened.move_to_end(key)
            found: S = _opened[key]
            return found
    source = kind(path, **options)
    with _opened_lock:
        _opened[key] = source
        while len(_opened) > _MAX_OPENED:
            _opened.popitem(last=False)
    return source


def warn_about(reader: str, source: Source) -> None:
    """Issue the warnings of a file that was opened."""
    for warning in source.warnings:
        warnings.warn(f"{reader}: '{source.path}': {warning}", FileWarning, stacklevel=3)
