"""A worker: does tasks, one after the other, and writes their parts.

`main` reads tasks from standard input, a line of JSON each, and answers each with a line. It ends
with its input, and soon after the driver, also in the middle of a task.
"""

import builtins
import json
import os
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spatialq import errors
from spatialq.cluster.folder import CALLER, folder_of
from spatialq.cluster.stage_files import STAGE_FILES
from spatialq.cluster.task import Done, Task, named, place_of, second_of
from spatialq.errors import FileError, JobError
from spatialq.export.atomic import WRITER

BLINK = 0.2
"""Seconds between two looks at whether the driver is there."""


def perform(task: Task) -> Done:
    """Do a task; its part appears whole or not at all.

    Raises
    ------
    FileError
        If the part cannot be written, and whatever the work raises.
    """
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        if not task.root:
            done = Done(task.stage, task.name, _facts(task, Path()))
        else:
            done = _with_file(task)
    done.warnings.extend([each.category.__name__, str(each.message)] for each in recorded)
    return done


def _with_file(task: Task) -> Done:
    folder = folder_of(CALLER, task.root)
    path = folder.place(task.stage) / task.name
    try:
        with folder.unfinished_file("".join(path.suffixes)) as partial:
            facts = _facts(task, partial)
            kept = folder.keep(partial, task.stage, task.name)
            second: list[Any] = []
            if task.second:
                second = [task.second, *folder.keep(second_of(partial), *place_of(task.second))]
            return Done(task.stage, task.name, facts, *kept, second)
    except OSError as error:  # for example a full disk
        reason = f"cannot be written: {error.strerror or error}"
        raise FileError.of(WRITER, path, reason) from error
    except FileError as error:  # of a writer that says it itself, of the name until it is whole
        writer, file, reason = error.parts or ("", "", "")
        if file != partial:
            raise
        raise FileError.of(writer, path, reason.replace(str(partial), str(path))) from error


def _facts(task: Task, partial: Path) -> dict[str, Any]:
    """Do the work, for which files of earlier stages in object storage are fetched."""
    work: Callable[[dict[str, Any], Path], dict[str, Any]] = named(task.work)
    if not task.stages:
        return work(task.data, partial)
    data = STAGE_FILES.here(task.data, task.stages)
    try:
        return work(data, partial)
    finally:
        STAGE_FILES.trim()


def _end_with(driver: int, is_ended: threading.Event) -> None:
    """End this process when the driver's was killed: its folder may soon be that of another job."""
    while not is_ended.wait(BLINK):
        if os.getppid() != driver:
            os._exit(1)


def answer(text: str) -> str:
    """Do a task that is given as JSON; give what became of it, or its error, as JSON."""
    task = Task.read(text)
    try:
        return perform(task).text()
    except MemoryError as error:  # NumPy and Arrow have kinds of their own
        return _told(task, MemoryError, f"{_no_memory(task)}{f': {error}' if str(error) else ''}")
    except Exception as error:
        return _told(task, type(error), str(error))


def _no_memory(task: Task) -> str:
    return (
        f"{CALLER}: memory was not enough for task {task.name!r}: resume the job with fewer "
        "workers or more memory, or begin another with smaller parts"
    )


def _told(task: Task, kind: type[Exception], message: str) -> str:
    return json.dumps({"task": task.name, "error": kind.__name__, "message": message})


def read_answer(text: str) -> Done:
    """Read an answer.

    Raises
    ------
    Exception
        The error of the task, of its own class where that is one of spatialq or Python.
    """
    found = json.loads(text)
    if "error" not in found:
        return Done(**found)
    name, message = found["error"], found["message"]
    kind = getattr(errors, name, None) or getattr(builtins, name, None)
    if kind in (ValueError, MemoryError) or (
        isinstance(kind, type) and kind.__module__ == (errors.__name__)
    ):
        raise kind(message)
    message = f"{CALLER}: task {found['task']!r} failed: {name}: {message}"
    raise JobError(message)


def main() -> None:
    """Answer the lines of standard input, until it ends or nobody reads the answers.

    The argument of the process is the number of the driver's.
    """
    is_ended = threading.Event()
    watching = threading.Thread(target=_end_with, args=(int(sys.argv[1]), is_ended), daemon=True)
    watching.start()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    try:
        for line in sys.stdin:
            print(answer(line), file=answers, flush=True)
    except BrokenPipeError:  # the driver was killed
        os.dup2(os.open(os.devnull, os.O_WRONLY), answers.fileno())  # for what is not flushed
        sys.exit(1)
    finally:
        is_ended.set()
        watching.join()
