"""`distance` against exact fractions, other programs' results, and what must not matter."""

import csv
import math
from itertools import pairwise
from math import cos, sin

import numpy as np
import pytest
from spatialq.udfs.distance import Options, cpu

from spatialq.data.meshes import Meshes
from spatialq.geometry.triangles import squared_distance

from ..conftest import read_real_model, real_file
from . import oracle
from .cases import BEAMS, CASES, LATTICE, ball, box, cube, joined, tetrahedra

POINTS = ("ax", "ay", "az", "bx", "by", "bz")
MANY = [*LATTICE, *tetrahedra(30, 5, 4), ball(1, 1, 1, 0.7), ball(3, 2, 1, 1.5), cube(1, 1, 1, 9)]


def run(a, b=None, **options):
    others = None if b is None else Meshes.of(b)
    return cpu.run(Meshes.of(a), others, options=Options(**options))


def rows(result):
    return list(zip(*(result[name].tolist() for name in ("a", "b", "distance")), strict=True))


def assert_same(found, expected):
    assert list(found) == list(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


SLOW = ("a lattice", "tetrahedra")
"""How cases begin of which the brute force takes seconds."""


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[pytest.mark.slow] if case.startswith(SLOW) else [])
        for case in CASES
    ],
)
def test_every_case_is_as_exact_fractions_have_it(case):
    a, b, options = CASES[case]
    found, expected = rows(run(a, b, **options)), oracle.rows(a, b, **options)
    assert [row[:2] for row in found] == [row[:2] for row in expected]
    exact = [row[2] for row in expected]
    assert [row[2] for row in found] == pytest.approx(exact, rel=1e-14, abs=1e-14)


@pytest.mark.parametrize("case", CASES)
def test_the_points_are_on_the_elements_and_as_far_apart(case):
    a, b, options = CASES[case]
    result = run(a, b, **options)
    b = a if b is None else b
    for i, j, distance, *points in zip(*(result[name].tolist() for name in result), strict=True):
        p, q = tuple(points[:3]), tuple(points[3:])
        far = 4 * np.spacing(np.abs(points).max())
        assert np.linalg.norm(np.subtract(p, q)) == pytest.approx(distance, rel=1e-14, abs=far)
        for point, mesh in ((p, a[i]), (q, b[j])):
            triangles = oracle.corners(mesh)
            on_it = any(
                oracle.box_gap([point], t) <= far and oracle.triangle_distance((point,), t) <= far
                for t in triangles
            )
            assert on_it or (distance == 0 and oracle.is_inside(point, triangles))


@pytest.mark.parametrize("apart", [0.3, 1.2, 3.0])
def test_no_pair_of_triangles_is_missed_and_the_first_of_several_counts(apart):
    one = joined(ball(0, 0, 0, 1), cube(-0.5, 5, 0))
    other = joined(ball(apart, 0.1 * apart, 0, 1.2), cube(-0.5, 5, apart + 1))
    found = min(
        (squared_distance(*(x for corner in p + q for x in corner))
        for p in oracle.corners(one) for q in oracle.corners(other)),
        key=lambda measure: measure[0],
    )  # fmt: skip
    result = run([one], [other])
    assert result["distance"][0] == math.sqrt(found[0])
    assert tuple(result[name][0] for name in POINTS) == found[1:]


@pytest.mark.parametrize("turn", [0.0, 0.3, 1.1])
@pytest.mark.parametrize("gap", [0.0, 1e-9])
def test_flush_boxes_meet_in_spite_of_roundings(turn, gap):
    def turned(mesh):
        return [(x * cos(turn) - y * sin(turn), x * sin(turn) + y * cos(turn), z)
                for x, y, z in mesh[0]], mesh[1]  # fmt: skip

    one, other = box(0, 0, 0, 0.3, 7, 3), box(0.3 + gap, 2, 0.1, 5, 2.2, 2.9)
    distance = run([turned(one)], [turned(other)])["distance"][0]
    assert distance == (0 if gap == 0 else pytest.approx(gap, rel=1e-5))


def test_crossing_beams_are_0_1_apart_at_their_crossing():
    result = run(BEAMS)
    assert result["distance"].tolist() == [0.1]
    assert abs(result["ax"][0] - 5) <= 0.05
    assert abs(result["ay"][0]) <= 0.05


@pytest.mark.parametrize("case", CASES)
def test_the_names_and_types_are_always_the_same(case):
    a, b, options = CASES[case]
    kinds = {name: values.dtype for name, values in run(a, b, **options).items()}
    assert kinds == {"a": np.int64, "b": np.int64} | dict.fromkeys(("distance", *POINTS), float)


@pytest.mark.parametrize("limit", [0.0, 0.1, 0.3, 1.0, 2.5])
def test_near_pairs_are_those_of_all_pairs(limit):
    every = run(MANY)
    keep = every["distance"] <= limit
    assert_same(
        run(MANY, max_distance=limit), {name: values[keep] for name, values in every.items()}
    )


@pytest.mark.parametrize("k", [1, 3, 100])
def test_the_nearest_are_the_first_of_all_pairs(k):
    some = MANY[::3]
    every = run(some, MANY)
    order = np.lexsort((every["b"], every["distance"], every["a"]))
    place = np.arange(len(order)) - np.searchsorted(every["a"], every["a"])
    keep = order[place < k]
    assert_same(run(some, MANY, k=k), {name: values[keep] for name, values in every.items()})


def test_a_greater_limit_loses_no_pair():
    found = [set(rows(run(MANY, max_distance=limit))) for limit in (0.0, 0.05, 0.5, 5.0)]
    assert all(few < more for few, more in pairwise(found))


def test_the_number_of_threads_does_not_matter(monkeypatch):
    results = []
    for threads in ("1", "3"):
        monkeypatch.setenv("SPATIALQ_THREADS", threads)
        results += [run(MANY, max_distance=1.0), run(MANY, k=4)]
    assert_same(results[2], results[0])
    assert_same(results[3], results[1])


def test_the_order_of_the_elements_does_not_matter():
    order = np.random.default_rng(1).permutation(len(MANY))
    found = run([MANY[i] for i in order], MANY, max_distance=1.0)
    expected = run(MANY, MANY, max_distance=1.0)
    back = np.lexsort((found["b"], order[found["a"]]))
    found["a"] = order[found["a"]]
    assert_same({name: values[back] for name, values in found.items()}, expected)


def test_one_pair_is_measured_alike_in_every_company():
    every = run(MANY, max_distance=0.5)
    for row in range(0, len(every["a"]), 7):
        i, j = every["a"][row], every["b"][row]
        alone = run([MANY[i]], [MANY[j]])
        for name in ("distance", *POINTS):
            assert alone[name][0] == every[name][row], (i, j, name)


def test_both_directions_agree():
    there, back = run(MANY, MANY), run(MANY[::-1], MANY)
    last = len(MANY) - 1
    turned = {(b, last - a): d for a, b, d in rows(back)}
    for a, b, d in rows(there):
        assert d == pytest.approx(turned[a, b], rel=1e-13, abs=1e-14)


def meshes_of_boxes():
    with np.load(real_file("golden/clash/boxes.npz")) as z:
        first = np.repeat(z["vert_off"][:-1], np.diff(z["tri_off"]))
        faces = (z["tris"] - first[:, None]).astype(np.int32)
        return Meshes(z["verts"], faces, z["vert_off"], z["tri_off"]), z["guid"].tolist()


def golden(name):
    with real_file(f"golden/clash/{name}").open() as file:
        for row in csv.DictReader(file, delimiter="\t"):
            yield row["guid_a"], row["guid_b"], float(row["distance"])


@pytest.mark.slow
def test_boxes_are_as_far_apart_as_their_intervals():
    meshes, ids = meshes_of_boxes()
    expected = {(a, b): distance for a, b, distance in golden("boxes.tsv")}
    found = rows(cpu.run(meshes, meshes, options=Options()))
    assert len(found) == len(ids) ** 2
    for i, j, distance in found:
        if i != j:
            # the list has six digits
            assert distance == pytest.approx(expected[ids[i], ids[j]], rel=5e-6, abs=1e-12)


@pytest.fixture(scope="module")
def models():
    """Elements of IFC models, read once."""
    found = {}

    def model(name):
        if name not in found:
            table = read_real_model(f"data/ifc/{name}.ifc", "exact").tables["elements"]
            named = zip(table["global_id"].to_pylist(), table["mesh"].to_pylist(), strict=True)
            meshes = {key: (mesh["vertices"], mesh["faces"]) for key, mesh in named if mesh}
            found[name] = Meshes.of(list(meshes.values())), list(meshes)
        return found[name]

    return model


@pytest.mark.slow
@pytest.mark.usefixtures("kept_models")
@pytest.mark.parametrize(
    ("file", "pairs"),
    [("Duplex_A_20110907", "duplex"), ("AC20-FZK-Haus", ""), ("Office_A_20110811", "")],
)
def test_real_elements_are_as_far_apart_as_fcl_has_it(models, file, pairs):
    meshes, ids = models(file)
    expected = {
        frozenset((a, b)): distance
        for a, b, distance in golden(f"{pairs or file}.distance_50mm.tsv")
    }
    limit = max(expected.values()) + 0.001
    result = cpu.run(meshes, options=Options(max_distance=limit))
    found = {frozenset((ids[i], ids[j])): distance for i, j, distance in rows(result)}
    wrong = {
        pair: (found.get(pair), distance)
        for pair, distance in expected.items()
        # the list has six digits; 1e-6 is what FCL is good for
        if found.get(pair) != pytest.approx(distance, rel=5e-6, abs=1e-6)
        # FCL knows surfaces only: what is inside another is away from it
        and not (found.get(pair) == 0 and distance > 0)
    }
    assert wrong == {}
    contained = sum(found[pair] == 0 and distance > 1e-6 for pair, distance in expected.items())
    assert contained < 10
