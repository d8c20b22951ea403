"""The planner: every choice and its reason, on simulated machines."""

import dataclasses
import json
import re
from datetime import UTC, datetime
from threading import Thread

import duckdb
import numpy as np
import pytest

import spatialq
from spatialq.data.grid import Grid
from spatialq.data.meshes import Meshes
from spatialq.errors import DeviceError, FileWarning
from spatialq.execution.call import call
from spatialq.functions.catalogue import Function, catalogue
from spatialq.functions.declaration import (
    Boxes,
    ElementsInput,
    GridInput,
    PointsInput,
    Size,
    Work,
)
from spatialq.planner import calibration, devices, log, process, rates
from spatialq.planner.estimate import estimate
from spatialq.planner.plan import Plan, plan_call
from spatialq.planner.rates import Rate, Step, TransportRate
from spatialq.planner.statistics import size_of
from spatialq.runtime import cuda, memory

GPU = devices.DeviceInfo("gpu", "Imaginary 1", 100, 8 * 2**30, "")
CPU = devices.DeviceInfo("cpu", "Imaginary 2", 1, 2**40, "")
NO_GPU = devices.DeviceInfo("gpu", "none", 0, 0, "no NVIDIA driver on this machine")
POINT = dict.fromkeys(("windows", "scattered"), Step(0.0))
RATES = {
    "cpu": Rate(0.001, {"points": Step(0.0, 1e-8), **POINT}, load=0.2),
    "gpu": Rate(0.01, {"points": Step(1e-10), **POINT}, load=0.3),
}
NOTHING = TransportRate(0.0, 0.0, 0.0)
MACHINE = rates.Rates(
    "made up",
    start={"cpu": 0.5, "gpu": 2.0},
    transfer={"pageable": 1e-10, "page-locked": 5e-11, "download": 4e-10},
    transports={
        **dict.fromkeys(rates.TRANSPORTS, NOTHING),
        "lists": TransportRate(0.002, 2e-9, 3e-9),
    },
    kernels={},
    gpu={"bandwidth": 4e12, "float64_rate": 3e13},
)


@pytest.fixture(autouse=True)
def untaught():
    """A log that has taught nothing, before and after."""
    log.forget()
    yield
    log.forget()


@pytest.fixture
def function():
    return catalogue()["owm_ground"]


@pytest.fixture
def machine(monkeypatch):
    def build(gpu, kernels=("cpu", "gpu"), measured=RATES):
        monkeypatch.setattr(devices, "cpu", lambda: CPU)
        monkeypatch.setattr(devices, "gpus", lambda: gpu if isinstance(gpu, list) else [gpu])
        monkeypatch.setattr(Function, "has_kernel", lambda _, device: device in kernels)
        monkeypatch.setattr(rates, "rate", lambda _, device: measured.get(device))
        monkeypatch.setattr(rates, "current", lambda: MACHINE)
        monkeypatch.setattr(process, "is_started", lambda *_: True)
        monkeypatch.setattr(process, "is_loaded", lambda *_: True)

    return build


def plan(function, rows, requested="auto", transport="arrays"):
    return plan_call([function], Size(rows), function.choose({}), requested, transport)


def test_small_calls_run_on_the_cpu_and_large_ones_on_the_gpu(function, machine):
    machine(GPU)
    assert plan(function, 1000).device == "cpu"
    large = plan(function, 100_000_000)
    assert large.device == "gpu"
    # 0.01 to start, 24 bytes a point at 1e-10 s, 1e-10 s a point
    assert large.reason == "about 0.26 s, against 1 s on the cpu"


def test_what_does_not_fit_into_the_gpu_runs_there_in_tiles(function, machine):
    slow = dataclasses.replace(RATES["cpu"], start=9.0)
    machine(dataclasses.replace(GPU, free_bytes=2**30), measured={**RATES, "cpu": slow})
    chosen = plan(function, 100_000_000)
    assert (chosen.device, chosen.tiles) == ("gpu", 5)
    assert chosen.reason.endswith(
        "s on the cpu; in 5 tiles, as it needs 4.0 GiB, the GPU has 1.0 GiB free"
    )
    # a halo is read twice; the host gathers 32 bytes a point at 4e-10 s
    assert chosen.seconds > 0.26 + 1.28
    size, options = Size(100_000_000), function.choose({})
    fits = [function.output.work_in_tiles(size, options, k).bytes_kernel <= 2**30 for k in (4, 5)]
    assert fits == [False, True]
    assert plan(function, 1000).tiles == 1


def test_the_cpu_runs_what_takes_it_less_than_the_tiles_take_the_host(function, machine):
    machine(dataclasses.replace(GPU, free_bytes=2**30))
    chosen = plan(function, 100_000_000)
    assert (chosen.device, chosen.tiles) == ("cpu", 1)
    assert re.fullmatch(r"about 1 s, against 1\.\d s on the gpu", chosen.reason)


def test_tiles_are_asked_for_as_well(function, machine):
    machine(dataclasses.replace(GPU, free_bytes=2**30))
    chosen = plan(function, 100_000_000, "gpu")
    assert (chosen.device, chosen.tiles) == ("gpu", 5)
    assert chosen.reason.startswith("device := 'gpu' was asked for; in 5 tiles, as it needs 4.0 ")


def test_what_no_tile_fits_into_the_gpu_runs_on_the_cpu(function, machine):
    machine(dataclasses.replace(GPU, free_bytes=2**20))
    chosen = plan(function, 100_000_000)
    assert (chosen.device, chosen.tiles) == ("cpu", 1)
    assert chosen.reason == "needs 4.0 GiB, the GPU has 1.0 MiB free"
    with pytest.raises(DeviceError, match=r"cannot be used: needs 4\.0 GiB, the GPU has"):
        plan(function, 100_000_000, "gpu")


def test_arrays_of_the_gpu_are_not_divided(function, machine):
    machine(dataclasses.replace(GPU, free_bytes=2**30))
    there = Size(100_000_000, device="gpu")
    with pytest.raises(DeviceError, match=r"needs 4\.0 GiB, the GPU has 1\.0 GiB"):
        plan_call([function], there, function.choose({}), "auto")
    machine(dataclasses.replace(GPU, free_bytes=2**33))
    for requested in ("auto", "cpu", "gpu"):
        chosen = plan_call([function], there, function.choose({}), requested)
        assert (chosen.device, chosen.tiles) == ("gpu", 1)
        assert chosen.reason == "its input is in the memory of the GPU"


@pytest.mark.parametrize("name", [n for n, f in catalogue().items() if f.output.work_in_tiles])
def test_more_tiles_need_less_memory_and_move_no_less(name):
    function = catalogue()[name]
    options, size = function.choose({}), Size(50_000_000, (3000.0, 2000.0, 100.0))
    works = [function.output.work_in_tiles(size, options, tiles) for tiles in (2, 4, 16, 64)]
    needs = [work.bytes_kernel for work in works]
    assert needs == sorted(needs, reverse=True)
    assert needs[-1] < function.output.work(size, options).bytes_kernel / 4
    assert all(work.bytes_in >= function.output.work(size, options).bytes_in for work in works)
    assert set(works[0].steps) == set(function.output.work(size, options).steps)


def ran(monkeypatch, kernel, most_tiles, requested="auto"):
    """Run a call on a GPU whose kernel is made up; give the number of points and the entry."""
    given = Function.kernel
    monkeypatch.setattr(Function, "kernel", lambda u, d: kernel if d == "gpu" else given(u, d))
    planned = Plan("gpu", 1.0, "faster", [], most_tiles=most_tiles)
    monkeypatch.setattr("spatialq.execution.call.plan_call", lambda *_: planned)
    columns = {axis: np.arange(500.0) for axis in "xyz"}
    function = catalogue()["owm_ground"]
    found, device = call(function, {**columns, "point_id": None}, function.choose({}), requested)
    return found, device, log.entries()[-1]


def test_if_memory_runs_out_tiles_are_halved_and_then_the_cpu_runs(monkeypatch):
    tried = []

    def kernel(*, tiles=1, **_):
        tried.append(tiles)
        message = "out of memory"
        if tiles < 4:
            raise MemoryError(message)
        return {"point_id": np.arange(tiles)}

    found, device, entry = ran(monkeypatch, kernel, most_tiles=9)
    assert (tried, device, found["point_id"].size) == ([1, 2, 4], "gpu", 4)
    assert entry.reason == (
        "faster; the GPU ran out of memory, then in 2 tiles: out of memory; "
        "the GPU ran out of memory, then in 4 tiles: out of memory"
    )
    tried.clear()
    _, device, entry = ran(monkeypatch, kernel, most_tiles=3)
    assert (tried, device, entry.device) == ([1, 2], "cpu", "cpu")
    assert entry.reason == "the GPU ran out of memory in 2 tiles: out of memory"
    with pytest.raises(MemoryError, match="out of memory"):
        ran(monkeypatch, kernel, most_tiles=3, requested="gpu")


def test_what_does_not_fit_into_main_memory_runs_on_the_gpu_or_else_on_the_cpu(
    function, machine, monkeypatch
):
    machine(GPU)
    monkeypatch.setattr(devices, "cpu", lambda: dataclasses.replace(CPU, free_bytes=2**20))
    chosen = plan(function, 100_000)
    assert (chosen.device, chosen.reason) == ("gpu", "needs 4.1 MiB, the host has 1.0 MiB free")
    machine(NO_GPU)
    monkeypatch.setattr(devices, "cpu", lambda: dataclasses.replace(CPU, free_bytes=2**20))
    assert plan(function, 100_000).device == "cpu"


def test_without_a_gpu_kernel_a_driver_or_a_measurement_the_cpu_runs(function, machine):
    machine(GPU, kernels=("cpu",))
    assert plan(function, 10**9).reason == "owm_ground has no gpu kernel"
    machine(NO_GPU)
    assert plan(function, 10**9).reason == "no NVIDIA driver on this machine"
    machine(GPU, measured={"cpu": RATES["cpu"]})
    assert plan(function, 10**8).reason == "owm_ground was never measured on both"


def test_a_requested_device_is_used_or_rejected_with_the_reason(function, machine):
    machine(GPU)
    assert plan(function, 10, "gpu").device == "gpu"
    assert plan(function, 10**8, "cpu").device == "cpu"
    machine(NO_GPU)
    with pytest.raises(DeviceError, match="device 'gpu' cannot be used: no NVIDIA driver"):
        plan(function, 10, "gpu")
    with pytest.raises(
        ValueError,
        match="device must be 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1', got 'tpu'",
    ):
        plan(function, 10, "tpu")


def test_a_gpu_without_cupy_says_what_to_install(monkeypatch):
    monkeypatch.setattr(devices, "_ask_driver", lambda: [GPU])
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda _: None)
    devices._found_gpus.cache_clear()
    assert "pip install 'spatialq[gpu-cuda12]'" in devices.gpu().problem
    devices._found_gpus.cache_clear()


def test_plan_in_sql():
    with spatialq.connect() as con:
        rows = con.sql("FROM spatialq_plan('owm_ground', 20_000_000)").fetchall()
        assert [(row[0], row[1]) for row in rows] == [("cpu", True), ("gpu", False)]
        assert all(row[4] for row in rows)
        with pytest.raises(duckdb.InvalidInputException, match="no spatial function 'own_ground'"):
            con.sql("FROM spatialq_plan('own_ground', 5)").fetchall()
        with pytest.raises(
            duckdb.InvalidInputException, match=r"row_count must be >= 0 and <= 1e\+15, got -1"
        ):
            con.sql("FROM spatialq_plan('owm_ground', -1)").fetchall()


def test_threads_share_the_parallel_part_of_each_loop():
    rate = Rate(0.001, {"points": Step(2e-9, 1.6e-8), "cells": Step(0.0, 8e-9)})
    work = Work(0, 0, {"points": 10**6, "cells": 2 * 10**6}, 0)
    # serial 2 ms; parallel 16 ms and 16 ms
    assert rate.seconds(work, 1) == pytest.approx(0.001 + 0.002 + 0.032)
    assert rate.seconds(work, 2) == pytest.approx(0.001 + 0.002 + 0.016)
    assert rate.seconds(work, 16) == pytest.approx(0.001 + 0.002 + 0.002)


def test_the_plan_counts_the_cores_of_the_machine(function, machine, monkeypatch):
    machine(NO_GPU)

    def seconds(cores):
        monkeypatch.setattr(devices, "cpu", lambda: dataclasses.replace(CPU, cores=cores))
        return plan(function, 10**8).seconds

    assert seconds(2) - 0.001 == pytest.approx(8 * (seconds(16) - 0.001))


@pytest.mark.parametrize(
    ("transport", "added", "upload"),
    [("arrays", 0.0, 1e-10), ("native", 0.0, 5e-11), ("lists", 0.002 + 24e6 * 2e-9, 1e-10)],
)
def test_an_estimate_is_the_sum_of_what_a_call_costs(function, machine, transport, added, upload):
    machine(GPU)
    size, options = Size(10**6), function.choose({})
    work = function.output.work(size, options)
    gpu = estimate(function, GPU, size, work, transport)
    assert gpu.transfer == pytest.approx(24e6 * upload)
    assert gpu.kernel == pytest.approx(0.01 + 1e6 * 1e-10)
    assert gpu.transport == pytest.approx(added)
    assert gpu.call == pytest.approx(gpu.transfer + gpu.kernel)
    assert gpu.total == pytest.approx(gpu.call + added)
    cpu = estimate(function, CPU, size, work, transport)
    assert (cpu.transfer, cpu.total) == (0, pytest.approx(0.001 + 1e6 * 1e-8 + added))


def test_what_lies_on_the_gpu_is_not_sent_there(function, machine):
    machine(GPU)
    there = Size(10**6, device="gpu")
    work = function.output.work(there, function.choose({}))
    assert estimate(function, GPU, there, work, "arrays").transfer == 0


def test_a_first_call_pays_for_the_device_and_the_next_of_a_function_for_its_code(
    function, machine, monkeypatch
):
    machine(GPU)

    def seconds(device, *, started, loaded):
        monkeypatch.setattr(process, "is_started", lambda *_: started)
        monkeypatch.setattr(process, "is_loaded", lambda *_: loaded)
        return plan(function, 0, device).estimate.total

    assert seconds("cpu", started=False, loaded=False) == pytest.approx(0.5 + 0.2 + 0.001)
    assert seconds("cpu", started=True, loaded=False) == pytest.approx(0.2 + 0.001)
    assert seconds("gpu", started=False, loaded=True) == pytest.approx(2.0 + 0.3 + 0.01)
    assert seconds("gpu", started=True, loaded=True) == pytest.approx(0.01)


def test_calls_load_what_they_use_once(monkeypatch):
    monkeypatch.setattr(process, "_loaded", set())  # other tests may have used the host's GPU
    x = np.arange(4.0)
    spatialq.run("owm_ground", x, x, x, device="cpu")
    assert process.is_loaded("owm_ground", "cpu")
    assert not process.is_loaded("owm_ground", "gpu")


def test_the_log_corrects_what_is_off(function, machine):
    machine(GPU)
    assert plan(function, 10**6).device == "cpu"
    for ratio in (3.0, 500.0, 4.0):  # the one of 500 met a busy machine
        log.learn("owm_ground", "cpu", 10**6, ratio)
    corrected = plan(function, 2 * 10**6)
    assert corrected.device == "gpu"
    assert corrected.reason.endswith("on the cpu (corrected by earlier calls: cpu x 4)")
    cpu = corrected.candidates[0].estimate
    assert cpu.kernel == pytest.approx(4 * (0.001 + 2e6 * 1e-8))
    # a call of another order of size is corrected by what the machine seems to be off
    assert plan(function, 10**8).candidates[0].estimate.correction == pytest.approx(2)
    assert log.correction("owm_ground", "gpu", 10**6) == 1


def test_corrections_are_bounded_and_small_ones_or_single_calls_change_nothing():
    log.learn("f", "cpu", 100, 50.0)
    assert log.correction("f", "cpu", 100) == 1
    log.learn("f", "cpu", 100, 60.0)
    assert log.correction("f", "cpu", 100) == log.MAX_CORRECTION
    for _ in range(log.LAST):
        log.learn("f", "cpu", 100, 1.2)
    assert log.correction("f", "cpu", 100) == log.machine("cpu") == pytest.approx(1.2**0.5)
    for _ in range(log.LAST):
        log.learn("f", "cpu", 100, 1e-6)
    assert log.correction("f", "cpu", 100) == 1 / log.MAX_CORRECTION


def test_calls_of_any_function_teach_how_fast_the_machine_is():
    for name, ratio in (("f", 3.0), ("g", 3.0), ("h", 3.0), ("strange", 0.1)):
        log.learn(name, "cpu", 10**6, 40.0)  # alone it changes nothing
        assert log.correction("other", "cpu", 10) == log.machine("cpu")
        for _ in range(log.LAST):
            log.learn(name, "cpu", 10**6, ratio)
    assert log.machine("cpu") == pytest.approx(3)  # of 0.1, 1, 3, 3 and 3
    assert log.correction("other", "cpu", 10) == log.machine("cpu")
    assert log.correction("f", "cpu", 10**6) == log.machine("cpu")
    assert log.correction("strange", "cpu", 10**6) == pytest.approx(0.1)
    assert log.machine("gpu") == 1


def test_a_slow_machine_is_slow_in_all_that_its_processor_does(function, machine, monkeypatch):
    machine(GPU)
    monkeypatch.setattr(process, "is_started", lambda *_: False)
    size, work = Size(10**6), function.output.work(Size(10**6), function.choose({}))

    def both():
        return [estimate(function, device, size, work, "lists") for device in (CPU, GPU)]

    before = both()
    for name in "fgh":
        for _ in range(2):
            log.learn(name, "cpu", 10, 3.0)
    (cpu, gpu), (cpu_before, gpu_before) = both(), before
    assert cpu.total == pytest.approx(3 * cpu_before.total)
    for part in ("start", "load", "transport"):
        assert getattr(gpu, part) == pytest.approx(3 * getattr(gpu_before, part))
    assert (gpu.transfer, gpu.kernel) == (gpu_before.transfer, gpu_before.kernel)


def test_calls_teach_the_log_what_they_took(monkeypatch):
    """A kernel that takes its time: the third call knows."""
    x = np.arange(4.0)
    spatialq.run("owm_ground", x, x, x, device="cpu")
    slow = Rate(1e-7, {"points": Step(0.0), **POINT})
    monkeypatch.setattr(rates, "rate", lambda *_: slow)
    for _ in range(3):
        spatialq.run("owm_ground", x, x, x, device="cpu")
    *_, entry = log.entries()
    assert entry.estimated_seconds == pytest.approx(log.MAX_CORRECTION * 1e-7)


def test_a_call_that_is_estimated_to_take_no_time_teaches_nothing(monkeypatch):
    x = np.arange(4.0)
    spatialq.run("owm_ground", x, x, x, device="cpu")
    monkeypatch.setattr(rates, "rate", lambda *_: Rate(0.0, {"points": Step(0.0), **POINT}))
    for _ in range(3):
        spatialq.run("owm_ground", x, x, x, device="cpu")
    assert log.correction("owm_ground", "cpu", 4) == 1


def test_threads_may_write_and_read_the_log_at_once():
    entry = log.Entry(datetime.now(UTC), "f", 1, "cpu", "", None, 0.0, None)
    failed = []

    def work():
        try:
            for k in range(2000):
                log.add(entry)
                log.learn("f", "cpu", k, 3.0)
                log.correction("f", "cpu", k)
                log.entries()
        except RuntimeError as error:  # "deque mutated during iteration"
            failed.append(error)

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


@pytest.mark.parametrize("transport", rates.TRANSPORTS)
def test_the_log_says_by_which_transport_a_call_came(transport):
    function, x = catalogue()["owm_ground"], np.arange(4.0)
    arguments = {"x": x, "y": x, "z": x, "point_id": np.arange(4)}
    call(function, arguments, function.choose({}), "cpu", transport=transport)
    *_, entry = log.entries()
    assert (entry.transport, entry.error) == (transport, None)
    assert entry.transport_seconds == pytest.approx(
        rates.current()
        .transports[transport]
        .seconds(function.output.work(size_of(function.inputs, arguments), function.choose({})))
    )


def test_transports_in_sql():
    with spatialq.connect() as con:
        con.execute("CREATE TABLE points AS SELECT range AS point_id, range AS x, range AS y, "
                    "range AS z FROM range(10)")  # fmt: skip
        con.sql("FROM owm_ground('points')").fetchall()
        query = (
            "SELECT transport, transport_seconds >= 0 FROM spatialq_log() "
            'ORDER BY "at" DESC LIMIT 1'
        )
        assert con.sql(query).fetchall() == [("native", True)]


def test_the_size_of_points_is_that_of_a_sample():
    rng = np.random.default_rng(1)
    x, y, z = rng.uniform(0, [[200.0], [100.0], [10.0]], (3, 100_000))
    size = size_of(PointsInput(), {"x": x, "y": y, "z": z})
    assert size.rows == 100_000
    assert size.extent == pytest.approx((200, 100, 10), rel=0.01)
    assert size.area == pytest.approx(20_000, rel=0.01)
    assert size_of(PointsInput(), {"x": x[:0], "y": x[:0], "z": x[:0]}) == Size(0)
    for values in ([np.nan] * 5, [-np.inf, np.inf], [-1e308, 1e308]):
        broken = np.array(values)
        assert size_of(PointsInput(), {"x": broken, "y": broken, "z": broken}).extent is None


def test_the_size_of_a_grid_is_its_frame():
    size = size_of(GridInput(), {"grid": Grid(np.zeros((20, 30), np.float32), dx=2.0, dy=5.0)})
    assert (size.rows, size.extent) == (600, (60, 100, 0))


def boxes_at(*lows):
    corners = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)], float)
    return Meshes.of([(np.add(low, corners), np.array([(0, 1, 2)])) for low in lows])


def test_the_size_of_elements_counts_pairs_of_boxes():
    a = boxes_at((0, 0, 0), (0.5, 0, 0), (5, 0, 0), (5, 0, 3))
    within = size_of(ElementsInput(), {"a": a, "b": None})
    assert (within.rows, within.elements, within.all_pairs) == (4, 4, 6)
    assert within.pairs((0, 1)) == 4  # two pairs meet; at least one an element counts
    assert within.pairs(margin=10.0) == 6
    both = size_of(ElementsInput(), {"a": a, "b": boxes_at((5, 0, 0))})
    assert (both.elements, both.all_pairs) == (5, 4)


def test_a_sample_of_boxes_stands_for_all():
    """The share that meets, of many: counted by brute force."""
    rng = np.random.default_rng(2)
    lows = rng.uniform(0, 20, (1000, 3))
    every = np.concatenate([lows, lows + 4], axis=1)
    meet = (np.abs(lows[:, None] - lows) <= 4).all(axis=2)
    expected = (meet.sum() - 1000) / 2
    sample = Size(12_000, sets=(Boxes(1000, every[::4]),))
    assert sample.pairs() == pytest.approx(expected, rel=0.15)
    assert Size(12_000, sets=(Boxes(1000, every),)).pairs() == expected


def test_every_measured_rate_belongs_to_a_kernel():
    for name, by_device in rates.shipped().kernels.items():
        assert all(catalogue()[name].has_kernel(device) for device in by_device)


@pytest.mark.parametrize("name", catalogue())
def test_every_function_has_rates_of_all_its_loops_on_all_its_devices(name):
    """Without them, `device := 'auto'` never takes the GPU."""
    function = catalogue()[name]
    loops = set(function.output.work(Size(1000), function.choose({})).steps)
    for device in ("cpu", "gpu"):
        if function.has_kernel(device):
            rate = rates.shipped().rate(name, device)
            assert rate is not None, f"no rate on the {device}: see benchmarks/rates.py"
            assert set(rate.steps) == loops


@pytest.mark.parametrize("name", catalogue())
def test_the_work_of_no_rows_and_of_many_is_finite(name):
    function = catalogue()[name]
    options = function.choose({})
    for size in (Size(0), Size(0, (0.0, 0.0, 0.0)), Size(10**9, (1e6, 1e6, 100.0))):
        work = function.output.work(size, options)
        assert all(0 <= count < 1e30 for count in work.steps.values())
        assert min(work.bytes_in, work.bytes_out, work.bytes_kernel) >= 0


def test_another_gpu_is_as_much_slower_as_its_memory_and_arithmetic():
    kernels = {"f": {"gpu": RATES["gpu"], "cpu": RATES["cpu"]}}
    other = dataclasses.replace(GPU, bandwidth=1e12, float64_rate=1e12)
    scaled = dataclasses.replace(MACHINE, kernels=kernels).on(other)
    # a quarter of the bandwidth, a thirtieth of the arithmetic: 4 and 30 times, half of each
    assert scaled.rate("f", "gpu").steps["points"].serial == pytest.approx(17 * 1e-10)
    assert scaled.rate("f", "cpu") == RATES["cpu"]
    unknown = dataclasses.replace(MACHINE, kernels=kernels).on(NO_GPU)
    assert unknown.rate("f", "gpu") == RATES["gpu"]


def test_figures_survive_writing_and_reading():
    assert rates.from_json(json.loads(json.dumps(rates.shipped().as_json()))) == rates.shipped()


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("SPATIALQ_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(rates, "_current", None)
    return tmp_path


def test_figures_of_this_machine_are_used(cache):
    mine = dataclasses.replace(rates.shipped(), about="mine")
    path = calibration.save(mine.as_json())
    assert [path] == list(cache.iterdir())  # no partial file is left
    assert rates.current() == mine


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", r"cannot be read \(JSONDecodeError"),
        ("[]", r"cannot be read \(TypeError"),
        ('{"machine": {}, "rates": {}}', "are of another machine or version"),
        (None, r"cannot be read \(KeyError"),
    ],
)
def test_damaged_or_foreign_figures_are_ignored_with_a_sentence(cache, text, reason):
    whole = json.dumps({"machine": calibration.machine(), "rates": {}})
    calibration.path().write_text(whole if text is None else text)
    with pytest.warns(FileWarning, match=f"calibrate: the figures in '.*' {reason}"):
        assert rates.current().about == rates.shipped().about


def test_negative_or_endless_times_are_damage(cache):
    figures = rates.shipped().as_json()
    figures["start"]["cpu"] = float("inf")
    calibration.save(figures)
    with pytest.warns(FileWarning, match=r"a time must be >= 0 and finite, got inf"):
        assert rates.current().start == rates.shipped().start


def test_each_machine_has_a_file_of_its_own(cache, monkeypatch):
    here = calibration.path()
    monkeypatch.setattr(devices, "gpus", lambda: [GPU])
    assert calibration.path() != here


def test_free_memory_is_what_the_control_group_has_left(tmp_path, monkeypatch):
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  100 kB\nMemAvailable:  80 kB\n")
    inner = tmp_path / "groups" / "job" / "step"
    inner.mkdir(parents=True)
    cgroup = tmp_path / "cgroup"
    cgroup.write_text("0::/job/step\n")
    monkeypatch.setattr(memory, "MEMINFO", meminfo)
    monkeypatch.setattr(memory, "CGROUP", cgroup)
    monkeypatch.setattr(memory, "CGROUPS", tmp_path / "groups")
    assert memory.host_free() == 80 * 1024
    (inner / "memory.max").write_text("max\n")
    assert memory.host_free() == 80 * 1024
    for name, text in {
        "memory.max": "50000\n", "memory.current": "40000\n",
        "memory.stat": "anon 1\ninactive_file 5000\n",
    }.items():  # fmt: skip
        (inner.parent / name).write_text(text)
    assert memory.host_free() == 15_000
    cgroup.write_text("4:memory:/job\n")
    old = tmp_path / "groups" / "memory" / "job"
    old.mkdir(parents=True)
    for name, text in {
        "memory.limit_in_bytes": "9000", "memory.usage_in_bytes": "7000",
        "memory.stat": "total_inactive_file 500\n",
    }.items():  # fmt: skip
        (old / name).write_text(text)
    assert memory.host_free() == 2500
    (old / "memory.limit_in_bytes").write_text(str(2**63 - 4096))
    assert memory.host_free() == 80 * 1024


def test_the_gpu_is_not_started_to_ask_for_its_memory(monkeypatch):
    class Started:
        def free_bytes(self):
            return 5

    monkeypatch.setattr(cuda, "is_started", lambda _: False)
    assert cuda.free_bytes(100) is None
    monkeypatch.setattr(cuda, "is_started", lambda _: True)
    monkeypatch.setattr(cuda, "device", Started)
    assert cuda.free_bytes(100) == 5


def test_a_limit_of_the_gpus_memory_counts(function, monkeypatch):
    monkeypatch.setattr(devices, "_found_gpus", lambda: (GPU,))
    monkeypatch.setattr(cuda, "free_bytes", lambda total, _: total)
    assert devices.gpu().room == 8 * 2**30
    monkeypatch.setenv(devices.GPU_MEMORY, "1MiB")
    assert devices.gpu().room == 2**20
    assert "the GPU has 1.0 MiB free" in plan(function, 10_000_000).reason
    monkeypatch.setenv(devices.GPU_MEMORY, "much")
    with pytest.raises(ValueError, match=r"^SPATIALQ_GPU_MEMORY must be a size .* got 'much'$"):
        devices.gpu()


def gpus_with(*gibibytes):
    """GPUs that have so much free memory."""
    return [
        dataclasses.replace(GPU, number=number, memory_bytes=2**37, free_bytes=free * 2**30)
        for number, free in enumerate(gibibytes)
    ]


def test_of_several_gpus_the_one_with_most_free_memory_is_taken(function, machine, monkeypatch):
    machine(gpus_with(5, 9, 7))
    monkeypatch.setattr(process, "is_started", lambda *_: False)
    chosen = plan(function, 100_000_000, "gpu")
    assert chosen.gpus == (1,)
    assert chosen.reason == (
        "device := 'gpu' was asked for; on gpu:1, which has the most free memory"
    )
    assert [chosen.is_chosen(each) for each in chosen.candidates] == [False, False, True, False]


def test_a_gpu_in_use_keeps_its_calls_while_it_has_memory(function, machine, monkeypatch):
    machine(gpus_with(9, 6, 5))
    monkeypatch.setattr(process, "is_started", lambda _, number=0: number == 1)
    chosen = plan(function, 100_000_000, "gpu")
    assert chosen.gpus == (1,)
    assert chosen.reason.endswith("; on gpu:1, which is in use already")
    machine(gpus_with(9, 4, 5))
    monkeypatch.setattr(process, "is_started", lambda _, number=0: number == 1)
    assert plan(function, 100_000_000, "gpu").gpus == (0,)
    machine(gpus_with(9, 5, 3))  # in fewer tiles rather than in use
    monkeypatch.setattr(process, "is_started", lambda _, number=0: number == 2)
    assert plan(function, 200_000_000, "gpu").gpus == (0,)


def test_one_gpu_may_be_asked_for(function, machine):
    machine(gpus_with(5, 9))
    chosen = plan(function, 100, "gpu:0")
    assert (chosen.gpus, chosen.reason) == ((0,), "device := 'gpu:0' was asked for")
    with pytest.raises(DeviceError, match=r"'gpu:2' cannot be used: there is gpu:0 to gpu:1$"):
        plan(function, 100, "gpu:2")
    machine(gpus_with(5))
    with pytest.raises(DeviceError, match=r"'gpu:2' cannot be used: there is only gpu:0$"):
        plan(function, 100, "gpu:2")
    machine(NO_GPU)
    with pytest.raises(DeviceError, match="'gpu:2' cannot be used: no NVIDIA driver"):
        plan(function, 100, "gpu:2")
    for wrong in ("gpu:", "gpu:-1", "gpu:x", "gpu1", 1, None):
        with pytest.raises(ValueError, match=r"or one GPU such as 'gpu:1', got "):
            plan(function, 100, wrong)


def test_arrays_of_a_gpu_are_worked_on_there(function, machine):
    machine(gpus_with(5, 9))
    with cuda.on(0):
        there = Size(1000, device="gpu")
        assert plan_call([function], there, function.choose({}), "gpu").gpus == (0,)


CLASH = {
    "cpu": Rate(0.001, dict.fromkeys(("triangles", "elements", "pairs"), Step(0.0, 1e-5))),
    "gpu": Rate(0.01, dict.fromkeys(("triangles", "elements", "pairs"), Step(1e-6))),
}


def test_gpus_share_the_tiles_of_a_call_where_that_is_faster(machine):
    clash = catalogue()["intersects_with"]
    machine(gpus_with(20, 20, 20, 20), measured=CLASH)
    large = plan(clash, 3_000_000)
    assert (large.gpus, large.tiles) == ((0, 1, 2, 3), 4)
    assert large.reason.endswith(
        "; in 4 tiles, as 4 GPUs share them; on gpu:0, gpu:1, gpu:2 and gpu:3"
    )
    alone = plan(clash, 3_000_000, "gpu:2")
    assert (alone.gpus, alone.tiles) == ((2,), 1)
    assert large.estimate.kernel == pytest.approx((alone.estimate.kernel - 0.01) / 4 + 0.01)
    small = plan(clash, 200_000, "gpu")
    assert len(small.gpus) < 4, "a tile has at least some rows"
    assert plan(clash, 1000, "gpu").tiles == 1


def test_tiles_are_as_many_as_fit_into_each_gpu(machine):
    clash = catalogue()["intersects_with"]
    machine(gpus_with(1, 1), measured=CLASH)
    chosen = plan(clash, 40_000_000)
    assert chosen.gpus == (0, 1)
    assert chosen.tiles % 2 == 0
    works = [
        clash.output.work_in_tiles(Size(40_000_000), clash.choose({}), k).bytes_kernel
        for k in (chosen.tiles, chosen.tiles - 2)
    ]
    assert works[0] <= 2**30 < works[1]


def test_tiles_that_build_on_each_other_stay_on_one_gpu(machine):
    planes = catalogue()["detect_planes"]
    machine(gpus_with(5, 5), measured={})
    chosen = plan(planes, 100_000_000, "gpu")
    assert (len(chosen.gpus), chosen.tiles > 1) == (1, True)
    assert chosen.reason.endswith("which has the most free memory, its tiles build on each other")


@pytest.mark.parametrize("name", ["pops_features", "pops_patches"])
def test_what_mostly_copies_its_result_stays_on_one_gpu(name, machine):
    machine(gpus_with(20, 20, 20, 20), measured={})
    chosen = plan(catalogue()[name], 900_000_000, "gpu")
    assert (chosen.gpus, chosen.tiles) == ((0,), 1)
    assert chosen.reason.endswith("; on gpu:0, which has the most free memory")


def test_starting_more_gpus_costs_more_than_they_save(machine, monkeypatch):
    clash = catalogue()["intersects_with"]
    machine(gpus_with(20, 20), measured=CLASH)
    monkeypatch.setattr(process, "is_started", lambda _, number=0: number == 0)
    assert plan(clash, 1_000_000, "gpu").gpus == (0,)


def test_each_gpu_has_its_free_memory(monkeypatch):
    found = tuple(dataclasses.replace(GPU, number=k, bus=f"bus {k}") for k in range(3))
    told = {"bus 0": 2**30, "bus 1": None, "bus 2": 2**50}
    monkeypatch.setattr(devices, "_found_gpus", lambda: found)
    monkeypatch.setattr(devices.nvml, "free_bytes", told.get)
    monkeypatch.setattr(cuda, "is_started", lambda _: False)
    devices._reported_free.cache_clear()
    assert [each.room for each in devices.gpus()] == [2**30, 2**33, 2**33]
    monkeypatch.setenv(devices.GPU_MEMORY, "3GiB")
    assert [each.room for each in devices.gpus()] == [2**30, 3 * 2**30, 3 * 2**30]
    devices._reported_free.cache_clear()


def test_devices_in_sql_have_all_gpus(monkeypatch):
    monkeypatch.setattr(devices, "gpus", lambda: gpus_with(5, 9))
    with spatialq.connect() as con:
        rows = con.sql("SELECT device, number, free_bytes FROM spatialq_devices()").fetchall()
    assert [row[:2] for row in rows][:3] == [("cpu", None), ("gpu", 0), ("gpu", 1)]
    assert rows[2][2] == 9 * 2**30
