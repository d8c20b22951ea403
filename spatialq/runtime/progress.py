"""Progress and cancellation of a call: its task.

A call of a function runs in a task. Its kernel says which stage it has reached and asks, between
parts of its work, whether it is to go on: by `stage`, `report` and `check` of this module, which
find the task without it being an argument of every function, and do nothing where there is none.
`spatialq.runtime.threads` does it for work in threads. Whoever waits for the call sees how far it
is, and may cancel it from any thread.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from threading import get_ident
from weakref import WeakSet

import numpy as np

from spatialq.runtime import forks
from spatialq.runtime.arrays import Bytes

Listener = Callable[[float, str], object]
"""Called with the fraction that is done, from 0 to 1, and the name of the stage."""

INTERVAL = 0.1
"""Seconds between two calls of a listener, at least."""


class Cancelled(KeyboardInterrupt):
    """The call was told to stop.

    Like KeyboardInterrupt it is no `Exception`: code that handles errors does not handle it, and to
    a caller it is what Ctrl-C is.
    """


class Task:
    """One call: how far it is, and whether it was told to stop.

    `cancel`, `cancelled`, `check` and `position` are for any thread; `stage`, `report` and `nested`
    for that of the kernel; `tell` for the one that made the task.

    Parameters
    ----------
    listener : Listener, optional
        Called in the thread that made the task, ten times a second at most: by `stage` and `report`
        if they are called there, otherwise by `tell`. What it raises stops the call.

    Attributes
    ----------
    stop : uint8[1]
        1 if the call was told to stop. For loops that Numba compiled, where one item may take long:
        they read it before each item, and return; `check` then raises.
    """

    def __init__(self, listener: Listener | None = None) -> None:
        self._listener, self._thread = listener, get_ident()
        self._told, self._told_at = (0.0, ""), float("-inf")
        self._window = self._part = 0.0, 1.0
        self._next = 0.0
        self._position = 0.0, ""
        self.stop = np.zeros(1, np.uint8)
        with _lock:
            self.stop[0] = _is_ending
            _tasks.add(self)

    @property
    def cancelled(self) -> bool:
        """Whether the call was told to stop."""
        return bool(self.stop[0])

    def cancel(self) -> None:
        """Tell the call to stop: it raises `Cancelled` at its next check."""
        self.stop[0] = 1

    def check(self) -> None:
        """Go on, unless the call was told to stop.

        Raises
        ------
        Cancelled
            If it was.
        """
        if self.stop[0]:
            raise Cancelled

    @property
    def position(self) -> tuple[float, str]:
        """The fraction that is done, from 0 to 1 and never less than before, and the stage."""
        return self._position

    def stage(self, name: str, stop: float) -> None:
        """Begin a stage, where the one before ends: what is reported from now on is about it.

        Parameters
        ----------
        name : str
            What is done in it, such as 'binning points'.
        stop : float
            Which fraction is done when it ends.

        Raises
        ------
        Cancelled
            If the call was told to stop.
        """
        low, high = self._window
        self._part = self._next, low + stop * (high - low)
        self._next = self._part[1]
        self._move(self._part[0], name)

    def report(self, done: float, total: float) -> None:
        """Say how much of the stage is done, or of the call if it has no stages.

        Raises
        ------
        Cancelled
            If the call was told to stop.
        """
        start, stop = self._part
        fraction = stop if done >= total else start + (stop - start) * done / total
        self._move(fraction, self._position[1])

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Make the stages in the block parts of the current one: a kernel calls another there.

        What is reported in the block before its first stage changes nothing.
        """
        outer = self._window, self._part, self._next
        start = self._part[0]
        self._window, self._part, self._next = self._part, (start, start), start
        try:
            yield
        finally:
            self._window, self._part, self._next = outer

    def _move(self, fraction: float, stage: str) -> None:
        self.check()
        self._position = max(self._position[0], fraction), stage
        if self._listener is not None:
            self.tell()

    def tell(self) -> None:
        """Call the listener if there is news for it, and if this is the thread that made the task.

        For a thread that waits for that of the kernel.
        """
        if self._listener is None or self._thread != get_ident() or self._position == self._told:
            return
        if self._position[0] == 1.0 or time.monotonic() >= self._told_at + INTERVAL:
            self._told, self._told_at = self._position, time.monotonic()
            self._listener(*self._told)


# reentrant: a signal's handler, which calls `cancel_all`, may interrupt its holder
_lock = forks.rlock()
_tasks: WeakSet[Task] = WeakSet()
_is_ending = False
_observer: Listener | None = None
_NEVER = np.zeros(1, np.uint8)
_current: ContextVar[Task | None] = ContextVar("spatialq_task", default=None)
_reports: ContextVar[bool] = ContextVar("spatialq_task_reports", default=True)


def cancel_all() -> None:
    """Cancel all tasks, and those that are begun later: the process is to end."""
    global _is_ending
    with _lock:
        _is_ending = True
        cancel_running()


def cancel_running() -> None:
    """Cancel the tasks that there are, of whichever thread."""
    with _lock:
        for task in list(_tasks):
            task.cancel()


@contextmanager
def observing(listener: Listener) -> Iterator[None]:
    """Make a listener that of all calls of the process, in whichever thread, within the block.

    For a program that does one thing at a time, such as the command line.
    """
    global _observer
    _observer = listener
    try:
        yield
    finally:
        _observer = None


def observer() -> Listener | None:
    """Give the listener of `observing`, for the task of a call."""
    return _observer


def current() -> Task | None:
    """Give the task of the call that this thread works for."""
    return _current.get()


@contextmanager
def running(task: Task) -> Iterator[Task]:
    """Make a task the current one within the block."""
    token = _current.set(task)
    try:
        yield task
    finally:
        _current.reset(token)


@contextmanager
def working_for(task: Task) -> Iterator[None]:
    """Make a task the current one within the block, which checks it and reports nothing.

    For a part of the work: how far the call is says the thread that divided it.
    """
    tokens = _current.set(task), _reports.set(False)
    try:
        yield
    finally:
        _current.reset(tokens[0])
        _reports.reset(tokens[1])


def check() -> None:
    """Go on, unless the current task was cancelled; see `Task.check`."""
    task = _current.get()
    if task is not None:
        task.check()


def stop_flag() -> Bytes:
    """Give the array that says whether the current task was told to stop; see `Task.stop`."""
    task = _current.get()
    return _NEVER if task is None else task.stop


def stage(name: str, stop: float) -> None:
    """Begin a stage of the current task; see `Task.stage`."""
    task = _current.get()
    if task is not None and _reports.get():
        task.stage(name, stop)


def report(done: float, total: float) -> None:
    """Say how much of the current task's stage is done; see `Task.report`."""
    task = _current.get()
    if task is not None and _reports.get():
        task.report(done, total)


def nested() -> AbstractContextManager[None]:
    """Make the stages in the block parts of the current one; see `Task.nested`."""
    task = _current.get()
    return task.nested() if task is not None and _reports.get() else nullcontext()
