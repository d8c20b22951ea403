"""Runs the worker processes of one IFC file: shares out products, survives crashes and hangs."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from spatialq.io.ifc.tables import products
from spatialq.io.ifc.worker import FRAME, MESH

BATCH = 8
"""Products a command: few, so that the last worker is not left with a long rest."""

MAX_LOST = 12
"""Workers that one file may cost before its remaining products are given up."""

OPENING = 10
"""Opening a file may take this many times as long as one product."""

HELPER_AFTER = 1.0
"""Seconds of shaping after which another worker is worth its start, if as much is left."""

MARGIN = 0.1
"""Seconds between two looks at the workers' progress."""


class WorkerError(Exception):
    """The worker could not open or describe the file: the message is the reason."""


def command(path: Path, seconds: float) -> list[str]:
    """Give the command line of a worker."""
    return [sys.executable, "-P", "-m", "spatialq.io.ifc.worker", str(path), str(seconds)]


@dataclass
class Run:
    """What came of one file.

    Parameters
    ----------
    facts : dict
        See `spatialq.io.ifc.facts.describe`; the products are columns here.
    meshes : dict from int to (bytes, bytes)
        Vertices (float64) and faces (int32) by step id.
    failures : dict from int to str
        Why a product has no mesh.
    flat : set of int
        Products that have curves or points only.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    meshes: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    flat: set[int] = field(default_factory=set)


class Process:
    """One worker process and what it is busy with."""

    def __init__(self, path: Path, seconds: float) -> None:
        # The worker finds the same packages as this interpreter, wherever they came from.
        search = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
        self.popen = subprocess.Popen(
            command(path, seconds),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": search},
        )
        self.seconds = seconds
        self.progress = time.monotonic()
        self.opening = True
        self.timed_out = False

    def ask(self, request: dict[str, Any]) -> None:
        """Send a command; a dead worker is noticed when its answer is read."""
        assert self.popen.stdin is not None
        with contextlib.suppress(OSError):
            self.popen.stdin.write(json.dumps(request).encode() + b"\n")
            self.popen.stdin.flush()

    def answer(self) -> tuple[bytes, bytes] | None:
        """Wait for one frame; None when the worker is gone."""
        assert self.popen.stdout is not None
        head = read_exactly(self.popen.stdout, FRAME.size)
        if head is None:
            return None
        kind, size = FRAME.unpack(head)
        body = read_exactly(self.popen.stdout, size)
        self.progress = time.monotonic()
        return None if body is None else (kind, body)

    def open(self) -> None:
        """Wait until the worker has parsed the file.

        Raises
        ------
        WorkerError
            If it cannot, or dies of it.
        """
        answer = self.answer()
        if answer is None:
            message = f"IfcOpenShell {self.ending()} while it parsed the file"
            raise WorkerError(message)
        if answer[0] == b"J":
            raise WorkerError(json.loads(answer[1])["error"])

    def limit(self) -> float:
        """How many seconds without progress are too many."""
        return self.seconds * (OPENING if self.opening else 1)

    def check(self) -> None:
        """Kill the worker if it has made no progress for too long."""
        if time.monotonic() - self.progress > self.limit():
            self.timed_out = True
            self.popen.kill()

    def ending(self) -> str:
        """Say how a worker ended that has closed its stream.

        Raises
        ------
        KeyboardInterrupt
            If it was a Ctrl-C, which reaches the worker as well as its parent.
        """
        code = self.popen.wait()
        if self.timed_out:
            return f"took longer than {self.limit():g} s"
        if code == -signal.SIGINT:
            raise KeyboardInterrupt
        if code >= 0:
            return f"ended (exit code {code})"
        try:
            return f"crashed ({signal.Signals(-code).name})"
        except ValueError:
            return f"crashed (signal {-code})"

    def close(self) -> None:
        """End the process."""
        self.popen.kill()
        self.popen.wait()
        for stream in (self.popen.stdin, self.popen.stdout):
            assert stream is not None
            with contextlib.suppress(OSError):  # what was left to write to a dead worker
                stream.close()


def read_exactly(stream: BinaryIO | Any, size: int) -> bytes | None:
    """Read so many bytes, or None if the stream ends before."""
    data = stream.read(size)
    return data if len(data) == size else None


class Session:
    """The work on one file, by one or more workers.

    Parameters
    ----------
    path : Path
        A STEP text.
    seconds : float
        A product that takes longer counts as failed.
    workers : int
        How many processes at most.
    cancel : threading.Event
        Ends the work when another thread sets it.
    """

    def __init__(self, path: Path, seconds: float, workers: int, cancel: threading.Event) -> None:
        self.cancel = cancel
        self.path = path
        self.seconds = seconds
        self.workers = workers
        self.run = Run()
        self._lock = threading.Condition()
        self._pending: deque[int] = deque()
        self._processes: set[Process] = set()
        self._threads: list[threading.Thread] = []
        self._active = 0
        self._lost = 0
        self._stopped = False
        self._error: BaseException | None = None

    def describe(self, *, shapes: bool) -> Run:
        """Read the facts and, if asked, the shapes.

        Raises
        ------
        WorkerError
            If the file cannot be opened.
        CancelledError
            If `cancel` was set meanwhile.
        """
        self._start(first=True, shapes=shapes)
        try:
            self._supervise()
        finally:
            with self._lock:
                self._stopped = True
                for process in self._processes:
                    process.popen.kill()
            for thread in self._threads:
                thread.join()
        if self._error is not None:
            raise self._error
        return self.run

    def _start(self, *, first: bool, shapes: bool) -> None:
        thread = threading.Thread(
            target=self._work, args=(first, shapes), name="spatialq-ifc", daemon=True
        )
        self._threads.append(thread)
        self._active += 1
        thread.start()

    def _supervise(self) -> None:
        """Watch the progress of the workers until their threads end, and add a helper."""
        began = total = None
        while self._active:
            with self._lock:
                self._lock.wait_for(lambda: not self._active, MARGIN)
                for process in self._processes:
                    process.check()
                left = len(self._pending)
            if self.cancel.is_set():
                raise CancelledError
            if not left or len(self._threads) >= self.workers:
                continue
            if began is None or total is None:
                began, total = time.monotonic(), left
                continue
            spent = time.monotonic() - began
            done = total - left
            if spent > HELPER_AFTER and spent / max(done, 1) * left > 2 * HELPER_AFTER:
                self._start(first=False, shapes=True)

    def _work(self, first: bool, shapes: bool) -> None:  # noqa: FBT001 (a thread's target)
        """Run workers, one after the other, until nothing is left to do."""
        try:
            describe = first
            while not self._stopped:
                with self._lock:
                    if not describe and not self._pending:
                        return
                    process = Process(self.path, self.seconds)
                    self._processes.add(process)
                finished = False
                try:
                    process.open()
                    if describe:
                        self._describe(process, shapes=shapes)
                        describe = False
                    finished = self._shape(process)
                finally:
                    with self._lock:
                        self._processes.discard(process)
                    process.close()
                if finished:
                    return
        except BaseException as error:
            with self._lock:
                self._error = self._error or error
                self._stopped = True
        finally:
            with self._lock:
                self._active -= 1
                self._lock.notify_all()

    def _describe(self, process: Process, *, shapes: bool) -> None:
        process.ask({"describe": True})
        answer = process.answer()
        if answer is None:
            message = f"IfcOpenShell {process.ending()} while its model was read"
            raise WorkerError(message)
        facts = json.loads(answer[1])
        if "error" in facts:
            raise WorkerError(facts["error"])
        facts["products"] = products(facts["tables"]["objects"], facts["products"])
        with self._lock:
            self.run.facts = facts
            if shapes:
                self._pending.extend(facts["products"]["step_id"])

    def _shape(self, process: Process) -> bool:
        """Have one worker make shapes; False when it is lost and another must go on."""
        while True:
            with self._lock:
                batch = [self._pending.popleft() for _ in range(min(BATCH, len(self._pending)))]
            if not batch or self._stopped:
                return True
            process.opening = False
            process.progress = time.monotonic()
            process.ask({"shapes": batch})
            waiting = deque(batch)
            while waiting:
                answer = process.answer()
                if answer is None or answer[0] == b"J":
                    self._lose(process, waiting, answer)
                    return False
                self._keep(*answer)
                waiting.popleft()

    def _keep(self, kind: bytes, body: bytes) -> None:
        if kind == b"M":
            step_id, vertex_bytes, _ = MESH.unpack_from(body)
            middle = MESH.size + vertex_bytes
            self.run.meshes[step_id] = body[MESH.size : middle], body[middle:]
            return
        answer = json.loads(body)
        if kind == b"F":
            self.run.failures[answer["step_id"]] = answer["message"]
        else:
            self.run.flat.add(answer["step_id"])

    def _lose(
        self, process: Process, waiting: deque[int], answer: tuple[bytes, bytes] | None
    ) -> None:
        """Blame the product at work for the loss of a worker, and put the others back."""
        if self._stopped:
            return
        if answer is not None:
            reason = f"failed: {json.loads(answer[1])['error']}"
        else:
            reason = process.ending()
        with self._lock:
            self._lost += 1
            self.run.failures[waiting.popleft()] = f"IfcOpenShell {reason} on this product"
            self._pending.extendleft(reversed(waiting))
            if self._lost >= MAX_LOST:
                given_up = f"not tried: IfcOpenShell was lost {self._lost} times in this file"
                self.run.failures |= dict.fromkeys(self._pending, given_up)
                self._pending.clear()
