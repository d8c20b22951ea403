"""Large arrays whose memory is used again: fresh memory costs more than most kernels.

A page of memory that a process has never written costs a page fault, and a page that a GPU copies
from or to directly costs being locked. The memory of large arrays therefore goes back to a pool
when the last view of an array is gone, and the next array of about that size gets it.

What lies unused is limited by `SPATIALQ_BUFFER_BYTES`, given back to the system after
`IDLE_SECONDS`, and by `trim` at once.

An array for which the budget of memory (`spatialq.runtime.budget`) has no room is in a file, which
is gone with the last view; see `spatialq.runtime.file_memory`.
"""

import mmap
import os
import sys
import time
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from math import inf
from threading import Lock, Thread
from typing import Any

import numpy as np

from spatialq.runtime import budget, cuda, file_memory, memory
from spatialq.runtime.file_memory import FileMemory

HUGE_PAGE = 2 << 20
"""Bytes of a huge page; smaller arrays come from `numpy.empty`."""
STEPS = 8
"""Sizes of buffers in each octave, so that arrays of about one size share them."""
FITS = 2
"""A buffer may be at most so many times as large as the array that gets it."""
IN_FILES = 8 << 20
"""Bytes from which on an array may be in a file."""
IN_MEMORY = 0.6
"""Part of the budget up to which new arrays are in memory: the rest is for the pages of files that
are in use, and for what kernels take besides."""
CHUNK = 1 << 20
"""Values that are copied at once where that takes memory besides."""
TAKEN = 1 << 9
"""Rows that are taken at once by their positions, while there are files: each may bring in 64 KiB,
and the thread that looks for it waits for the GIL meanwhile."""
IDLE_SECONDS = 60.0
"""A buffer that nobody wanted for this long is given back to the system."""
SHARE_OF_FREE, MAX_LIMIT = 1 / 4, 8 << 30
"""The limit by default: a part of the memory that is available at first, at most so many bytes."""


@dataclass
class Usage:
    """Bytes of the pool's buffers."""

    in_use: int
    unused: int
    page_locked: int
    """Of both."""


def empty(shape: Any, dtype: Any = np.float64, *, page_locked: bool = False) -> Any:
    """Allocate an array like `numpy.empty`, with memory of the pool if it is large.

    Parameters
    ----------
    shape : int, or tuple of int
    dtype : NumPy type
        Without Python objects.
    page_locked : bool
        Whether a GPU is to copy from or to it directly; only in a process that uses a GPU. A small
        array, or one beyond `limit`, is not locked.

    Returns
    -------
    array
        Its memory goes back to the pool with the last view of it.

    Raises
    ------
    MemoryError
        If there is not enough memory.
    """
    sizes, kind, size = _size(shape, dtype)
    if size < min(HUGE_PAGE, IN_FILES):
        return np.empty(sizes, kind)
    return _array(sizes, kind, size, page_locked=page_locked)[0]


def scratch(shape: Any, dtype: Any = np.float64) -> Any:
    """Allocate an array as `empty`, but with memory of the pool only if it may be in a file.

    For what a kernel drops soon: `malloc` has memory for smaller arrays, and keeps it only if it is
    asked for it.
    """
    sizes, kind, size = _size(shape, dtype)
    return np.empty(sizes, kind) if size < IN_FILES else _array(sizes, kind, size)[0]


def empty_like(array: Any) -> Any:
    """Allocate an array of the shape and type of another as `scratch` does."""
    return scratch(array.shape, array.dtype)


def zeros(shape: Any, dtype: Any = np.float64) -> Any:
    """Allocate an array of zeros as `scratch` does."""
    sizes, kind, size = _size(shape, dtype)
    if size < IN_FILES:
        return np.zeros(sizes, kind)
    array, is_zero = _array(sizes, kind, size)
    if not is_zero:
        array.reshape(-1).view(np.uint8).fill(0)  # of records, too
    return array


def full(shape: Any, value: Any, dtype: Any = np.float64) -> Any:
    """Allocate an array of one value as `scratch` does."""
    array = scratch(shape, dtype)
    array.fill(value)
    return array


def concatenate(arrays: Sequence[Any]) -> Any:
    """Join arrays of one type along their first axis, as `numpy.concatenate` does."""
    first = arrays[0]
    result = scratch((sum(len(each) for each in arrays), *first.shape[1:]), first.dtype)
    return np.concatenate(arrays, out=result)


def take(values: Any, at: Any) -> Any:
    """Take rows of an array by their positions, in chunks, as `values[at]` does."""
    most = TAKEN if file_memory.is_used() else CHUNK
    if len(at) <= most:
        return values[at]
    result = scratch((len(at), *values.shape[1:]), values.dtype)
    for first in _chunks(len(at), most):
        part = slice(first, first + most)
        result[part] = values[at[part]]
    return result


def select(values: Any, wanted: Any) -> Any:
    """Take the values of an array where another is true, in chunks, as `values[wanted]` does."""
    if values.size <= CHUNK:
        return values[wanted]
    rows = max(1, CHUNK * len(values) // max(values.size, 1))
    result, n = scratch(np.count_nonzero(wanted), values.dtype), 0
    for first in _chunks(len(values), rows):
        found = values[first : first + rows][wanted[first : first + rows]]
        result[n : n + found.size] = found
        n += found.size
    return result


def positions(wanted: Any) -> Any:
    """Give the positions where a flat array is true, in chunks, as `numpy.flatnonzero` does."""
    if wanted.size <= CHUNK:
        return np.flatnonzero(wanted)
    result, n = scratch(np.count_nonzero(wanted), np.int64), 0
    for first in _chunks(len(wanted), CHUNK):
        found = np.flatnonzero(wanted[first : first + CHUNK])
        result[n : n + found.size] = found
        result[n : n + found.size] += first
        n += found.size
    return result


def _chunks(size: int, chunk: int) -> Iterator[int]:
    """Give the first position of each chunk, at which there are not too many pages of files."""
    for first in range(0, size, chunk):
        file_memory.look()
        yield first


def _size(shape: Any, dtype: Any) -> tuple[tuple[Any, ...], Any, int]:
    """Give the shape, the type and the bytes of an array."""
    kind = np.dtype(dtype)
    sizes = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    size = kind.itemsize
    for each in sizes:
        size *= int(each)
    return sizes, kind, size


def _array(
    sizes: tuple[Any, ...], kind: Any, size: int, *, page_locked: bool = False
) -> tuple[Any, bool]:
    """Allocate an array that is large, and tell whether it is all zero."""
    buffer, is_zero = _pool.take(size, page_locked=page_locked)
    owner = _Owner(buffer, size)
    give_back = buffer.free if isinstance(buffer, FileMemory) else partial(_pool.give_back, buffer)
    returns = weakref.finalize(owner, give_back)
    returns.atexit = False  # the system takes all memory then
    return np.asarray(owner).view(kind).reshape(sizes), is_zero


def trim() -> None:
    """Give all unused buffers back to the system."""
    _pool.trim()


def usage() -> Usage:
    """Count the bytes that arrays of the pool have, and those that wait for the next."""
    return _pool.usage()


def limit() -> int:
    """Bytes that may lie unused, and that may be page-locked: `SPATIALQ_BUFFER_BYTES`.

    By default a quarter of the memory that was available at first, at most 8 GiB.
    """
    given = os.environ.get("SPATIALQ_BUFFER_BYTES", "")
    return int(given) if given.isdecimal() else _default_limit()


@cache
def _default_limit() -> int:
    return min(int((memory.host_free() or MAX_LIMIT) * SHARE_OF_FREE), MAX_LIMIT)


class _Buffer:
    """Memory of the system, aligned to huge pages."""

    def __init__(self, size: int) -> None:
        # private: pages of shared memory would not be huge
        flags = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if os.name == "posix" else {}
        self._memory = mmap.mmap(-1, size + HUGE_PAGE, **flags)
        start = np.frombuffer(self._memory, np.uint8).ctypes.data
        self.address, self.size = -(-start // HUGE_PAGE) * HUGE_PAGE, size
        self.unused_since = 0.0
        self._locked_by = 0
        self._device: cuda.Device | None = None
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # a kernel without huge pages
                self._memory.madvise(mmap.MADV_HUGEPAGE)

    @property
    def is_locked(self) -> bool:
        return self._locked_by == os.getpid()  # a fork of this process has no locked pages

    def lock(self) -> None:
        device = cuda.device()
        if device.lock_pages(self.address, self.size):
            self._locked_by, self._device = os.getpid(), device

    def free(self) -> None:
        if self._device is not None and self.is_locked:
            self._device.unlock_pages(self.address)
        self._memory.close()


class _Owner:
    """What arrays of the pool are views of: it lives as long as any of them.

    It holds the buffer: when the process ends, what else does may go before arrays and threads.
    """

    def __init__(self, buffer: "_Buffer | FileMemory", size: int) -> None:
        self._buffer = buffer
        self.__array_interface__ = {
            "data": (buffer.address, False),
            "shape": (size,),
            "typestr": "|u1",
            "version": 3,
        }


@dataclass
class _Pool:
    """Buffers that wait for the next array, the one that has waited longest first."""

    unused: list[_Buffer] = field(default_factory=list)
    in_use: int = 0
    locked: int = 0
    returned: deque[_Buffer] = field(default_factory=deque)
    """Not yet in `unused`: whoever drops an array may hold the lock, or wait for another thread."""
    lock: Any = field(default_factory=Lock)
    keeper: Thread | None = None
    others: int = sys.maxsize
    """Least resident bytes of the process so far: what it has besides the buffers."""

    def take(self, size: int, *, page_locked: bool) -> "tuple[_Buffer | FileMemory, bool]":
        """Find memory for an array, and tell whether it is all zero."""
        buffer = self._reuse(size, page_locked=page_locked)
        is_new = buffer is None
        if buffer is None:
            if not self._fits(_rounded(size), size):
                return FileMemory(size), True
            buffer = self._make(_rounded(size))
        if page_locked and not buffer.is_locked:
            self._lock_pages(buffer)
        return buffer, is_new

    def _reuse(self, size: int, *, page_locked: bool) -> _Buffer | None:
        """Take an unused buffer; what can be in a file only as long as the budget has room."""
        with self._locked():
            fitting = [each for each in self.unused if size <= each.size <= FITS * size]
            if not fitting or (_may_be_in_file(size) and not self._has_room(0)):
                return None
            buffer = min(fitting, key=lambda each: (each.is_locked != page_locked, each.size))
            self.unused.remove(buffer)
            self.in_use += buffer.size
        return buffer

    def _fits(self, size: int, wanted: int) -> bool:
        """Whether a new buffer may be made, if need be in the place of the unused ones."""
        if self._has_room(size):
            return True
        self.trim()
        return not _may_be_in_file(wanted) or self._has_room(size)

    def _has_room(self, size: int) -> bool:
        """Whether the budget has room for so many bytes more.

        What the process has is what is resident; arrays may not have been written yet.
        """
        resident = memory.resident().bytes - file_memory.resident()
        self.others = min(self.others, resident)
        pool = self.in_use + sum(each.size for each in self.unused)
        return max(resident, pool + self.others) + size <= budget.current() * IN_MEMORY

    def _make(self, size: int) -> _Buffer:
        try:
            buffer = _Buffer(size)
        except (OSError, OverflowError, ValueError):
            self.trim()
            try:
                buffer = _Buffer(size)
            except (OSError, OverflowError, ValueError) as error:
                message = f"{size / 2**30:.3g} GiB for an array could not be allocated: {error}"
                raise MemoryError(message) from None
        with self._locked():
            self.in_use += size
            if self.keeper is None:
                keeper = Thread(target=self._keep, name="spatialq buffers", daemon=True)
                with suppress(RuntimeError):  # the process is ending
                    keeper.start()
                    self.keeper = keeper
        return buffer

    def _lock_pages(self, buffer: _Buffer) -> None:
        with self._locked():
            if self.locked + buffer.size > limit():
                return
            self.locked += buffer.size
        buffer.lock()
        if not buffer.is_locked:
            with self._locked():
                self.locked -= buffer.size

    def give_back(self, buffer: _Buffer) -> None:
        """Take a buffer that no array uses any more; called wherever the last view was dropped."""
        if sys.is_finalizing():
            return
        self.returned.append(buffer)
        self._settle()

    def _settle(self) -> None:
        """Sort in what was returned, unless another holder of the lock does so when it is done."""
        while self.returned and self.lock.acquire(blocking=False):
            try:
                with suppress(IndexError):
                    while True:
                        buffer = self.returned.popleft()
                        buffer.unused_since = time.monotonic()
                        self.in_use -= buffer.size
                        self.unused.append(buffer)
                self._drop(until=limit())
            finally:
                self.lock.release()

    def _drop(self, *, until: int = 0, before: float = inf) -> None:
        """Free unused buffers, those that waited longest first.

        Parameters
        ----------
        until : int
            Bytes that may stay.
        before : float
            What was returned later than that stays.
        """
        left = sum(each.size for each in self.unused)
        while left > until and self.unused[0].unused_since <= before:
            buffer = self.unused.pop(0)
            left -= buffer.size
            self.locked -= buffer.size if buffer.is_locked else 0
            buffer.free()

    def trim(self) -> None:
        with self._locked():
            self._drop()

    def usage(self) -> Usage:
        with self._locked():
            return Usage(self.in_use, sum(each.size for each in self.unused), self.locked)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._settle()
        with self.lock:
            yield
        self._settle()

    def _keep(self) -> None:
        """Free what has waited for too long, as long as there are buffers."""
        while True:
            time.sleep(IDLE_SECONDS / 4)
            with self._locked():
                self._drop(before=time.monotonic() - IDLE_SECONDS)
                if not (self.unused or self.in_use):
                    self.keeper = None
                    return

    def forked(self) -> None:
        """Begin again in a fork: no other thread lives on there, and no page is locked."""
        self.lock, self.keeper, self.locked, self.unused = Lock(), None, 0, []


def _may_be_in_file(size: int) -> bool:
    return size >= IN_FILES and file_memory.IS_POSSIBLE


def _rounded(size: int) -> int:
    """Round a size up to whole huge pages, and to one of `STEPS` sizes in each octave."""
    step = max(HUGE_PAGE, (1 << (size.bit_length() - 1)) // STEPS)
    return -(-size // step) * step


_pool = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forked)
