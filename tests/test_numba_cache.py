"""What is compiled is kept, is never older than its sources, and needs no folder to be."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
KERNEL = """
from spatialq.runtime.compile_cache import njit
from pack.other import (
    FACTOR,
    increase,
)

@njit(cache=True)
def kernel(value):
    return FACTOR * increase(value)
"""
OTHER = """
from spatialq.runtime.compile_cache import njit
from . import far

FACTOR = {factor} + far.NUMBER

@njit(cache=True)
def increase(value):
    return value + {increment}
"""
CALL = """
from pack.kernel import kernel
print(kernel(3), sum(kernel.stats.cache_hits.values()))
"""


def run(code, **environment):
    command = [sys.executable, "-c", code]
    environment = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.fixture
def package(tmp_path):
    """Write a package of a kernel and what it uses; call the kernel: its answer, and cache hits."""
    folder = tmp_path / "pack"
    folder.mkdir()
    (folder / "__init__.py").touch()

    def call(factor=2, increment=10, number=0, lines=0):
        (folder / "far.py").write_text(f"NUMBER = {number}")
        (folder / "kernel.py").write_text("\n" * lines + KERNEL)
        (folder / "other.py").write_text(OTHER.format(factor=factor, increment=increment))
        result = run(
            CALL,
            PYTHONPATH=str(tmp_path),
            PYTHONDONTWRITEBYTECODE="1",  # Python takes files of one second and size for the same
            NUMBA_CACHE_DIR=str(tmp_path / "cache"),
        )
        assert result.returncode == 0, result.stderr
        return tuple(map(int, result.stdout.split()))

    return call


@pytest.mark.slow
def test_a_kernel_is_compiled_anew_when_something_of_it_has_changed(package, tmp_path):
    """Each change is on top of those before; what was compiled before it is overwritten."""
    assert package() == (26, 0)
    (tmp_path / "pack/cost.py").write_text("RATE = 1")  # nothing of which is in the kernel
    assert package() == (26, 1)
    now = {"increment": 11}  # of a function that the kernel calls, in another file
    assert package(**now) == (28, 0)
    now["factor"] = 3  # a constant of another file
    assert package(**now) == (42, 0)
    now["number"] = 1  # a constant of a file beyond another
    assert package(**now) == (56, 0)
    now["lines"] = 1  # the kernel is further down in its own file
    assert package(**now) == (56, 0)
    kept = sorted(path.name for path in tmp_path.glob("cache/*/*"))
    assert len(kept) == 2, kept  # the code of each function


@pytest.mark.slow
def test_damaged_files_are_written_again(package, tmp_path):
    assert package() == (26, 0)
    for length in (0, 30, 300):
        for path in tmp_path.glob("cache/*/*"):
            path.write_bytes(path.read_bytes()[:length])
        assert package() == (26, 0)
    assert package() == (26, 1)


def test_all_kernels_are_kept_so():
    """Numba's own `njit` would not see a change elsewhere, nor ours what a function imports."""
    kernels = 0
    for path in (path for top in ("spatialq", "udfs") for path in (ROOT / top).rglob("*.py")):
        text = path.read_text()
        assert not re.search(r"numba\.\w+\([^)]*cache=True", text), path
        assert not re.search(r"from numba import[^\n]*(jit|vectorize)", text), path
        if re.search(r"^\s*@n?jit\b", text, re.MULTILINE):
            assert "from spatialq.runtime.compile_cache import njit" in text, path
            kernels += 1
    assert kernels > 30


NO_FOLDER = """
from numba.core import caching
def refuse(self):
    raise OSError("read-only")
for locator in (caching.InTreeCacheLocator, caching.UserWideCacheLocator):
    locator.ensure_cache_path = refuse
"""
RUN = """
import numpy as np
from spatialq.functions.catalogue import catalogue
from spatialq.udfs.owm_ground import Options
x = np.arange(10.0)
kernel = catalogue()["owm_ground"].kernel("cpu")
print(kernel(x, x, x, np.arange(10), options=Options())["point_id"].size)
"""


@pytest.mark.slow  # all functions are compiled anew
def test_kernels_without_a_folder_for_the_cache():
    result = run(NO_FOLDER + RUN, NUMBA_CPU_NAME="generic")  # which has no code in a wheel
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 0


@pytest.mark.slow
def test_the_command_line_says_once_that_it_compiles(tmp_path):
    points = "SELECT 1 AS point_id, 0.0 AS x, 0.0 AS y, 5.0 AS z"
    query = f"WITH p AS ({points}) FROM owm_ground('p', unit := 1)"
    # a processor that is named has no code in a wheel
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_CPU_NAME": "generic"}
    command = [sys.executable, "-m", "spatialq", "sql", query]
    notes = [
        subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stderr
        for _ in range(2)
    ]
    sentence = "compiling functions, which takes a while (first use; kept for later) ...\n"
    assert notes == [sentence, ""]
