"""Arrays in files: same values, limited resident memory, nothing left on the disk."""

import gc
import mmap
import signal
import subprocess
import sys
import time
from threading import Thread

import numpy as np
import pytest

from spatialq.runtime import budget, buffers, file_memory, memory
from spatialq.runtime.threads import workers

from .open_files import open_files

pytestmark = [
    pytest.mark.slow,  # as a whole: what is resident depends on other processes
    pytest.mark.skipif(not file_memory.IS_POSSIBLE, reason="arrays are in files on Linux only"),
]
MIB = 1 << 20


@pytest.fixture(autouse=True)
def alone():
    """Begin and end without arrays that tests have left to the collector of garbage."""
    gc.collect()
    buffers.trim()
    yield
    gc.collect()


@pytest.fixture
def no_room(tmp_path):
    """Have no budget: all arrays are in files."""
    with budget.limited(1, tmp_path), file_memory.noting() as note:
        yield note


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_array_is_like_numpys(no_room):
    for shape, dtype in [(3_000_000, "f8"), ((2000, 3, 1001), "u2"), (np.int64(1 << 23), "?")]:
        array, like = buffers.empty(shape, dtype), np.empty(shape, dtype)
        assert (array.shape, array.dtype, array.strides) == (like.shape, like.dtype, like.strides)
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert not array.any()
        array[...] = 1
        assert array.sum() == array.size
    assert no_room.bytes == sum([24_000_000, 12_012_000, 8 * MIB])


def test_a_file_that_is_read_leaves_memory_too(tmp_path):
    path, values = tmp_path / "values", np.arange(8 * MIB)
    values.tofile(path)
    with file_memory.mapped(path, values.dtype):
        before = memory.resident().of_files  # with the libraries that a mapping needs
    with budget.limited(1, tmp_path), file_memory.mapped(path, values.dtype) as there:
        assert not there.flags.writeable
        assert (there == values).all()
        file_memory.look()
        assert memory.resident().of_files - before <= file_memory.LEAST
        del there
    assert not file_memory._watcher.live


def test_an_error_while_a_file_is_read_is_told(tmp_path):
    """Also where views of the file are still there, as in a traceback."""
    path = tmp_path / "values"
    np.arange(MIB).tofile(path)
    views = []

    def read():
        with file_memory.mapped(path, np.dtype(np.int64)) as there:
            views.append(there[1:])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read()
    assert not file_memory._watcher.live
    assert views[0][0] == 1


def test_small_arrays_are_in_memory(no_room):
    buffers.empty(buffers.IN_FILES - 1, np.uint8)
    assert no_room.bytes == 0
    buffers.empty(buffers.IN_FILES, np.uint8)
    assert no_room.bytes == buffers.IN_FILES


def test_arrays_are_in_memory_while_there_is_room(tmp_path):
    with budget.limited(1 << 40, tmp_path), file_memory.noting() as note:
        buffers.empty(8 * MIB)
    assert note.bytes == 0


def test_unused_buffers_make_room(tmp_path):
    with budget.limited(1 << 40, tmp_path):
        buffers.empty(64 * MIB, np.uint8)[:] = 1
    had = buffers._pool.others + buffers.usage().in_use
    with budget.limited(int((had + 80 * MIB) / buffers.IN_MEMORY), tmp_path):
        assert buffers.usage().unused == 64 * MIB
        array = buffers.empty(70 * MIB, np.uint8)
        assert buffers.usage().unused == 0
        del array


@pytest.mark.parametrize("size", [1, 1 << 40])
def test_what_is_taken_is_as_numpys(size, tmp_path, monkeypatch):
    monkeypatch.setattr(buffers, "CHUNK", 1000)
    monkeypatch.setattr(buffers, "TAKEN", 1000)
    rng = np.random.default_rng(1)
    values, wanted = rng.random((5000, 7)), rng.random((5000, 7)) < 0.3
    at, flags = rng.integers(0, 5000, 4321), rng.random(12345) < 0.5
    with budget.limited(size, tmp_path):
        assert np.array_equal(buffers.take(values, at), values[at])
        assert np.array_equal(buffers.take(values[:, 1], at[:10]), values[at[:10], 1])
        assert np.array_equal(buffers.select(values, wanted), values[wanted])
        assert np.array_equal(buffers.select(values[:, 2], wanted[:, 0]), values[wanted[:, 0], 2])
        assert np.array_equal(buffers.positions(flags), np.flatnonzero(flags))
        assert buffers.positions(flags[:0]).size == 0


@pytest.mark.parametrize("size", [1, 1 << 40])
def test_zeros_and_others(size, tmp_path):
    with budget.limited(size, tmp_path):
        for _ in range(2):  # the second may have the memory of the first
            array = buffers.zeros((MIB, 2), np.float32)
            assert array.shape == (MIB, 2)
            assert not array.any()
            array += 1
            assert buffers.empty_like(array).shape == array.shape
            ones = buffers.full((MIB, 2), 1, np.float32)
            assert np.array_equal(ones, array)
            del array, ones


def test_a_file_goes_with_the_last_view(no_room):
    array = buffers.empty(8 * MIB)
    part = array[5:10]
    array[:] = 3
    assert len(file_memory._watcher.live) == 1
    del array
    assert len(file_memory._watcher.live) == 1
    assert (part == 3).all()
    del part
    assert not file_memory._watcher.live
    wait_for(lambda: not file_memory._watcher.is_running)


def open_in(folder):
    """Count the open files of this process in a folder, also those without names."""
    return sum(each.is_relative_to(folder) for each in open_files())


def test_the_file_has_no_name_and_is_closed_with_the_array(no_room, tmp_path):
    array = buffers.empty(MIB)
    assert list(tmp_path.iterdir()) == []
    assert open_in(tmp_path) == 1
    del array
    assert open_in(tmp_path) == 0


def test_resident_memory_stays_under_the_budget(tmp_path):
    most = memory.resident().bytes + 128 * MIB
    arrays, peak = [], 0
    with budget.limited(most, tmp_path):
        for k in range(4):
            arrays.append(buffers.empty(16 * MIB))  # 128 MiB each
            for first in range(0, arrays[-1].size, MIB):
                arrays[-1][first : first + MIB] = k
                peak = max(peak, memory.resident().bytes)
        for k, array in enumerate(arrays):
            assert all((array[i : i + MIB] == k).all() for i in range(0, array.size, MIB))
            peak = max(peak, memory.resident().bytes)
    # between two looks of the watcher, which a busy machine makes late, pages come back: but not as
    # many as an array has, of the three that must be out
    assert peak < most + 128 * MIB


def test_many_threads_make_and_drop_arrays(no_room):
    def work(seed):
        draw, arrays = np.random.default_rng(seed), []
        for _ in range(30):
            value = int(draw.integers(1, 100))
            arrays.append((value, buffers.full(int(draw.integers(1, 3)) * MIB, value, np.int64)))
            if len(arrays) > 3:
                value, array = arrays.pop(int(draw.integers(4)))
                assert (array == value).all()

    with workers(4) as pool:
        pool.map(work, range(8))
    gc.collect()
    assert not file_memory._watcher.live
    assert no_room.bytes > 8 * 30 * 8 * MIB - 1  # noted from all threads


def test_a_folder_that_is_not_there_is_named(tmp_path):
    gone = tmp_path / "gone"
    with (
        budget.limited(1000, gone),
        pytest.raises(
            MemoryError, match=r"^0\.0839 GB for an array are beyond the memory"
        ) as error,
    ):
        buffers.empty(10 * MIB)
    assert str(error.value).endswith(f"cannot be made in '{gone}': No such file or directory")


def run(script, *arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


def test_a_full_disk_is_an_error(tmp_path):
    script = """
import resource, sys
from pathlib import Path
from spatialq.runtime import budget, buffers, file_memory
resource.setrlimit(resource.RLIMIT_FSIZE, (20 << 20, 20 << 20))
with budget.limited(1, Path(sys.argv[1])):
    held = buffers.full(16 << 20, 7, 'u1')
    try:
        buffers.empty(32 << 20, 'u1')
    except MemoryError as error:
        print(error)
    assert (held == 7).all() and len(file_memory._watcher.live) == 1
"""
    process = run(script, tmp_path)
    said, wrong = process.communicate(timeout=60)
    assert wrong == ""
    assert f"a file for it cannot be made in '{tmp_path}': File too large" in said
    assert list(tmp_path.iterdir()) == []


def test_a_killed_process_leaves_no_file(tmp_path):
    script = """
import sys, time
from pathlib import Path
from spatialq.runtime import budget, buffers
with budget.limited(1, Path(sys.argv[1])):
    held = [buffers.full(8 << 20, k, 'u1') for k in range(8)]
    print('ready', flush=True)
    time.sleep(60)
"""
    process = run(script, tmp_path)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert list(tmp_path.iterdir()) == []


def test_pages_are_taken_out_while_other_threads_use_them(no_room):
    array = buffers.zeros(16 * MIB, np.int64)  # more than LEAST
    is_done = []

    def leave():
        while not is_done:
            file_memory.look()

    thread = Thread(target=leave)
    thread.start()
    try:
        for k in range(1, 10):
            array += 1
            assert (array == k).all()
    finally:
        is_done.append(True)
        thread.join()


def test_what_others_have_at_the_addresses_of_a_freed_file_stays(no_room, monkeypatch):
    """Pages of a file are taken out while files go, and memory of others comes to their places."""
    monkeypatch.setattr(file_memory, "LEAST", 0)
    is_done, addresses = [], set()
    size = 4 * MIB

    def leave():
        while not is_done:
            file_memory.look()

    def use(seed):
        for k in range(100):
            file = file_memory.FileMemory(size)
            addresses.add(file.address)
            np.frombuffer(file.mapping, np.uint8)[:] = seed
            file.free()
            other = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            there = np.frombuffer(other, np.uint8)
            is_again = there.ctypes.data in addresses
            there[:] = 1 + k % 255
            for _ in range(3):
                assert (there == 1 + k % 255).all()
            met.append(is_again)
            del there
            other.close()

    met, threads = [], [Thread(target=leave)]
    threads[0].start()
    try:
        with workers(3) as pool:
            pool.map(use, range(3))
    finally:
        is_done.append(True)
        threads[0].join()
    assert any(met)  # addresses were used again


SPARSE = """
import sys
from pathlib import Path
import numpy as np
from spatialq.runtime import budget, buffers, file_memory, memory
with budget.limited(1, Path(sys.argv[1])):
    buffers.empty(8 << 20, 'u1')
most = memory.resident().bytes + (128 << 20)
with budget.limited(most, Path(sys.argv[1])):
    array = buffers.full(512 << 20, 7, 'u1')
    Path('/proc/self/clear_refs').write_text('5')  # the peak begins anew
    for step in (1 << 16, 100_000):
        assert (buffers.take(array, np.arange(0, array.size, step)) == 7).all()
peak = Path('/proc/self/status').read_text().partition('VmHWM:')[2]
print(most, int(peak.split()[0]) << 10)
"""


def test_resident_memory_is_limited_where_few_values_are_taken_of_many_pages(tmp_path):
    said, wrong = run(SPARSE, tmp_path).communicate(timeout=120)
    assert wrong == ""
    most, peak = map(int, said.split())
    assert peak < most


def test_a_fork_limits_its_own_memory(no_room):
    script = """
import os, sys
from pathlib import Path
from spatialq.runtime import budget, buffers, file_memory, memory
with budget.limited(1, Path(sys.argv[1])):
    held = buffers.full(64 << 20, 7, 'u1')
    child = os.fork()
    if child == 0:
        more = buffers.full(64 << 20, 3, 'u1')
        assert file_memory._watcher.is_running and len(file_memory._watcher.live) == 2
        assert file_memory.resident() <= file_memory.LEAST + (64 << 20)
        assert held.min() == 7 and more.max() == 3
        del held, more
        assert not file_memory._watcher.live
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert held.max() == 7
"""
    _, wrong = run(script, budget.folder()).communicate(timeout=60)
    assert wrong == ""


@pytest.mark.parametrize("size", [1, 1 << 40])
def test_the_process_ends_while_a_thread_writes_an_array(size, tmp_path):
    script = """
import sys, threading
from pathlib import Path
from spatialq.runtime import budget, buffers
def fill():
    with budget.limited(int(sys.argv[2]), Path(sys.argv[1])):
        array = buffers.empty(256 << 20, 'u1')
        started.set()
        while True:
            array[:] = 1
started = threading.Event()
threading.Thread(target=fill, daemon=True).start()
started.wait()
"""
    for _ in range(2):
        process = run(script, tmp_path, size)
        _, wrong = process.communicate(timeout=60)
        assert (process.returncode, wrong) == (0, "")
