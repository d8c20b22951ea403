"""The list of compiled functions is right, and `spatialq warm` compiles what is not there."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from spatialq.cli.main import app
from spatialq.workflows import warming

MODULE = "spatialq.udfs.build_lod.table"


@pytest.mark.parametrize("module", warming.listed())
def test_what_is_listed_is_there(module):
    for signatures in warming.listed()[module].values():
        for text in signatures:
            assert ", ".join(map(str, warming.types_of(text))) == text
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
