"""Processes of jobs: their journals, which are waited for, and workers, which are killed."""

import contextlib
import os
import signal
import time
from pathlib import Path

from tests.cluster.surveys import journal_lines

LOCAL, ACTOR = "spatialq.cluster.worker import main", "ray::_Worker"
"""What is in the command of a worker."""
PATIENCE = 240
"""Seconds in which a job takes its next step on a machine that does much else."""


def wait_for_lines(folder, count, process):
    """Wait until the journal of a job has some lines, or its process has ended."""
    until = time.monotonic() + PATIENCE
    while journal_lines(folder) < count and process.poll() is None:
        assert time.monotonic() < until, "the job does not go on"
        time.sleep(0.01)


def wait_for_stage(folder, stage, process):
    """Wait until a task of a stage of a job is done."""
    until = time.monotonic() + PATIENCE
    name = f'"{stage}"'.encode()
    journal = Path(folder) / "journal.jsonl"
    while not (journal.exists() and name in journal.read_bytes()):
        assert process.poll() is None, "the job has ended"
        assert time.monotonic() < until, "the job does not go on"
        time.sleep(0.01)


def kill_all(found):
    """Kill those processes that are still there, such as what is left of Ray without its head."""
    for pid, command in found.items():
        start = ACTOR if command.startswith(ACTOR) else command  # behind it is what it does
        if start and command_of(pid).startswith(start):
            os.kill(pid, signal.SIGKILL)


def children_of(pid):
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int((each / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(each.name))
    return found


def processes_below(pid):
    """Give the commands of all processes that a process has begun, and these have, by number."""
    found, waiting = {}, [pid]
    while waiting:
        for child in children_of(waiting.pop()):
            found[child] = command_of(child)
            waiting.append(child)
    return found


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def workers_below(pid, kind=LOCAL):
    """Give the workers that a process has, by what is in their command."""
    return [each for each, command in processes_below(pid).items() if kind in command]


class Killer:
    """Kills all workers of this process once in each of some stages, as `progress` of a job.

    It does so when the first new task of the stage is done: the others are under way.
    """

    def __init__(self, stages, kind=LOCAL):
        self.left, self.kind = list(stages), kind
        self.killed = {}

    def __call__(self, stage, done, total):
        if str(stage) in self.left and done:
            self.left.remove(str(stage))
            found = workers_below(os.getpid(), self.kind)
            for pid in found:
                os.kill(pid, signal.SIGKILL)
            self.killed[str(stage)] = len(found)
