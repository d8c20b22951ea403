"""Arrays beyond the budget, mapped from files, with a limit on how much of them is resident.

A file is removed from its folder as soon as it is open, so that none is left however the process
ends. It is mapped into memory and shared: its pages are resident while they are used. When the
process has more than its budget, a thread releases all pages at once, and so does `look`. The pages
then stay in the system's cache of files, or are written to disk, and come back when they are used
next. The thread needs the GIL, which compiled kernels and most of NumPy leave to it.
"""

import mmap
import os
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread

import numpy as np

from spatialq.runtime import budget, memory
from spatialq.runtime.arrays import Array, DType

IS_POSSIBLE = (
    hasattr(os, "posix_fallocate") and hasattr(mmap, "MADV_DONTNEED") and memory.STATM.exists()
)
"""Whether this system has what it takes, as Linux has: elsewhere all arrays are in memory."""
INTERVAL = 0.001
"""Seconds between two looks at the resident memory."""
SHARE_OF_BUDGET = 0.7
"""Part of the budget at which pages are taken out: more are used until the next look."""
ESTIMATES = 8
"""Estimates of what other files have in memory, of which the least counts. A library that is loaded
meanwhile counts as pages of files until so many newer ones are there."""
LEAST = 32 << 20
"""Bytes of files that may be resident, however much the process has otherwise."""


@dataclass
class Note:
    """What went to files in a block of `noting`."""

    bytes: int = 0
    folder: Path = Path()
    budget: int = 0

    def __str__(self) -> str:
        """Say it for the log; empty where all arrays were in memory."""
        if self.bytes == 0:
            return ""
        return (
            f"arrays of {self.bytes / 1e9:.3g} GB in files under '{self.folder}', as the memory "
            f"budget is {self.budget / 1e9:.3g} GB"
        )


_note: ContextVar[Note | None] = ContextVar("spatialq_file_memory", default=None)


@contextmanager
def noting() -> Iterator[Note]:
    """Note what goes to files within the block, in all threads of its work."""
    note = Note()
    token = _note.set(note)
    try:
        yield note
    finally:
        _note.reset(token)


class _Pages:
    """The pages of a mapped file, some of which are resident."""

    def __init__(self, mapping: mmap.mmap, allowed: int) -> None:
        self.mapping, self.budget = mapping, allowed
        self.address, self.size = np.frombuffer(mapping, np.uint8).ctypes.data, len(mapping)

    def take_out(self) -> None:
        """Take all pages out of the process; a mapping that has just been ended has none."""
        with suppress(ValueError):
            self.mapping.madvise(mmap.MADV_DONTNEED)


class FileMemory(_Pages):
    """The bytes of a file without a name, all zero at first.

    Parameters
    ----------
    size : int

    Attributes
    ----------
    address, size : int

    Raises
    ------
    MemoryError
        If the file cannot be made, for one because the disk is full: it has its whole size from the
        beginning.
    """

    def __init__(self, size: int) -> None:
        folder, allowed = budget.folder(), budget.current()
        try:
            with tempfile.TemporaryFile(prefix="spatialq_", dir=folder) as file:
                os.posix_fallocate(file.fileno(), 0, size)
                super().__init__(mmap.mmap(file.fileno(), size), allowed)
        except (OSError, OverflowError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            message = (
                f"{size / 1e9:.3g} GB for an array are beyond the memory budget of "
                f"{allowed / 1e9:.3g} GB, and a file for it cannot be made in '{folder}': "
                f"{reason}"
            )
            raise MemoryError(message) from None
        _watcher.watch(self)
        if (note := _note.get()) is not None:
            note.bytes, note.folder, note.budget = note.bytes + size, folder, allowed

    def free(self) -> None:
        """Give everything back; wherever the last view of an array was dropped."""
        _watcher.forget(self)
        self.mapping.close()


@contextmanager
def mapped(path: Path, dtype: "DType") -> Iterator[Array]:
    """Map the records of a file, to be read within the block; views must end before it does.

    What is resident of it counts as what is resident of `FileMemory`.
    """
    with path.open("rb") as file:
        pages = _Pages(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), budget.current())
    if IS_POSSIBLE:
        _watcher.watch(pages)
    try:
        yield np.frombuffer(pages.mapping, dtype)
    except BaseException:
        _watcher.forget(pages)
        with suppress(BufferError):  # the traceback has views, with the last of which it ends
            pages.mapping.close()
        raise
    _watcher.forget(pages)
    pages.mapping.close()


class _Watcher:
    """The thread that takes pages out of the process, as long as there are any files.

    Attributes
    ----------
    live : dict
        The files by their `id`. A collection of garbage may drop one at any moment, in any thread:
        `forget` takes no lock.
    others : int
        Resident bytes of other files, which are mostly libraries: estimated as the least of what
        there was after pages were last taken out, as other threads bring some in again at once.
    """

    def __init__(self) -> None:
        self.live: dict[int, _Pages] = {}
        self.others = 0
        self._left = deque[int]()
        self.is_running = False
        self._lock, self._looks = Lock(), Lock()

    def watch(self, pages: _Pages) -> None:
        with self._lock:
            if not self.live:
                self.others = memory.resident().of_files
                self._left = deque([self.others], ESTIMATES)
            self.live[id(pages)] = pages
            if not self.is_running:
                self.is_running = True
                Thread(target=self._run, name="spatialq files", daemon=True).start()

    def forget(self, pages: _Pages) -> None:
        self.live.pop(id(pages), None)

    def resident(self) -> int:
        """Estimate the resident bytes of all files."""
        return max(memory.resident().of_files - self.others, 0) if self.live else 0

    def look(self) -> None:
        """Take pages out if there are too many; who looks meanwhile brings none in, but waits."""
        if not self.live:
            return
        with self._looks:
            files = list(self.live.values())
            if not files:  # a collection of garbage has dropped the last one
                return
            resident = memory.resident()
            mapped = max(resident.of_files - self.others, 0)
            allowed = SHARE_OF_BUDGET * min(each.budget for each in files) - (
                resident.bytes - mapped
            )
            if mapped > max(allowed, LEAST):
                for each in files:
                    each.take_out()
                self._left.append(memory.resident().of_files)
                self.others = min(self._left)

    def forked(self) -> None:
        """Begin again in a fork, where the thread does not live on: the next file starts it."""
        self._lock, self._looks, self.is_running = Lock(), Lock(), False

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self.live:
                    self.is_running = False
                    return
            self.look()
            time.sleep(INTERVAL)


_watcher = _Watcher()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_watcher.forked)


def look() -> None:
    """Take pages out if there are too many: between parts of work, whoever else has the cores."""
    _watcher.look()


def is_used() -> bool:
    """Whether there are any files."""
    return bool(_watcher.live)


def resident() -> int:
    """Estimate the bytes of all such files that are resident."""
    return _watcher.resident()
