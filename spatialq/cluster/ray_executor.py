"""Ray: actors that keep what they compiled, and retries where workers are lost."""

import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from spatialq.cluster.executor import TRIES, environment
from spatialq.cluster.folder import CALLER
from spatialq.cluster.stage_files import STAGE_FILES
from spatialq.cluster.task import Done, Task
from spatialq.cluster.worker import answer, read_answer
from spatialq.errors import JobError
from spatialq.runtime.progress import INTERVAL, check

PATIENCE = 2.0
"""Seconds that actors have to remove their temporary files, also in the middle of tasks."""
QUEUED = 2
"""Tasks of an actor that are under way: the next one is there when one is done."""


class RayExecutor:
    """Actors of the Ray cluster that this process is connected to, or of a new one.

    `RAY_ADDRESS` names a cluster, see Ray's documentation. Where it has GPUs, each actor of a job
    that uses them has one.
    Actors for which the cluster has no room yet get tasks as soon as they have begun.

    Raises
    ------
    JobError
        If Ray cannot be begun or reached.
    """

    def __init__(self, workers: int | None, memory: int, *, uses_gpus: bool = False) -> None:
        import ray

        self._ray: Any = ray
        self._is_own = not self._ray.is_initialized()
        if self._is_own:
            self._begin()
        with self._telling():
            there = self._ray.cluster_resources()
            gpus = 1 if uses_gpus and there.get("GPU", 0) >= 1 else 0
            needed = "GPU" if gpus else "CPU"
            workers = workers or max(1, int(there.get(needed, 0)))
            nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
            # the machine of the head may have none
            machines = max(1, sum(node.get(needed, 0) >= 1 for node in nodes))
            here = -(-workers // machines)
            cores = max(1, int(there.get("CPU", 0)) // machines)
            actor = self._ray.remote(
                max_restarts=-1, max_task_retries=TRIES - 1, num_gpus=gpus,
                num_cpus=0 if gpus else 1,
                runtime_env={"env_vars": environment(here, cores, memory)},
            )(_Worker)  # fmt: skip
            self._actors = [actor.remote() for _ in range(workers)]
            self._beginning = {each.begun.remote(): each for each in self._actors}

    def map(self, tasks: Iterable[Task]) -> Generator[Done, None, None]:
        """Do tasks, see `Executor.map`."""
        waiting = set(self._beginning.values())
        free = [each for _ in range(QUEUED) for each in self._actors if each not in waiting]
        under_way: dict[Any, Any] = {}
        source = iter(tasks)
        task = next(source, None)
        while task is not None or under_way:
            while free and task is not None:
                worker = free.pop(0)
                with self._telling():
                    under_way[worker.answer.remote(task.text())] = worker
                task = next(source, None)
            with self._telling():
                refs = [*under_way, *self._beginning]
                done, _ = self._ray.wait(refs, num_returns=1, timeout=INTERVAL)
            check()
            for ready in done:
                with self._telling():
                    text = self._ray.get(ready)
                if ready in under_way:
                    free.append(under_way.pop(ready))
                    yield read_answer(text)
                else:
                    free += [self._beginning.pop(ready)] * QUEUED

    def close(self) -> None:
        """End the actors, and Ray if it was begun for them."""
        with suppress(self._ray.exceptions.RayError):
            tidied = [each.tidy.remote() for each in self._actors]
            self._ray.wait(tidied, num_returns=len(tidied), timeout=PATIENCE)
        for each in self._actors:
            with suppress(self._ray.exceptions.RayError):
                self._ray.kill(each)
        if self._is_own:
            self._ray.shutdown()

    def _begin(self) -> None:
        """Connect to a cluster, or begin one."""
        try:
            self._ray.init(log_to_driver=False, include_dashboard=False)
        except (self._ray.exceptions.RayError, OSError, RuntimeError, ValueError) as error:
            address = os.environ.get("RAY_ADDRESS")
            what = f"reached at RAY_ADDRESS={address}" if address else "begun"
            message = f"{CALLER}: Ray cannot be {what}: {_first_line(error)}"
            raise JobError(message) from error

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Tell errors of Ray as those of the job.

        Raises
        ------
        JobError
        """
        try:
            yield
        except self._ray.exceptions.RayError as error:
            message = f"{CALLER}: Ray cannot go on: {type(error).__name__}: {_first_line(error)}"
            raise JobError(message) from error


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


class _Worker:
    """An actor."""

    def begun(self) -> None:
        """Do nothing: when that is done, the actor has its room in the cluster."""

    def answer(self, text: str) -> str:
        """Do a task, see `spatialq.cluster.worker.answer`."""
        return answer(text)

    def tidy(self) -> None:
        """Remove copies of files, which nobody else would do when the actor is killed."""
        STAGE_FILES.close()
