"""Tiles of one call on several GPUs: the results are those of one, in the order of the tiles."""

import threading
import time

import numpy as np
import pytest
from spatialq.udfs.distance import gpu as distance
from spatialq.udfs.intersects_with import gpu as intersects_with
from spatialq.udfs.owm_ground import Options as OwmOptions
from spatialq.udfs.owm_ground import cpu as owm_cpu
from spatialq.udfs.owm_ground import gpu as owm_ground
from spatialq.udfs.owm_ground import tiled

import spatialq
from spatialq.data.meshes import Meshes
from spatialq.functions.catalogue import catalogue
from spatialq.planner import devices
from spatialq.runtime import cuda, gpus, progress
from spatialq.runtime.progress import Cancelled

from .conftest import GPU
from .element_tables import box
from .host.device import HostDevice
from .kernels import assert_same


class Pool:
    """GPUs that the host stands in for, and which of them were used."""

    def __init__(self, count):
        self.devices = [OneAtATime(self) for _ in range(count)]
        self.is_shared = threading.Event()

    def __call__(self):
        return self.devices[cuda.numbers()[0]]

    @property
    def used(self):
        return [each.launches > 0 for each in self.devices]


class OneAtATime(HostDevice):
    """A device of its own thread; the host's blocks share what is static.

    The first one to be used waits for the second, whose thread may begin late.
    """

    lock = threading.Lock()
    launches = 0

    def __init__(self, pool):
        self.pool = pool

    def launch(self, *arguments):
        self.launches += 1
        if sum(self.pool.used) > 1:
            self.pool.is_shared.set()
        self.pool.is_shared.wait(60)
        with self.lock:
            super().launch(*arguments)


@pytest.fixture(params=[2, 4])
def pool(request, device, monkeypatch):
    """So many GPUs; where there is one, it is used so many times at once."""
    if isinstance(device, HostDevice):
        found = Pool(request.param)
        monkeypatch.setattr(cuda, "device", found)
        numbers = range(request.param)
    else:
        found, numbers = None, [0] * request.param
    with cuda.on(*numbers):
        yield found


def boxes(seed, n):
    rng = np.random.default_rng(seed)
    corners = rng.integers(0, 12, (n, 3)) / 4
    sides = rng.integers(1, 5, (n, 3)) / 4
    return Meshes.of([box(low, low + side) for low, side in zip(corners, sides, strict=True)])


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("kernel", [intersects_with, distance])
def test_pairs_are_shared(kernel, second, pool):
    name = kernel.__name__.split(".")[-2]
    given = {"max_distance": 0.3} if name == "distance" else {"relations": True}
    options = catalogue()[name].choose(given)
    a, b = boxes(1, 14), boxes(2, 9) if second else None
    expected = catalogue()[name].kernel("cpu")(a=a, b=b, options=options)
    for tiles in (2, 7):
        assert_same(kernel.run(a, b, options=options, tiles=tiles), expected)
    if pool is not None:
        assert sum(pool.used) > 1


def test_strips_are_shared(pool):
    rng = np.random.default_rng(5)
    cloud = (*rng.uniform(0, 300, (2, 4000)), np.round(rng.uniform(0, 9, 4000), 1), None)
    options = OwmOptions(window_size=5.0, overlap=0.5)
    expected = owm_cpu.run(*cloud, options)
    assert_same(tiled.in_tiles(owm_ground.run, cloud, options, 9), expected)
    if pool is not None:
        assert sum(pool.used) > 1


def test_parts_that_end_in_another_order_are_given_in_theirs(monkeypatch):
    monkeypatch.setattr(cuda, "device", Pool(3))
    where, each_has_one = [], threading.Barrier(3)

    def work(part):
        if part < 3:
            each_has_one.wait(60)
        time.sleep(0.02 * (part % 3 == 0))
        where.append(cuda.numbers())
        return part * part

    with cuda.on(0, 1, 2):
        assert list(gpus.each(work, range(20))) == [part * part for part in range(20)]
        assert cuda.numbers() == (0, 1, 2)
    assert {*where} == {(0,), (1,), (2,)}


def test_parts_are_made_as_gpus_become_free(monkeypatch):
    monkeypatch.setattr(cuda, "device", Pool(2))
    made, done = [0], [0]

    def parts():
        for part in range(30):
            made[0] += 1
            assert made[0] - done[0] <= 3
            yield part

    def work(part):
        done[0] += 1
        return part

    with cuda.on(0, 1):
        assert list(gpus.each(work, parts())) == list(range(30))


@pytest.mark.parametrize("numbers", [(0,), (0, 1, 2)])
def test_an_error_of_a_part_ends_the_others(numbers, monkeypatch):
    monkeypatch.setattr(cuda, "device", Pool(3))
    begun = []

    def work(part):
        begun.append(part)
        if part == 4:
            message = "out of memory"
            raise MemoryError(message)
        return part

    before = set(threading.enumerate())
    with cuda.on(*numbers), pytest.raises(MemoryError, match="out of memory"):
        list(gpus.each(work, range(10_000)))
    assert len(begun) < 10_000
    assert set(threading.enumerate()) <= before


def test_a_cancelled_call_ends_on_all_gpus(monkeypatch):
    monkeypatch.setattr(cuda, "device", Pool(2))
    task = progress.Task()

    def work(part):
        task.cancel()

    with progress.running(task), cuda.on(0, 1), pytest.raises(Cancelled):
        list(gpus.each(work, range(1000)))


@pytest.mark.parametrize("device", [GPU], indirect=True)
def test_each_gpu_runs_a_call(device):
    """Compiled code, streams, pools and allocations are those of the GPU that was asked for."""
    there = devices.gpus()
    if len(there) < 2:
        pytest.skip("there are fewer than 2 GPUs")
    rng = np.random.default_rng(7)
    x, y, z = rng.uniform(0, 200, (3, 50_000))
    expected = spatialq.run("classify_ground", x, y, z, device="cpu")
    for info in reversed(there):
        found = spatialq.run("classify_ground", x, y, z, device=f"gpu:{info.number}")
        assert_same(found, expected)
        with cuda.on(info.number), cuda.device().use():
            arrays = [cuda.device().upload_small(each) for each in (x, y, z)]
        assert {cuda.number_of(each) for each in arrays} == {info.number}
        kept = spatialq.run("classify_ground", *arrays)
        assert cuda.number_of(kept["height"]) == info.number
        with cuda.on(info.number):
            assert_same(cuda.device().download(kept["height"]), expected["height"])


@pytest.mark.parametrize("device", [GPU], indirect=True)
def test_arrays_of_two_gpus_are_refused(device):
    if len(devices.gpus()) < 2:
        pytest.skip("there are fewer than 2 GPUs")
    columns = []
    for number in (0, 1, 0):
        with cuda.on(number), cuda.device().use():
            columns.append(cuda.device().upload_small(np.arange(9.0)))
    with pytest.raises(ValueError, match="must be on one GPU, got some on gpu:0 and gpu:1"):
        spatialq.run("owm_ground", *columns)
