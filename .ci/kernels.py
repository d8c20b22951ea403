"""The compiled functions that Python calls: their list, their code for wheels, and a proof of both.

    python .ci/kernels.py list     # adds to spatialq/workflows/kernels.json
    python .ci/kernels.py demo     # writes spatialq/demo/kernels.json, the part that the demo calls
    python .ci/kernels.py compile  # fills spatialq/compiled/cpu
    python .ci/kernels.py prove    # runs `TESTS` with that and an empty cache: nothing may compile

The list is what tests that are not slow, larger inputs and the demo call. It has to be written
again when a function that is called from Python is new, or is called with other types; without the
file it begins anew. `tests/test_warming.py` says which functions it lacks.
"""

import json
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
CHOSEN = ["--quiet", "-m", "not (host or gpu or slow)", "--hypothesis-profile", "check"]
TESTS = sorted(str(path) for path in ROOT.glob("tests/*/test_oracle.py"))
"""Of every function against its oracle, as in `make check`."""
MORE = [
    *(str(path) for path in ROOT.glob("tests/test_*cli.py")),
    *(str(ROOT / "tests" / name) for name in ("demo", "export", "io/formats", "test_docs.py")),
]
"""Tests that also call what readers, writers, commands and pictures have compiled."""
Found = dict[str, dict[str, set[str]]]
"""module -> function -> lists of types"""


def write_list() -> None:
    """Run tests, larger inputs and the demo; note what is called."""
    from spatialq.workflows.warming import KERNELS, listed

    path = Path(str(KERNELS))
    found: Found = {}
    if path.exists():
        for module, functions in listed().items():
            found[module] = {name: set(types) for name, types in functions.items()}
    try:
        with noting(found):
            run_inputs()
            run_demo()
            run_tests(TESTS + MORE)
    finally:  # also what was called before a test failed
        write(path, found)


def write_demo() -> None:
    """Run the demo, with one thread and with several; note what its queries and pictures call."""
    from spatialq.demo import write_world
    from spatialq.demo.run import KERNELS, run

    world: Found = {}
    found: Found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with noting(world):
            las, ifc, *_ = write_world(folder)
        with noting(found):
            for count in ("1", "4"):
                os.environ["SPATIALQ_THREADS"] = count
                run(las, ifc, folder, lambda *_: None)
    for module, names in world.items():
        for function, types in names.items():
            found.get(module, {}).get(function, set()).difference_update(types)
    write(Path(str(KERNELS)), found)


@contextmanager
def noting(found: Found) -> Iterator[None]:
    """Note what Python calls of compiled functions that are kept."""
    from numba.core.registry import CPUDispatcher

    inner = CPUDispatcher.__call__

    def noted(self: Any, *given: Any) -> Any:
        function = self.py_func
        if function.__module__.startswith("spatialq.") and self._cache.cache_path:
            types = ", ".join(str(self.typeof_pyval(each)) for each in given)
            names = found.setdefault(function.__module__, {})
            names.setdefault(function.__qualname__, set()).add(types)
        return inner(self, *given)

    CPUDispatcher.__call__ = noted
    try:
        yield
    finally:
        CPUDispatcher.__call__ = inner


def write(path: Path, found: Found) -> None:
    """Write a list, without functions that have no types."""
    in_order = {
        module: {name: sorted(types) for name, types in sorted(names.items()) if types}
        for module, names in sorted(found.items())
        if any(names.values())
    }
    path.write_text(json.dumps(in_order, indent=1) + "\n", encoding="utf-8")


def compile_all() -> None:
    """Compile the list for the baseline; only what Python calls is kept."""
    from spatialq.runtime import baseline, compile_cache, packed

    cpu, features = baseline.baseline()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(NUMBA_CACHE_DIR=folder, NUMBA_CPU_NAME=cpu, NUMBA_CPU_FEATURES=features)
        from numba.core import config

        from spatialq.workflows.warming import kernels, listed, warm

        config.reload_config()
        shutil.rmtree(baseline.FOLDER, ignore_errors=True)
        warm()
        baseline.FOLDER.mkdir(parents=True)
        for function, types in kernels(listed()):
            (path,) = compile_cache.kept(function, types)
            code = compile_cache.for_calls_only(packed.unpack(path))
            (baseline.FOLDER / path.name).write_bytes(packed.pack_small(code))


def prove() -> None:
    """Run the tests with an empty cache, and fail if something of the package was compiled."""
    compiled = set()

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            compiled.add(record.getMessage())

    logger = logging.getLogger("spatialq.runtime.compile_cache")
    logger.setLevel(logging.INFO)
    logger.addHandler(Handler())
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NUMBA_CACHE_DIR"] = folder
        run_inputs()
        run_tests(TESTS)
    compiled = {each for each in compiled if each.startswith("compiling spatialq.")}
    if compiled:
        sys.exit("not in spatialq/compiled/cpu:\n" + "\n".join(sorted(compiled)))


def run_inputs() -> None:
    """Call every function on few points and on many, which may take other ways."""
    sys.path.append(str(ROOT / "benchmarks"))
    from planner_inputs import FUNCTIONS, ROWS_TO_COMPILE, fitted, reported

    for name in FUNCTIONS:
        for rows in (1000, ROWS_TO_COMPILE):
            for given in [*fitted(name, rows), *reported(name, rows)]:
                given.kernel("cpu")


def run_demo() -> None:
    """Make the demo's world, and run its queries."""
    from spatialq.cli.commands.demo import demo

    with tempfile.TemporaryDirectory() as folder:
        demo(folder=Path(folder))


def run_tests(paths: list[str]) -> None:
    """Run tests in this process."""
    if status := pytest.main([*CHOSEN, *paths]):
        sys.exit(int(status))


if __name__ == "__main__":
    {"list": write_list, "demo": write_demo, "compile": compile_all, "prove": prove}[sys.argv[1]]()
