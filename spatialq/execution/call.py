"""One call of a kernel: plan it, run it, write the log."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from spatialq.data.frame import Frame
from spatialq.execution.bounds import within
from spatialq.execution.doubts import warn_of_doubt
from spatialq.execution.placement import warn_if_misplaced
from spatialq.execution.strays import leave_out
from spatialq.execution.units import fit
from spatialq.execution.validation import require_unique
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import (
    CoordinateParameters,
    Device,
    GridInput,
    Parameters,
    PointsAndElementsInput,
    Size,
)
from spatialq.planner import log, process
from spatialq.planner.plan import Plan, plan_call
from spatialq.planner.rates import Transport
from spatialq.planner.statistics import size_of
from spatialq.runtime import cuda, file_memory
from spatialq.runtime.progress import (
    INTERVAL,
    Listener,
    Task,
    current,
    observer,
    running,
)

Result = TypeVar("Result")

POINT_ID = "point_id"
GRACE = 0.8
"""Seconds in which work should end that was told to stop."""
SHORT = 0.1
"""Estimated seconds of work that Ctrl-C may wait for; to start a thread takes a millisecond."""


def call(
    function: Function,
    arguments: dict[str, Any],
    options: Parameters,
    requested: str,
    *,
    transport: Transport = "arrays",
    frame: Frame | None = None,
    note: str = "",
) -> tuple[dict[str, Any], Device]:
    """Plan and run a kernel, and write the log.

    Parameters
    ----------
    function : Function
    arguments : dict
        What the kernel gets, by name: `point_id` (None for the positions), the columns and
        attributes of points, the `grid`, the meshes `a` and `b`, or those of another table.
    options : Parameters
        As `Function.choose` makes them.
    requested : 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1'
        What is in the memory of a GPU is worked on there, whatever was requested.
    transport : 'arrays', 'native', 'lists' or 'files'
        How the data came and will go, for the estimate and the log: as arrays of Python, by the
        extension of DuckDB, in lists of DuckDB, or from files.
    frame : Frame, optional
        What is known of the coordinates of tables and files, see `frames.fit`.
    note : str
        What the log says beside the reason.

    Returns
    -------
    columns : dict of arrays
    device : 'cpu' or 'gpu'
        Where it ran. What does not fit into the GPU's memory after all runs in smaller tiles there,
        and with 'auto' in the end on the CPU, unless it came in the memory of the GPU.
    """
    found, device = call_outputs(
        [function], arguments, options, requested, transport=transport, frame=frame, note=note
    )
    return found[function.name], device


def call_outputs(
    functions: Sequence[Function],
    arguments: dict[str, Any],
    options: Parameters,
    requested: str,
    progress: Listener | None = None,
    *,
    transport: Transport = "arrays",
    frame: Frame | None = None,
    note: str = "",
) -> tuple[dict[str, dict[str, Any]], Device]:
    """Plan and run a kernel once for several of its outputs, and write the log.

    It runs in the current task, or in one of its own.

    Parameters
    ----------
    functions : sequence of Function
        All of one folder, such as `detect_planes` and `plane_points`.
    arguments, options, requested, transport, frame, note
        As for `call`. Points outside of `options.bounds` do not reach the kernel.
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
    CrsError
        If the coordinates cannot be used, see `frames.fit`.
    ValueError
        If ids occur twice by which the result names points.

    Warns
    -----
    StrayPointsWarning
        If points are left out, see `strays.leave_out`.
    PlacementWarning
        If the points lie beside the elements that they are compared with.
    SparsePointsWarning
        If there are too few points for what is looked for in them.
    """
    inputs = functions[0].inputs
    arguments = within(arguments, options, inputs.other)
    fitted = fit(functions[0], arguments, options, frame)
    if any(POINT_ID in each.output.columns for each in functions):
        require_unique(functions[0].name, arguments.get(POINT_ID))
    crowd = leave_out(functions, fitted)
    arguments, options = crowd.arguments, fitted.options
    size = size_of(functions[0].inputs, arguments)

    def purpose() -> str:
        return _result_size(functions[-1], arguments, options)

    task = (None if progress else current()) or Task(progress or observer())
    plan = planned(functions, size, options, requested, purpose, transport=transport, note=note)
    found, device = _run_planned(task, plan, functions, arguments, options)
    if isinstance(inputs, PointsAndElementsInput) and inputs.are_placed:
        assert isinstance(options, CoordinateParameters)
        xyz = [arguments[axis] for axis in "xyz"]
        warn_if_misplaced(options.function, xyz, options.metres, arguments[inputs.other])
    if functions[0].declaration.doubt:
        warn_of_doubt(functions[0], arguments, options, fitted.across)
    results = {
        each.name: fitted.results(each, crowd.results(each, found[each.name])) for each in functions
    }
    return results, device


def call_as_given(
    function: Function,
    arguments: dict[str, Any],
    options: Parameters,
    requested: str,
    *,
    transport: Transport = "arrays",
) -> tuple[dict[str, Any], Device]:
    """Plan and run a kernel as `call`, with all points as they are, and write the log."""
    size = size_of(function.inputs, arguments)
    plan = planned([function], size, options, requested, transport=transport)
    task = current() or Task(observer())
    found, device = _run_planned(task, plan, [function], arguments, options)
    return found[function.name], device


def _run_planned(
    task: Task,
    plan: "AbstractContextManager[Execution]",
    functions: Sequence[Function],
    arguments: dict[str, Any],
    options: Parameters,
) -> tuple[dict[str, dict[str, Any]], Device]:
    """Run a kernel where it was planned; if memory runs out on a GPU, in tiles or on the CPU."""
    with running(task), plan as execution:
        found = None
        while found is None:
            try:
                with task.nested():
                    found = _run(functions, execution, arguments, options)
            except MemoryError as full:  # and no error keeps arrays of the GPU in the next try
                execution.give_way(full)
        task.report(1, 1)
    return found, execution.device


def _run(
    functions: Sequence[Function],
    execution: "Execution",
    arguments: dict[str, Any],
    options: Parameters,
) -> dict[str, dict[str, Any]]:
    first, *others = functions
    device, given = execution.device, {**arguments, "options": options}
    if execution.tiles > 1:
        given["tiles"] = execution.tiles

    def run() -> dict[str, dict[str, Any]]:
        if not others:
            return {first.name: first.kernel(device)(**given)}
        names = tuple(each.name for each in functions)
        return first.kernel_of_all(device)(**given, outputs=names)

    # a kernel of the GPU spends no time in code that Ctrl-C does not end, and its stream is that
    # of this thread
    if device == "cpu":
        return run() if execution.is_short else stoppable(run)
    with cuda.on(*execution.gpus):
        return run()


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
    tiles: int = 1
    """Tiles that it runs in."""
    most_tiles: int = 1
    gpus: tuple[int, ...] = ()
    """Numbers of the GPUs that it runs on; several share its tiles."""
    is_short: bool = False
    """Whether it was planned for the CPU, where what it needs is compiled, and is over at once."""

    def give_way(self, full: MemoryError) -> None:
        """Go on in tiles of half the size, or on the CPU; raise the error if neither may be."""
        if self.device == "cpu" or 2 * self.tiles > self.most_tiles:
            self.fall_back(full)
            return
        self.tiles *= 2
        self.reason = (
            f"{self.reason}; the GPU ran out of memory, then in {self.tiles} tiles: {full}"
        )

    def fall_back(self, full: MemoryError) -> None:
        """Go on on the CPU, after an error of the GPU; raise it if that may not be."""
        if self.device == "cpu" or not self.is_free:
            raise full
        smallest = f" in {self.tiles} tiles" if self.tiles > 1 else ""
        self.device, self.tiles = "cpu", 1
        self.reason = f"the GPU ran out of memory{smallest}: {full}"


@contextmanager
def planned(
    functions: Sequence[Function],
    size: Size,
    options: Parameters,
    requested: str,
    purpose: Callable[[], str] = str,
    *,
    transport: Transport = "arrays",
    note: str = "",
    rows: int | None = None,
) -> Iterator[Execution]:
    """Plan a call that is made in the block, and write the log when it ends.

    Parameters
    ----------
    functions, options, requested, transport, note
        As for `call_outputs`; the log and errors have the name of the first.
    size : Size
        What is known of its input.
    purpose : callable
        Says what memory was not enough for.
    rows : int, optional
        Of several inputs together, of which `size` is the largest: the log then has no estimate,
        and learns nothing.

    Raises
    ------
    MemoryError
        If memory was not enough, in a sentence.
    """
    started, clock, error = datetime.now(UTC), time.perf_counter(), None
    name = functions[0].name
    plan = plan_call(functions, size, options, requested, transport)
    expected = plan.estimate
    is_short = expected is not None and expected.is_warm and expected.call < SHORT
    execution = Execution(
        plan.device, plan.reason, requested == "auto" and size.device == "cpu",
        plan.tiles, plan.most_tiles, plan.gpus, is_short=is_short and plan.device == "cpu",
    )  # fmt: skip
    with file_memory.noting() as of_memory:
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
            estimate = plan.estimate if rows is None else None
            entry = log.Entry(
                at=started,
                function=name,
                rows=size.rows if rows is None else rows,
                device=execution.device,
                reason="; ".join(filter(None, [execution.reason, note, str(of_memory)])),
                estimated_seconds=None if estimate is None else estimate.call,
                seconds=time.perf_counter() - clock,
                error=error,
                transport=transport,
                transport_seconds=None if estimate is None else estimate.transport,
            )
            log.add(entry)
            if error is None and execution.tiles == 1 and rows is None:
                _learn(functions, plan, entry)


def _learn(functions: Sequence[Function], plan: Plan, entry: log.Entry) -> None:
    """Let the log correct later estimates, by a call that ended well and where it was planned."""
    device = plan.device
    if entry.device != device:
        return
    process.loaded(functions[0].folder, device, *plan.gpus)
    estimate = plan.estimate
    # with several outputs at once, another function may have been estimated than the log names
    if estimate is not None and estimate.is_warm and len(functions) == 1:
        expected = estimate.call / estimate.correction
        if expected > 0:
            log.learn(entry.function, device, entry.rows, entry.seconds / expected)


def _result_size(function: Function, arguments: dict[str, Any], options: Parameters) -> str:
    """Say how large the result of a function of grids is."""
    if not isinstance(function.inputs, GridInput):
        return ""
    windows = function.output.windows(arguments["grid"], options)
    return f" for a result of {windows.count * windows.results} rows"
