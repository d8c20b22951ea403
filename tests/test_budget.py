"""The budget of main memory: what sizes mean, and which one a call sees."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import spatialq
from spatialq.runtime import budget, memory
from spatialq.runtime.threads import workers


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    monkeypatch.delenv(budget.MEMORY, raising=False)
    monkeypatch.delenv(budget.FOLDER, raising=False)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("2GB", 2_000_000_000),
        ("512MB", 512_000_000),
        ("1.5GiB", 3 << 29),
        (" 2 gb ", 2_000_000_000),
        ("4KiB", 4096),
        ("1TB", 10**12),
        (".5GiB", 1 << 29),
        ("4096B", 4096),
        ("3", 3 << 30),
        (3, 3 << 30),
        (0.25, 1 << 28),
    ],
)
def test_size(size, expected):
    assert budget.parse_size(size) == expected


@pytest.mark.parametrize(
    "size",
    ["", "GB", "2XB", "-2GB", "2 GB of it", "0GB", "1e3GB", "2,5GB", "٣GB", 0, -1, True, None,
     float("nan"), float("inf"), "9" * 30, "9" * 400],
)  # fmt: skip
def test_no_size(size):
    with pytest.raises(ValueError, match=r"^planes: memory must be a size above 0") as error:
        budget.parse_size(size, "planes: memory")
    assert str(error.value).endswith(f"got {size!r}")


def test_the_innermost_budget_counts(monkeypatch, tmp_path):
    monkeypatch.setenv(budget.MEMORY, "3GB")
    assert budget.current() == 3_000_000_000
    with budget.limited(1000, tmp_path):
        assert (budget.current(), budget.folder()) == (1000, tmp_path)
        with budget.limited():
            assert (budget.current(), budget.folder()) == (1000, tmp_path)
        with budget.limited(10):
            assert (budget.current(), budget.folder()) == (10, tmp_path)
        assert budget.current() == 1000
    assert budget.current() == 3_000_000_000


def test_the_environment_names_the_folder(monkeypatch, tmp_path):
    assert budget.folder() == Path(tempfile.gettempdir())
    monkeypatch.setenv(budget.FOLDER, str(tmp_path))
    assert budget.folder() == tmp_path


def test_a_wrong_environment_is_named(monkeypatch):
    monkeypatch.setenv(budget.MEMORY, "much")
    with pytest.raises(ValueError, match=r"^SPATIALQ_MEMORY must be a size .* got 'much'$"):
        budget.current()
    with budget.limited(10):
        assert budget.current() == 10


def test_a_wrong_environment_fails_a_small_call_too(monkeypatch):
    monkeypatch.setenv(budget.MEMORY, "much")
    with pytest.raises(ValueError, match=r"^SPATIALQ_MEMORY must be a size .* got 'much'$"):
        spatialq.run("owm_ground", [0.0], [0.0], [0.0])
    spatialq.run("owm_ground", [0.0], [0.0], [0.0], memory="1GB")


def test_by_default_half_of_what_is_free_or_the_own(monkeypatch):
    monkeypatch.setattr(memory, "host_free", lambda: 1000)
    monkeypatch.setattr(memory, "resident", lambda: memory.Resident(250, 50))
    budget._default.cache_clear()
    assert budget.current() == 600
    monkeypatch.setattr(memory, "host_free", lambda: 0)  # not known
    budget._default.cache_clear()
    assert budget.current() == sys.maxsize
    budget._default.cache_clear()


def test_threads_see_the_budget_of_their_call():
    with budget.limited(1234), workers(3) as pool:
        assert pool.map(lambda _: budget.current(), range(20)) == [1234] * 20
    with workers(3) as pool:  # the same threads
        assert 1234 not in pool.map(lambda _: budget.current(), range(20))


@pytest.mark.skipif(not memory.STATM.exists(), reason="this system has no /proc/self/statm")
def test_resident_memory_grows_with_arrays():
    """In a process of its own, in which no thread gives anything back meanwhile."""
    code = """
from spatialq.runtime import memory
before = memory.resident()
taken = bytearray(64 << 20)
taken[:: 1 << 10] = b"x" * (len(taken) >> 10)
after = memory.resident()
assert before.bytes + (60 << 20) < after.bytes < before.bytes + (80 << 20), (before, after)
assert after.of_files < before.of_files + (4 << 20), (before, after)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
