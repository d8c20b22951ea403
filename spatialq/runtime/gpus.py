"""A call on several GPUs: each GPU takes the next part of the work when it is free."""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from contextvars import copy_context
from typing import Any, Generic, TypeVar

from spatialq.runtime import cuda, progress

Part = TypeVar("Part")
Result = TypeVar("Result")


def each(work: Callable[[Part], Result], parts: Iterable[Part]) -> Iterator[Result]:
    """Do work for each part, on the GPUs of `cuda.numbers`; yield the results in their order.

    With one GPU that happens in this thread, one part after the other as they are asked for. Of
    several each has a thread, in which `cuda.device()` is that GPU and is in use; what it does is
    not reported as progress. Parts are made by one thread at a time, when a GPU is free.

    Parameters
    ----------
    work : callable
    parts : iterable

    Raises
    ------
    Cancelled
        If the task was cancelled; and whatever work or parts raise. No work is under way any more.
    """
    numbers = cuda.numbers()
    if len(numbers) == 1:
        yield from map(work, parts)
        return
    shared = _Shared(work, parts)
    threads = [
        threading.Thread(target=copy_context().run, args=(shared.serve, number))
        for number in numbers
    ]
    for thread in threads:
        thread.start()
    try:
        yield from shared.results(len(threads))
    finally:
        shared.stopped.set()
        for thread in threads:
            thread.join()


class _Shared(Generic[Part, Result]):
    """Parts that several threads take, and what became of them."""

    def __init__(self, work: Callable[[Part], Result], parts: Iterable[Part]) -> None:
        self.stopped = threading.Event()
        self._work = work
        self._parts = enumerate(parts)
        self._lock = threading.Lock()
        self._done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._task = progress.current() or progress.Task()

    def serve(self, number: int) -> None:
        """Do what is left, on one GPU, until there is no more or it failed."""
        try:
            with cuda.on(number), progress.working_for(self._task), cuda.device().use():
                while (taken := self._next()) is not None:
                    at, part = taken
                    self._done.put((at, self._work(part)))
        except BaseException as error:
            self.stopped.set()
            self._done.put((_FAILED, error))
        else:
            self._done.put((_ENDED, None))

    def _next(self) -> tuple[int, Part] | None:
        with self._lock:
            self._task.check()
            return None if self.stopped.is_set() else next(self._parts, None)

    def results(self, working: int) -> Iterator[Result]:
        """Yield the results in the order of the parts, while so many threads are working."""
        waiting: dict[int, Result] = {}
        wanted = 0
        while working or wanted in waiting:
            if wanted in waiting:
                yield waiting.pop(wanted)
                wanted += 1
                continue
            at, result = self._done.get()
            if at == _FAILED:
                raise result
            if at == _ENDED:
                working -= 1
            else:
                waiting[at] = result


_ENDED, _FAILED = -1, -2
