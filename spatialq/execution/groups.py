"""Many small clouds in one call, as `GROUP BY` makes them: one plan, one entry of the log."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

import numpy as np

from spatialq.data.boxes import in_box
from spatialq.data.frame import Frame
from spatialq.data.points import ascends
from spatialq.data.reach import require_reach
from spatialq.data.strays import ends_of, few
from spatialq.execution.call import POINT_ID, planned, stoppable
from spatialq.execution.doubts import warn_of_doubt
from spatialq.execution.strays import leave_out
from spatialq.execution.units import Fitted, fit
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import BOUNDS, Parameters, Size
from spatialq.planner.rates import Transport
from spatialq.runtime import cuda
from spatialq.runtime.arrays import Ints
from spatialq.runtime.progress import Task, current, observer, running

CLOUDS_PER_REPORT = 64
"""Clouds after which the progress is reported: for one of ten points that takes as long as a part
of the kernel."""


def call_groups(
    function: Function,
    columns: Mapping[str, Any],
    starts: Ints,
    options: Parameters,
    requested: str,
    *,
    transport: Transport,
    frame: Frame | None,
) -> list[dict[str, Any]]:
    """Plan once, run a kernel for each of several clouds, and write one entry of the log.

    The rows are those of `call` with each cloud.

    Parameters
    ----------
    function : Function
        Of points.
    columns : mapping of str to array[n]
        x, y, z, `point_id` and attributes (None for absent ones) of all clouds, one behind the
        other, in main memory.
    starts : int64[k + 1]
        Where each of the k clouds begins, and n.
    options, requested, transport, frame
        As for `call`. The device is that of the largest cloud.

    Returns
    -------
    list of k dicts of arrays

    Raises
    ------
    CrsError, MemoryError, ValueError
        As `call`.

    Warns
    -----
    CrsWarning, StrayPointsWarning
        As `call`.
    SparsePointsWarning
        As `call`, of all clouds together.
    """
    columns, starts = _within(columns, starts, getattr(options, BOUNDS, None))
    sizes = np.diff(starts)
    fitted = fit(function, columns, options, frame)
    if POINT_ID in function.output.columns:
        _require_unique(function.name, columns[POINT_ID], sizes)
    if sizes.any():
        given = np.array([1.0, 1.0, fitted.level])
        ends = ends_of([fitted.arguments[axis] for axis in "xyz"])
        low, high = ends / given
        require_reach(function.name, low, high, fitted.units)
    if function.declaration.doubt:
        warn_of_doubt(function, fitted.arguments, fitted.options, fitted.across)
    task = current() or Task(observer())
    largest = Size(int(sizes.max(initial=0)))
    plan = planned(
        [function], largest, fitted.options, requested,
        transport=transport, note=f"{len(sizes)} groups", rows=int(starts[-1]),
    )  # fmt: skip
    with running(task), plan as execution:

        def run() -> list[dict[str, Any]]:
            kernel, found = function.kernel(execution.device), []
            clouds = pairwise(starts.tolist())
            while several := tuple(islice(clouds, CLOUDS_PER_REPORT)):
                with task.nested():
                    for first, stop in several:
                        task.check()
                        found.append(_one(function, kernel, fitted, slice(first, stop)))
                task.report(len(found), len(sizes))
            return found

        if execution.device == "cpu":
            return stoppable(run)
        with cuda.on(*execution.gpus):
            return run()


def _within(columns: Mapping[str, Any], starts: Any, box: Any) -> tuple[dict[str, Any], Any]:
    """Leave out the points outside of the parameter `bounds`."""
    if box is None:
        return dict(columns), starts
    inside = in_box(columns["x"], columns["y"], box)
    kept = {name: None if each is None else each[inside] for name, each in columns.items()}
    return kept, np.concatenate([[0], np.cumsum(inside)])[starts]


def _require_unique(caller: str, ids: Any, sizes: Any) -> None:
    """Refuse ids that occur twice in one cloud, as `validation.require_unique`."""
    if ascends(ids):
        return
    cloud = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((ids, cloud))
    ids, cloud = ids[order], cloud[order]
    again = np.flatnonzero((ids[1:] == ids[:-1]) & (cloud[1:] == cloud[:-1]))
    if again.size:
        message = f"{caller}: point_id must be unique, got {int(ids[again[0]])} more than once"
        raise ValueError(message)


def _one(function: Function, kernel: Any, fitted: Fitted, rows: slice) -> dict[str, Any]:
    """Run the kernel for one cloud; so few points that none can be stray are not looked at."""
    arguments = {name: _part(values, rows) for name, values in fitted.arguments.items()}
    if not few(rows.stop - rows.start):
        return fitted.results(function, kernel(**arguments, options=fitted.options))
    crowd = leave_out([function], replace(fitted, arguments=arguments))
    found = kernel(**crowd.arguments, options=fitted.options)
    return fitted.results(function, crowd.results(function, found))


def _part(values: Any, rows: slice) -> Any:
    """Take some rows of a column; an attribute that has no value there is absent."""
    if values is None:
        return None
    part = values[rows]
    is_absent = isinstance(part, np.ma.MaskedArray) and np.ma.getmaskarray(part).all()
    return None if is_absent else part
