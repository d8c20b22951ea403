"""The list of compiled functions is right, and `spatialq warm` compiles what is not there."""

import ast
import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib.util import resolve_name
from pathlib import Path

import numpy as np
import pytest
from numba.core.registry import CPUDispatcher
from typer.testing import CliRunner

from spatialq import cluster
from spatialq.cli.main import app
from spatialq.demo import write_world
from spatialq.demo.run import KERNELS, run
from spatialq.workflows import warming

from .cluster.surveys import write_tile

MODULE = "spatialq.udfs.build_lod.table"
ROOT = Path(__file__).parents[1]
FOLDERS = {"spatialq": ROOT / "spatialq", "spatialq.udfs": ROOT / "udfs"}
COUNT = sum(map(len, warming.listed()[MODULE].values()))


@pytest.mark.parametrize("module", warming.listed())
def test_what_is_listed_is_there(module):
    for signatures in warming.listed()[module].values():
        for text in signatures:
            assert ", ".join(map(str, warming.types_of(text, module))) == text
    for function, types in warming.kernels({module: warming.listed()[module]}):
        parameters = function.py_func.__code__.co_argcount
        assert (function.__module__, parameters) == (module, len(types))
        assert function._cache.cache_path  # it is kept


def called():
    """Find the compiled functions that Python calls or passes on: each with its module."""
    trees = {
        ".".join((package, *path.relative_to(folder).with_suffix("").parts)): ast.parse(
            path.read_text(encoding="utf-8")
        )
        for package, folder in FOLDERS.items()
        for path in folder.rglob("*.py")
    }
    kernels = {
        (module, each.name): each
        for module, tree in trees.items()
        for each in tree.body
        if isinstance(each, ast.FunctionDef)
        and re.search(r"njit\(.*cache=True", "".join(map(ast.unparse, each.decorator_list)))
    }
    found = set()
    for module, tree in trees.items():
        known = {name: (own, name) for own, name in kernels if own == module}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                base = resolve_name(
                    f"{'.' * node.level}{node.module or ''}", module[: module.rindex(".")]
                )
                known |= {each.asname or each.name: (base, each.name) for each in node.names}
        for each in set(tree.body) - set(kernels.values()):
            nodes = list(ast.walk(each))
            own = {node.arg for node in nodes if isinstance(node, ast.arg)}
            own |= {
                node.id
                for node in nodes
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
            plain = {
                node.value
                for node in nodes
                if isinstance(node, ast.Attribute) and node.attr == "py_func"
            }
            for node in nodes:
                if isinstance(node, ast.Name) and node.id not in own and node not in plain:
                    found.add(known.get(node.id))
                elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    found.add((".".join(known.get(node.value.id, ())), node.attr))
    return found & set(kernels)


def test_all_that_python_calls_is_listed():
    listed = {(module, name) for module, names in warming.listed().items() for name in names}
    assert sorted(called() - listed) == []


@pytest.mark.slow
@pytest.mark.parametrize("function", ["owm_ground", "classify_ground", "detect_planes"])
def test_the_types_of_a_job_are_listed(tmp_path, monkeypatch, function):
    """Tasks have arrays that they may write, calls of a table have not."""
    missing, call = set(), CPUDispatcher.__call__

    def noted(self, *given):
        names = warming.listed().get(self.py_func.__module__, {})
        types = ", ".join(str(self.typeof_pyval(each)) for each in given)
        if self._cache.cache_path and types not in names.get(self.py_func.__name__, ()):
            missing.add((self.py_func.__name__, types))
        return call(self, *given)

    for west in (0, 100):
        x, y = np.meshgrid(np.arange(west, west + 100.0), np.arange(100.0))
        write_tile(tmp_path / f"{west}.laz", x.ravel(), y.ravel(), np.sin(x).ravel())
    monkeypatch.setattr(CPUDispatcher, "__call__", noted)
    cluster.run(function, f"{tmp_path}/*.laz", tmp_path / "out", executor="serial")
    assert missing == set()


def types_in(lists):
    """Give module, function and types of each entry of a list."""
    return {
        (module, name, types)
        for module, names in lists.items()
        for name, signatures in names.items()
        for types in signatures
    }


def test_the_list_of_the_demo_is_a_part():
    assert types_in(json.loads(KERNELS.read_bytes())) <= types_in(warming.listed())


@pytest.mark.slow
def test_the_demo_calls_what_is_in_its_list(tmp_path, monkeypatch):
    """And what has written its world."""
    called, call = set(), CPUDispatcher.__call__

    def noted(self, *given):
        if self.py_func.__module__.startswith("spatialq.") and self._cache.cache_path:
            types = ", ".join(str(self.typeof_pyval(each)) for each in given)
            called.add((self.py_func.__module__, self.py_func.__name__, types))
        return call(self, *given)

    monkeypatch.setattr(CPUDispatcher, "__call__", noted)
    las, ifc, *_ = write_world(tmp_path)
    for_world = set(called)
    called.clear()
    run(las, ifc, tmp_path, lambda *_: None)
    assert called - for_world - types_in(json.loads(KERNELS.read_bytes())) == set()


def warm(cache):
    """Warm in a new process: how many were compiled, what was told, and names of what is kept."""
    code = (
        "from spatialq.workflows.warming import listed, warm\n"
        f"print(warm({{{MODULE!r}: listed()[{MODULE!r}]}}, update=lambda *told: print(*told)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        # a processor that is named has no code in a wheel
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache), "NUMBA_CPU_NAME": "generic"},
    )  # fmt: skip
    kept = {path.name: path.read_bytes() for path in cache.glob("*/*")}
    return done.stdout.splitlines(), done.stderr, kept


@pytest.mark.slow
def test_what_is_missing_is_compiled_once(tmp_path):
    told, _, kept = warm(tmp_path)
    assert told == [f"0 {COUNT}", f"{COUNT} {COUNT}", f"{COUNT}"]
    assert warm(tmp_path) == (["0"], "", kept)


@pytest.mark.slow
def test_what_is_damaged_is_compiled_again(tmp_path):
    _, _, kept = warm(tmp_path)
    for length, path in enumerate(tmp_path.glob("*/*")):
        path.write_bytes(path.read_bytes()[: 30 * length])
    told, _, again = warm(tmp_path)
    assert told[-1] == str(len(kept))
    assert again.keys() == kept.keys()
    assert warm(tmp_path)[0] == ["0"]


ENDS = "import sys; sys.stdin.readline(); sys.exit(3)"
KEEPS_NOTHING = "import sys; [print(line, end='', flush=True) for line in sys.stdin]"


LOST = (
    f"{COUNT} of {COUNT} compiled functions could not be kept: "
    "NUMBA_CACHE_DIR must name a folder that can be written and has room"
)


@pytest.mark.parametrize(
    ("worker", "sentence"),
    [(ENDS, f"the process that compiled {MODULE} ended with status 3"), (KEEPS_NOTHING, LOST)],
)
@pytest.mark.slow
def test_what_goes_wrong_is_told_of(tmp_path, worker, sentence):
    code = (
        "from spatialq.workflows import warming\n"
        f"warming.WORKER = {worker!r}\n"
        f"warming.warm({{{MODULE!r}: warming.listed()[{MODULE!r}]}})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_CPU_NAME": "generic"},
    )  # fmt: skip
    assert done.stderr.splitlines()[-1] == f"OSError: warm: {sentence}"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="has no groups of processes")
@pytest.mark.parametrize("interrupt", [os.kill, os.killpg], ids=["it", "its group"])
def test_an_interruption_ends_it_and_its_processes_at_once(tmp_path, interrupt):
    at_work = tmp_path / "at_work"
    worker = f"open({str(at_work)!r}, 'w'); import time; time.sleep(99)"
    code = (
        "from spatialq.workflows import warming\n"
        f"warming.WORKER = {worker!r}\n"
        f"warming.warm({{{MODULE!r}: warming.listed()[{MODULE!r}]}})"
    )
    command = [sys.executable, "-c", code]
    here = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_CPU_NAME": "generic"}
    with subprocess.Popen(
        command, env=here, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        while not at_work.exists():
            assert process.poll() is None
            time.sleep(0.1)
        interrupt(process.pid, signal.SIGINT)
        try:
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert said.splitlines()[-1] == "KeyboardInterrupt"
    assert said.count('File "<string>"') == 1  # none of the process that compiles


def test_the_command_says_where_nothing_needs_to_be_compiled(monkeypatch):
    monkeypatch.setattr(warming, "missing", lambda _: {})
    result = CliRunner().invoke(app, ["warm"])
    assert "nothing needs to be compiled" in result.stderr
    assert result.exit_code == 0


def test_kernels_of_functions():
    """A function's own, those of what it uses, and those of no function."""
    modules = warming.kernels_of(["classify_ground"])
    folders = {module.split(".")[2] for module in modules if module.startswith("spatialq.udfs.")}
    assert folders == {"classify_ground", "owm_ground"}
    assert "spatialq.data.points" in modules
    with pytest.raises(ValueError, match=r"warm: functions must be of build_lod, .*, got 'ground'"):
        warming.kernels_of(["ground"])


@pytest.mark.slow
def test_processes_of_a_job_compile_nothing_that_the_driver_has_compiled(tmp_path):
    for west in (0, 100):
        x, y = np.meshgrid(np.arange(west, west + 100.0), np.arange(100.0))
        write_tile(tmp_path / f"{west}.laz", x.ravel(), y.ravel(), np.sin(x).ravel())
    code = (
        "import sys\n"
        "from spatialq.cluster import run\n"
        "for executor in ('serial', 'local'):\n"
        "    run('owm_ground', sys.argv[1:], executor, executor=executor, window_size=10)\n"
        "    print(sorted((p.name, p.stat().st_mtime_ns) for p in Path('cache').glob('*/*')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", "from pathlib import Path\n" + code, "0.laz", "100.laz"],
        capture_output=True, text=True, check=True, cwd=tmp_path,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_CPU_NAME": "generic"},
    )  # fmt: skip
    first, second = done.stdout.splitlines()
    assert first == second
    assert "owm_ground" in first
