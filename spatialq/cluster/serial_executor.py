"""An executor without workers: the process itself does one task after the other."""

from collections.abc import Generator, Iterable

from spatialq.cluster.stage_files import STAGE_FILES
from spatialq.cluster.task import Done, Task
from spatialq.cluster.worker import answer, read_answer
from spatialq.runtime.progress import check


class SerialExecutor:
    """Does tasks in this process; they and their answers are JSON as with other executors."""

    def map(self, tasks: Iterable[Task]) -> Generator[Done, None, None]:
        """Do tasks, see `Executor.map`."""
        for task in tasks:
            check()
            yield read_answer(answer(task.text()))

    def close(self) -> None:
        """Remove the copies of files in object storage that tasks have read."""
        STAGE_FILES.close()
