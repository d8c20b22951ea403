"""`plane_elements` with the planes of the GPU gives what it gives with those of the CPU."""

import numpy as np
import pytest
from spatialq.udfs.plane_elements import Options, cpu, gpu

from spatialq.data.meshes import Meshes

from ..host.device import HostDevice, OnDevice
from ..test_parity import assert_same
from .cases import ROOM, patch

POINTS = np.concatenate([
    patch((0, 0, 0), (4, 0, 0), (0, 0, 2.5), n=900, noise=0.003, seed=1)[0],
    patch((3.97, 0, 0), (0, 3, 0), (0, 0, 2.5), n=900, noise=0.003, seed=2)[0],
    patch((1, 1, 0.75), (1.6, 0, 0), (0, 0.9, 0), n=600, noise=0.003, seed=3)[0],
])  # fmt: skip


def columns():
    coordinates = dict(zip("xyz", np.ascontiguousarray(POINTS.T), strict=True))
    return {**coordinates, "point_id": np.arange(len(POINTS))}


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("elements", [ROOM, []], ids=["a room", "no elements"])
def test_as_on_the_cpu(elements):
    expected, found = (
        kernel.run(**columns(), elements=Meshes.of(elements), options=Options())
        for kernel in (cpu, gpu)
    )
    assert_same(found, expected)
    assert sorted(found["element"].tolist()) == ([-1, 0, 3] if elements else [-1, -1, -1])


def test_arrays_of_the_gpu_stay_there(device):
    expected = cpu.run(**columns(), elements=Meshes.of(ROOM), options=Options())
    put = (
        device.xp.asarray
        if not isinstance(device, HostDevice)
        else lambda values: values.view(OnDevice)
    )
    there = {name: put(values) for name, values in columns().items()}
    found = gpu.run(**there, elements=Meshes.of(ROOM), options=Options())
    for name, values in expected.items():
        is_object = values.dtype == object
        own = found[name] if is_object else device.download(found[name])
        np.testing.assert_array_equal(own, values, err_msg=name)
