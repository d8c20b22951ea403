"""The interface of executors, and how workers share a machine."""

import os
from collections.abc import Generator, Iterable
from typing import Protocol

from spatialq.cluster.task import Done, Task

TRIES = 3
"""How often a task is begun whose workers are killed."""


class Executor(Protocol):
    """Does tasks on several workers."""

    def map(self, tasks: Iterable[Task]) -> Generator[Done, None, None]:
        """Do tasks, which are asked for as workers become free; give them as they are done.

        Raises
        ------
        JobError
            If workers end again and again, and whatever a task raises.
        """

    def close(self) -> None:
        """End the workers."""


def cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def environment(workers: int, cores: int, memory: int) -> dict[str, str]:
    """Give the variables with which some workers share a machine: threads unless they are set."""
    threads = {"SPATIALQ_THREADS": str(max(1, cores // workers))}
    return {"SPATIALQ_MEMORY": f"{max(1, memory // workers)}B"} | {
        name: value for name, value in threads.items() if name not in os.environ
    }
