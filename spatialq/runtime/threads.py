"""The threads of CPU kernels, and the division of work among them.

Kernels run Numba code that releases the GIL in plain Python threads. Numba's own parallel layers
are not used: DuckDB calls a function from several threads at once, on which one of these layers
aborts the process, and the others need a library that is not installed on every machine.

Work is done in parts, between which the current task (`spatialq.runtime.progress`) is checked and
told how much is done. Code that Numba compiled cannot be stopped: a part should take less than a
third of a second.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, ParamSpec, TypeVar

from spatialq.runtime import file_memory, progress

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
CHUNKS_PER_THREAD = 16
"""Chunks per thread, so that uneven work is distributed evenly."""
CHUNK = 1 << 20
"""Items of a chunk at most, where an item is a point, a cell or a pair."""
FEW_POINTS = 1 << 14
"""Points, or items that take some nanoseconds as they do, that are worth a chunk of their own."""


KEPT = 4
"""Pools of threads that are kept, of each number of threads: as many calls at once start none."""

_idle: dict[int, deque["Pool"]] = {}
if hasattr(os, "register_at_fork"):  # a fork has none of the threads
    os.register_at_fork(after_in_child=_idle.clear)


class Pool(ThreadPoolExecutor):
    """Threads that also work for a thread which goes on when the main thread has ended."""

    def submit(self, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Have work done, in a thread of its own that is waited for where no pool takes any."""
        done: Callable[[], R] = partial(copy_context().run, work, *args, **kwargs)
        try:
            return super().submit(done)
        except RuntimeError:  # concurrent.futures closes all pools before such threads are joined
            future: Future[R] = Future()
            thread = Thread(target=_settle, args=(future, done))
            thread.start()
            thread.join()
            return future


def _settle(future: Future[R], work: Callable[[], R]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)


def n_threads() -> int:
    """Threads for one call: the cores that this process may use, or `SPATIALQ_THREADS`."""
    requested = os.environ.get("SPATIALQ_THREADS", "")
    if requested.isdecimal() and int(requested) > 0:
        return int(requested)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def spans(size: int, parts: int) -> list[tuple[int, int]]:
    """Divide range(size) into `parts` runs of nearly equal length."""
    return [(i * size // parts, (i + 1) * size // parts) for i in range(parts)]


def chunks(size: int, most: int = CHUNK) -> list[tuple[int, int]]:
    """Divide range(size) into runs of nearly equal length, none longer than `most`."""
    return spans(size, -(-size // most))


class Workers:
    """The threads of one call, which stop when its task is cancelled; see `workers`.

    Attributes
    ----------
    threads : int
    """

    def __init__(self, threads: int, task: progress.Task) -> None:
        self.threads = threads
        self._task = task

    def map(self, work: Callable[..., R], *arguments: Iterable[Any]) -> list[R]:
        """Call work once for each of the arguments, and report how many calls are done.

        Parameters
        ----------
        work : callable
            Called in this thread if there is one thread, or one call.
        *arguments : iterables of one length

        Returns
        -------
        list
            The results, in the order of the arguments.

        Raises
        ------
        Cancelled
            If the task was cancelled before the last call ended. No call is under way any more.
        """
        calls = list(zip(*arguments, strict=True))
        if len(calls) == 1:
            self._task.check()
            results = [work(*calls[0])]
            self._task.check()
        elif self.threads == 1:
            results = []
            for each in calls:
                results.append(self._call(work, *each))
                progress.report(len(results), len(calls))
        else:
            results = self._in_pool(work, calls)
        progress.report(1, 1)
        return results

    def map_into(
        self, tables: Sequence[T], work: Callable[..., R], *arguments: Iterable[Any]
    ) -> list[R]:
        """Do as `map`; the last argument of work is a table that no other call has meanwhile.

        For tables that are put together in the end, whichever calls filled which.
        """
        free: SimpleQueue[T] = SimpleQueue()
        for table in tables:
            free.put(table)

        def fill(*given: Any) -> R:
            table = free.get()
            try:
                return work(*given, table)
            finally:
                free.put(table)

        return self.map(fill, *arguments)

    def spans(self, size: int, worth: int = 1, most: int = CHUNK) -> list[tuple[int, int]]:
        """Divide range(size) for `map`: one run for each thread, or more.

        Parameters
        ----------
        size : int
        worth : int
            Items that are worth a call: there are fewer runs rather than shorter ones.
        most : int
            Items of a run at most.
        """
        return spans(size, max(1, min(self.threads, size // worth), -(-size // most)))

    def _call(self, work: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
        with progress.working_for(self._task):
            self._task.check()
            file_memory.look()
            result = work(*arguments, **named)
            self._task.check()  # work may have read the task's flag and have left off
            return result

    def _in_pool(self, work: Callable[..., R], calls: list[tuple[Any, ...]]) -> list[R]:
        futures: list[Future[R]] = []
        results: list[R] = []
        idle = _idle.setdefault(self.threads, deque(maxlen=KEPT))  # drops that unused for longest
        try:
            pool = idle.pop()
        except IndexError:
            pool = Pool(self.threads, thread_name_prefix="spatialq")
        try:
            futures.extend(pool.submit(self._call, work, *each) for each in calls)
            for future in futures:
                results.append(future.result())
                progress.report(len(results), len(calls))
        except BaseException as stop:
            if isinstance(stop, KeyboardInterrupt):  # Ctrl-C reaches this thread alone
                self._task.cancel()
            for future in futures:
                future.cancel()
            wait(futures)
            raise
        finally:
            idle.append(pool)
        return results


@contextmanager
def workers(threads: int | None = None) -> Iterator[Workers]:
    """Give threads to the current task, which no other has while they work.

    They are kept for the next work: to start sixteen takes longer than many a small call.

    Parameters
    ----------
    threads : int, optional
        By default `n_threads()`.
    """
    threads = threads or n_threads()
    task = progress.current()
    if task is not None:
        yield Workers(threads, task)
        return
    with progress.running(progress.Task()) as task:
        yield Workers(threads, task)


def in_threads(
    work: Callable[[tuple[int, int]], object], size: int, most: int = CHUNK, worth: int = 1
) -> None:
    """Call work with chunks of range(size), in several threads; chunks may take unequal time.

    Parameters
    ----------
    work : callable
        Called with the first item of a chunk and the first one behind it.
    size : int
    most : int
        Items of a chunk at most.
    worth : int
        Items that are worth a chunk: there are fewer rather than smaller ones.

    Raises
    ------
    Cancelled
        If the current task was cancelled before the last chunk began.
    """
    if size <= min(worth, most):  # of a small cloud there are many, which take less than a pool
        progress.check()
        if size:
            work((0, size))
        progress.check()
        progress.report(1, 1)
        return
    with workers() as pool:
        wanted = min(-(-size // worth), CHUNKS_PER_THREAD * pool.threads)
        parts = max(wanted, -(-size // most))
        pool.map(work, spans(size, parts))


def steps(first: int, stop: int, most: int = CHUNK) -> Iterator[tuple[int, int]]:
    """Divide range(first, stop) into chunks of at most `most` for a loop in one thread.

    Before each chunk the current task is checked, and after each it is told how much is done.

    Yields
    ------
    first, stop : int
        Of a chunk.

    Raises
    ------
    Cancelled
        If the current task was cancelled before the last chunk began.
    """
    for start, end in chunks(stop - first, most):
        progress.check()
        file_memory.look()
        yield first + start, first + end
        progress.report(end, stop - first)
