"""The GPU's kernel gives what the CPU's gives, to the bit (see tests/test_parity.py).

The host stands in for the GPU where there is none; it takes small meshes, a few at a time.
"""

import numpy as np
import pytest
from spatialq.udfs.intersects_with import Options, cpu, gpu

from spatialq.data.meshes import Meshes

from ..conftest import real_file
from ..host.device import HostDevice, OnDevice
from ..test_parity import assert_same, device  # noqa: F401
from . import shapes
from .cases import CASES

SMALL = [name for name, (a, b, *_) in CASES.items() if len(a[1]) + len(b[1]) <= 60]
CHANGES = {
    "as they are": lambda mesh: mesh,
    "flipped": shapes.flipped,
    "on the map": lambda mesh: shapes.moved(mesh, (5e5, 5.5e6, 30.0)),
    "open": lambda mesh: (mesh[0], mesh[1][1:]),
}


def run_both(a, b, **options):
    chosen = Options(**options)
    return (kernel.run(a, b, options=chosen) for kernel in (gpu, cpu))


@pytest.mark.parametrize("name", SMALL)
def test_every_small_case_is_as_on_the_cpu(device, name):  # noqa: F811
    a, b, *_ = CASES[name]
    assert_same(*run_both(Meshes.of([a]), Meshes.of([b]), relations=True))


@pytest.mark.parametrize("relations", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_all_with_all_are_as_on_the_cpu(device, change, relations):  # noqa: F811
    on_gpu = not isinstance(device, HostDevice)
    names = list(CASES) if on_gpu else SMALL[::24]
    a = Meshes.of([CHANGES[change](CASES[name][0]) for name in names])
    b = Meshes.of([CASES[name][1] for name in names])
    assert_same(*run_both(a, b, relations=relations))
    assert_same(*run_both(a, None, relations=relations))


def test_many_boxes_are_as_on_the_cpu(device):  # noqa: F811
    rng = np.random.default_rng(3)
    n = 600 if not isinstance(device, HostDevice) else 14
    low = rng.integers(0, 4 * round(n ** (1 / 3)), (n, 3)) / 4
    boxes = [
        shapes.box(corner, corner + size)
        for corner, size in zip(low, rng.integers(1, 5, (n, 3)) / 4, strict=True)
    ]
    boxes.append((np.empty((0, 3)), np.empty((0, 3), np.int32)))
    found, expected = run_both(Meshes.of(boxes), None, relations=True, tolerance=0.0)
    assert len(set(expected["relation"])) > 1
    assert_same(found, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("relations", [False, True])
def test_golden_boxes_are_as_on_the_cpu(device, relations):  # noqa: F811
    if isinstance(device, HostDevice):
        pytest.skip("takes a GPU: the host needs hours")
    with np.load(real_file("golden/clash/boxes.npz")) as golden:
        starts = golden["vert_off"]
        faces = golden["tris"] - np.repeat(starts[:-1], np.diff(golden["tri_off"]))[:, None]
        meshes = Meshes(golden["verts"], faces.astype(np.int32), starts, golden["tri_off"])
    assert_same(*run_both(meshes, meshes, relations=relations))


def test_meshes_of_the_gpu_stay_there(device):  # noqa: F811
    a, b, *_ = CASES["crossing beams"]
    meshes = Meshes.of([a, b])
    expected = cpu.run(meshes, options=Options(relations=True))
    put = (
        device.xp.asarray
        if not isinstance(device, HostDevice)
        else lambda values: values.view(OnDevice)
    )
    there = Meshes(
        *map(put, (meshes.vertices, meshes.faces, meshes.vertex_starts, meshes.face_starts))
    )
    result = gpu.run(there, options=Options(relations=True))
    for name, values in expected.items():
        np.testing.assert_array_equal(device.download(result[name]), values, err_msg=name)


def test_no_elements_at_all(device):  # noqa: F811
    empty = Meshes.of([])
    assert_same(*run_both(empty, None))
    assert_same(*run_both(empty, Meshes.of([CASES[SMALL[0]][0]])))


def test_more_events_than_places(device, monkeypatch):  # noqa: F811
    monkeypatch.setattr(gpu, "CONTACTS", 1)
    # The crossing is found by the first pass, which makes the second find fewer events.
    a, b, *_ = CASES["crossing beams"]
    inner = shapes.cube(0.01)
    assert_same(*run_both(Meshes.of([a, shapes.cube(9.0)]), Meshes.of([b, inner]), relations=True))
