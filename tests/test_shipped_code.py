"""Compiled code of the wheel is used where it fits, never trusted beyond that, never written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from llvmlite import binding

from spatialq.runtime.compile_cache import for_calls_only
from spatialq.runtime.packed import pack_small, unpack

KERNEL = """
from spatialq.runtime.compile_cache import njit

@njit(cache=True)
def kernel(value):
    return 2 * value
"""
CALL = """
import sys
from pathlib import Path
from llvmlite import binding
from spatialq.runtime import baseline
baseline.FOLDER = Path(sys.argv[1])
baseline.baseline = lambda: ("generic", "+" + sys.argv[2])
if sys.argv[3:]:
    features = binding.get_host_cpu_features()
    features[sys.argv[3]] = False
    binding.get_host_cpu_features = lambda: features
from kernel import kernel
print(kernel(3), sum(kernel.stats.cache_hits.values()))
"""
CALLER = """
import numba
from kernel import kernel

@numba.njit(cache=True)
def caller(value):
    return kernel(value) + 1
"""
FEATURES = [name for name, has in binding.get_host_cpu_features().items() if has]
FEATURE = "avx" if "avx" in FEATURES else FEATURES[0]

pytestmark = pytest.mark.slow  # each case compiles in a process of its own


def call(folder, *lacking, cache, feature=FEATURE, script=CALL, **environment):
    result = subprocess.run(
        [sys.executable, "-c", script, str(folder / "shipped"), feature, *lacking],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": str(folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            "NUMBA_CACHE_DIR": str(cache),
            **environment,
        },
    )
    assert result.returncode == 0, result.stderr
    return tuple(map(int, result.stdout.split()))


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """Compile a kernel for a baseline, and put it where a wheel has it."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "kernel", raising=False)
    (tmp_path / "kernel.py").write_text(KERNEL)
    baseline = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": f"+{FEATURE}"}
    assert call(tmp_path, cache=tmp_path / "built", **baseline) == (6, 0)
    (tmp_path / "shipped").mkdir()
    (path,) = tmp_path.glob("built/*/*.code")
    code = for_calls_only(unpack(path))
    (tmp_path / "shipped" / path.name).write_bytes(pack_small(code))
    return tmp_path


def kept(folder):
    return {path.name: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def test_code_that_fits_is_used_and_nothing_is_written(shipped):
    before = kept(shipped / "shipped")
    assert call(shipped, cache=shipped / "cache") == (6, 1)
    assert kept(shipped / "shipped") == before
    assert not list(shipped.glob("cache/**/*.code"))


@pytest.mark.parametrize("called_before", [True, False])
def test_compiled_functions_link_code_of_their_own(shipped, called_before):
    (shipped / "caller.py").write_text(CALLER)
    before = CALL if called_before else CALL.rpartition("print")[0]
    script = f"{before}\nfrom caller import caller\nprint(caller(3), kernel(4))"
    for _ in range(2):  # the second process has the caller in its cache
        assert call(shipped, cache=shipped / "cache", script=script)[-2:] == (7, 8)


def cut(folder):
    (path,) = (folder / "shipped").iterdir()
    path.write_bytes(path.read_bytes()[:-1])


def flip(folder):
    (path,) = (folder / "shipped").iterdir()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def change(folder):
    (folder / "kernel.py").write_text(KERNEL + "\n# changed")


@pytest.mark.parametrize("spoil", [cut, flip, change])
def test_code_that_is_not_as_built_is_compiled_instead(shipped, spoil):
    spoil(shipped)
    before = kept(shipped / "shipped")
    assert call(shipped, cache=shipped / "cache") == (6, 0)
    assert kept(shipped / "shipped") == before
    assert call(shipped, cache=shipped / "cache") == (6, 1)  # from the cache of the user


def test_code_of_another_baseline_is_compiled_instead(shipped):
    assert call(shipped, cache=shipped / "cache", feature="") == (6, 0)


def test_a_processor_without_a_feature_of_the_baseline_compiles(shipped):
    assert call(shipped, FEATURE, cache=shipped / "cache") == (6, 0)


@pytest.mark.skipif(FEATURE != "avx", reason="the processor has no AVX")
def test_avx_that_is_switched_off_is_not_used(shipped):
    """Numba does so itself where the operating system has it off, and for old processors."""
    assert call(shipped, cache=shipped / "cache", NUMBA_ENABLE_AVX="0") == (6, 0)


def test_a_processor_named_in_the_environment_gets_its_own_code(shipped):
    assert call(shipped, cache=shipped / "cache", NUMBA_CPU_NAME="generic") == (6, 0)
