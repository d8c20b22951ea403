"""The pool of large arrays: who gets which memory, when it is kept, and when it is given back."""

import gc
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from spatialq.runtime import budget, buffers, cuda

from .host.device import HostDevice

MIB = 1 << 20


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Begin and end without unused buffers, and with room for 64 MiB of them."""
    monkeypatch.setenv("SPATIALQ_BUFFER_BYTES", str(64 * MIB))
    gc.collect()
    buffers.trim()
    yield
    buffers.trim()


def address(array):
    return array.__array_interface__["data"][0]


def resident(array):
    """Count the bytes at an array's addresses that are in main memory, as Linux has them."""
    first = address(array)
    with Path("/proc/self/smaps").open(encoding="ascii") as lines:
        inside = False
        for line in lines:
            name, *values = line.split()
            if "-" in name and ":" not in name:
                low, high = (int(each, 16) for each in name.split("-"))
                inside = low <= first < high
            elif inside and name == "Rss:":
                return int(values[0]) << 10
    return 0


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [(0, "f8"), (10, "i4"), (3_000_000, "f8"), ((1000, 3, 1001), "u2"), (np.int64(1 << 22), "?")],
)
def test_array_is_like_numpys(shape, dtype):
    array, like = buffers.empty(shape, dtype), np.empty(shape, dtype)
    assert (array.shape, array.dtype, array.strides) == (like.shape, like.dtype, like.strides)
    assert array.flags.c_contiguous
    assert array.flags.writeable
    array[...] = 1
    assert array.sum() == array.size


def test_memory_is_used_again_only_after_the_last_view_of_it_is_gone():
    first = buffers.empty(1 << 20)
    first[:] = np.arange(first.size)
    where, view = address(first), first[5::7].reshape(-1, 1)
    del first
    other = buffers.empty(1 << 20)
    other[:] = -1
    assert address(other) != where
    assert np.array_equal(view[:, 0], np.arange(5, 1 << 20, 7))
    del view
    again = buffers.empty(1 << 20, np.int64)
    assert address(again) == where


def test_arrays_of_about_one_size_share_buffers_and_much_smaller_ones_do_not():
    array = buffers.empty(32 * MIB, np.uint8)
    where = address(array)
    del array
    small = buffers.empty(8 * MIB, np.uint8)
    assert address(small) != where
    near = buffers.empty(31 * MIB, np.uint8)
    assert address(near) == where


def test_small_arrays_are_not_of_the_pool():
    before = buffers.usage()
    arrays = [buffers.empty(1000) for _ in range(5)]
    assert buffers.usage() == before
    del arrays


def test_unused_bytes_stay_below_the_limit():
    arrays = [buffers.empty(16 * MIB, np.uint8) for _ in range(10)]
    in_use = buffers.usage().in_use
    assert in_use >= 160 * MIB
    last = address(arrays[-1])
    while arrays:
        del arrays[0]
        assert buffers.usage().unused <= 64 * MIB
    assert buffers.usage().unused == 64 * MIB
    assert buffers.usage().in_use == in_use - 160 * MIB
    # those that were returned last are kept
    kept = [buffers.empty(16 * MIB, np.uint8) for _ in range(4)]
    assert last in map(address, kept)


def test_what_exceeds_the_limit_is_not_kept(monkeypatch):
    monkeypatch.setenv("SPATIALQ_BUFFER_BYTES", "0")
    array = buffers.empty(4 * MIB, np.uint8)
    del array
    assert buffers.usage().unused == 0


def test_beyond_the_budget_small_arrays_have_unused_buffers_and_others_make_room():
    """They are never in files, so that each would have new memory and leave it unused."""
    with budget.limited(1):
        array = buffers.empty(3 * MIB, np.uint8)
        where = address(array)
        del array
        again = buffers.empty(3 * MIB, np.uint8)
        assert address(again) == where
        del again
        array = buffers.empty(7 * MIB, np.uint8)
        assert buffers.usage().unused == 0
        del array


def test_limit_is_the_variable_or_a_part_of_the_memory(monkeypatch):
    assert buffers.limit() == 64 * MIB
    monkeypatch.delenv("SPATIALQ_BUFFER_BYTES")
    assert 0 < buffers.limit() <= buffers.MAX_LIMIT
    monkeypatch.setenv("SPATIALQ_BUFFER_BYTES", "much")
    assert 0 < buffers.limit() <= buffers.MAX_LIMIT


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs Linux")
def test_trim_gives_memory_back_to_the_system():
    array = buffers.empty(48 * MIB, np.uint8)
    array[:] = 1
    assert resident(array) >= 48 * MIB
    places = array[:1]
    where = np.lib.array_utils.byte_bounds(array)
    del array
    buffers.trim()
    assert resident(places) >= 48 * MIB, "a view is left"
    del places
    assert buffers.usage().unused == 48 * MIB
    buffers.trim()
    assert buffers.usage().unused == 0
    with Path("/proc/self/maps").open(encoding="ascii") as lines:
        spans = [[int(each, 16) for each in line.split()[0].split("-")] for line in lines]
    assert not any(low <= where[0] and where[1] <= high for low, high in spans)


def test_what_nobody_wants_is_given_back_after_a_while(monkeypatch):
    array = buffers.empty(4 * MIB, np.uint8)
    del array
    assert buffers.usage().unused == 4 * MIB
    pool = buffers._Pool()  # with a keeper that sleeps for a short time
    monkeypatch.setattr(buffers, "_pool", pool)
    monkeypatch.setattr(buffers, "IDLE_SECONDS", 0.04)
    array = buffers.empty(4 * MIB, np.uint8)
    keeper = pool.keeper
    time.sleep(0.1)
    assert keeper.is_alive(), "an array is left"
    del array
    keeper.join(60)
    assert not keeper.is_alive()
    assert buffers.usage() == buffers.Usage(0, 0, 0)
    array = buffers.empty(4 * MIB, np.uint8)  # which the keeper stays for
    assert pool.keeper.is_alive()
    del array


def test_no_two_threads_have_one_buffer():
    def work(seed):
        draw = np.random.default_rng(seed)
        held = []
        for step in range(60):
            array = buffers.empty(int(draw.integers(2, 9)) * MIB // 8, np.int64)
            mark = seed * 1000 + step
            array[::512] = mark
            held.append((mark, array[: int(draw.integers(1, array.size))]))
            if len(held) > 3:
                held.pop(int(draw.integers(len(held))))
            if step % 20 == 7:
                buffers.trim()
            assert all((values[::512] == expected).all() for expected, values in held)
        return True

    before = buffers.usage().in_use
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
    gc.collect()
    assert buffers.usage().in_use == before
    assert buffers.usage().unused <= 64 * MIB


def test_arrays_in_cycles_are_returned_by_the_garbage_collector():
    before = buffers.usage().in_use
    for _ in range(20):
        holder = {"array": buffers.empty(4 * MIB, np.uint8)}
        holder["itself"] = holder
    del holder
    gc.collect()
    assert buffers.usage().in_use == before


def test_pages_are_locked_once_and_unlocked_before_they_are_freed(monkeypatch):
    locked = {}

    class Device(HostDevice):
        def lock_pages(self, address, size):
            assert address not in locked
            locked[address] = size
            return True

        def unlock_pages(self, address):
            del locked[address]

    monkeypatch.setattr(cuda, "device", Device)
    array = buffers.empty(4 * MIB, np.uint8, page_locked=True)
    where = address(array)
    assert locked == {where: 4 * MIB}
    assert buffers.usage().page_locked == 4 * MIB
    other = buffers.empty(4 * MIB, np.uint8)
    assert len(locked) == 1
    del array, other
    again = buffers.empty(4 * MIB, np.uint8, page_locked=True)
    assert address(again) == where
    assert locked == {where: 4 * MIB}
    beyond = buffers.empty(61 * MIB, np.uint8, page_locked=True)
    assert len(locked) == 1, "beyond the limit nothing is locked"
    del again, beyond
    buffers.trim()
    assert not locked
    assert buffers.usage().page_locked == 0


def test_pages_that_cannot_be_locked_are_used_as_they_are(monkeypatch):
    class Device(HostDevice):
        def lock_pages(self, address, size):
            return False

    monkeypatch.setattr(cuda, "device", Device)
    array = buffers.empty(4 * MIB, np.uint8, page_locked=True)
    array[:] = 1
    assert buffers.usage().page_locked == 0


def test_memory_that_is_not_there_is_an_error():
    with pytest.raises(MemoryError, match=r"could not be allocated|a file for it cannot be made"):
        buffers.empty(1 << 58)


def test_process_ends_with_arrays_and_unused_buffers():
    code = """
import threading, time, numpy as np
from spatialq.runtime import buffers
kept = buffers.empty(1 << 20)
gone = [buffers.empty(1 << 20), buffers.empty(1 << 20)]
del gone
def forever():
    mine = buffers.empty(1 << 20)
    while True:
        mine[:] = 1
threading.Thread(target=forever, daemon=True).start()
time.sleep(0.05)
print(buffers.usage().unused > 0)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (found.returncode, found.stdout, found.stderr) == (0, "True\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_has_arrays_of_its_own():
    code = """
import os, numpy as np
from spatialq.runtime import buffers
kept, gone = buffers.empty(1 << 20), buffers.empty(1 << 20)
kept[:], gone[:] = 1, 2
del gone
buffers._pool.lock.acquire()  # as a thread may that does not live on in the fork
child = os.fork()
if child == 0:
    assert (kept == 1).all()
    kept[:] = 3
    new = buffers.empty(1 << 20)
    new[:] = 4
    del kept, new
    assert buffers.usage().unused == 2 << 23, buffers.usage()
    os._exit(0)
buffers._pool.lock.release()
_, status = os.waitpid(child, 0)
assert status == 0, status
assert (kept == 1).all()
again = buffers.empty(1 << 20)
assert (again == 2).all()
"""
    found = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True)
    assert (found.returncode, found.stderr) == (0, b"")
