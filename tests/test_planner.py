"""The planner: every choice and its reason, on machines that this one is not."""

import dataclasses

import duckdb
import pytest

import spatialq
from spatialq.errors import DeviceError
from spatialq.functions.declaration import Udf, catalog
from spatialq.planner import devices, rates
from spatialq.planner import plan as route
from spatialq.planner.rates import Rate

GPU = devices.DeviceInfo("gpu", "Imaginary 1", 100, 8 * 2**30, "")
NO_GPU = devices.DeviceInfo("gpu", "none", 0, 0, "no NVIDIA driver on this machine")
RATES = {"cpu": Rate(1e8, float("inf"), 0.001), "gpu": Rate(1e10, 1e10, 0.01)}


@pytest.fixture
def udf():
    return catalog()["owm_ground"]


@pytest.fixture
def machine(monkeypatch):
    def build(gpu, kernels=("cpu", "gpu"), measured=RATES):
        monkeypatch.setattr(devices, "gpu", lambda: gpu)
        monkeypatch.setattr(Udf, "has_kernel", lambda _, device: device in kernels)
        monkeypatch.setattr(rates, "rate", lambda _, device: measured.get(device))

    return build


def plan(udf, rows, wish="auto"):
    return route.plan(udf, rows, udf.options(), wish)


def test_small_calls_stay_and_large_ones_go(udf, machine):
    machine(GPU)
    assert plan(udf, 1000).device == "cpu"
    large = plan(udf, 100_000_000)
    assert large.device == "gpu"
    assert large.reason.startswith("about 0.26 s, against 1 s on the cpu")


def test_what_does_not_fit_stays(udf, machine):
    machine(dataclasses.replace(GPU, memory_bytes=2**30))
    chosen = plan(udf, 100_000_000)
    assert chosen.device == "cpu"
    assert chosen.reason == "needs 3.7 GiB, the GPU has 1.0 GiB"


def test_without_a_kernel_a_driver_or_a_measurement_it_stays(udf, machine):
    machine(GPU, kernels=("cpu",))
    assert plan(udf, 10**9).reason == "owm_ground has no gpu kernel"
    machine(NO_GPU)
    assert plan(udf, 10**9).reason == "no NVIDIA driver on this machine"
    machine(GPU, measured={"cpu": RATES["cpu"]})
    assert plan(udf, 10**8).reason == "owm_ground was never measured on both"


def test_a_wish_is_granted_or_refused_with_the_reason(udf, machine):
    machine(GPU)
    assert plan(udf, 10, "gpu").device == "gpu"
    assert plan(udf, 10**8, "cpu").device == "cpu"
    machine(NO_GPU)
    with pytest.raises(DeviceError, match="device 'gpu' cannot be used: no NVIDIA driver"):
        plan(udf, 10, "gpu")
    with pytest.raises(ValueError, match="device must be 'auto', 'cpu' or 'gpu', got 'tpu'"):
        plan(udf, 10, "tpu")


def test_a_gpu_without_cupy_is_named_with_the_cure(monkeypatch):
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


def test_every_measured_rate_belongs_to_a_kernel():
    for name, by_device in rates._measured().items():
        assert all(catalog()[name].has_kernel(device) for device in by_device)
