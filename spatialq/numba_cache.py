"""Numba's `njit` for our own functions, whose cache is never older than what they call.

Numba's own cache looks at the file of a function only. When a function that it calls, or a constant
that it uses, changes in another file, the old code of that stays compiled into it. Ours has a
folder for each state of the sources, beside where Numba would keep its files.
"""

import functools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numba
from numba.core import caching

PACKAGES = ("spatialq.demo", "spatialq.grid_cells", "spatialq.udfs")
"""Where all compiled functions are, and whatever they use."""


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a function as `numba.njit` does; `cache` is ours."""

    def compiled(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(**options)(function)
        if cache:
            dispatcher._cache = _Cache(function)
        return dispatcher

    return compiled


class _Locator(caching._SourceFileBackedLocatorMixin, caching._CacheLocator):  # type: ignore[misc]
    """Say where a function is kept; its own file is looked at, too, as Numba does it.

    That file may be newer than the folder: it is read when the function is first needed.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._py_file = function.__code__.co_filename
        self._lineno = function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return str(_folder())


class _Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc]
    def __init__(self, function: Callable[..., Any]) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Locator(function)
        name = f"{function.__module__}.{function.__qualname__}"
        self._filename_base = self.get_filename_base(name, "")


class _Cache(caching.FunctionCache):  # type: ignore[misc]
    _impl_class = _Implementation

    def save_overload(self, *compiled: Any) -> None:
        """Save if possible: the disk may be full, or a newer state have taken the folder away."""
        with suppress(OSError):
            super().save_overload(*compiled)


@functools.cache
def _folder() -> Path:
    """Make the folder for the sources as they are, and remove those of other states."""
    digest = sha256()
    for source in _sources():
        digest.update(source.read_bytes())
    base = _base()
    folder = base / f"kernels-{digest.hexdigest()[:16]}"
    for other in set(base.glob("kernels-*")) - {folder}:
        shutil.rmtree(other, ignore_errors=True)
    folder.mkdir(exist_ok=True)
    return folder


def _sources() -> Iterator[Path]:
    for package in PACKAGES:
        spec = find_spec(package)
        assert spec is not None, package
        for place in spec.submodule_search_locations or ():
            yield from sorted(Path(place).rglob("*.py"))
        if spec.origin is not None:
            yield Path(spec.origin)


def _base() -> Path:
    """Find where Numba would keep what this file compiles to, or else a temporary folder."""
    try:
        return Path(caching.FunctionCache(_base).cache_path)
    except RuntimeError:
        return Path(_temporary_folder().name)


@functools.cache
def _temporary_folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="spatialq_numba_")
