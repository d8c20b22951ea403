"""The planner: every choice and its reason, on simulated machines."""

import dataclasses

import duckdb
import pytest

import spatialq
from spatialq.errors import DeviceError
from spatialq.functions.catalogue import Function, catalogue
from spatialq.functions.declaration import Work
from spatialq.planner import devices, rates
from spatialq.planner.plan import plan_call
from spatialq.planner.rates import Rate

GPU = devices.DeviceInfo("gpu", "Imaginary 1", 100, 8 * 2**30, "")
CPU = devices.DeviceInfo("cpu", "Imaginary 2", 1, 2**40, "")
NO_GPU = devices.DeviceInfo("gpu", "none", 0, 0, "no NVIDIA driver on this machine")
RATES = {"cpu": Rate(1e8, float("inf"), 0.001), "gpu": Rate(1e10, 1e10, 0.01)}


@pytest.fixture
def function():
    return catalogue()["owm_ground"]


@pytest.fixture
def machine(monkeypatch):
    def build(gpu, kernels=("cpu", "gpu"), measured=RATES):
        monkeypatch.setattr(devices, "cpu", lambda: CPU)
        monkeypatch.setattr(devices, "gpu", lambda: gpu)
        monkeypatch.setattr(Function, "has_kernel", lambda _, device: device in kernels)
        monkeypatch.setattr(rates, "rate", lambda _, device: measured.get(device))

    return build


def plan(function, rows, requested="auto"):
    return plan_call([function], rows, function.choose({}), requested)


def test_small_calls_run_on_the_cpu_and_large_ones_on_the_gpu(function, machine):
    machine(GPU)
    assert plan(function, 1000).device == "cpu"
    large = plan(function, 100_000_000)
    assert large.device == "gpu"
    assert large.reason.startswith("about 0.26 s, against 1 s on the cpu")


def test_what_does_not_fit_into_the_gpu_runs_on_the_cpu(function, machine):
    machine(dataclasses.replace(GPU, memory_bytes=2**30))
    chosen = plan(function, 100_000_000)
    assert chosen.device == "cpu"
    assert chosen.reason == "needs 3.7 GiB, the GPU has 1.0 GiB"


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
    with pytest.raises(ValueError, match="device must be 'auto', 'cpu' or 'gpu', got 'tpu'"):
        plan(function, 10, "tpu")


def test_a_gpu_without_cupy_says_what_to_install(monkeypatch):
    monkeypatch.setattr(devices, "_ask_driver", lambda: ("Imaginary 1", 100, 2**30))
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda _: None)
    devices.gpu.cache_clear()
    assert "pip install 'spatialq[gpu-cuda12]'" in devices.gpu().problem
    devices.gpu.cache_clear()


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


@pytest.mark.parametrize("measured_on", [2, 16])
def test_more_threads_are_estimated_as_faster_up_to_the_serial_part(measured_on):
    rate = Rate(1e6, float("inf"), 0.001, threads=measured_on)
    work = Work(0, 0, 10**9, 0)
    assert rate.seconds(work, measured_on) == pytest.approx(1000.001)
    by_threads = {threads: rate.seconds(work, threads) for threads in (1, 2, 4, 16, 64, 1000)}
    assert list(by_threads.values()) == sorted(by_threads.values(), reverse=True)
    assert 3 < by_threads[2] / by_threads[16] < 8
    assert by_threads[1] / by_threads[1000] < 1 / rates.SERIAL_SHARE
    without_serial_part = dataclasses.replace(rate, serial_share=0.0)
    times = [without_serial_part.seconds(work, threads) - 0.001 for threads in (2, 16)]
    assert times[0] == pytest.approx(8 * times[1])


def test_the_plan_counts_the_cores_of_the_machine(function, machine, monkeypatch):
    machine(NO_GPU, measured={"cpu": Rate(1e6, float("inf"), 0.001, threads=2)})

    def seconds(cores):
        monkeypatch.setattr(devices, "cpu", lambda: dataclasses.replace(CPU, cores=cores))
        return plan(function, 10**8).seconds

    assert seconds(2) > 3 * seconds(16)


def test_every_measured_rate_belongs_to_a_kernel():
    for name, by_device in rates._measured().items():
        assert all(catalogue()[name].has_kernel(device) for device in by_device)


@pytest.mark.parametrize("name", catalogue())
def test_every_function_with_two_kernels_has_both_rates(name):
    """Without them, `device := 'auto'` never takes the GPU."""
    if all(catalogue()[name].has_kernel(device) for device in ("cpu", "gpu")):
        missing = [device for device in ("cpu", "gpu") if rates.rate(name, device) is None]
        assert not missing, f"no rate of {name} on {missing}: see benchmarks/rates.py"
