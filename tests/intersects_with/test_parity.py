"""The GPU's kernel gives what the CPU's gives, to the bit (see tests/test_parity.py).

The host stands in for the GPU where there is none; it takes small meshes, a few at a time.
"""

import numpy as np
import pytest
from spatialq.udfs.intersects_with import gpu

from spatialq.data.meshes import Meshes

from ..conftest import GPU, real_file
from ..host.device import HostDevice
from ..kernels import assert_same, run_both
from . import shapes
from .cases import CASES, PARITY

CHANGES = {
    "as they are": lambda mesh: mesh,
    "flipped": shapes.flipped,
    "on the map": lambda mesh: shapes.moved(mesh, (5e5, 5.5e6, 30.0)),
    "open": lambda mesh: (mesh[0], mesh[1][1:]),
}


def as_on_the_cpu(a, b, **options):
    assert_same(*run_both("intersects_with", {"a": a, "b": b}, **options))


@pytest.mark.parametrize("relations", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_all_with_all_are_as_on_the_cpu(device, change, relations):
    on_gpu = not isinstance(device, HostDevice)
    names = list(CASES) if on_gpu else PARITY[::24]
    a = Meshes.of([CHANGES[change](CASES[name][0]) for name in names])
    b = Meshes.of([CASES[name][1] for name in names])
    as_on_the_cpu(a, b, relations=relations)
    as_on_the_cpu(a, None, relations=relations)


def test_many_boxes_are_as_on_the_cpu(device):
    rng = np.random.default_rng(3)
    n = 600 if not isinstance(device, HostDevice) else 14
    low = rng.integers(0, 4 * round(n ** (1 / 3)), (n, 3)) / 4
    boxes = [
        shapes.box(corner, corner + size)
        for corner, size in zip(low, rng.integers(1, 5, (n, 3)) / 4, strict=True)
    ]
    boxes.append((np.empty((0, 3)), np.empty((0, 3), np.int32)))
    meshes = {"a": Meshes.of(boxes), "b": None}
    found, expected = run_both("intersects_with", meshes, relations=True, tolerance=0.0)
    assert len(set(expected["relation"])) > 1
    assert_same(found, expected)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("device", [GPU], indirect=True)  # the host needs hours
@pytest.mark.parametrize("relations", [False, True])
def test_golden_boxes_are_as_on_the_cpu(relations):
    with np.load(real_file("golden/clash/boxes.npz")) as golden:
        starts = golden["vert_off"]
        faces = golden["tris"] - np.repeat(starts[:-1], np.diff(golden["tri_off"]))[:, None]
        meshes = Meshes(golden["verts"], faces.astype(np.int32), starts, golden["tri_off"])
    as_on_the_cpu(meshes, meshes, relations=relations)


@pytest.mark.parametrize(
    "options", [{}, {"min_thickness": 0.005}, {"relations": True}, {"volume": True}]
)
def test_thin_common_parts_are_as_on_the_cpu(device, options):
    beam = CASES["crossing beams"][0]
    a = Meshes.of([beam, shapes.box((0, 0, 0), (2, 1, 0.0015)), shapes.cube(0.5)])
    b = Meshes.of([shapes.pipe(0.026, 0.03, -1, 1), CASES["crossing beams"][1]])
    for tolerance in (0.002, 0.01, 0.06):
        as_on_the_cpu(a, b, tolerance=tolerance, **options)
        as_on_the_cpu(a, None, tolerance=tolerance, **options)


def test_corners_that_stick_out_are_as_on_the_cpu(device):
    a, b = [shapes.cube(1.0)], []
    for step in (0.0057, 0.0064, -0.0064):
        b.append(shapes.cube(1.0))
        b[-1][0][0] -= step
    as_on_the_cpu(Meshes.of(a), Meshes.of(b), tolerance=0.01)


def test_no_elements_at_all(device):
    empty = Meshes.of([])
    as_on_the_cpu(empty, None)
    as_on_the_cpu(empty, Meshes.of([CASES[PARITY[0]][0]]))


def test_more_contacts_than_places(device, monkeypatch):
    monkeypatch.setattr(gpu, "CONTACTS", 1)
    # The crossing is found by the first pass, which makes the second find fewer contacts.
    a, b, *_ = CASES["crossing beams"]
    inner = shapes.cube(0.01)
    as_on_the_cpu(Meshes.of([a, shapes.cube(9.0)]), Meshes.of([b, inner]), relations=True)
