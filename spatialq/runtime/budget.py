"""How much main memory a call may use, and where the arrays go that do not fit into it.

A call runs within `limited`; its kernel's arrays come from `spatialq.runtime.buffers`, which asks
`current` and `folder`. Threads of `spatialq.runtime.threads` see what their call sees.
"""

import math
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path

from spatialq.runtime import memory

SHARE_OF_FREE = 1 / 2
"""The budget by default: a part of the memory that is free, or this process's own already."""
GIB = 1 << 30
UNITS = {"b": 1} | {
    f"{letter}{ending}": base ** (power + 1)
    for power, letter in enumerate("kmgt")
    for ending, base in (("b", 1000), ("ib", 1024))
}
"""Bytes of a unit, by its name in small letters; as DuckDB has them: GB is 10^9, GiB is 2^30."""
SIZE = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*([a-z]*)\s*", re.ASCII | re.IGNORECASE)
MEMORY, FOLDER = "SPATIALQ_MEMORY", "SPATIALQ_TEMP_DIRECTORY"

_size: ContextVar[int | None] = ContextVar("spatialq_memory", default=None)
_folder: ContextVar[Path | None] = ContextVar("spatialq_temp_directory", default=None)


def parse_size(size: str | float, what: str = "memory") -> int:
    """Read a size of memory.

    Parameters
    ----------
    size : str or number
        "2GB", "512MB", "1.5GiB"; without a unit it is in GiB.
    what : str
        What the size is of, as the error names it: "classify_ground: memory".

    Returns
    -------
    int
        Bytes, at least 1.

    Raises
    ------
    ValueError
        If it is no size, or not above 0.
    """
    bytes_ = math.nan
    if isinstance(size, str):
        found = SIZE.fullmatch(size)
        if found and (unit := found[2].lower() or "gib") in UNITS:
            bytes_ = float(found[1]) * UNITS[unit]
    elif isinstance(size, int | float) and not isinstance(size, bool):
        bytes_ = float(size) * GIB
    if not 1 <= bytes_ <= sys.maxsize:
        message = (
            f"{what} must be a size above 0 such as '2GB', '512MB' or '1.5GiB', "
            f"where a number alone is in GiB, got {size!r}"
        )
        raise ValueError(message)
    return int(bytes_)


@contextmanager
def limited(size: int | None = None, folder: Path | None = None) -> Iterator[None]:
    """Set the budget within the block, and where files go.

    Parameters
    ----------
    size : int, optional
        Bytes; by default what it was outside.
    folder : Path, optional
        By default what it was outside.

    Raises
    ------
    ValueError
        If `SPATIALQ_MEMORY` counts and is no size, whether or not anybody will ask for it.
    """
    size = _size.get() if size is None else size
    if size is None:
        _of_environment()
    tokens = (
        _size.set(size),
        _folder.set(_folder.get() if folder is None else folder),
    )
    try:
        yield
    finally:
        _size.reset(tokens[0])
        _folder.reset(tokens[1])


def within(
    caller: str, memory: str | float | None, folder: Path | None = None
) -> AbstractContextManager[None]:
    """Set the budget within a block to what a caller's argument `memory` says.

    Parameters
    ----------
    caller : str
        What the error begins with.
    memory : str, number or None
        As `parse_size` takes it; None leaves the budget as it is.
    folder : Path, optional
        As for `limited`.

    Raises
    ------
    ValueError
        If it is no size; at once, not when the block begins.
    """
    return limited(None if memory is None else parse_size(memory, f"{caller}: memory"), folder)


def current() -> int:
    """Give the bytes of main memory that this process may use for a call.

    Those of the block of `limited`, else of `SPATIALQ_MEMORY`, else half of what is free or this
    process's own already.

    Raises
    ------
    ValueError
        If `SPATIALQ_MEMORY` is no size.
    """
    size = _size.get()
    if size is None:
        size = _of_environment()
    return _default(int(4 * time.monotonic())) if size is None else size


def _of_environment() -> int | None:
    given = os.environ.get(MEMORY)
    return parse_size(given, MEMORY) if given else None


def folder() -> Path:
    """Give the folder for arrays beyond the budget.

    That of the block of `limited`, else `SPATIALQ_TEMP_DIRECTORY`, else that of temporary files.
    """
    return _folder.get() or Path(os.environ.get(FOLDER) or tempfile.gettempdir())


@lru_cache(maxsize=1)
def _default(moment: int) -> int:
    """Ask for the free memory once in a moment: that takes as long as a very small call."""
    del moment
    free, own = memory.host_free(), memory.resident()
    return int((free + own.bytes - own.of_files) * SHARE_OF_FREE) if free else sys.maxsize
