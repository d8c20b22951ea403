"""What standard error shows while a command runs: a progress bar, and why nothing happens."""

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spatialq.cli.rendering import note
from spatialq.runtime.progress import observing

MIN_SPEED = 50_000
"""Rows a second of which the rate is shown; meshes of building models come more slowly."""
INTERVAL = 30.0
"""Seconds between two lines in a log."""


@contextmanager
def progress() -> Iterator[Any]:
    """Show rows, rate and remaining time on standard error, unless that is no terminal.

    While a kernel runs, in whichever thread, also its stage and how many hundredths are done.

    Yields
    ------
    callable
        To be called with a file, its rows so far and its rows in all.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        tasks: dict[Path, Any] = {}

        def update(file: Path, done: int, total: int) -> None:
            if file not in tasks:
                tasks[file] = bar.add_task(file.name, total=total or None, completed=done, rate="")
            speed = bar.tasks[tasks[file]].speed
            rate = f"{speed / 1e6:.1f} M rows/s" if speed and speed > MIN_SPEED else ""
            bar.update(tasks[file], completed=done, rate=rate)

        shown: Any = None
        before = 0.0

        def show_call(fraction: float, stage: str) -> None:
            nonlocal shown, before
            if shown is None:
                shown = bar.add_task(stage, total=100, rate="")
            if fraction < before:  # another call
                bar.reset(shown)
            before = fraction
            bar.update(shown, description=stage, completed=round(100 * fraction))

        with observing(show_call):
            yield update


@contextmanager
def progress_of_job() -> Iterator[Any]:
    """Show tasks on standard error as `progress` does; if that is no terminal, a line at times.

    Yields
    ------
    callable
        To be called with a stage, its tasks that are done, and all of its tasks.
    """
    if sys.stderr.isatty():
        with progress() as update:
            yield update
    else:
        yield _Lines().update


class _Lines:
    """How far a job is, in lines of a log."""

    def __init__(self) -> None:
        self._told = time.monotonic()
        self._stage, self._begun, self._resumed = Path(), 0.0, 0

    def update(self, stage: Path, done: int, total: int) -> None:
        """Print a line if the last one was long ago."""
        now = time.monotonic()
        if stage != self._stage:
            self._stage, self._begun, self._resumed = stage, now, done
        if now < self._told + INTERVAL:
            return
        self._told = now
        new = done - self._resumed
        rest = f", about {(total - done) * (now - self._begun) / new:.0f} s left" if new else ""
        note(f"{stage}: {done} of {total} tasks{rest}")


class CompilingNote(logging.Handler):
    """Handle the log of the compile cache: the first record prints a note, the others nothing."""

    is_printed = False

    def emit(self, record: logging.LogRecord) -> None:
        """Print the note if it has not been printed."""
        if not self.is_printed:
            self.is_printed = True
            note("compiling functions, which takes a while (first use; kept for later) ...")


COMPILING = CompilingNote()


def announce_compiling() -> None:
    """Print a note when functions are compiled."""
    compiler = logging.getLogger("spatialq.runtime.compile_cache")
    compiler.setLevel(logging.INFO)
    compiler.addHandler(COMPILING)
