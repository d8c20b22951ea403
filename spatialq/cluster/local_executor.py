"""Processes of this machine."""

import os
import subprocess
import sys
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, suppress
from queue import Empty, Queue
from typing import Any

from spatialq.cluster.executor import TRIES, cores, environment
from spatialq.cluster.folder import CALLER
from spatialq.cluster.gpus import environment_of
from spatialq.cluster.task import Done, Task
from spatialq.cluster.worker import read_answer
from spatialq.errors import JobError
from spatialq.planner.devices import DeviceInfo
from spatialq.runtime.progress import INTERVAL, check
from spatialq.runtime.temporary import temporary_folder

TEMPORARY = "spatialq_workers_"
WORKER = "from spatialq.cluster.worker import main; main()"


class LocalExecutor:
    """Processes of this machine, which are new ones and know nothing of the driver's modules.

    Parameters
    ----------
    workers : int
    memory : int
        Bytes that they may take together.
    gpus : sequence of DeviceInfo
        Each worker sees one of them, in turn.
    """

    def __init__(self, workers: int, memory: int, gpus: Sequence[DeviceInfo] = ()) -> None:
        self._temporary = ExitStack()
        folder = self._temporary.enter_context(temporary_folder(TEMPORARY))
        # what they leave there when they are killed is removed with it
        variables = os.environ | environment(workers, cores(), memory) | {"TMPDIR": str(folder)}
        self._processes = [
            _Process(variables | environment_of(gpus, worker, workers)) for worker in range(workers)
        ]
        self._threads: list[threading.Thread] = []

    def map(self, tasks: Iterable[Task]) -> Generator[Done, None, None]:
        """Do tasks, see `Executor.map`; each process has a thread that waits for its answers."""
        shared, lock, stopped = iter(tasks), threading.Lock(), threading.Event()
        answers: Queue[Done | BaseException | None] = Queue()

        def next_task() -> Task | None:
            with lock:
                return None if stopped.is_set() else next(shared, None)

        def work(process: _Process) -> None:
            try:
                while (task := next_task()) is not None:
                    answers.put(process.perform(task))
                answers.put(None)
            except BaseException as error:
                answers.put(error)

        self._threads = [
            threading.Thread(target=work, args=(process,), daemon=True)
            for process in self._processes
        ]
        try:
            for thread in self._threads:
                thread.start()
            working = len(self._threads)
            while working:
                check()
                try:
                    found = answers.get(timeout=INTERVAL)
                except Empty:
                    continue
                if isinstance(found, BaseException):
                    raise found
                if found is None:
                    working -= 1
                else:
                    yield found
        finally:
            stopped.set()

    def close(self) -> None:
        """End the processes, also in the middle of tasks."""
        for process in self._processes:
            process.kill()
        for thread in self._threads:
            thread.join()
        for process in self._processes:
            process.stop()
        with suppress(OSError):  # processes that workers have begun may end a little later
            self._temporary.close()


class _Process:
    """A worker's process, which is started again if it is killed."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._process: subprocess.Popen[str] | None = None
        self._is_ended = False

    def perform(self, task: Task) -> Done:
        """Have a task done.

        Raises
        ------
        JobError
            If the process ends again and again, and whatever the task raises.
        """
        for _ in range(TRIES):
            text = self._answer(task)
            if text.endswith("\n"):
                return read_answer(text)
            status = self.stop()
            if self._is_ended:
                break
        message = (
            f"{CALLER}: the process of task {task.name!r} ended {TRIES} times, the last time "
            f"with status {status}: it may need more memory than is free: resume the job with "
            "fewer workers, or begin another with smaller parts"
        )
        raise JobError(message)

    def _answer(self, task: Task) -> str:
        if self._process is None and not self._is_ended:
            self._process = subprocess.Popen(
                [sys.executable, "-c", WORKER, str(os.getpid())],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
                env=self._environment, start_new_session=True,  # Ctrl-C is for the driver
            )  # fmt: skip
        process: Any = self._process
        if process is None:
            return ""
        try:
            process.stdin.write(task.text() + "\n")
            process.stdin.flush()
            return str(process.stdout.readline())
        except OSError:  # its pipe is broken
            return ""

    def stop(self) -> int | None:
        """End the process, which does nothing now, and give its status."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.kill()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        return process.wait()

    def kill(self) -> None:
        """End the process, also in the middle of a task; it is not started again."""
        self._is_ended = True
        process = self._process
        if process is not None:
            process.kill()
