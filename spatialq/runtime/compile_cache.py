"""Numba's `njit` for our own functions, with a cache that is never older than what they call.

Numba's own cache checks the file of a function only. When a function that it calls, or a constant
that it uses, changes in another file, the old code stays compiled into it. It also numbers the
files of a function, so that two processes may give one number to two of them. The cache here names
a file by a digest of the function, its types, the processor, and the files that the function's
module imports from, directly or indirectly. What it does not have may be in the wheel, as code
that Python can call and other compiled functions can't (`for_calls_only`).
"""

import atexit
import functools
import logging
import os
import pickle
import platform
import re
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from hashlib import sha256
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

import numba
from llvmlite import binding as llvm
from numba.core import caching
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from spatialq.runtime import baseline
from spatialq.runtime.packed import pack, unpack
from spatialq.runtime.temporary import temporary_folder

LOGGER = logging.getLogger(__name__)
"""Logs each function that is compiled because it is not in the cache."""
IMPORT = re.compile(r"^(?:from|import) ([\w.]+)(?: import (\([^)]*\)|.*))?", re.MULTILINE)
"""Matches imports at the top level of a file, not those in functions or for type checkers."""
PLATFORM = sys.platform, platform.machine(), sys.implementation.cache_tag, numba.__version__
SUFFIX = ".code"


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a function as `numba.njit` does; `cache` selects the cache of this module."""

    def compiled(function: Callable[..., Any]) -> Any:
        # without the entry for C, which nobody calls and which takes a fifth of the time
        dispatcher = numba.njit(no_cfunc_wrapper=True, **options)(function)
        if cache and function.__closure__ is None:  # of which no digest tells
            dispatcher._cache = _Cache(function)
            dispatcher.get_call_template = functools.partial(_for_callers, dispatcher)
        return dispatcher

    return compiled


class _Cache(caching.NullCache):  # type: ignore[misc]
    """The files of one function, one for each list of types and processor."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = f"{function.__module__}.{function.__qualname__}"
        self._module = function.__module__
        self._called_only = set[Any]()  # types whose code came from the wheel
        self._may_link = False
        _content(function.__code__.co_filename)  # as it is now: the file may change before a call

    @property
    def cache_path(self) -> str:
        """Give the folder that code is written to."""
        return str(_folder())

    def load_overload(self, types: Any, target: Any) -> Any:
        """Load if possible, also from the wheel; what is missing or damaged is compiled next."""
        target.refresh()
        own, *of_wheel = self.places(types, target)
        for place in (own,) if self._may_link else (own, *of_wheel):
            with suppress(Exception):  # pickle raises many types of exceptions
                if code := unpack(place):
                    result = CompileResult._rebuild(target, *pickle.loads(code))
                    if place is not own:
                        self._called_only.add(types)
                    return result
        LOGGER.info("compiling %s", self._function)
        return None

    def save_overload(self, types: Any, result: Any) -> None:
        """Save if possible, in place of code of older sources: the disk may be full."""
        if result.lifted or result.library.has_dynamic_globals:
            return  # it has addresses of this process in it
        path, *_ = self.places(types, result.target_context)
        part = path.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                part.write_bytes(pack(dumps(result._reduce())))
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)
            for other in path.parent.glob(f"{self._function}-*"):
                if not other.name.startswith(self._stem()):
                    other.unlink()

    def forget_called_only(self, overloads: dict[Any, Any]) -> None:
        """Take what lacks the code for linking out of a dispatcher, and load no more of it."""
        self._may_link = True
        while self._called_only:
            overloads.pop(self._called_only.pop(), None)

    def places(self, types: Any, target: Any) -> list[Path]:
        """Name the files that may have the code: the user's, and that of the wheel."""
        _, cpu, features = target.codegen().magic_tuple()
        found = [_folder() / self._name(types, cpu, features)]
        if baseline.runs_here(features):
            found.append(baseline.FOLDER / self._name(types, *baseline.baseline()))
        return found

    def _stem(self) -> str:
        return f"{self._function}-{_stamp(self._module)}-"

    def _name(self, types: Any, cpu: str, features: str) -> str:
        made_for = repr((PLATFORM, types, cpu, features))
        return f"{self._stem()}{sha256(made_for.encode()).hexdigest()[:16]}{SUFFIX}"


def _for_callers(dispatcher: Any, arguments: Any, named: Any) -> Any:
    """Type a call by another compiled function, which links code that a wheel does not have."""
    dispatcher._cache.forget_called_only(dispatcher.overloads)
    return type(dispatcher).get_call_template(dispatcher, arguments, named)


def for_calls_only(code: bytes) -> bytes:
    """Give the code of a function without the bitcode that other compiled functions link.

    It is the larger half of the file, and reading it takes more than half of the time of a load.
    In its place stands a module that names the two entries, which Numba looks up in it. They are
    variables there, so that LLVM refuses to link them.
    """
    (name, kind, (machine_code, _)), described, *rest = pickle.loads(code)
    entries = described.llvm_func_name, described.llvm_cpython_wrapper_name
    named = "\n".join(f'@"{entry}" = global i8 0' for entry in entries)
    module = llvm.parse_assembly(named).as_bitcode()
    return bytes(dumps(((name, kind, (machine_code, module)), described, *rest)))


def kept(function: Any, types: Any) -> list[Path]:
    """List the files that have the code of a function for some types, undamaged."""
    places: list[Path] = function._cache.places(types, function.targetctx)
    return [place for place in places if unpack(place)]


@functools.cache
def _stamp(module: str) -> str:
    """Digest the contents, in an order that is the same in a checkout and in an installed wheel."""
    return sha256(b"".join(sorted(map(_content, _files(module))))).hexdigest()[:16]


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
def _folder() -> Path:
    """Find the folder of Numba's cache for this file, or else make a temporary folder."""
    try:
        return Path(caching.FunctionCache(njit).cache_path)
    except RuntimeError:
        return _temporary_folder()


@functools.cache
def _temporary_folder() -> Path:
    """Make a folder that is removed when the process ends."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(temporary_folder("spatialq_numba_"))
