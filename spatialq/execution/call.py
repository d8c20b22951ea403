"""One call of a kernel: plan it, run it, write the log."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import Device, GridInput, PointsAndElementsInput, PointsInput
from spatialq.planner import log
from spatialq.planner.plan import plan_call
from spatialq.runtime.progress import (
    INTERVAL,
    Listener,
    Task,
    current,
    observer,
    running,
)

Result = TypeVar("Result")

GRACE = 0.8
"""Seconds in which work should end that was told to stop."""


def call(
    function: Function, arguments: dict[str, Any], options: Any, requested: str
) -> tuple[dict[str, Any], Device]:
    """Plan and run a kernel, and write the log.

    Parameters
    ----------
    function : Function
    arguments : dict
        What the kernel gets, by name: `point_id` (None for the positions), the columns and
        attributes of points, the `grid`, the meshes `a` and `b`, or `elements`.
    options : Parameters
        As `Function.choose` makes them.
    requested : 'auto', 'cpu' or 'gpu'

    Returns
    -------
    columns : dict of arrays
    device : 'cpu' or 'gpu'
        Where it ran. With 'auto', what does not fit into the GPU's memory after all runs on the
        CPU.
    """
    found, device = call_outputs([function], arguments, options, requested)
    return found[function.name], device


def call_outputs(
    functions: Sequence[Function],
    arguments: dict[str, Any],
    options: Any,
    requested: str,
    progress: Listener | None = None,
) -> tuple[dict[str, dict[str, Any]], Device]:
    """Plan and run a kernel once for several of its outputs, and write the log.

    It runs in the current task, or in one of its own.

    Parameters
    ----------
    functions : sequence of Function
        All of one folder, such as `detect_planes` and `plane_points`.
    arguments, options, requested
        As for `call`.
    progress : Listener, optional
        Of a task of its own: called in this thread.

    Returns
    -------
    columns : dict of name -> dict of arrays
    device : 'cpu' or 'gpu'

    Raises
    ------
    Cancelled
        If the task is cancelled.
    """
    rows = _rows(functions[0], arguments)

    def purpose() -> str:
        return _result_size(functions[-1], arguments, options)

    task = (None if progress else current()) or Task(progress or observer())
    with running(task), planned(functions, rows, options, requested, purpose) as execution:
        with task.nested():
            try:
                found = _run(functions, execution.device, arguments, options)
            except MemoryError as full:
                execution.fall_back(full)
                found = _run(functions, execution.device, arguments, options)
        task.report(1, 1)
    return found, execution.device


def _run(
    functions: Sequence[Function], device: Device, arguments: dict[str, Any], options: Any
) -> dict[str, dict[str, Any]]:
    first, *others = functions

    def run() -> dict[str, dict[str, Any]]:
        if not others:
            return {first.name: first.kernel(device)(**arguments, options=options)}
        names = tuple(each.name for each in functions)
        return first.kernel_of_all(device)(**arguments, options=options, outputs=names)

    # a kernel of the GPU spends no time in code that Ctrl-C does not end, and its stream is that
    # of this thread
    return stoppable(run) if device == "cpu" else run()


def stoppable(work: Callable[[], Result]) -> Result:
    """Call work so that Ctrl-C ends it at its next check, in the current task.

    Python tells the main thread alone of Ctrl-C, and not before what runs there returns: from there
    the work is done in another one.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, when the work has ended. It is not waited for longer than `GRACE`: the other
        thread then ends later, after a call of a library such as Qhull, and its result is dropped.
    """
    task = current()
    if task is None or threading.current_thread() is not threading.main_thread():
        return work()
    outcome = Future[Result]()
    try:
        threading.Thread(target=_settle, args=(outcome, copy_context(), work)).start()
        while wait([outcome], INTERVAL).not_done:
            task.tell()
        return outcome.result()
    except BaseException:
        if not outcome.done():
            task.cancel()
            wait([outcome], GRACE)
        raise
    finally:
        del outcome  # its error would otherwise keep it, and what the work had


def _settle(outcome: "Future[Result]", context: Context, work: Callable[[], Result]) -> None:
    """Put what work gives, or its error, into a future."""
    try:
        outcome.set_result(context.run(work))
    except BaseException as error:
        outcome.set_exception(error)


@dataclass
class Execution:
    """Where a call runs, and why."""

    device: Device
    reason: str
    is_free: bool
    """Whether it may go to the other device."""

    def fall_back(self, full: MemoryError) -> None:
        """Go on on the CPU, after an error of the GPU; raise it if that may not be."""
        if self.device == "cpu" or not self.is_free:
            raise full
        self.device, self.reason = "cpu", f"the GPU ran out of memory: {full}"


@contextmanager
def planned(
    functions: Sequence[Function],
    rows: int,
    options: Any,
    requested: str,
    purpose: Callable[[], str] = str,
) -> Iterator[Execution]:
    """Plan a call that is made in the block, and write the log when it ends.

    Parameters
    ----------
    functions, options, requested
        As for `call_outputs`; the log and errors have the name of the first.
    rows : int
        How much it gets.
    purpose : callable
        Says what memory was not enough for.

    Raises
    ------
    MemoryError
        If memory was not enough, in a sentence.
    """
    started, clock, error = datetime.now(UTC), time.perf_counter(), None
    name = functions[0].name
    plan = plan_call(functions, rows, options, requested)
    execution = Execution(plan.device, plan.reason, requested == "auto")
    try:
        yield execution
    except MemoryError as full:
        error = f"{name}: not enough memory{purpose()}: {full}"
        raise MemoryError(error) from full
    except KeyboardInterrupt as stop:  # DuckDB says no more of it than its text
        error = f"{name}: interrupted"
        raise type(stop)(error) from stop
    except BaseException as failure:
        error = str(failure) or type(failure).__name__
        raise
    finally:
        log.add(
            log.Entry(
                at=started,
                function=name,
                rows=rows,
                device=execution.device,
                reason=execution.reason,
                estimated_seconds=plan.seconds,
                seconds=time.perf_counter() - clock,
                error=error,
            )
        )


def _result_size(function: Function, arguments: dict[str, Any], options: Any) -> str:
    """Say how large the result of a function of grids is."""
    if not isinstance(function.inputs, GridInput):
        return ""
    windows = function.output.windows(arguments["grid"], options)
    return f" for a result of {windows.count * windows.results} rows"


def _rows(function: Function, arguments: dict[str, Any]) -> int:
    """How much a call gets: points, cells of a grid, or triangles of all elements."""
    match function.inputs:
        case GridInput():
            return int(arguments["grid"].z.size)
        case PointsInput() | PointsAndElementsInput():
            return int(arguments["x"].size)
    return sum(len(meshes.faces) for meshes in arguments.values() if meshes is not None)
