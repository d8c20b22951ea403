"""The name by which a user called a function of jobs: its errors begin with it."""

from collections.abc import Iterator
from contextlib import contextmanager

from spatialq.errors import DeviceError, JobError

CALLERS = ("cluster.run", "cluster.jobs", "cluster.table")


@contextmanager
def called(name: str) -> Iterator[None]:
    """Let errors of jobs begin with another name, such as that of a command.

    Raises
    ------
    DeviceError, JobError, ValueError
        Those of the block.
    """
    try:
        yield
    except (DeviceError, JobError, ValueError) as error:
        caller, _, sentence = str(error).partition(": ")
        if caller not in CALLERS:
            raise
        message = f"{name}: {sentence}"
        raise type(error)(message) from error
