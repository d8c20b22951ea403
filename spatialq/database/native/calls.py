"""Kernels run for the extension: an aggregate hands over what it collected, rows go back.

A call of a whole table runs in a thread of its own while DuckDB asks for its rows, so that a query
that is interrupted ends at once, and its kernel soon after. The call of a group runs where DuckDB
asks for its result.
"""

import atexit
import ctypes
import os
import threading
import weakref
from collections.abc import Iterator
from contextvars import copy_context
from functools import partial
from typing import Any

import numpy as np

from spatialq.database import instances
from spatialq.database.native.collected import take
from spatialq.database.native.library import Exported, library, look_for_signals
from spatialq.database.transport import groups
from spatialq.database.transport.answers import answers
from spatialq.database.transport.arrow import list_of_structs
from spatialq.database.transport.columns import given_to
from spatialq.database.transport.request import Request
from spatialq.execution.call import stoppable
from spatialq.functions.catalogue import Function, catalogue
from spatialq.io.access import asked_by
from spatialq.planner import devices
from spatialq.runtime import cuda, progress

AHEAD = 2
"""Batches of a result in several that may wait to be read."""
PARTS = 2
"""Tables that a function may get."""
BEGUN, UNWANTED, TWICE = range(3)
"""What `spatialq_begin` says, as in results.c."""
PATIENCE = 5.0
"""Seconds that the end of the process waits for kernels that were told to stop."""

_lock = threading.Lock()
_calls: dict[int, "Call"] = {}
"""Those whose result a query may ask for, by token."""
_threads: "weakref.WeakSet[threading.Thread]" = weakref.WeakSet()
"""Of all kernels that run, also of those whose result nobody wants any more."""


class Call:
    """One call of a function on whole tables."""

    def __init__(self, function: Function, request: Request, number: int) -> None:
        self._function, self._request, self._number = function, request, number
        self._batches: list[Exported] = []
        self._task = progress.Task()
        name = f"spatialq {function.name}"
        # No process waits for it: at its end _stop does.
        run = partial(copy_context().run, self._run)
        self._thread = threading.Thread(target=run, name=name, daemon=True)
        self._is_over = False

    def start(self) -> None:
        """Run the kernel in the thread.

        Raises
        ------
        ValueError
            If the call has a result already: the query makes it for several inputs.
        """
        is_stream = "path" in self._request.source
        with _lock:
            begun = library().spatialq_begin(self._request.token, is_stream)
            if begun == BEGUN:
                _calls[self._request.token] = self
                _threads.add(self._thread)
        if begun == UNWANTED:  # the optimiser found that no row of the result is needed
            library().spatialq_free(self._number)
        elif begun == TWICE:
            message = (
                f"{self._function.name}: its table must not depend on a row of the query "
                f"around it; an aggregate with GROUP BY can do that"
            )
            raise ValueError(message)
        elif begun != BEGUN:
            raise MemoryError
        else:
            self._thread.start()

    def stop(self) -> None:
        """Stop the kernel if it still runs; the result stays, as a query may be reading it."""
        self._task.cancel()

    def drop(self) -> None:
        """Stop the kernel, and give the memory of the result back: for the watcher alone, once."""
        self.stop()
        self._end()

    def _run(self) -> None:
        try:
            with progress.running(self._task):
                self._push_all()
        except BaseException as error:
            library().spatialq_fail(self._request.token, _sentence(error))
        finally:
            library().spatialq_free(self._number)
            self._end()

    def _push_all(self) -> None:
        known, token = library(), self._request.token
        columns = given_to(self._function)
        progress.stage("rows to columns", 0.1)
        device = self._request.options.get("device")
        page_locked = device != "cpu" and not devices.gpu().problem
        asked = {each.number for each in devices.gpus() if device == f"gpu:{each.number}"}
        with self._request.within_memory(self._function.name), cuda.on(*asked):
            parts = [
                take(self._number, part, columns, page_locked=page_locked) for part in range(PARTS)
            ]
        progress.stage("call", 1.0)
        for rows in answers(self._function, self._request, parts):
            batch = Exported(rows)
            self._batches.append(batch)
            if not known.spatialq_push(token, batch.array, batch.schema):
                raise MemoryError  # or nobody wants the rows, and is not told
            behind = len(self._batches) - AHEAD
            if behind > 0:
                while known.spatialq_wait_read(token, behind) < behind:
                    self._task.check()
                self._batches[behind - 1].release()
        known.spatialq_finish(token)

    def _end(self) -> None:
        """Release the result when the kernel has ended and nobody wants it, whichever is last."""
        with _lock:
            is_last, self._is_over = self._is_over, True
        if is_last:
            for batch in self._batches:
                batch.release()


def run(
    name: str,
    instance: int,
    is_grouped: int,
    n: int,
    collected: Any,
    array: int,
    schema: int,
    error: int,
    error_size: int,
) -> int:
    """Run a function for an aggregate: `Run` of extension.c, which has a number for the name."""
    mine = list(collected[:n])
    try:
        function = catalogue()[name]
        with asked_by(instances.find(instance).access, instance):
            if is_grouped:
                lists = _rows_of_groups(function, mine)
                list_of_structs(lists)._export_to_c(array, schema)
            else:
                while mine:  # what was started is not ours any more
                    _start(function, mine[0])
                    del mine[0]
    except BaseException as failure:
        for each in mine:
            library().spatialq_free(each)
        sentence = _sentence(failure)[: error_size - 1].decode(errors="ignore").encode()
        ctypes.memmove(error, sentence + b"\0", len(sentence) + 1)
        return 0
    return 1


def _start(function: Function, number: int) -> None:
    """Start a call; DuckDB also asks what the aggregate is of no rows at all, and gets no call."""
    text = library().spatialq_request(number)
    if text is None:
        library().spatialq_free(number)
    else:
        Call(function, Request.of(text.decode()), number).start()


def _rows_of_groups(function: Function, numbers: list[int]) -> list[Any]:
    """Run the kernel on groups, of which each leaves the list: Ctrl-C ends that between two.

    Small groups that ask for the same are one call.
    """
    task = progress.Task()
    n = len(numbers)
    sizes, texts = (ctypes.c_uint64 * n)(), (ctypes.c_char_p * n)()
    if not library().spatialq_describe((ctypes.c_int64 * n)(*numbers), n, sizes, texts):
        raise MemoryError
    runs = list(groups.runs(function, list(texts), list(sizes)))

    def work() -> list[Any]:
        found: list[Any] = []
        for run in runs:
            task.check()
            text = texts[run.start]
            request = Request.of_group(None if text is None else text.decode())
            found += _rows_of_run(function, request, numbers, len(run))
        return found

    with progress.running(task):
        return stoppable(work)


def _rows_of_run(function: Function, request: Request, numbers: list[int], n: int) -> Iterator[Any]:
    """Run the kernel on the first n groups of a list, and give the rows of each."""
    starts = np.empty(n + 1, np.int64)
    mine = (ctypes.c_int64 * n)(*numbers[:n])
    if not library().spatialq_join(mine, n, starts.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))):
        raise MemoryError
    del numbers[:n]
    try:
        with request.within_memory(function.name):
            part = take(mine[0], 0, given_to(function), page_locked=False)
        if n > 1:
            return groups.answers(function, request, part, starts, transport="native")
        return answers(function, request, [part])
    finally:
        library().spatialq_free(mine[0])


def _sentence(error: BaseException) -> bytes:
    return (str(error) or type(error).__name__).encode()


def _watch() -> None:
    """Drop each call whose result no query can ask for any more."""
    while token := library().spatialq_wait_dropped():
        with _lock:
            call = _calls.pop(token, None)
        if call is not None:
            call.drop()


def _start_watcher() -> threading.Thread:
    watcher = threading.Thread(target=_watch, name="spatialq results", daemon=True)
    watcher.start()
    return watcher


def _begin_anew() -> None:
    """Forget what belongs to the process that was forked, and watch in this one."""
    global _lock, _watcher
    library().spatialq_forked()
    look_for_signals()  # the thread that forked is the main one now
    _lock = threading.Lock()
    _calls.clear()
    _threads.clear()
    _watcher = _start_watcher()


_watcher = _start_watcher()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


@atexit.register
def _stop() -> None:
    with _lock:
        calls, threads = list(_calls.values()), list(_threads)
    for call in calls:
        call.stop()
    for thread in threads:
        if thread.ident is not None:  # it was started
            thread.join(PATIENCE)
    library().spatialq_stop()
    _watcher.join()
