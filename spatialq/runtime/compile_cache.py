"""Numba's `njit` for our own functions, with a cache that is never older than what they call.

Numba's own cache checks the file of a function only. When a function that it calls, or a constant
that it uses, changes in another file, the old code stays compiled into it. The cache here also
checks the files that the function's module imports from, directly or indirectly. What it does not
have may be in the wheel (`shipped_code.py`).
"""

import atexit
import functools
import logging
import re
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from hashlib import sha256
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

import numba
from numba.core import caching

from spatialq.runtime import shipped_code
from spatialq.runtime.temporary import temporary_folder

LOGGER = logging.getLogger(__name__)
"""Logs each function that is compiled because it is not in the cache."""
IMPORT = re.compile(r"^(?:from|import) ([\w.]+)(?: import (\([^)]*\)|.*))?", re.MULTILINE)
"""Matches imports at the top level of a file, not those in functions or for type checkers."""


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a function as `numba.njit` does; `cache` selects the cache of this module."""

    def compiled(function: Callable[..., Any]) -> Any:
        # without the entry for C, which nobody calls and which takes a fifth of the time
        dispatcher = numba.njit(no_cfunc_wrapper=True, **options)(function)
        if cache:
            dispatcher._cache = _Cache(function)
        return dispatcher

    return compiled


class _Locator(caching._CacheLocator):  # type: ignore[misc]
    def __init__(self, function: Callable[..., Any]) -> None:
        self._py_file = function.__code__.co_filename
        self._module = function.__module__

    def get_cache_path(self) -> str:
        return _folder()

    def get_source_stamp(self) -> bytes:
        return _stamp(self._module)

    def get_disambiguator(self) -> str:
        """Identify functions of one name by their modules; line numbers would leave stale files."""
        return self._module


class _Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc]
    def __init__(self, function: Callable[..., Any]) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Locator(function)
        self._filename_base = self.get_filename_base(
            function.__qualname__, getattr(sys, "abiflags", "")
        )


class _Cache(caching.FunctionCache):  # type: ignore[misc]
    _impl_class = _Implementation

    def load_overload(self, *wanted: Any) -> Any:
        """Load if possible, also what was shipped; what is missing or damaged is compiled next."""
        try:
            found = super().load_overload(*wanted)
        except Exception:  # pickle raises many types of exceptions
            found = None
            with suppress(OSError):
                self.flush()
        if found is None:
            found = self._load_shipped(*wanted)
        if found is None:
            LOGGER.info("compiling %s", self._py_func.__qualname__)
        return found

    def _load_shipped(self, signature: Any, target: Any) -> Any:
        key = self._index_key(signature, target.codegen())
        stamp = self._impl.locator.get_source_stamp()
        data = shipped_code.load(self._impl.filename_base, stamp, key)
        return None if data is None else self._impl.rebuild(target, data)

    def save_overload(self, *compiled: Any) -> None:
        """Save if possible: the disk may be full."""
        with suppress(OSError):
            super().save_overload(*compiled)


@functools.cache
def _stamp(module: str) -> bytes:
    """Digest the contents, in an order that is the same in a checkout and in an installed wheel."""
    return sha256(b"".join(sorted(map(_content, _files(module))))).digest()


def _files(module: str) -> set[str]:
    """List the files on which the compiled functions of a module depend."""
    modules, found = [module], set[str]()
    while modules:
        name = modules.pop()
        file = sys.modules[name].__file__
        if file is not None and file not in found:
            found.add(file)
            modules += _imports(name, file)
    return found


@functools.cache
def _imports(module: str, file: str) -> list[str]:
    """List the modules of the same package that a module imports from; they are loaded."""
    found = set()
    for name, names in IMPORT.findall(_content(file).decode()):
        base = resolve_name(name, sys.modules[module].__package__)
        found |= {base, *(f"{base}.{part}" for part in re.findall(r"\w+", names))}
    top = module.partition(".")[0]
    return [each for each in found if each.partition(".")[0] == top and each in sys.modules]


@functools.cache
def _content(file: str) -> bytes:
    return Path(file).read_bytes()


@functools.cache
def _folder() -> str:
    """Find the folder of Numba's cache for this file, or else make a temporary folder."""
    try:
        return str(caching.FunctionCache(njit).cache_path)
    except RuntimeError:
        return _temporary_folder()


@functools.cache
def _temporary_folder() -> str:
    """Make a folder that is removed when the process ends."""
    stack = ExitStack()
    atexit.register(stack.close)
    return str(stack.enter_context(temporary_folder("spatialq_numba_")))
