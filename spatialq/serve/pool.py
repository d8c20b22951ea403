"""The processes in which queries run, one each: what ends them does not end the server."""

import json
import sys
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from spatialq.io.ifc.process import Process
from spatialq.serve.box import Box
from spatialq.serve.limits import QueryRefusedError
from spatialq.serve.selection import Selection

COMMAND = [sys.executable, "-P", "-m", "spatialq.serve.worker"]
AT_ONCE = 3
"""Queries that run at once."""
STARTING = 120.0
"""Seconds that a process may take to start."""
LATE = 0.05
"""Seconds after its time at which a process is looked at."""


class QueryFailedError(RuntimeError):
    """An error that is no mistake of a query's."""


@dataclass(frozen=True)
class Answer:
    """What came of a query.

    Parameters
    ----------
    data : bytes
        JSON, or a stream of Arrow.
    points : dict of int to Selection
        What it selects, by cloud.
    """

    data: bytes
    points: dict[int, Selection]


class Cancellation:
    """Ends the process of a query for whose answer nobody waits any more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: Process | None = None
        self.is_set = False

    def set(self) -> None:
        """End the query, now or as soon as it begins."""
        with self._lock:
            self.is_set = True
            if self._process is not None:
                self._process.popen.kill()

    def of(self, process: Process | None) -> None:
        """Say which process answers the query now; None when none does any more."""
        with self._lock:
            self._process = process
            if self.is_set and process is not None:
                process.popen.kill()


class Pool:
    """Processes that answer queries, of which one that is free is always started.

    Parameters
    ----------
    box : Box
    size : int
        Queries that run at once.
    """

    def __init__(self, box: Box, size: int = AT_ONCE) -> None:
        self.size = size
        self._free = [_Worker(box) for _ in range(size)]
        self._all = tuple(self._free)
        self._changed = threading.Condition()
        self._free[-1].start()

    def ask(
        self,
        text: str,
        parameters: Any = None,
        form: str = "rows",
        *,
        cancellation: Cancellation | None = None,
        **more: Any,
    ) -> Answer:
        """Have a query run as soon as a process is free; see `spatialq.serve.worker.answer`.

        Raises
        ------
        QueryRefusedError
            If it is wrong, or goes beyond its limits.
        QueryFailedError
            If the process met another error.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._free)
            worker = self._free.pop()
            self._start_next()
        request = {"text": text, "parameters": parameters, "form": form, **more}
        try:
            return worker.ask(request, cancellation or Cancellation())
        finally:
            with self._changed:
                # the last one is the next: it has in memory what was read
                self._free.insert(len(self._free) if worker.is_started else 0, worker)
                self._start_next()
                self._changed.notify()

    def _start_next(self) -> None:
        if self._free:
            self._free[-1].start()

    def close(self) -> None:
        """End all processes, also those that answer."""
        for each in self._all:
            each.end()


class _Worker:
    """One process, which is started again after it has ended."""

    def __init__(self, box: Box) -> None:
        self._box, self._limits = box, box.limits
        self._process: Process | None = None
        self._is_ready = False

    @property
    def is_started(self) -> bool:
        """Whether there is a process."""
        return self._process is not None and self._process.popen.poll() is None

    def start(self) -> Process:
        """Begin a process unless there is one, without waiting for it."""
        if self._process is None or not self.is_started:
            self.end()
            self._process = Process(COMMAND, STARTING)
            self._process.ask(self._box.said())
        return self._process

    def end(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.close()
        self._process, self._is_ready = None, False

    def ask(self, request: dict[str, Any], cancellation: Cancellation) -> Answer:
        """Give the answer to a request; a process that is beyond its limits is ended."""
        process = self.start()
        cancellation.of(process)
        try:
            return self._ask(process, request)
        finally:
            cancellation.of(None)
            if cancellation.is_set:  # it was killed, which shows a moment later
                self.end()

    def _ask(self, process: Process, request: dict[str, Any]) -> Answer:
        try:
            if not self._is_ready:
                _receive(process, STARTING)
                self._is_ready = True
        except _LostError as error:
            self.end()
            message = f"view: the process for queries {error} while it started"
            raise QueryFailedError(message) from None
        try:
            process.ask(request)
            said, parts = _receive(process, self._limits.seconds)
        except _LostError as error:
            self.end()
            if process.timed_out:
                raise self._limits.too_long from None
            raise self._limits.lost(str(error)) from None
        if said.get("is_spent"):  # what it still has would be missing for the next query
            self.end()
        if "error" in said:
            kind = QueryRefusedError if said["status"] == 400 else QueryFailedError
            raise kind(said["error"])
        arrays = iter(parts[1:])
        points = {}
        for each in said["selections"]:
            values = np.frombuffer(next(arrays), np.uint8)
            ids = np.frombuffer(next(arrays), np.int64) if each["has_ids"] else None
            points[each["cloud"]] = Selection(each["kind"], values, ids)
        return Answer(parts[0], points)


class _LostError(Exception):
    """A process that ended in the middle of an answer: how."""


def _receive(process: Process, seconds: float) -> tuple[dict[str, Any], list[bytes]]:
    """Wait for an answer and its parts; a process that takes longer is ended."""
    process.expect(seconds)
    timer = threading.Timer(seconds + LATE, process.check)
    timer.daemon = True
    timer.start()
    try:
        head = process.answer()
        if head is None:
            raise _LostError(process.ending())
        said = json.loads(head[1])
        parts = [process.answer() for _ in range(said.get("parts", 0))]
    finally:
        timer.cancel()
    if None in parts:
        raise _LostError(process.ending())
    return said, [each[1] for each in parts if each is not None]
