"""Calls that do not fit into the GPU's memory run there in tiles, with the rows of the CPU."""

import re

import numpy as np
import pytest

import spatialq
from spatialq.functions.catalogue import catalogue
from spatialq.functions.declaration import PointsInput
from spatialq.planner import devices, log, tiles
from spatialq.planner.statistics import size_of

from .kernels import assert_same

FUNCTIONS = [
    name
    for name, each in catalogue().items()
    if each.output.work_in_tiles and isinstance(each.inputs, PointsInput)
]


@pytest.fixture
def gpu_memory(device, monkeypatch):
    """Set how much memory the GPU, or the host in its place, has for a call."""
    if devices.gpu().problem:
        there = devices.DeviceInfo("gpu", "the host", device.multiprocessors, 1 << 40, "")
        monkeypatch.setattr(devices, "_found_gpus", lambda: (there,))
    monkeypatch.setattr(tiles, "MIN_ROWS", 500)
    return lambda size: monkeypatch.setenv(devices.GPU_MEMORY, f"{size}B")


def terrain(n):
    """A long slope with houses: a strip with its halo is a part of it, and points are dense."""
    rng = np.random.default_rng(n)
    x, y = 500_000 + rng.uniform(0, 400, n), 5_800_000 + rng.uniform(0, 6, n)
    z = 100 + 0.02 * (x - x.min()) + np.where(x % 50 < 12, 6.0, 0.0)
    return {"x": x, "y": y, "z": np.round(z, 2)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_little_memory_gives_the_same_rows(name, gpu_memory):
    function, cloud = catalogue()[name], terrain(9000)
    options, size = function.choose({}), size_of(function.inputs, cloud)
    room = function.output.work_in_tiles(size, options, 4).bytes_kernel
    assert room < function.output.work(size, options).bytes_kernel
    gpu_memory(room)
    found = spatialq.run(name, **cloud, device="gpu")
    entry = log.entries()[-1]
    assert (entry.device, entry.error) == ("gpu", None)
    assert re.search("; in [234] tiles, as it needs .* the GPU has .* free$", entry.reason)
    assert_same(found, spatialq.run(name, **cloud, device="cpu"))


def test_several_outputs_run_in_tiles_together(gpu_memory):
    names, cloud = ["detect_planes", "plane_points"], terrain(6000)
    function = catalogue()["plane_points"]
    size = size_of(function.inputs, cloud)
    gpu_memory(function.output.work_in_tiles(size, function.choose({}), 3).bytes_kernel)
    found = spatialq.run(names, **cloud, device="gpu")
    assert "; in 3 tiles, as it needs" in log.entries()[-1].reason
    expected = spatialq.run(names, **cloud, device="cpu")
    for name in names:
        assert_same(found[name], expected[name])


def test_enough_memory_runs_the_whole(gpu_memory):
    gpu_memory(1 << 30)
    spatialq.run("owm_ground", **terrain(2000), device="gpu")
    assert log.entries()[-1].reason == "device := 'gpu' was asked for"
