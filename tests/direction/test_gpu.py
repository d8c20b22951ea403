"""`direction` on the GPU gives the pairs of the CPU; without one its source runs on the host."""

import numpy as np
import pytest
from spatialq.udfs.direction import Options, cpu, gpu

from spatialq.data.meshes import Meshes

from ..host.device import HostDevice, OnDevice
from .cases import CASES, box, together
from .test_oracle import KINDS, blocks, scene


def both(*arguments, **others):
    return [kernel.run(*arguments, **others) for kernel in (gpu, cpu)]


def assert_same(found, expected):
    assert list(found) == list(expected)
    for name, values in expected.items():
        assert found[name].dtype == values.dtype
        np.testing.assert_array_equal(found[name], values)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("name", CASES)
def test_every_case_is_as_on_the_cpu(name):
    a, b, options, expected = CASES[name]
    found, there = both(Meshes.of([a]), Meshes.of([b]), options=Options(**options))
    assert_same(found, there)
    assert len(found["a"]) == expected


@pytest.mark.parametrize(("model", "strict"), KINDS)
@pytest.mark.parametrize("direction", ["above", "below", "west"])
def test_scenes_are_as_on_the_cpu(device, model, strict, direction):
    _, cubes = scene(20)
    many = [*cubes, *blocks(21), together(*blocks(22, 40))]
    if isinstance(device, HostDevice):  # the host takes a second for a few pairs
        many = many[::3]
    many = Meshes.of(many)
    chosen = Options(direction=direction, model=model, strict=strict, true_north=33.0)
    found, expected = both(many, options=chosen)
    assert_same(found, expected)
    assert len(found["a"]) or (strict and isinstance(device, HostDevice))
    rows = np.random.default_rng(23).integers(
        0, len(many), (2, 99 if not isinstance(device, HostDevice) else 9)
    )
    assert_same(*both(many, many, options=chosen, pairs=(rows[0], rows[1])))


@pytest.mark.usefixtures("device")
def test_nothing_at_all():
    none, some = Meshes.of([]), Meshes.of([box((0, 0, 0), (1, 1, 1))])
    for a, b in ((none, None), (some, None), (none, some), (some, none)):
        assert_same(*both(a, b, options=Options()))


def test_arrays_of_the_gpu_stay_there(device):
    meshes = Meshes.of(blocks(24))
    put = (
        device.xp.asarray
        if not isinstance(device, HostDevice)
        else lambda values: values.view(OnDevice)
    )
    arrays = meshes.vertices, meshes.faces, meshes.vertex_starts, meshes.face_starts
    found = gpu.run(Meshes(*map(put, arrays)), options=Options())
    expected = cpu.run(meshes, options=Options())
    assert_same({name: device.download(each) for name, each in found.items()}, expected)
