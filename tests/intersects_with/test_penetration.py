"""The penetration of two elements, by formulas, by linear programs, and by dense samples."""

from math import cos, pi, sqrt
from types import SimpleNamespace
from unittest.mock import patch

import manifold3d
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spatialq.udfs.intersects_with import depths, gpu
from spatialq.udfs.intersects_with.cells import WORK
from spatialq.udfs.intersects_with.penetration import MAX_CELLS, penetration

from spatialq.data.meshes import Meshes
from spatialq.geometry import boxes
from spatialq.geometry.prepared_meshes import PreparedMeshes
from spatialq.geometry.solids import Solids

from ..examples import examples
from . import oracle
from .cases import BEAM, BLOCK, CASES, SLAB, WALL
from .shapes import box, cube, cylinder, moved, pipe, subdivided, turned

NEAR = {"abs": 1e-4, "rel": 0.01}
"""What is guaranteed: the larger of both."""


def spire():
    """A spire of 3 m on a base that passes through another box: all have one corner in common."""
    base, _ = box((-1.5, -1.5, 0), (1.5, 1.5, 1))
    tower = oracle.mesh_of(manifold3d.Manifold.hull_points(np.vstack([base, [0, 0, 4]])))
    vertices, faces = zip(tower, box((-1.5, -1.5, 0), (2, 2, 1)), strict=True)
    faces = np.concatenate([faces[0], faces[1] + len(vertices[0])])
    places, there = np.unique(np.concatenate(vertices), axis=0, return_inverse=True)
    return places, there.reshape(-1)[faces]


def bounds(a, b, seed=(np.nan, np.nan, np.nan)):
    """The penetration, which may be too small by that much, and its bound from above."""
    meshes = Meshes.of([a, b])
    solids = PreparedMeshes(meshes, boxes.of(meshes)).solids
    reach, upper = penetration(*seed, 0.0, MAX_CELLS, 0, 1, solids, np.empty(WORK))
    assert reach <= upper
    return reach, upper


def measured(a, b):
    """The penetration where the search was complete."""
    reach, upper = bounds(a, b)
    assert upper <= max(reach + 1e-4, 1.01 * reach)
    return reach


FORMULAS = {
    "a pipe of 4 mm through a beam": (BEAM, pipe(0.026, 0.03, -1, 1), 0.05),
    "a pipe of 1 mm through a beam": (BEAM, pipe(0.029, 0.03, -1, 1), 0.05),
    "a pipe through a slab": (SLAB, pipe(0.046, 0.05, -1, 1), 0.1),
    "crossing beams": (BEAM, turned(BEAM, (0, 0, 1), 90), 0.05),
    "beams that cross askew": (BEAM, turned(BEAM, (0, 0, 1), 37), 0.05),
    "walls, 5 cm in common": (WALL, moved(WALL, (2.95, 0, 0)), 0.05),
    "walls, 3 mm in common": (WALL, moved(WALL, (2.997, 0, 0)), 0.003),
    "slabs, 3 mm in common": (SLAB, moved(SLAB, (0.1, 0.3, 0.197)), 0.003),
    "sheets of 1.5 mm and the same": (box((0, 0, 0), (2, 1, 0.0015)),) * 2 + (0.00075,),
    "a sheet in a slab": (SLAB, box((-1, -1, -0.1), (1, 1, -0.097)), 0.1),
    "columns in one place": (box((0, 0, 0), (0.3, 0.4, 3)),) * 2 + (0.15,),
    "a column cut finer": (
        box((0, 0, 0), (0.3, 0.4, 3)),
        subdivided(box((0, 0, 0), (0.3, 0.4, 3)), 2),
        0.15,
    ),
    "a cube in a cube": (BLOCK, cube(1.0), 1.0),
    "a cube off the centre of a cube": (BLOCK, cube(0.5, (0.7, 0, 0)), 0.55),
    "a cylinder and itself": (cylinder(0.5, 0, 2), cylinder(0.5, 0, 2), 0.5 * cos(pi / 32)),
    "cubes corner in corner": (cube(1.0), cube(1.0, (0.75, 0.75, 0.75)), 0.25),
    "a cube on its edge in a slab": (
        SLAB,
        moved(turned(cube(1.0), (0, 1, 0), 45), (0, 0, sqrt(0.5) - 0.03)),
        0.03,
    ),
    "a box in the spire of a body that passes through itself": (
        spire(),
        box((-0.3, -0.2, 1.6), (1.4, 1.45, 2.5)),
        4.5 / (1.5 + sqrt(1.5**2 + 3**2)),
    ),
}  # fmt: skip
PLACES = {
    "in place": lambda mesh: mesh,
    "turned": lambda mesh: turned(turned(mesh, (0, 0, 1), 30), (1, 2, 0), 17),
    "on the map": lambda mesh: moved(turned(mesh, (0, 0, 1), 30), (5e5, 5.5e6, 30.0)),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", FORMULAS)
def test_formulas(name, place):
    a, b, expected = FORMULAS[name]
    a, b = PLACES[place](a), PLACES[place](b)
    assert measured(a, b) == pytest.approx(expected, **NEAR)
    assert measured(b, a) == pytest.approx(expected, **NEAR)


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_gpu_finds_the_same(device, place, order):
    """All pairs at once, with floors, and with a limit that leaves some of them to the host."""
    names = [name for name, (a, b, _) in FORMULAS.items() if len(a[1]) + len(b[1]) < 300]
    meshes = Meshes.of([PLACES[place](FORMULAS[name][side]) for name in names for side in order])
    solids = PreparedMeshes(meshes, boxes.of(meshes)).solids
    rows = 2 * np.arange(len(names), dtype=np.int32)
    seeds = np.full((len(rows), 5), np.nan)
    seeds[:, 2:] = [meshes.vertices[meshes.vertex_starts[row + 1]] for row in rows]
    floors = np.where(rows % 3 == 0, 0.0, 0.002)
    expected = depths.reaches(solids, rows, rows + 1, seeds, floors)
    there = SimpleNamespace(solids=Solids(*map(device.upload_small, solids)))
    given = [device.upload_small(each) for each in (rows, rows + 1, seeds, floors)]
    left = {}
    for most in (2, 40, 100_000):
        with patch.object(gpu, "MAX_CELLS", most):
            found = np.array(device.download(gpu._reaches(device, there, *given)))
        known = ~np.isnan(found[:, 0])
        np.testing.assert_array_equal(found[known], expected[known])
        left[most] = int((~known).sum())
    assert left[2] > left[40] > left[100_000] == 0


def interior(name):
    return CASES[name][2] in oracle.INTERIOR


SMALL = [
    name for name, (a, b, *_) in CASES.items() if interior(name) and len(a[1]) + len(b[1]) < 700
]


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_no_point_of_the_common_part_is_farther(name):
    a, b, *_ = CASES[name]
    reach, upper = bounds(a, b)
    sampled = oracle.sampled_penetration(a, b, np.random.default_rng(1))
    assert sampled <= upper * (1 + 1e-9) + 1e-9
    assert reach >= sampled - max(1e-4, 0.01 * sampled)


@st.composite
def turned_boxes(draw):
    corners, faces = cube(1.0)
    mesh = corners * [draw(st.integers(1, 100)) / 100 for _ in range(3)], faces
    for axis in ((0, 0, 1), (1, 0, 0)):
        mesh = turned(mesh, axis, draw(st.integers(0, 11)) * 15)
    return moved(mesh, [draw(st.integers(-300, 300)) / 1000 for _ in range(3)])


def hull(rng):
    points = rng.normal(size=(rng.integers(4, 14), 3)) * 10 ** rng.uniform(-1.5, 0, 3)
    return oracle.mesh_of(manifold3d.Manifold.hull_points(points))


@pytest.mark.slow
def test_hulls_of_random_points_by_a_linear_program():
    rng, pairs = np.random.default_rng(1), 0
    while pairs < 300:
        a, b = hull(rng), hull(rng)
        if oracle.convex_depth(a, b) > 1e-3:
            assert measured(a, b) == pytest.approx(oracle.convex_penetration(a, b), **NEAR)
            pairs += 1


@given(turned_boxes(), turned_boxes())
@examples(40)
def test_turned_boxes_by_a_linear_program(a, b):
    if oracle.convex_depth(a, b) < 1e-3:
        return
    assert measured(a, b) == pytest.approx(oracle.convex_penetration(a, b), **NEAR)
