"""A worker: does tasks, one after the other, and writes their parts.

`main` reads tasks from standard input, a line of JSON each, and answers each with a line. It ends
with its input: also if the driver was killed.
"""

import builtins
import json
import os
import secrets
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spatialq import errors
from spatialq.cluster import survey
from spatialq.cluster.folder import JobFolder, digest_of
from spatialq.cluster.method import Work
from spatialq.cluster.methods import METHODS
from spatialq.cluster.survey import SURVEY
from spatialq.cluster.task import Done, Task, second_of
from spatialq.errors import FileError, JobError
from spatialq.export.atomic import WRITER

WORK: Mapping[str, Work] = {
    SURVEY: survey.perform,
    **{name: work for method in METHODS.values() for name, work in method.work.items()},
}
"""What tasks do."""


def perform(task: Task) -> Done:
    """Do a task; its part appears whole or not at all.

    Raises
    ------
    FileError
        If the part cannot be written, and whatever the work raises.
    """
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if not task.root:
            done = Done(task.stage, task.name, WORK[task.work](task.data, Path()))
        else:
            done = _with_file(task)
    done.warnings.extend([each.category.__name__, str(each.message)] for each in told)
    return done


def _with_file(task: Task) -> Done:
    folder = JobFolder(Path(task.root))
    path = folder.place(task.stage) / task.name
    partial = folder.unfinished / f"{secrets.token_hex(8)}{''.join(path.suffixes)}"
    try:
        facts = WORK[task.work](task.data, partial)
        second: list[Any] = []
        if task.second:
            second = [task.second, *_appear(second_of(partial), folder.second(task.second))]
        done = Done(task.stage, task.name, facts, *_appear(partial, path), second)
    except OSError as error:  # for example a full disk
        reason = f"cannot be written: {error.strerror or error}"
        raise FileError.of(WRITER, path, reason) from error
    finally:
        partial.unlink(missing_ok=True)
        second_of(partial).unlink(missing_ok=True)
    return done


def _appear(partial: Path, path: Path) -> tuple[int, str]:
    """Let a file appear under its name; give its size and digest."""
    with partial.open("rb") as file:
        os.fsync(file.fileno())
    found = partial.stat().st_size, digest_of(partial)
    partial.replace(path)
    return found


def answer(text: str) -> str:
    """Do a task that is given as JSON; give what became of it, or its error, as JSON."""
    task = Task.read(text)
    try:
        return perform(task).text()
    except Exception as error:
        told = {"task": task.name, "error": type(error).__name__, "message": str(error)}
        return json.dumps(told)


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
    message = f"cluster.run: task {found['task']!r} failed: {name}: {message}"
    raise JobError(message)


def main() -> None:
    """Answer the lines of standard input, until it ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    for line in sys.stdin:
        print(answer(line), file=answers, flush=True)
