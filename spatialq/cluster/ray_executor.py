"""Ray: actors that keep what they compiled, and retries where workers are lost."""

from collections.abc import Generator, Iterable
from contextlib import suppress
from typing import Any

from spatialq.cluster.executor import TRIES, environment
from spatialq.cluster.folder import CALLER
from spatialq.cluster.task import Done, Task
from spatialq.cluster.worker import answer, read_answer, stage_files
from spatialq.errors import JobError
from spatialq.runtime.progress import INTERVAL, check

PATIENCE = 2.0
"""Seconds that actors have to remove their temporary files, also in the middle of tasks."""
QUEUED = 2
"""Tasks of an actor that are under way: the next one is there when one is done."""


class RayExecutor:
    """Actors of the Ray cluster that this process is connected to, or of a new one.

    `RAY_ADDRESS` names a cluster, see Ray's documentation. Where it has GPUs, each actor has one.
    """

    def __init__(self, workers: int | None, memory: int) -> None:
        import ray

        self._ray: Any = ray
        self._is_own = not self._ray.is_initialized()
        if self._is_own:
            self._ray.init(log_to_driver=False, include_dashboard=False)
        there = self._ray.cluster_resources()
        gpus = 1 if there.get("GPU", 0) >= 1 else 0
        workers = workers or int(there["GPU" if gpus else "CPU"])
        machines = sum(bool(node["Alive"]) for node in self._ray.nodes())
        here = -(-workers // machines)
        cores = max(1, int(there["CPU"]) // machines)
        actor = self._ray.remote(
            max_restarts=-1, max_task_retries=TRIES, num_gpus=gpus,
            num_cpus=0 if gpus else 1,
            runtime_env={"env_vars": environment(here, cores, memory)},
        )(_Worker)  # fmt: skip
        self._actors = [actor.remote() for _ in range(workers)]

    def map(self, tasks: Iterable[Task]) -> Generator[Done, None, None]:
        """Do tasks, see `Executor.map`."""
        ray = self._ray
        under_way: dict[Any, Any] = {}
        source = iter(tasks)
        free = [each for _ in range(QUEUED) for each in self._actors]
        while True:
            while free and (task := next(source, None)) is not None:
                worker = free.pop(0)
                under_way[worker.answer.remote(task.text())] = worker
            if not under_way:
                return
            done, _ = ray.wait(list(under_way), num_returns=1, timeout=INTERVAL)
            check()
            for ready in done:
                free.append(under_way.pop(ready))
                yield read_answer(self._text(ready))

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

    def _text(self, ready: Any) -> str:
        try:
            return str(self._ray.get(ready))
        except self._ray.exceptions.RayError as error:
            message = f"{CALLER}: Ray cannot go on: {type(error).__name__}: {error}"
            raise JobError(message) from error


class _Worker:
    """An actor."""

    def answer(self, text: str) -> str:
        """Do a task, see `spatialq.cluster.worker.answer`."""
        return answer(text)

    def tidy(self) -> None:
        """Remove copies of files, which nobody else would do when the actor is killed."""
        stage_files.close()
