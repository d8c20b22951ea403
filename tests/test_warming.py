"""The list of compiled functions is right, and `spatialq warm` compiles what is not there."""

import os
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from spatialq.cli.main import app
from spatialq.workflows import warming

from .cluster.surveys import write_tile

MODULE = "spatialq.udfs.build_lod.table"


@pytest.mark.parametrize("module", warming.listed())
def test_what_is_listed_is_there(module):
    for signatures in warming.listed()[module].values():
        for text in signatures:
            assert ", ".join(map(str, warming.types_of(text, module))) == text
    for function, types in warming.kernels([module]):
        parameters = function.py_func.__code__.co_argcount
        assert (function.__module__, parameters) == (module, len(types))
        assert function._cache.cache_path  # it is kept


def warm(cache):
    """Warm in a new process: how many were compiled, what was told, and names of what is kept."""
    code = (
        "from spatialq.workflows.warming import warm\n"
        f"print(warm([{MODULE!r}], update=lambda *told: print(*told)))"
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
    count = sum(map(len, warming.listed()[MODULE].values()))
    told, _, kept = warm(tmp_path)
    assert told == [f"0 {count}", f"{count} {count}", f"{count}"]
    assert warm(tmp_path) == (["0"], "", kept)


@pytest.mark.slow
def test_a_process_that_ends_is_told_of(tmp_path):
    code = (
        "from spatialq.workflows import warming\n"
        "warming.WORKER = 'import sys; sys.stdin.readline(); sys.exit(3)'\n"
        f"warming.warm([{MODULE!r}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_CPU_NAME": "generic"},
    )  # fmt: skip
    sentence = f"OSError: warm: the process that compiled {MODULE} ended with status 3"
    assert done.stderr.splitlines()[-1] == sentence


def test_the_command_says_where_nothing_needs_to_be_compiled(monkeypatch):
    monkeypatch.setattr(warming, "missing", lambda _: {})
    result = CliRunner().invoke(app, ["warm"])
    assert "nothing needs to be compiled" in result.stderr
    assert result.exit_code == 0


def test_modules_of_functions():
    """A function's own, those of what it uses, and those of no function."""
    modules = warming.modules_of(["classify_ground"])
    folders = {module.split(".")[2] for module in modules if module.startswith("spatialq.udfs.")}
    assert folders == {"classify_ground", "owm_ground"}
    assert "spatialq.data.points" in modules
    with pytest.raises(ValueError, match=r"warm: functions must be of build_lod, .*, got 'ground'"):
        warming.modules_of(["ground"])


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
