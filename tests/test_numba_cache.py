"""What is compiled is kept, is never older than its sources, and needs no folder to be."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
KERNEL = """
from spatialq.numba_cache import njit
from pack.other import (
    FACTOR,
    increase,
)

@njit(cache=True)
def kernel(value):
    return FACTOR * increase(value)
"""
OTHER = """
from spatialq.numba_cache import njit
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


def test_a_kernel_is_compiled_once(package):
    assert package() == (26, 0)
    assert package() == (26, 1)


def test_a_function_that_a_kernel_calls_changes_in_another_file(package):
    assert package(increment=10) == (26, 0)
    assert package(increment=11) == (28, 0)


def test_a_constant_that_a_kernel_uses_changes_in_another_file(package):
    assert package(factor=2) == (26, 0)
    assert package(factor=3) == (39, 0)


def test_a_constant_comes_from_a_file_beyond_another(package):
    assert package(number=0) == (26, 0)
    assert package(number=1) == (39, 0)


def test_a_file_that_a_kernel_has_nothing_of_may_change(package, tmp_path):
    for rate in (1, 2):
        (tmp_path / "pack/cost.py").write_text(f"RATE = {rate}")
        assert package() == (26, rate - 1)


@pytest.mark.parametrize(("ending", "length"), [("nbi", 0), ("nbi", 30), ("nbc", 300)])
def test_damaged_files_are_written_again(package, tmp_path, ending, length):
    assert package() == (26, 0)
    for path in tmp_path.glob(f"cache/**/*.{ending}"):
        path.write_bytes(path.read_bytes()[:length])
    assert package() == (26, 0)
    assert package() == (26, 1)


def test_what_was_compiled_from_older_sources_is_overwritten(package, tmp_path):
    for lines in range(3):
        assert package(lines=lines) == (26, 0)
    kept = sorted(path.name for path in tmp_path.glob("cache/**/*.nb?"))
    assert len(kept) == 4, kept  # an index and the code, for each function


def test_all_kernels_are_kept_so():
    """Numba's own `njit` would not see a change elsewhere, nor ours what a function imports."""
    files = [path for top in ("spatialq", "udfs") for path in (ROOT / top).rglob("*.py")]
    texts = {path: path.read_text() for path in files}
    kernels = {
        path: text for path, text in texts.items() if re.search("^@njit", text, re.MULTILINE)
    }
    assert len(kernels) > 30
    for path, text in kernels.items():
        assert "from spatialq.numba_cache import njit" in text, path


NO_FOLDER = """
from numba.core import caching
def refuse(self):
    raise OSError("read-only")
for locator in (caching.InTreeCacheLocator, caching.UserWideCacheLocator):
    locator.ensure_cache_path = refuse
"""
RUN = """
import numpy as np
from spatialq.udf import catalog
from spatialq.udfs.owm_ground import Options
x = np.arange(10.0)
kernel = catalog()["owm_ground"].kernel("cpu")
print(kernel(x, x, x, np.arange(10), options=Options())["point_id"].size)
"""


@pytest.mark.slow  # all functions are compiled anew
def test_kernels_without_a_folder_for_the_cache():
    result = run(NO_FOLDER + RUN)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 0
