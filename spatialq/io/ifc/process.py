"""Runs the processes of one IFC file: shares out products, survives crashes and hangs."""

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from spatialq.io.ifc import shapes
from spatialq.io.ifc.columns import Geometry
from spatialq.io.ifc.mesh_stream import FRAME, IDENTITY, MESH, ORIGIN
from spatialq.io.ifc.representations import NONE
from spatialq.io.ifc.shapes import RawMesh, Shapes
from spatialq.io.ifc.tables import products

BATCH = 8
"""Products a command: few, so that the last worker is not left with a long rest."""

COPIES = 200
"""Products a command if they share geometry: more, as such a command has a fixed cost."""

MAX_LOST = 12
"""Workers that one file may cost before its remaining products are given up."""

OPENING = 10
"""Opening a file may take this many times as long as one product."""

BYTES_PER_SECOND = 1_000_000
"""How slow `ifclite-geom` may be; it is five to ten times faster on good files."""

HELPER_AFTER = 1.0
"""Seconds of shaping after which another worker is worth its start, if as much is left."""

MARGIN = 0.1
"""Seconds between two looks at the workers' progress."""

MAX_SECONDS = 1_000_000
"""Limits of time are at most this: a timer cannot be set to any number."""

Progress = Callable[[int, int, str], object]
"""Called with how much is done, of how much (0 if that is not known), and the name of the stage."""


class WorkerError(Exception):
    """The worker could not open or describe the file: the message is the reason."""


def command(path: Path, seconds: float) -> list[str]:
    """Give the command line of a worker, which runs IfcOpenShell."""
    return [sys.executable, "-P", "-m", "spatialq.io.ifc.worker", str(path), str(seconds)]


def fast_command(path: Path, seconds: float) -> list[str]:
    """Give the command line of the process that runs `ifclite-geom`."""
    return [sys.executable, "-P", "-m", "spatialq.io.ifc.ifclite", str(path), str(seconds)]


def environment() -> dict[str, str]:
    """Give an environment in which a process finds the packages that this interpreter finds."""
    search = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
    return os.environ | {"PYTHONPATH": search}


def ending(code: int) -> str:
    """Say how a process ended by its exit code.

    Raises
    ------
    KeyboardInterrupt
        If it was a Ctrl-C, which reaches a child as well as its parent.
    """
    if code == -signal.SIGINT:
        raise KeyboardInterrupt
    if code >= 0:
        return f"ended (exit code {code})"
    try:
        return f"crashed ({signal.Signals(-code).name})"
    except ValueError:
        return f"crashed (signal {-code})"


@dataclass
class Run:
    """What came of one file.

    Parameters
    ----------
    facts : dict
        See `spatialq.io.ifc.facts.describe`; the products are columns here.
    shapes : Shapes
        The meshes by `ifclite-geom`, in the end those of them that may be trusted.
    origin : tuple of float
        Where the coordinates of `ifclite-geom` have their origin.
    meshes : dict from int to RawMesh
        Those by IfcOpenShell, by step id.
    failures : dict from int to str
        Why a product has no mesh.
    curve_only : list of int
        Products that have curves or points only.
    notes : list of str
        What is odd about the reading.
    is_repeatable : bool
        Whether no process was lost.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    shapes: Shapes = field(default_factory=lambda: shapes.measured({}, shapes.FAST)[0])
    origin: tuple[float, ...] = (0.0, 0.0, 0.0)
    meshes: dict[int, RawMesh] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    curve_only: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_repeatable: bool = True


@dataclass(frozen=True)
class Batch:
    """The products of one command.

    Parameters
    ----------
    command : 'shapes' or 'copies'
    step_ids : tuple of int
    """

    command: str
    step_ids: tuple[int, ...]


class Process:
    """One process that answers with frames.

    Parameters
    ----------
    arguments : list of str
        Its command line.
    limit : float
        Seconds without an answer after which it is killed. May be changed.
    """

    def __init__(self, arguments: list[str], limit: float) -> None:
        self.popen = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
        )
        self.limit = limit
        self.progress = time.monotonic()
        self.timed_out = False

    def expect(self, limit: float) -> None:
        """Allow so many seconds from now on until each answer."""
        self.progress = time.monotonic()
        self.limit = limit

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

    def check(self) -> None:
        """Kill the worker if it has made no progress for too long."""
        if time.monotonic() - self.progress > self.limit:
            self.timed_out = True
            self.popen.kill()

    def ending(self) -> str:
        """Say how a worker ended that has closed its stream; see `ending`."""
        code = self.popen.wait()
        if self.timed_out:
            return f"took longer than {self.limit:.3g} s"
        return ending(code)

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
    """The work on one file, by one or more workers, and by `ifclite-geom` beside them.

    Parameters
    ----------
    path : Path
        A STEP text.
    seconds : float
        A product that takes longer counts as failed.
    workers : int
        How many processes may shape at most.
    cancel : threading.Event
        Ends the work when another thread sets it.
    progress : Progress, optional
        Called in the thread that calls `read`.
    """

    def __init__(
        self,
        path: Path,
        seconds: float,
        workers: int,
        cancel: threading.Event,
        progress: Progress | None = None,
    ) -> None:
        self.path = path
        self.seconds = seconds
        self.workers = workers
        self.cancel = cancel
        self.progress = progress
        self.run = Run()
        self._lock = threading.Condition()
        self._pending: deque[Batch] = deque()
        self._total = 0
        self._done = 0
        self._waiting_for = 0
        self._processes: set[Process] = set()
        self._threads: list[threading.Thread] = []
        self._active = 0
        self._helpers = 0
        self._lost = 0
        self._stopped = False
        self._error: BaseException | None = None

    def read(self, geometry: Geometry) -> Run:
        """Read the facts and, unless geometry is 'none', the shapes.

        Raises
        ------
        WorkerError
            If the file cannot be opened.
        CancelledError
            If `cancel` was set meanwhile.
        """
        self._waiting_for = 1
        self._start(self._work, geometry != "none")
        if geometry == "auto":
            self._waiting_for += 1
            self._start(self._make_fast_shapes)
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

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(
            target=self._guard, args=(work, *arguments), name="spatialq-ifc", daemon=True
        )
        self._threads.append(thread)
        self._active += 1
        thread.start()

    def _guard(self, work: Callable[..., None], *arguments: object) -> None:
        """Do the work of a thread; an error ends the session."""
        try:
            work(*arguments)
        except BaseException as error:
            with self._lock:
                self._error = self._error or error
                self._stopped = True
                for process in self._processes:
                    process.popen.kill()
        finally:
            with self._lock:
                self._active -= 1
                self._lock.notify_all()

    def _supervise(self) -> None:
        """Watch the progress of the processes until all threads end, and add helpers."""
        began = None
        while self._active:
            with self._lock:
                self._lock.wait_for(lambda: not self._active, MARGIN)
                for process in self._processes:
                    process.check()
                left = sum(len(batch.step_ids) for batch in self._pending)
                done = self._total - left
            if self.cancel.is_set():
                raise CancelledError
            if self.progress is not None:
                self.progress(
                    self._done, self._total, "making meshes" if self._total else "parsing"
                )
            if not left or self._helpers + 1 >= self.workers:
                continue
            if began is None:
                began, done_before = time.monotonic(), done
                continue
            spent = time.monotonic() - began
            rate = spent / max(done - done_before, 1)
            if spent > HELPER_AFTER and rate * left > 2 * HELPER_AFTER:
                self._helpers += 1
                self._start(self._work)

    def _open(self, arguments: list[str], limit: float) -> Process:
        """Start a process, unless the session has ended."""
        with self._lock:
            if self._stopped:
                raise CancelledError
            process = Process(arguments, limit)
            self._processes.add(process)
            return process

    def _close(self, process: Process) -> None:
        with self._lock:
            self._processes.discard(process)
        process.close()

    def _make_fast_shapes(self) -> None:
        """Have `ifclite-geom` make all shapes; it may fail as a whole."""
        limit = self.seconds + self.path.stat().st_size / BYTES_PER_SECOND
        process = self._open(fast_command(self.path, limit), limit)
        meshes: dict[int, RawMesh] = {}
        try:
            while (answer := process.answer()) is not None and answer[0] == b"M":
                step_id, mesh = raw_mesh(answer[1])
                meshes[step_id] = mesh
            if answer is None and not self._stopped:
                reason = f"ifclite-geom {process.ending()}: IfcOpenShell makes all meshes"
                self.run.notes.append(reason)
                self.run.is_repeatable = False
                meshes = {}
            elif answer is not None:
                self.run.origin = ORIGIN.unpack(answer[1])
        finally:
            self._close(process)
        self.run.shapes, _ = shapes.measured(meshes, shapes.FAST)
        self._share_out()

    def _work(self, shapes: bool | None = None) -> None:  # noqa: FBT001 (a thread's target)
        """Run workers, one after the other, until nothing is left to do.

        The first thread has its worker describe the model before, with or without `shapes`.
        """
        while not self._stopped:
            with self._lock:
                if shapes is None and not self._pending:
                    return
            process = self._open(command(self.path, self.seconds), self.seconds * OPENING)
            try:
                process.open()
                if shapes is not None:
                    self._describe(process, shapes=shapes)
                    shapes = None
                finished = self._shape(process)
            finally:
                self._close(process)
            if finished:
                return

    def _describe(self, process: Process, *, shapes: bool) -> None:
        process.ask({"describe": {"shapes": shapes}})
        answer = process.answer()
        if answer is None:
            message = f"IfcOpenShell {process.ending()} while its model was read"
            raise WorkerError(message)
        facts = json.loads(answer[1])
        if "error" in facts:
            raise WorkerError(facts["error"])
        facts["products"] = products(facts["tables"]["objects"], facts["products"])
        self.run.facts = facts
        process.expect(math.inf)
        if shapes:
            self._share_out()
            with self._lock:
                self._lock.wait_for(lambda: not self._waiting_for or self._stopped)

    def _share_out(self) -> None:
        """Once the facts and the fast meshes are there, say what is left to the workers."""
        with self._lock:
            self._waiting_for -= 1
            if self._waiting_for:
                return
            self._waiting_for = 1
        facts = self.run.facts
        step_ids = facts["products"]["step_id"]
        kinds = dict(zip(step_ids, facts["kinds"], strict=True))
        self.run.curve_only = [step_id for step_id in step_ids if kinds[step_id] == NONE]
        places = dict(zip(step_ids, facts["places"], strict=True))
        openings = dict(zip(step_ids, facts["openings"], strict=True))
        self.run.shapes = shapes.trusted(self.run.shapes, kinds, places, openings, self.run.origin)
        made = set(self.run.shapes.step_ids.tolist())
        sources = zip(step_ids, facts["sources"], strict=True)
        left = {
            step_id: source
            for step_id, source in sources
            if kinds[step_id] != NONE and step_id not in made
        }
        with self._lock:
            self._pending.extend(batches(left))
            self._done, self._total = len(made), len(made) + len(left)
            self._waiting_for = 0
            self._lock.notify_all()

    def _shape(self, process: Process) -> bool:
        """Have one worker make shapes; False when it is lost and another must go on."""
        while True:
            with self._lock:
                if not self._pending or self._stopped:
                    return True
                batch = self._pending.popleft()
            process.expect(self.seconds)
            process.ask({batch.command: batch.step_ids})
            waiting = dict.fromkeys(batch.step_ids)
            while waiting or batch.command == "copies":
                answer = process.answer()
                if answer is None or answer[0] == b"J":
                    self._lose(process, batch.command, list(waiting), answer)
                    return False
                if answer[0] == b"E":
                    with self._lock:
                        self._pending.extend(singly(list(waiting)))
                    break
                del waiting[self._keep(*answer)]

    def _keep(self, kind: bytes, body: bytes) -> int:
        """Keep an answer and tell which product it is about."""
        if kind == b"M":
            step_id, mesh = raw_mesh(body)
            self.run.meshes[step_id] = mesh
        else:
            failure = json.loads(body)
            step_id = failure["step_id"]
            self.run.failures[step_id] = failure["message"]
        with self._lock:  # several threads count
            self._done += 1
        return step_id

    def _lose(
        self,
        process: Process,
        command: str,
        waiting: list[int],
        answer: tuple[bytes, bytes] | None,
    ) -> None:
        """Blame the product at work for the loss of a worker, and put the others back.

        Of products that share geometry nobody knows which was at work: they are tried singly.
        """
        if self._stopped:
            return
        if answer is not None:
            reason = f"failed: {json.loads(answer[1])['error']}"
        else:
            reason = process.ending()
        with self._lock:
            self._lost += 1
            self.run.is_repeatable = False
            if command == "shapes":
                blamed = waiting.pop(0)
                self.run.failures[blamed] = f"IfcOpenShell {reason} on this product"
            self._pending.extendleft(reversed(singly(waiting)))
            if self._lost >= MAX_LOST:
                given_up = f"not tried: IfcOpenShell was lost {self._lost} times in this file"
                for batch in self._pending:
                    self.run.failures |= dict.fromkeys(batch.step_ids, given_up)
                self._pending.clear()


def raw_mesh(body: bytes) -> tuple[int, RawMesh]:
    """Take the frame of a mesh apart, into step id and mesh in world metres."""
    step_id, vertex_bytes, *matrix = MESH.unpack_from(body)
    vertices = np.frombuffer(body, np.float64, vertex_bytes // 8, MESH.size).reshape(-1, 3)
    faces = np.frombuffer(body, np.int32, offset=MESH.size + vertex_bytes).reshape(-1, 3)
    if tuple(matrix) != IDENTITY:
        by_rows = np.array(matrix).reshape(4, 4)
        vertices = vertices @ by_rows[:3, :3].T + by_rows[:3, 3]
    return step_id, (vertices, faces)


def batches(sources: dict[int, int]) -> list[Batch]:
    """Share products out: copies of one mapped representation together, the others singly.

    Parameters
    ----------
    sources : dict from int to int
        By step id of the product, that of the mapped representation, or 0.
    """
    groups = defaultdict(list)
    for step_id, source in sources.items():
        groups[source].append(step_id)
    alone = groups.pop(0, [])
    found = []
    together: list[int] = []
    for group in groups.values():
        if len(group) == 1:
            alone += group
            continue
        together += group
        if len(together) >= COPIES:
            found.append(Batch("copies", tuple(together)))
            together = []
    if together:
        found.append(Batch("copies", tuple(together)))
    return found + singly(alone)


def singly(step_ids: list[int]) -> list[Batch]:
    """Share products out that are shaped one by one."""
    return [
        Batch("shapes", tuple(step_ids[start : start + BATCH]))
        for start in range(0, len(step_ids), BATCH)
    ]
