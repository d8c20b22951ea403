"""Each worker of a machine sees one GPU."""

import dataclasses

import pytest

from spatialq import cluster
from spatialq.cluster import driver
from spatialq.cluster.executors import executor_of
from spatialq.cluster.gpus import OF_CONTEXT, environment_of, gpus_for
from spatialq.cluster.local_executor import LocalExecutor
from spatialq.errors import DeviceError, JobError
from spatialq.functions.catalogue import catalogue
from spatialq.planner import devices
from tests.command_line import spatialq_command

from .surveys import QUIET, in_one_piece, make, of_job

GIB = 1 << 30
OWM = catalogue()["owm_ground"]


def gpus(n):
    info = devices.DeviceInfo("gpu", "imaginary", 100, 80 * GIB, "", 64 * GIB)
    return [dataclasses.replace(info, number=number) for number in range(n)]


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    for name in ("CUDA_VISIBLE_DEVICES", devices.GPU_MEMORY):
        monkeypatch.delenv(name, raising=False)


def seen_by(executor):
    return [each._environment.get("CUDA_VISIBLE_DEVICES") for each in executor._processes]


def test_workers_take_gpus_in_turn(monkeypatch):
    assert seen_by(LocalExecutor(5, GIB, gpus(2))) == ["0", "1", "0", "1", "0"]
    assert seen_by(LocalExecutor(1, GIB, gpus(2))) == ["0"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-5a, 7")
    assert seen_by(LocalExecutor(3, GIB, gpus(2))) == ["GPU-5a", "7", "GPU-5a"]
    assert seen_by(LocalExecutor(2, GIB)) == ["GPU-5a, 7"] * 2, "without GPUs it stays"


@pytest.mark.parametrize(("cores", "workers"), [(2, 3), (8, 8), (16, 12)])
def test_each_gpu_has_some_workers(monkeypatch, cores, workers):
    monkeypatch.setattr("spatialq.cluster.executors.cores", lambda: cores)
    assert len(executor_of("local", None, GIB, gpus(3))._processes) == workers
    assert len(executor_of("local", 7, GIB, gpus(3))._processes) == 7


def test_workers_of_one_gpu_share_its_memory(monkeypatch):
    limits = [environment_of(gpus(2), k, 5).get(devices.GPU_MEMORY) for k in range(5)]
    three, two = (f"{64 * GIB // n - OF_CONTEXT}B" for n in (3, 2))
    assert limits == [three, two, three, two, three]
    assert devices.GPU_MEMORY not in environment_of(gpus(2), 0, 2)
    monkeypatch.setenv(devices.GPU_MEMORY, "3GB")
    assert devices.GPU_MEMORY not in environment_of(gpus(2), 0, 5), "what is set stays"


def numbers(device, function=OWM):
    found = gpus_for("cluster.run", device, function, function.choose({}))
    return [each.number for each in found]


def test_the_device_says_which_gpus(monkeypatch):
    monkeypatch.setattr(devices, "gpus", lambda: gpus(2))
    assert numbers("auto") == numbers("gpu") == [0, 1]
    assert numbers("gpu:1") == [1]
    assert numbers("cpu") == []
    with pytest.raises(DeviceError, match="'gpu:2' cannot be used: there are 2 GPUs, the first is"):
        numbers("gpu:2")
    monkeypatch.setattr(type(OWM), "has_kernel", lambda _, device: device == "cpu")
    assert numbers("auto") == []


@pytest.mark.parametrize(
    ("function", "device", "seen"),
    [("owm_ground", "auto", [0, 1]), ("owm_ground", "cpu", []), ("detect_planes", "auto", [])],
)
def test_workers_see_gpus_where_tasks_use_them(tmp_path, monkeypatch, function, device, seen):
    """The tasks of a method that names its devices run on the CPU."""
    asked = []

    def executor_of(name, workers, memory, gpus, *, uses_gpus):
        asked.extend(each.number for each in gpus)
        message = "no further"
        raise JobError(message)

    monkeypatch.setattr(devices, "gpus", lambda: gpus(2))
    monkeypatch.setattr(driver, "executor_of", executor_of)
    tiles = make(tmp_path / "tiles", columns=1, rows=1, n=50)
    with pytest.raises(JobError, match="no further"):
        cluster.run(function, tiles, tmp_path / "job", device=device, **QUIET)
    assert asked == seen


def test_without_a_gpu(monkeypatch):
    info = devices.DeviceInfo("gpu", "none", 0, 0, "there is none")
    monkeypatch.setattr(devices, "gpus", lambda: [info])
    assert numbers("auto") == []
    with pytest.raises(DeviceError, match=r"cluster\.run: device 'gpu' cannot be used: there is"):
        numbers("gpu")


def test_a_command_names_itself_where_there_is_no_gpu(tmp_path, monkeypatch):
    info = devices.DeviceInfo("gpu", "none", 0, 0, "there is none")
    monkeypatch.setattr(devices, "gpus", lambda: [info])
    make(tmp_path, columns=1, rows=1, n=50)
    names = ("tile_0_0.laz", "-o", "out", "--executor", "local", "--device", "gpu:7")
    result = spatialq_command("ground", *names, cwd=tmp_path)
    assert result.returncode == 1
    assert result.stderr.endswith("error: ground: device 'gpu:7' cannot be used: there is none\n")
    assert not (tmp_path / "out").exists()


def test_wrong_devices_are_refused_before_a_job_is_begun(tmp_path):
    for device, executor, sentence in (
        ("tpu", "local", "device must be 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1', got"),
        ("gpu:0", "ray", "device must be 'auto', 'cpu' or 'gpu' with executor 'ray'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            cluster.run("owm_ground", "*.las", tmp_path / "job", device=device, executor=executor)
        assert not (tmp_path / "job").exists()


@pytest.mark.gpu
@pytest.mark.parametrize("each", [1, 2])
def test_rows_of_workers_of_gpus_are_those_of_the_cpu(tmp_path, each):
    there = devices.gpus()
    if there[0].problem:
        pytest.skip(there[0].problem)
    tiles, folder = make(tmp_path / "tiles"), tmp_path / "job"
    workers = each * len(there)
    cluster.run("owm_ground", tiles, folder, device="gpu", workers=workers, **QUIET)
    assert of_job(folder) == in_one_piece(tiles, device="'cpu'")
