"""Volume and box of common parts: by formulas, and by counting points."""

from math import cos, pi, radians, sin, sqrt, tan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spatialq.udfs.intersects_with import MEASURES, Options, cpu

import spatialq
from spatialq.data.meshes import Meshes
from spatialq.geometry.smallest_box import extents

from ..conftest import read_real_model, real_file
from ..examples import examples, thinned
from . import oracle
from .shapes import (
    bar,
    box,
    cube,
    cylinder,
    flipped,
    hollow,
    moved,
    pipe,
    sphere,
    subdivided,
    together,
    turned,
    unwelded,
    without,
)

WALL = box((0, 0, 0), (3, 0.2, 2.5))
SLAB = box((-2, -2, -0.2), (2, 2, 0))
BEAM = box((-0.05, -2, -0.05), (0.05, 2, 0.05))
BALL = sphere(0.5, 9, 16)
PRISM = 32 * sin(pi / 32) * cos(pi / 32)
"""Area of a polygon of 32 corners in a circle of radius 1."""


def measured(a, b, **options):
    chosen = Options(**{"volume": True, "relations": True, **options})
    found = cpu.run(Meshes.of([a]), Meshes.of([b]), options=chosen)
    assert len(found["a"]) == 1
    return [float(found[name][0]) for name in MEASURES]


FORMULAS = {
    "walls, 5 cm in common": (WALL, moved(WALL, (2.95, 0, 0)), 0.05 * 0.2 * 2.5, (2.5, 0.2, 0.05)),
    "slabs, 3 mm in common": (SLAB, moved(SLAB, (1, 2, 0.197)), 3 * 2 * 0.003, (3, 2, 0.003)),
    "equal": (WALL, WALL, 1.5, (3, 2.5, 0.2)),
    "a cut finer": (subdivided(WALL, 2), WALL, 1.5, (3, 2.5, 0.2)),
    "corners apart": (unwelded(WALL), WALL, 1.5, (3, 2.5, 0.2)),
    "contained": (cube(2.0), cube(0.5, (0.3, 0, 0)), 0.125, (0.5, 0.5, 0.5)),
    "crossing": (BEAM, turned(BEAM, (0, 0, 1), 90), 0.001, (0.1, 0.1, 0.1)),
    "askew": (
        BEAM,
        turned(BEAM, (0, 0, 1), 30),
        0.001 / sin(radians(30)),
        # a rhombus along one of its sides
        (0.1 / sin(radians(30)) + 0.1 / tan(radians(30)), 0.1, 0.1),
    ),
    "a pipe through a beam": (
        box((-2, -0.05, -0.05), (2, 0.05, 0.05)),
        pipe(0.026, 0.03, -1, 1),
        PRISM * (0.03**2 - 0.026**2) * 0.1,
        (0.1, 0.06 * cos(pi / 32), 0.06 * cos(pi / 32)),
    ),
    "a cylinder in a slab": (
        SLAB,
        cylinder(0.1, -1, 1),
        PRISM * 0.01 * 0.2,
        (0.2, 0.2 * cos(pi / 32), 0.2 * cos(pi / 32)),
    ),
    "touching": (WALL, moved(WALL, (3, 0, 0)), 0, (0, 0, 0)),
    "two bodies": (
        together(cube(1), cube(1, (3, 0, 0))),
        box((-1, -0.1, -0.1), (4, 0.1, 0.1)),
        2 * 0.04,
        (4, 0.2, 0.2),
    ),
    "two bodies that overlap": (
        together(cube(1), cube(1, (0.5, 0, 0))),
        box((-1, -0.1, -0.1), (4, 0.1, 0.1)),
        1.5 * 0.04,
        (1.5, 0.2, 0.2),
    ),
    "two bodies with a common face": (
        together(cube(1), cube(1, (1, 0, 0))),
        box((-1, -0.1, -0.1), (4, 0.1, 0.1)),
        2 * 0.04,
        (2, 0.2, 0.2),
    ),
    "a hollow": (
        hollow(cube(2), cube(1)),
        box((-3, -0.1, -0.1), (3, 0.1, 0.1)),
        0.04,
        (2, 0.2, 0.2),
    ),
    "a hollow within the box of a thinner body": (
        together(hollow(cube(2), cube(1)), pipe(1.9, 2, -1, 1, 4, 0.5)),
        cube(6),
        8 - 1 + 2 * (2 * 2**2 - 2 * 1.9**2),
        (2 * sqrt(2), 2 * sqrt(2), 2),
    ),
    "hollows in two bodies that overlap": (
        together(hollow(cube(2), cube(1)), hollow(cube(2, (1.8, 0, 0)), cube(1, (1.8, 0, 0)))),
        box((-3, -0.1, -0.1), (5, 0.1, 0.1)),
        1.8 * 0.04,
        (3.8, 0.2, 0.2),
    ),
    "inside out": (flipped(cube(1)), flipped(cube(1, (0.7, 0, 0))), 0.3, (1, 1, 0.3)),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_by_formulas(name):
    a, b, volume, sides = FORMULAS[name]
    found, *box_of_part = measured(a, b)
    assert found == pytest.approx(volume, rel=1e-9, abs=1e-12)
    assert box_of_part == pytest.approx(sides, abs=2e-6)


TURNED = [name for name in FORMULAS if name != "touching"]


@pytest.mark.parametrize("name", TURNED)
@pytest.mark.parametrize("by", [(0.0, 0.0, 0.0), (4.5e5, 5.6e6, 300.0)])
def test_wherever_they_are(name, by):
    """The same in any direction and place, but for the rounding of the coordinates."""
    a, b, volume, sides = FORMULAS[name]
    a, b = (moved(turned(turned(each, (0, 0, 1), 37), (1, 0, 0), 21), by) for each in (a, b))
    error = 1e-9 if by[0] else 1e-12
    found, *box_of_part = measured(a, b)
    assert found == pytest.approx(volume, rel=1e-9, abs=100 * error)
    assert box_of_part == pytest.approx(sides, abs=2e-6)


def test_both_orders_give_the_same_to_the_bit():
    for a, b, *_ in FORMULAS.values():
        a, b = (turned(each, (1, 2, 3), 40) for each in (a, b))
        found = [
            cpu.run(Meshes.of([p]), Meshes.of([q]), options=Options(volume=True, relations=True))
            for p, q in ((a, b), (b, a))
        ]
        for name in MEASURES:
            np.testing.assert_array_equal(found[0][name], found[1][name])


def test_pairs_do_not_depend_on_other_pairs():
    meshes = [moved(cube(1), (0.3 * k, 0.2 * (k % 4), 0)) for k in range(10)]
    options = Options(volume=True)
    found = cpu.run(Meshes.of(meshes), options=options)
    assert len(found["a"]) > 20
    for k in range(len(found["a"])):
        pair = (Meshes.of([meshes[found[side][k]]]) for side in "ba")
        alone = cpu.run(*pair, options=options)
        for name in MEASURES:
            np.testing.assert_array_equal(alone[name][0], found[name][k])


def test_open_meshes_have_no_volume():
    lid = without(cube(1), 0)
    assert np.isnan(measured(lid, cube(1, (0.5, 0.3, 0.2)))).all()
    found = cpu.run(
        Meshes.of([lid]), Meshes.of([cube(1, (0.5, 0.3, 0.2))]), options=Options(volume=True)
    )
    assert found["a_open"][0]
    assert not found["b_open"][0]


def test_nothing_is_measured_unasked():
    assert np.isnan(measured(WALL, WALL, volume=False)).all()


def test_what_thinner_than_a_micrometre_is_in_common_is_not_in_the_box():
    """Faces that are flush, but for rounding: the wall stands on the slab and reaches into it."""
    wall = box((0, 0, -1e-12), (3, 0.2, 2.5))
    both = together(wall, box((0, 0, -0.1), (0.2, 0.2, 1)))
    volume, *sides = measured(both, box((-1, -1, -0.2), (4, 4, 0)))
    assert volume == pytest.approx(0.2 * 0.2 * 0.1, rel=1e-9)
    assert sides == pytest.approx((0.2, 0.2, 0.1), abs=2e-6)


@pytest.mark.parametrize(
    ("a", "b"),
    thinned([
        (BALL, moved(BALL, (0.6, 0.1, 0))),
        (together(bar(), turned(bar(), (0, 0, 1), 50)), moved(cylinder(0.4, -1, 1), (0.1, 0, 0))),
        (hollow(BALL, cube(0.3)), turned(cube(0.7), (1, 1, 0), 33)),
    ]),
)  # fmt: skip
def test_by_counting_points(a, b):
    """Of n points of a box, the share in both is known to 5 standard deviations."""
    rng, n = np.random.default_rng(1), 20_000
    low = np.maximum(a[0].min(0), b[0].min(0))
    high = np.minimum(a[0].max(0), b[0].max(0))
    points = rng.uniform(low, high, (n, 3))
    share = (oracle.are_inside(points, a) & oracle.are_inside(points, b)).mean()
    room = np.prod(high - low)
    volume, *_ = measured(a, b)
    assert abs(volume - share * room) < 5 * room * sqrt(share * (1 - share) / n)


@given(st.integers(0, 2**32 - 1))
@examples(8)
def test_the_box_is_around_all_and_as_small_as_any_on_a_face(seed):
    import manifold3d

    rng = np.random.default_rng(seed)
    points = rng.normal(size=(rng.integers(4, 30), 3)) * 10 ** rng.uniform(-2, 0, 3)
    vertices, faces = oracle.mesh_of(manifold3d.Manifold.hull_points(points))
    sides = extents(vertices, faces)
    assert list(sides) == sorted(sides, reverse=True)
    best = np.inf
    for corners in vertices[faces]:
        normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
        frame = np.linalg.svd(normal[None])[2]
        across = vertices @ frame.T
        # of rectangles around a polygon, the least has a side on one of its (Freeman, Shapira 1975)
        _, u, v = (across[faces] - across[np.roll(faces, 1, axis=1)]).reshape(-1, 3).T
        turns = np.arctan2(v, u)[:, None]
        u = across[:, 1] * np.cos(turns) + across[:, 2] * np.sin(turns)
        v = across[:, 2] * np.cos(turns) - across[:, 1] * np.sin(turns)
        areas = np.ptp(u, axis=1) * np.ptp(v, axis=1)
        best = min(best, np.ptp(across[:, 0]) * areas.min())
    assert np.prod(sides) == pytest.approx(best, rel=1e-6)


@pytest.mark.slow
@pytest.mark.usefixtures("kept_models")
@pytest.mark.parametrize("name", ["duplex", "Office_A_20110811"])
def test_golden_volumes(name):
    file = "Duplex_A_20110907" if name == "duplex" else name
    table = read_real_model(f"data/ifc/{file}.ifc", "exact").tables["elements"]
    lines = real_file(f"golden/clash/{name}.golden.tsv").read_text().splitlines()
    golden = {frozenset(line.split("\t")[:2]): line.split("\t") for line in lines[1:]}
    with spatialq.connect() as con:
        con.register("elements", table)
        rows = con.sql("SELECT a, b, volume FROM intersects_with('elements', volume := true)")
        compared = 0
        for a, b, volume in rows.fetchall():
            row = golden.get(frozenset((a, b)))
            if row is None or row[2] != "hard" or volume is None:
                continue
            compared += 1
            assert volume == pytest.approx(float(row[3]), rel=0.005, abs=1e-8)
    assert compared > 30
