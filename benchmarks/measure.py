"""What the benchmarks share: timing in turns, times by kernel and by stage, result files.

Times of a busy machine can only be compared if they are taken in one run, in turns: see `in_turns`.
CuPy is imported only where a function of this module needs it.
"""

import json
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from spatialq.functions.catalogue import catalogue
from spatialq.functions.declaration import Size
from spatialq.runtime import cuda
from spatialq.runtime.threads import n_threads


@dataclass
class Timed:
    """Times of one piece of work in seconds, one per round."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    """Of all threads of the process."""
    results: list[Any] = field(default_factory=list)
    """What it returned, if that was kept."""

    def seconds(self, clock):
        """The times by `time.perf_counter` or by `time.process_time`."""
        return self.processor if clock is time.process_time else self.wall

    @property
    def best(self):
        return min(self.wall)

    @property
    def best_processor(self):
        return min(self.processor)

    @property
    def median(self):
        return statistics.median(self.wall)


def in_turns(works, repeat, *, warm_up=True, keep=False):
    """Time several pieces of work in turns, so that all of them meet the same machine.

    Parameters
    ----------
    works : mapping of str to callable
    repeat : int
        Rounds.
    warm_up : bool
        Whether a round that is not counted comes first: it compiles.
    keep : bool
        Whether the results are kept, too.

    Returns
    -------
    dict of str to Timed
    """
    found = {name: Timed() for name in works}
    for counted in [False] * warm_up + [True] * repeat:
        for name, work in works.items():
            synchronize()
            wall, processor = time.perf_counter(), time.process_time()
            result = work()
            synchronize()
            wall, processor = time.perf_counter() - wall, time.process_time() - processor
            if counted:
                timed = found[name]
                timed.wall.append(wall)
                timed.processor.append(processor)
                if keep:
                    timed.results.append(result)
            del result
    return found


def wall_ms(work, repeat=5):
    """Median milliseconds on the host's clock, after a call that is not counted."""
    return 1e3 * in_turns({"": work}, repeat)[""].median


def device_ms(work, repeat=5):
    """Median milliseconds between events of the GPU, after a call that is not counted."""
    work()
    return statistics.median(between_events(work) for _ in range(repeat))


def first_and_next(work):
    """Seconds of a first call, which may compile; milliseconds of the next; its result."""
    clock = time.perf_counter()
    work()
    first = time.perf_counter() - clock
    clock = time.perf_counter()
    result = work()
    return first, 1e3 * (time.perf_counter() - clock), result


def between_events(work):
    """Milliseconds between events of the GPU before and after some work."""
    import cupy as cp

    start, stop = cp.cuda.Event(), cp.cuda.Event()
    start.record()
    work()
    stop.record()
    stop.synchronize()
    return cp.cuda.get_elapsed_time(start, stop)


def synchronize():
    """Wait for the GPU, in a process that uses one."""
    if "cupy" in sys.modules:
        sys.modules["cupy"].cuda.Device().synchronize()


def launches(work):
    """Milliseconds of each launch of the CUDA kernels, by name, in a run that waits after each."""
    device, spent = cuda.device(), {}
    launch = device.launch

    def timed(source, kernel, *arguments):
        ms = between_events(lambda: launch(source, kernel, *arguments))
        spent.setdefault(kernel, []).append(ms)

    with patch.object(device, "launch", timed):
        work()
    return dict(sorted(spent.items(), key=lambda item: -sum(item[1])))


def by_kernel(work):
    """Milliseconds in the CUDA kernels, by name."""
    return {name: sum(ms) for name, ms in launches(work).items()}


@contextmanager
def stages(places, clock=time.perf_counter):
    """Time functions of the package while some work runs; every call is waited for.

    Parameters
    ----------
    places : mapping of str to (object, str)
        Name of a stage -> where its function is: the owner and the attribute.
    clock : callable

    Yields
    ------
    dict of str to float
        Seconds of each stage so far; one that calls another contains it.
    """
    spent = dict.fromkeys(places, 0.0)

    def timed(name, function):
        def call(*arguments, **named):
            synchronize()
            start = clock()
            try:
                return function(*arguments, **named)
            finally:
                synchronize()
                spent[name] += clock() - start

        return call

    with ExitStack() as patches:
        for name, (owner, attribute) in places.items():
            inner = getattr(owner, attribute)
            patches.enter_context(patch.object(owner, attribute, timed(name, inner)))
        yield spent


def by_stage(places, work):
    """Milliseconds in each stage of some work; see `stages`."""
    with stages(places) as spent:
        work()
    return {name: 1e3 * seconds for name, seconds in spent.items()}


def on_host(array):
    """Copy an array to the host, wherever it is."""
    return array.get() if hasattr(array, "get") else np.asarray(array)


def assert_same(found, expected):
    """Compare all columns of two results, to the bit but for the sign of zeros."""
    assert list(found) == list(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(on_host(found[name]), values, err_msg=name)


def kernel(name, device):
    """Get a function's kernel: of its inputs and `options`, the columns of its result."""
    return catalogue()[name].kernel(device)


def options_of(name, **chosen):
    """Make a function's parameters."""
    return catalogue()[name].choose(chosen)


def work_of(name, rows, options):
    """Count the work of a call, as the planner does."""
    return catalogue()[name].output.work(Size(rows), options)


def add_arguments(parser):
    """Add the arguments that every benchmark with a result file has."""
    parser.add_argument("--commit", default=_commit(), help="of the code that is measured")
    parser.add_argument("--out", type=Path, help="folder for a file of each function")


def _commit():
    command = ["git", "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def header(function, commit, **figures):
    """Begin a report: which function was measured where and when."""
    import cupy as cp

    return {
        "function": function,
        "device": cp.cuda.runtime.getDeviceProperties(0)["name"].decode(),
        "cupy": cp.__version__,
        "commit": commit,
        "date": datetime.now(UTC).date().isoformat(),
        "cpu_threads": n_threads(),
        **figures,
    }


def add_cases(folder, name, commit, cases):
    """Enter cases into NAME.json of a folder, if there is one: each replaces its model and seed."""
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    known = json.loads(path.read_text())["cases"] if path.exists() else []
    about = {"commit": commit, "date": datetime.now(UTC).date().isoformat()}
    new = {(each["model"], each["seed"]): {**each, **about} for each in cases}
    kept = {(each["model"], each["seed"]): each for each in known} | new
    rows = ",\n  ".join(json.dumps(kept[key]) for key in sorted(kept))
    path.write_text(f'{{"cases": [\n  {rows}\n]}}\n')


def show(report):
    """Print a report at once, and give it back."""
    print(json.dumps(report, indent=1), flush=True)
    return report


def write(folder, name, report):
    """Write a report as NAME.json into a folder, if there is one."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.json"
        path.write_text(json.dumps(report, indent=1) + "\n")
