"""`calibrate`: measures how fast the kernels, the transfers and the transports of this machine are.

The shape of the estimates is that of `spatialq/planner/rates.json`: which loops count, and how
threads share them. What is measured here is how many times as long they take on this machine, what
the smallest call takes, and what is paid once in a process.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp
from math import log as ln
from pathlib import Path
from statistics import fmean, median

import numpy as np
import pyarrow as pa

from spatialq.database.connection import connect
from spatialq.execution.call import call
from spatialq.execution.run import run
from spatialq.functions.catalogue import Function, catalogue
from spatialq.functions.declaration import Device, Size, Work
from spatialq.planner import calibration, devices, log, rates
from spatialq.planner.rates import Rate, Rates, TransportRate
from spatialq.planner.statistics import size_of
from spatialq.runtime import cuda
from spatialq.workflows.calibration_inputs import CHOSEN, make, survey

LIMIT = 55.0
"""Seconds for everything: what there is no time for keeps the figures of the package."""
SMALL, SIZES = 1000, (30_000, 300_000)
"""Rows of the smallest call, which is mostly its start, and of those that are mostly loops."""
ROUNDS = 3
LONG = 2.0
"""Seconds of a call that is not made again, and not with more rows."""
MIN_SHARE_OF_TIME = 0.1
"""Share of a measured time that is never taken for something else."""
BYTES_SENT = 1 << 26
FEW_ROWS, MANY_ROWS = "owm_ground", "classify_ground"
"""Functions of points by the rows that they give, on which the transports are measured."""

Update = Callable[[str], None]


@dataclass(frozen=True)
class Calibration:
    """What was measured, and where it is kept."""

    path: Path
    rates: Rates
    measured: Sequence[tuple[str, Device, float]]
    """Function, device, and how many times as long as by the figures of the package it took."""
    left_out: Sequence[str]
    """Functions that there was no time for."""
    seconds: float


class _Clock:
    def __init__(self, limit: float) -> None:
        self._started, self._limit = time.perf_counter(), limit

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._started

    def is_over(self, share: float = 1.0) -> bool:
        return self.seconds > share * self._limit


def calibrate(*, limit: float = LIMIT, update: Update = lambda _: None) -> Calibration:
    """Measure the speeds of this machine, and keep them for the planner.

    The figures are written to the user's cache folder, one file for each processor, number of
    cores, GPU and version of spatialq, and are used at once. A machine that is busy with other
    things gives figures of a slower one.

    Parameters
    ----------
    limit : float
        Seconds after which no further measurement begins.
    update : callable, optional
        Gets a line of text before each part.

    Returns
    -------
    Calibration

    Raises
    ------
    ValueError
        If `limit` is not > 0.
    FileError
        If the file cannot be written.
    """
    if not limit > 0:
        message = f"calibrate: limit must be > 0 seconds, got {limit!r}"
        raise ValueError(message)
    clock, shipped = _Clock(limit), rates.shipped().on(devices.gpu())
    there: list[Device] = ["cpu"] if devices.gpu().problem else ["cpu", "gpu"]
    transfer = dict(shipped.transfer)
    if "gpu" in there:
        update("transfers to the GPU")
        transfer |= transfers()
    kernels = {name: dict(by_device) for name, by_device in shipped.kernels.items()}
    measured: list[tuple[str, Device, float]] = []
    done: set[tuple[str, Device]] = set()
    wanted = [
        (function, device)
        for function in catalogue().values()
        for device in there
        if function.has_kernel(device) and shipped.rate(function.name, device) is not None
    ]
    for function, device in wanted:
        if clock.is_over(0.75):
            break
        update(f"{function.name} on the {device}")
        rate = shipped.rate(function.name, device)
        assert rate is not None
        found, factor = _measure(function, device, rate, transfer, clock)
        kernels[function.name][device] = found
        measured.append((function.name, device, factor))
        done.add((function.name, device))
    ways = dict(shipped.transports)
    if not clock.is_over(0.85):
        update("SQL and arrays")
        ways |= transports()
    start = dict(shipped.start)
    for device in there:
        update(f"a new process on the {device}")
        names = [name for name, where, _ in measured if where == device]
        first, loads = in_new_process(device, names, limit - clock.seconds)
        start |= first
        for name, load in loads.items():
            kernels[name][device] = replace(kernels[name][device], load=load)
    figures = replace(
        shipped,
        about=f"spatialq calibrate on {devices.cpu_name()}",
        start=start,
        transfer=transfer,
        transports=ways,
        kernels=kernels,
    )
    place = calibration.save(figures.as_json())
    rates.calibrated(figures)
    log.forget()
    left_out = sorted({each.name for each, device in wanted if (each.name, device) not in done})
    return Calibration(place, figures, measured, left_out, clock.seconds)


@dataclass(frozen=True)
class _Timed:
    """One input of a function, and how long its kernel took."""

    work: Work
    seconds: float


def _time(function: Function, device: Device, size: int, clock: _Clock) -> _Timed:
    """Time a kernel: the median of some calls, after one that is not counted, since it loads."""
    arguments, options = make(function, size), function.choose(CHOSEN.get(function.name, {}))

    def once() -> float:
        call(function, arguments, options, device)
        return log.entries()[-1].seconds

    first, times = once(), [once()]
    while len(times) < ROUNDS and sum(times) < LONG and not clock.is_over():
        times.append(once())
    work = function.output.work(size_of(function.inputs, arguments), options)
    return _Timed(work, min(first, median(times)))


def _measure(
    function: Function, device: Device, rate: Rate, transfer: Mapping[str, float], clock: _Clock
) -> tuple[Rate, float]:
    """Measure a kernel: its start, and how many times as long its loops take.

    The factor is the geometric mean over the sizes, of what remains of the measured time when the
    start and the transfer are taken off.
    """
    small, larger = _time(function, device, SMALL, clock), []
    for size in SIZES:
        larger.append(_time(function, device, size, clock))
        if larger[-1].seconds > LONG:
            break

    def sent(work: Work) -> float:
        if device == "cpu":
            return 0.0
        return work.bytes_in * transfer["pageable"] + work.bytes_out * transfer["download"]

    def loops(work: Work) -> float:
        threads = devices.cpu().cores if device == "cpu" else 1
        return rate.seconds(work, threads) - rate.start

    def start(factor: float) -> float:
        rest = small.seconds - sent(small.work) - factor * loops(small.work)
        return max(rest, MIN_SHARE_OF_TIME * small.seconds)

    factor = 1.0
    for _ in range(2):  # the start depends on the factor a little, and the factor on the start
        ratios = [
            max(each.seconds - sent(each.work) - start(factor), MIN_SHARE_OF_TIME * each.seconds)
            / loops(each.work)
            for each in larger
        ]
        factor = exp(fmean(map(ln, ratios)))
    return replace(rate.scaled(factor), start=start(factor)), factor


def transfers() -> dict[str, float]:
    """Seconds a byte to the GPU, from memory of both kinds, and back."""
    gpu = cuda.device()
    with gpu.use():
        here = np.ones(BYTES_SENT // 8)
        locked = np.frombuffer(gpu.xp.cuda.alloc_pinned_memory(BYTES_SENT), np.float64)
        (there,) = gpu.upload([here])
        ways: dict[str, Callable[[], object]] = {
            "pageable": lambda: gpu.upload([here]),
            "page-locked": lambda: gpu.upload([locked[: BYTES_SENT // 8]]),
            "download": lambda: gpu.download(there),
        }
        return {way: _median_seconds(work) / BYTES_SENT for way, work in ways.items()}


def _median_seconds(work: Callable[[], object]) -> float:
    """Time some work a few times, after once that is not counted."""
    times = []
    for _ in range(ROUNDS + 1):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return median(times[1:])


def transports() -> dict[str, TransportRate]:
    """Measure what arrays and SQL add to a kernel, by the transport of SQL on this machine."""
    small, large = SMALL, SIZES[-1]
    found = {}
    with connect() as con:
        for n in (small, large):
            columns = dict(zip("xyz", survey(n), strict=True))
            con.register("incoming", pa.table({"point_id": np.arange(n), **columns}))
            con.execute(f"CREATE TABLE points_{n} AS FROM incoming")
            con.unregister("incoming")

        def in_sql(function: str, n: int) -> float:
            column = next(iter(catalogue()[function].output.columns))
            query = f"SELECT count({column}) FROM {function}('points_{n}', device := 'cpu')"
            return _added(lambda: con.execute(query).fetchall())

        found["in sql"] = _transport(in_sql, small, large)
        transport = log.entries()[-1].transport
    clouds = {n: survey(n) for n in (small, large)}
    found["arrays"] = _transport(
        lambda function, n: _added(lambda: run(function, *clouds[n], device="cpu")), small, large
    )
    return {"arrays": found["arrays"], transport: found["in sql"]}


def _added(work: Callable[[], object]) -> float:
    """Median seconds that some work takes beyond its kernel."""
    times = []
    for _ in range(ROUNDS + 1):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started - log.entries()[-1].seconds)
    return max(median(times[1:]), 0.0)


def _transport(added: Callable[[str, int], float], small: int, large: int) -> TransportRate:
    """Make a rate of what two functions add: one gives few rows, the other one for each point."""

    def work(name: str) -> Work:
        function = catalogue()[name]
        return function.output.work(Size(large), function.choose({}))

    start = added(FEW_ROWS, small)
    byte_in = max(added(FEW_ROWS, large) - start, 0.0) / work(FEW_ROWS).bytes_in
    out = added(MANY_ROWS, large) - start - byte_in * work(MANY_ROWS).bytes_in
    return TransportRate(start, byte_in, max(out, 0.0) / work(MANY_ROWS).bytes_out)


NEW_PROCESS = """
import json, sys, time
device, rows, *names = sys.argv[1:]
import spatialq
from spatialq.execution.call import call
from spatialq.functions.catalogue import catalogue
from spatialq.workflows.calibration_inputs import CHOSEN, make
made = {name: make(catalogue()[name], int(rows)) for name in names}
started = time.perf_counter()
import numba
if device == "gpu":
    from spatialq.runtime import cuda
    with cuda.device().use():
        cuda.device().download(cuda.device().filled(1, 1 << 20))
start = time.perf_counter() - started
loads = {}
for name, arguments in made.items():
    function, times = catalogue()[name], []
    for _ in range(4):
        options = function.choose(CHOSEN.get(name, {}))
        started = time.perf_counter()
        call(function, arguments, options, device)
        times.append(time.perf_counter() - started)
    loads[name] = max(times[0] - min(times[1:]), 0.0)
print(json.dumps([start, loads]))
"""


def in_new_process(
    device: Device, names: Sequence[str], limit: float, rows: int = SMALL
) -> tuple[dict[str, float], dict[str, float]]:
    """Measure what a new process pays once: for the device, and for each function.

    One output of a folder loads for all. Of functions that share modules the first one pays.
    """
    command = [sys.executable, "-c", NEW_PROCESS, device, str(rows), *names]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=max(limit, 1.0)
        )
        start, loads = json.loads(done.stdout.splitlines()[-1])
    except (subprocess.SubprocessError, OSError, ValueError, IndexError):
        return {}, {}  # the figures of the package stay
    folders = {name: catalogue()[name].folder for name in names}
    return {device: start}, {
        name: max(loads[other] for other in names if folders[other] == folders[name])
        for name in names
    }
