"""`warm`: kernels are compiled before they are called, in several processes.

`kernels.json` lists every compiled function that Python calls, with the types of its arguments as
Numba writes them; what those call in turn is in their code. `.ci/kernels.py` writes the list, and
compiles all of it for wheels.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from spatialq.functions.catalogue import catalogue, folders
from spatialq.runtime import compile_cache
from spatialq.runtime.threads import n_threads, workers

KERNELS = files("spatialq.workflows").joinpath("kernels.json")
WORKER = "from spatialq.workflows.warming import main; main()"
ARRAY = re.compile(r"(readonly )?array\((.+), (\d)d, (\w)\)")
EQUAL = re.compile(r"UniTuple\((\w+) x (\d+)\)")
RECORD = re.compile(r"Record\((.+);(\d+);True\)")
FIELD = re.compile(r"(\w+)\[type=(\w+);offset=(\d+)\]")
NAMED = re.compile(r"(\w+)\((.+)\)")
ITEM = re.compile(r"(?:[^,()]|\((?:[^()]|\([^()]*\))*\))+")
"""Matches what is between commas outside of parentheses."""
Update = Callable[[int, int], None]


def listed() -> dict[str, dict[str, list[str]]]:
    """Read the list: module -> function -> lists of types."""
    found: dict[str, dict[str, list[str]]] = json.loads(KERNELS.read_bytes())
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


def kernels(modules: Iterable[str]) -> Iterable[tuple[Any, tuple[Any, ...]]]:
    """Give the functions of modules, each with the types of its arguments."""
    for module in modules:
        for name, signatures in listed()[module].items():
            for text in signatures:
                yield getattr(import_module(module), name), types_of(text, module)


def modules_of(functions: Iterable[str]) -> list[str]:
    """List the modules that functions need: those of their folders, and what all of them use.

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
    return [module for module in listed() if module.rpartition(".")[0] not in others]


def missing(modules: Iterable[str]) -> dict[str, int]:
    """Count what is to be compiled of each module that has such."""
    found = {
        module: sum(not compile_cache.kept(*each) for each in kernels([module]))
        for module in modules
    }
    return {module: count for module, count in found.items() if count}


def warm(modules: Iterable[str] | None = None, *, update: Update = lambda *_: None) -> int:
    """Compile what neither the cache nor the wheel has, in as many processes as there are threads.

    Parameters
    ----------
    modules : names, optional
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
        If a process ends before its work does.
    """
    counts = missing(listed() if modules is None else modules)
    total, done, tasks = sum(counts.values()), 0, SimpleQueue[str]()
    for module in sorted(counts, key=_size, reverse=True):  # the longest first
        tasks.put(module)

    def work(_: int) -> None:
        nonlocal done
        with subprocess.Popen(
            [sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            while True:
                try:
                    module = tasks.get_nowait()
                except Empty:
                    return
                process.stdin.write(module + "\n")
                process.stdin.flush()
                if not process.stdout.readline():
                    status = process.wait()
                    message = f"warm: the process that compiled {module} ended with status {status}"
                    raise OSError(message)
                done += counts[module]
                update(done, total)

    processes = min(n_threads(), len(counts))
    if processes:
        update(0, total)
        with workers(processes) as pool:
            pool.map(work, range(processes))
    return total


@contextmanager
def compiling(functions: Iterable[str]) -> Iterator[None]:
    """Compile functions in other processes while something else is done, and wait for them."""
    command = [sys.executable, "-m", "spatialq", "warm", *functions]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
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


def main() -> None:
    """Compile the modules that are named on standard input, and answer each with a line."""
    for line in sys.stdin:
        for function, types in kernels([line.strip()]):
            function.compile(types)
        sys.stdout.write(line)
        sys.stdout.flush()
