"""`warm`: kernels are compiled before they are called, in several processes.

`kernels.json` lists every compiled function that Python calls, with the types of its arguments as
Numba writes them; what those call in turn is in their code. `.ci/kernels.py` writes the list, and
compiles all of it for wheels. The demo has a list of its own, a part of this one.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from multiprocessing.pool import ThreadPool
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

from spatialq.functions.catalogue import catalogue, folders
from spatialq.runtime import compile_cache
from spatialq.runtime.threads import n_threads

KERNELS = files("spatialq.workflows").joinpath("kernels.json")
Kernels = Mapping[str, Mapping[str, Sequence[str]]]
"""module -> function -> lists of types"""
WORKER = "from spatialq.workflows.warming import main; main()"
LISTED = "from spatialq.workflows.warming import warm_listed; warm_listed()"
ARRAY = re.compile(r"(readonly )?array\((.+), (\d)d, (\w)\)")
EQUAL = re.compile(r"UniTuple\((\w+) x (\d+)\)")
RECORD = re.compile(r"Record\((.+);(\d+);True\)")
FIELD = re.compile(r"(\w+)\[type=(\w+);offset=(\d+)\]")
NAMED = re.compile(r"(\w+)\((.+)\)")
ITEM = re.compile(r"(?:[^,()]|\((?:[^()]|\([^()]*\))*\))+")
"""Matches what is between commas outside of parentheses."""
Update = Callable[[int, int], None]


def listed() -> Kernels:
    """Read the list of all that Python calls."""
    found: Kernels = json.loads(KERNELS.read_bytes())
    return found


def type_of(text: str, module: str) -> Any:
    """Give the type that Numba writes so, in which named tuples are those of a module."""
    import numba
    from numba import types

    if match := ARRAY.fullmatch(text):
        readonly, item, dimensions, layout = match.groups()
        return types.Array(type_of(item, module), int(dimensions), layout, readonly=bool(readonly))
    if match := EQUAL.fullmatch(text):
        return types.UniTuple(type_of(match[1], module), int(match[2]))
    if match := RECORD.fullmatch(text):
        names, formats, offsets = zip(*FIELD.findall(match[1]), strict=True)
        fields: Any = {"names": names, "formats": formats, "offsets": list(map(int, offsets))}
        fields["itemsize"] = int(match[2])
        return numba.from_dtype(np.dtype(fields, align=True))
    if match := NAMED.fullmatch(text):
        return types.NamedTuple(types_of(match[2], module), vars(import_module(module))[match[1]])
    return getattr(types, text)


def types_of(text: str, module: str) -> tuple[Any, ...]:
    """Give the types of a list of arguments of a function of a module."""
    return tuple(type_of(item.strip(), module) for item in ITEM.findall(text))


def kernels(chosen: Kernels) -> Iterable[tuple[Any, tuple[Any, ...]]]:
    """Give functions of a list, each with the types of its arguments."""
    for module, functions in chosen.items():
        for name, signatures in functions.items():
            for text in signatures:
                yield getattr(import_module(module), name), types_of(text, module)


def kernels_of(functions: Iterable[str]) -> Kernels:
    """List what functions need: the kernels of their folders, and what all of them use.

    Raises
    ------
    ValueError
        If there is no function of a name.
    """
    known, chosen = catalogue(), set[str]()
    for name in functions:
        if name not in known:
            message = f"warm: functions must be of {', '.join(known)}, got {name!r}"
            raise ValueError(message)
        chosen.update({known[name].folder, *known[name].declaration.uses})
    others = {f"spatialq.udfs.{folder}" for folder in set(folders()) - chosen}
    return {
        module: names for module, names in listed().items()
        if module.rpartition(".")[0] not in others
    }  # fmt: skip


def missing(chosen: Kernels) -> dict[str, int]:
    """Count what is to be compiled of each module that has such."""
    found = {
        module: sum(not compile_cache.kept(*each) for each in kernels({module: names}))
        for module, names in chosen.items()
    }
    return {module: count for module, count in found.items() if count}


def warm(chosen: Kernels | None = None, *, update: Update = lambda *_: None) -> int:
    """Compile what neither the cache nor the wheel has, in as many processes as there are threads.

    Parameters
    ----------
    chosen : mapping, optional
        By default all of the list.
    update : callable, optional
        Gets how many functions are compiled, and how many there are to compile.

    Returns
    -------
    int
        How many functions were compiled.

    Raises
    ------
    OSError
        If a process ends before its work does, or if what was compiled could not be kept.
    """
    chosen = listed() if chosen is None else chosen
    counts = missing(chosen)
    total, done, idle = sum(counts.values()), 0, SimpleQueue[Any]()

    def work(module: str) -> str:
        process = idle.get()
        process.stdin.write(json.dumps({module: chosen[module]}) + "\n")
        process.stdin.flush()
        if not process.stdout.readline():
            status = process.wait()
            message = f"warm: the process that compiled {module} ended with status {status}"
            raise OSError(message)
        idle.put(process)
        return module

    if processes := min(n_threads(), len(counts)):
        update(0, total)
        with ThreadPool(processes) as pool, ExitStack() as stack:
            for _ in range(processes):
                idle.put(stack.enter_context(_process()))
            longest_first = sorted(counts, key=_size, reverse=True)
            for module in pool.imap_unordered(work, longest_first):
                done += counts[module]
                update(done, total)
        if lost := sum(missing({module: chosen[module] for module in counts}).values()):
            message = (
                f"warm: {lost} of {total} compiled functions could not be kept: "
                "NUMBA_CACHE_DIR must name a folder that can be written and has room"
            )
            raise OSError(message)
    return total


@contextmanager
def _process() -> Iterator[Any]:
    """Start a process that compiles, and end it, whatever it does then."""
    with subprocess.Popen(
        [sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        start_new_session=True,  # Ctrl-C is for this process
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def compiling(chosen: Kernels) -> Iterator[None]:
    """Compile in other processes while something else is done, and wait for them."""
    with subprocess.Popen(
        [sys.executable, "-c", LISTED], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin as pipe:
            json.dump(chosen, pipe)
        try:
            yield
        except BaseException:
            process.terminate()
            raise


def _size(module: str) -> int:
    """Size of a module's source, which tells roughly how long it takes."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).stat().st_size


def warm_listed() -> None:
    """Compile what standard input lists, as JSON; the processes that do it end with this one."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    warm(json.load(sys.stdin))


def main() -> None:
    """Compile what each line of standard input lists, as JSON, and answer it with a line."""
    with suppress(BrokenPipeError):  # nobody waits any more
        for line in sys.stdin:
            for function, types in kernels(json.loads(line)):
                function.compile(types)
            os.write(sys.stdout.fileno(), b"\n")
