"""Calls report how far they are, and stop when they are told to: the mechanism and every kernel."""

import functools
import gc
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import spatialq
from spatialq.cli import progress as bars
from spatialq.execution.call import call, stoppable
from spatialq.functions.catalogue import catalogue
from spatialq.planner import log
from spatialq.runtime import progress, threads
from spatialq.runtime.progress import Cancelled, Task, running

from .kernels import arguments_of, assert_same, cases_of, run

MANY = 10_000
"""Calls of a millisecond, which are not done before another thread gets a core."""
FUNCTIONS = [name for name, each in catalogue().items() if each.has_kernel("cpu")]
DEVICES = ["cpu", pytest.param("gpu", marks=pytest.mark.host)]


class Counting(Task):
    """A task that counts its checks, and is cancelled at one of them."""

    def __init__(self, cancelled_at=0, listener=None):
        super().__init__(listener)
        self.checks, self.cancelled_at, self.lock = 0, cancelled_at, threading.Lock()

    def check(self):
        with self.lock:
            self.checks += 1
            if self.checks == self.cancelled_at:
                self.cancel()
        super().check()


@pytest.fixture
def every_step(monkeypatch):
    """Listeners are told every step."""
    monkeypatch.setattr(progress, "INTERVAL", 0.0)


@pytest.fixture(autouse=True)
def no_thread_is_left():
    """But those that are kept for the next call, which end when they are let go."""
    before = set(threading.enumerate())
    yield
    threads._idle.clear()
    gc.collect()
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
        assert not thread.is_alive()


# The task


@pytest.mark.usefixtures("every_step")
def test_stages_follow_each_other_and_nested_ones_are_parts_of_theirs():
    told = []
    task = Task(lambda *at: told.append(at))
    task.stage("one", 0.5)
    task.report(1, 2)
    with task.nested():
        task.report(1, 1)  # there is no stage yet
        task.stage("inner", 0.5)
        task.report(3, 4)
        task.stage("last", 1.0)
        task.report(1, 1)
    task.report(1, 1)
    task.stage("two", 1.0)
    task.report(1, 4)
    task.report(0, 4)  # never less than before
    task.report(4, 4)
    assert told == [
        (0.0, "one"), (0.25, "one"), (0.25, "inner"), (0.25, "last"), (0.5, "last"), (0.5, "two"),
        (0.625, "two"), (1.0, "two"),
    ]  # fmt: skip


def test_a_listener_is_told_ten_times_a_second_at_most_and_of_the_end(monkeypatch):
    clock, told = [100.0], []
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    task = Task(lambda fraction, _: told.append(fraction))
    task.stage("all", 1.0)
    for done in range(101):
        task.report(done, 100)
        clock[0] += 0.03
    assert told == [0.0, *(done / 100 for done in range(4, 100, 4)), 1.0]


def test_a_listener_is_told_in_the_thread_that_made_the_task():
    told = []
    task = Task(lambda *at: told.append(at))
    with ThreadPoolExecutor(1) as pool:
        pool.submit(task.stage, "one", 0.5).result()
        pool.submit(task.report, 1, 1).result()
    assert told == []
    task.tell()
    assert told == [(0.5, "one")]


def test_a_task_that_is_cancelled_raises_at_checks_and_reports():
    task = Task()
    task.check()
    task.cancel()
    assert task.cancelled
    for ask in (task.check, lambda: task.report(1, 1), lambda: task.stage("one", 1.0)):
        with pytest.raises(Cancelled):
            ask()
    assert issubclass(Cancelled, KeyboardInterrupt)


def test_without_a_task_nothing_happens():
    progress.check()
    progress.stage("one", 0.5)
    progress.report(1, 1)
    with progress.nested():
        progress.stage("inner", 0.5)
    assert progress.current() is None
    assert progress.stop_flag().tolist() == [0]


def test_few_points_are_not_divided_among_threads(monkeypatch):
    monkeypatch.setenv("SPATIALQ_THREADS", "16")
    for size, count in ((1000, 1), (2 * threads.FEW_POINTS, 2), (10**9, 954)):
        found = []
        threads.in_threads(found.append, size, worth=threads.FEW_POINTS)
        assert sorted(found) == threads.spans(size, count)


def test_when_the_process_ends_all_tasks_do_and_later_ones_too(monkeypatch):
    monkeypatch.setattr(progress, "_is_ending", False)
    before = Task()
    progress.cancel_all()
    assert before.cancelled
    assert Task().cancelled
    with pytest.raises(Cancelled):
        threads.in_threads(lambda _: pytest.fail("a chunk was begun"), 10)


# Work in threads


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.usefixtures("every_step")
def test_calls_are_reported_and_their_results_are_in_order(count):
    told = []
    task = Task(lambda fraction, _: told.append(fraction))
    with running(task), threads.workers(count) as pool:
        assert pool.map(lambda a, b: a * b, range(8), range(1, 9)) == [
            a * (a + 1) for a in range(8)
        ]
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert len(told) == 8


@pytest.mark.parametrize("count", [1, 3])
def test_no_call_begins_after_the_task_was_cancelled(count):
    begun, task = [], Task()

    def work(k):
        progress.check()  # the task is that of the caller
        begun.append(k)
        if k == 5:
            task.cancel()

    with running(task), threads.workers(count) as pool, pytest.raises(Cancelled):
        pool.map(work, range(10_000))
    assert 5 in begun
    assert len(begun) < 6 + 2 * count


@pytest.mark.parametrize("count", [1, 3])
def test_the_first_error_ends_the_calls_and_is_raised_but_the_task_goes_on(count):
    """As when the GPU's memory is full, and the CPU goes on in the same task."""
    begun = []

    def work(k):
        begun.append(k)
        if k == 5:
            raise MemoryError(k)
        time.sleep(0.001)

    with running(Task()) as task, threads.workers(count) as pool:
        with pytest.raises(MemoryError):
            pool.map(work, range(MANY))
        assert len(begun) < MANY
        assert pool.map(str, range(3)) == ["0", "1", "2"]
    assert not task.cancelled


def test_ctrl_c_in_the_thread_that_waits_ends_the_calls():
    begun, first = [], threading.Event()

    def interrupt(*_):
        assert first.wait(60)
        raise KeyboardInterrupt

    def work(k):
        begun.append(k)
        first.set()
        time.sleep(0.001)

    task = Task(interrupt)
    with running(task), threads.workers(2) as pool, pytest.raises(KeyboardInterrupt):
        pool.map(work, range(MANY))
    assert task.cancelled
    assert len(begun) < MANY


@pytest.mark.parametrize("count", [1, 2, 5])
def test_no_two_calls_have_one_table(count):
    tables = [np.zeros(1, np.int64) for _ in range(2)]
    inside = []

    def work(k, table):
        inside.append(id(table))
        table[0] += k
        assert inside.count(id(table)) == 1
        inside.remove(id(table))

    with threads.workers(count) as pool:
        pool.map_into(tables, work, range(100))
    assert sum(table[0] for table in tables) == sum(range(100))


@pytest.mark.parametrize("size", [0, 1, 5, threads.CHUNK, threads.CHUNK + 1, 10**8])
def test_chunks_are_bounded_and_follow_each_other(size):
    with threads.workers(2) as pool:
        divisions = [threads.chunks(size), pool.spans(size), list(threads.steps(0, size))]
    for parts in divisions:
        ends = [0, *(stop for _, stop in parts)]
        assert [start for start, _ in parts] == ends[:-1]
        assert ends[-1] == size
        assert max(np.diff(ends), default=0) <= threads.CHUNK


def test_steps_end_when_the_task_is_cancelled():
    done = []
    with running(Counting(4)), pytest.raises(Cancelled):
        done.extend(threads.steps(0, 100, 10))
    assert done == [(0, 10), (10, 20)]  # a check before each, and one in each report


# The call


def endless(ended):
    try:
        while True:
            progress.check()
    finally:
        ended.append(threading.current_thread())


def test_what_a_listener_raises_ends_the_call_and_is_raised():
    ended, error = [], RuntimeError("enough")

    def listener(*_):
        assert threading.current_thread() is threading.main_thread()
        raise error

    def work():
        progress.stage("without end", 1.0)
        progress.report(1, 2)
        endless(ended)

    with running(Task(listener)), pytest.raises(RuntimeError, match="enough"):
        stoppable(work)
    assert ended
    assert ended[0] is not threading.main_thread()


def test_ctrl_c_ends_what_the_main_thread_waits_for():
    ended, before = [], signal.signal(signal.SIGINT, signal.default_int_handler)

    def work():
        signal.raise_signal(signal.SIGINT)
        endless(ended)

    try:
        with running(Task()) as task, pytest.raises(KeyboardInterrupt):
            stoppable(work)
    finally:
        signal.signal(signal.SIGINT, before)
    assert task.cancelled
    assert len(ended) == 1


def test_an_error_of_the_work_is_raised_and_the_task_goes_on():
    with running(Task()) as task, pytest.raises(ZeroDivisionError):
        stoppable(lambda: 1 // 0)
    assert not task.cancelled


CLOUD = np.random.default_rng(7).uniform(0.0, 50.0, (3, 5000))


def test_run_tells_its_caller_how_far_it_is():
    told = []
    expected = spatialq.run("owm_ground", *CLOUD, device="cpu")
    found = spatialq.run("owm_ground", *CLOUD, device="cpu", progress=lambda *at: told.append(at))
    assert_same(found, expected)
    assert told[-1] == (1.0, "seeds")
    fractions = [fraction for fraction, _ in told]
    assert fractions == sorted(fractions)


def test_grids_and_elements_tell_as_well():
    told = []
    z = np.add.outer(np.arange(40.0), np.arange(50.0) ** 2)
    options = {"scales": [5.0], "example_scale": 20.0}
    spatialq.run_grid(
        "pops_features", z, dx=1.0, device="cpu", progress=lambda *at: told.append(at), **options
    )
    assert told[-1] == (1.0, "table")
    mesh = np.eye(4, 3), np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    spatialq.run_elements(
        "intersects_with", [mesh], [mesh], device="cpu", progress=lambda *at: told.append(at)
    )
    assert told[-1] == (1.0, "relations of pairs")


def test_what_the_callback_raises_is_raised_by_run():
    def refuse(*_):
        raise LookupError("no more")  # noqa: EM101

    with pytest.raises(LookupError, match="no more"):
        spatialq.run("owm_ground", *CLOUD, device="cpu", progress=refuse)


def test_a_call_that_is_cancelled_says_which_it_was_and_is_in_the_log():
    arguments, options = arguments_of("owm_ground", next(iter(cases_of("owm_ground").CASES)))
    owm_ground, task = catalogue()["owm_ground"], Task()
    task.cancel()
    with running(task), pytest.raises(Cancelled, match="owm_ground: interrupted"):
        call(owm_ground, arguments, owm_ground.choose(options), "cpu")
    assert log.entries()[-1].error == "owm_ground: interrupted"


def test_an_observer_is_told_of_the_calls_of_all_threads():
    told = []
    with (
        progress.observing(lambda *at: told.append(at)),
        bars.progress(),  # which is not shown without a terminal, and observes in its block
        ThreadPoolExecutor(1) as pool,
    ):
        pool.submit(spatialq.run, "owm_ground", *CLOUD, device="cpu").result()
    assert not told
    assert progress.observer() is None
    with (
        progress.observing(lambda *at: told.append(at)),
        ThreadPoolExecutor(1) as pool,
    ):
        pool.submit(spatialq.run, "owm_ground", *CLOUD, device="cpu").result()
    assert told[-1] == (1.0, "seeds")


def test_a_job_without_a_terminal_says_at_times_how_far_it_is(monkeypatch, capsys):
    clock = [100.0]
    monkeypatch.setattr(bars.time, "monotonic", lambda: clock[0])
    with bars.progress_of_job() as update:
        for clock[0], stage, done in (
            (101, "survey", 0), (129, "survey", 39), (131, "survey", 40), (140, "parts", 50),
            (150, "parts", 51), (162, "parts", 60), (170, "parts", 100), (200, "more", 7),
        ):  # fmt: skip
            update(Path(stage), done, 100)
    assert capsys.readouterr().err.splitlines() == [
        "survey: 40 of 100 tasks, about 45 s left",
        "parts: 60 of 100 tasks, about 88 s left",
        "more: 7 of 100 tasks",
    ]


# Every kernel


@functools.cache
def typical(function):
    """Give a case of a function that makes its kernel do some work: the one with most checks."""
    counted = []
    for case in list(cases_of(function).CASES)[:8]:
        arguments, options = arguments_of(function, case)
        with running(Counting()) as task:
            run(function, "cpu", arguments, **options)
        counted.append((task.checks, len(counted), arguments, options))
    return max(counted)[2:]


@pytest.fixture(params=DEVICES)
def kind(request):
    if request.param == "gpu":
        from .conftest import COMPILER, HostDevice, cuda

        if COMPILER is None:
            pytest.skip("g++ is not installed")
        host = HostDevice()
        request.getfixturevalue("monkeypatch").setattr(cuda, "device", lambda: host)
    return request.param


ONE_STAGE = ("contours", "terrain_derivatives", "thin")
"""Functions whose work is one loop."""


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.usefixtures("every_step")
def test_every_kernel_reports_and_stops(function, kind):
    if not catalogue()[function].has_kernel(kind):
        pytest.skip(f"{function} has no kernel for the {kind}")
    arguments, options = typical(function)
    expected = run(function, kind, arguments, **options)

    told = []
    counting = Counting(listener=lambda *at: told.append(at))
    with running(counting), counting.nested():
        found = run(function, kind, arguments, **options)
    counting.report(1, 1)
    assert_same(found, expected)
    fractions = [fraction for fraction, _ in told]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    assert len({stage for _, stage in told}) > (function not in ONE_STAGE), "no stages"

    assert counting.checks > 3
    for k in {1, 2, counting.checks // 2, counting.checks - 1}:
        with running(Counting(k)), pytest.raises(Cancelled):
            run(function, kind, arguments, **options)
