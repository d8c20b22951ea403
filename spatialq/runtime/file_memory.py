"""Memory in files, for arrays beyond the budget; of what is resident of it, there is a limit.

A file has no name any more as soon as it is open, so that none is left however the process ends. It
is mapped into memory and shared, so that its pages are in main memory while they are used. A thread
without the GIL (`spatialq.runtime.resident_pages`) takes pages out of the process, all at once,
when it has more than its budget, and so does `look`: they stay in the system's cache of files, or
are written to disk, and come back when they are used next.
"""

import atexit
import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.runtime import budget, memory

if TYPE_CHECKING:
    from numpy.typing import NDArray

IS_POSSIBLE = (
    hasattr(os, "posix_fallocate") and hasattr(mmap, "MADV_DONTNEED") and memory.STATM.exists()
)
"""Whether this system has what it takes, as Linux has: elsewhere all arrays are in memory."""
INTERVAL = 1000
"""Microseconds between two looks at the resident memory."""
SHARE = 0.7
"""Part of the budget at which pages are taken out: more are used until the next look."""
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

    def __init__(self, mapped: mmap.mmap, allowed: int) -> None:
        self.mapping, self.budget = mapped, allowed
        self.address, self.size = np.frombuffer(mapped, np.uint8).ctypes.data, len(mapped)

    def close(self) -> None:
        """End the mapping; not before the watcher forgot it."""
        self.mapping.close()


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
        self.close()


@contextmanager
def mapped(path: Path, dtype: "np.dtype[Any]") -> "Iterator[NDArray[Any]]":
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
            pages.close()
        raise
    _watcher.forget(pages)
    pages.close()


class _Watcher:
    """The thread that takes pages out of the process, as long as there are any files.

    Attributes
    ----------
    live : dict
        The files by their `id`; a dictionary since any thread may drop one at any moment.
    """

    def __init__(self) -> None:
        self.live: dict[int, _Pages] = {}
        self._lock = Lock()  # for who prepares: never while a file is freed, as there is none
        self._compiled: Any = None
        self._state: Any = None
        self._table: Any = None
        self._statm = -1
        self._thread: Thread | None = None

    def watch(self, pages: _Pages) -> None:
        with self._lock:
            if self._compiled is None:
                self._prepare()
        self.live[id(pages)] = pages
        if self._add(pages):
            thread = Thread(target=self._run, name="spatialq files", daemon=True)
            with suppress(RuntimeError):  # the process is ending
                thread.start()
                self._thread = thread
                self._compiled.wait(self._state)

    def forget(self, pages: _Pages) -> None:
        if self.live.pop(id(pages), None) is not None:
            self._compiled.remove(self._state, self._table, pages.address)

    def is_running(self) -> bool:
        """Whether the thread is there."""
        return self._compiled is not None and bool(self._state[self._compiled.IS_RUNNING])

    def resident(self) -> int:
        """Estimate the resident bytes of all files: those of libraries were there before."""
        if not self.live:
            return 0
        return max(memory.resident().of_files - int(self._state[self._compiled.OTHERS]), 0)

    def look(self) -> None:
        """Take pages out if there are too many."""
        if self.live:
            self._compiled.look(self._state, self._table, self._statm, SHARE, LEAST)

    def end(self) -> None:
        """End the thread, before what it runs is unloaded."""
        if self._compiled is not None:
            self._state[self._compiled.IS_ENDING] = 1
        if self._thread is not None:
            self._thread.join()

    def forked(self) -> None:
        """Begin again in a fork, where the thread does not live on, and the process is another."""
        self._lock, self._thread = Lock(), None
        if self._compiled is not None:
            os.close(self._statm)
            self._begin()
            for each in self.live.values():
                self._add(each)
            self._state[self._compiled.IS_RUNNING] = 0  # the next file starts it

    def _prepare(self) -> None:
        """Compile the loop, or load it, when the first array goes to a file.

        All of it: a collection of garbage may call `forget` at any moment.
        """
        from spatialq.runtime import resident_pages

        state, table = resident_pages.new_state(), resident_pages.new_table()
        resident_pages.add(state, table, -1, 0, 0, 0)
        resident_pages.remove(state, table, 0)
        resident_pages.look(state, table, -1, SHARE, LEAST)
        resident_pages.watch(state, table, -1, SHARE, LEAST, INTERVAL)  # no file: it returns
        resident_pages.wait(state)
        self._begin()
        self._compiled = resident_pages
        atexit.register(self.end)

    def _begin(self) -> None:
        from spatialq.runtime import resident_pages

        self._state, self._table = resident_pages.new_state(), resident_pages.new_table()
        self._statm = os.open(memory.STATM, os.O_RDONLY | os.O_CLOEXEC)

    def _add(self, pages: _Pages) -> bool:
        given = pages.address, pages.size, pages.budget
        return bool(self._compiled.add(self._state, self._table, self._statm, *given))

    def _run(self) -> None:
        given = self._state, self._table, self._statm, SHARE, LEAST
        self._compiled.watch(*given, INTERVAL)


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
