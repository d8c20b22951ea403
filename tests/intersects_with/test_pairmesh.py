"""The inner and outer meshes of the thesis against the cases, the golden pairs and fractions."""

from fractions import Fraction

import numpy as np
import pytest
from spatialq.udfs.intersects_with import RELATIONS, pairmesh

from spatialq.data.meshes import Meshes
from spatialq.geometry import boxes, broad_phase

from ..conftest import read_real_model, real_file
from . import shapes
from .cases import CASES

T = 0.001
INTERIOR = {"overlap", "contains", "inside", "covers", "covered_by", "equals"}
TOO_THIN = "a plate of 0.5 mm laid into a slab's top"
MODELS = {
    "duplex": ("Duplex_A_20110907", 124, 668),
    "AC20-FZK-Haus": ("AC20-FZK-Haus", 147, 176),
    "Office_A_20110811": ("Office_A_20110811", 41, 1627),
}


def relation(a, b, t=T):
    one = np.zeros(1, np.int64)
    return RELATIONS[pairmesh.relations(Meshes.of([a]), Meshes.of([b]), one, one, t)[0]]


@pytest.mark.parametrize("name", sorted(set(CASES) - {TOO_THIN}))
def test_cases(name):
    a, b, expected, _ = CASES[name]
    found = relation(a, b)
    if expected in INTERIOR:
        assert found in INTERIOR
    else:
        assert found == expected
    if expected in ("contains", "inside"):
        assert found == expected


@pytest.mark.parametrize("name", sorted(set(CASES) - {TOO_THIN}))
def test_the_other_way_round(name):
    a, b, _, _ = CASES[name]
    converse = {"contains": "inside", "inside": "contains"}
    found = relation(a, b)
    assert relation(b, a) == converse.get(found, found)


def test_what_is_thinner_than_the_offsets_turns_inside_out():
    """A limit of the method: such a plate is no touch any more."""
    a, b, _, _ = CASES[TOO_THIN]
    assert relation(a, b) == "overlap"
    assert relation(a, b, 0.0002) != "disjoint"


def test_vertices_that_are_not_shared_are_welded():
    def loose(mesh):
        vertices, faces = mesh
        return vertices[faces.ravel()], np.arange(3 * len(faces)).reshape(-1, 3)

    wall = shapes.box((0, 0, 0), (3, 0.2, 2.5))
    beside = shapes.box((0, 0.2, 0), (3, 0.4, 2.5))
    assert relation(loose(wall), loose(beside)) == "touch"
    welded = pairmesh.weld(Meshes.of([loose(wall), loose(beside)]))
    assert np.diff(welded.vertex_starts).tolist() == [8, 8]
    assert np.diff(welded.face_starts).tolist() == [12, 12]


def test_a_box_is_moved_by_a_third_of_the_squares():
    """Each corner moves along its diagonal, however the faces are cut."""
    assert relation(shapes.cube(1.0), shapes.cube(1.0, (1 + 1.9 * T / 3**0.5, 0, 0))) == "touch"
    assert relation(shapes.cube(1.0), shapes.cube(1.0, (1 + 2.1 * T / 3**0.5, 0, 0))) == "disjoint"
    assert relation(shapes.cube(1.0), shapes.cube(1.0, (1 - 1.9 * T / 3**0.5, 0, 0))) == "touch"
    assert relation(shapes.cube(1.0), shapes.cube(1.0, (1 - 2.1 * T / 3**0.5, 0, 0))) == "overlap"


def test_inside_out_is_taken_as_meant():
    vertices, faces = shapes.cube(1.0)
    inverted = vertices, faces[:, ::-1]
    for by, expected in ((1.0, "touch"), (0.9, "overlap"), (1.1, "disjoint")):
        other = shapes.cube(1.0, (by, 0, 0))
        assert relation(inverted, other) == relation((vertices, faces), other) == expected
    assert relation(inverted, shapes.cube(0.5)) == "contains"


def test_nothing_has_no_relation():
    nothing = np.empty((0, 3)), np.empty((0, 3), int)
    line = np.array([(0.0, 0, 0), (1, 0, 0), (2, 0, 0)]), np.array([(0, 1, 2)])
    assert relation(nothing, shapes.cube(1.0)) == "disjoint"
    assert relation(shapes.cube(9.0), nothing) == "disjoint"
    assert relation(shapes.cube(1.0, (5, 5, 5)), line) == "disjoint"


def meet(a, b):
    """Whether two triangles have a point in common, in fractions: no axis keeps them apart."""

    def cross(u, v):
        return (u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0])

    def edges(t):
        return [tuple(q - p for p, q in zip(t[i - 1], t[i], strict=True)) for i in range(3)]

    ea, eb = edges(a), edges(b)
    na, nb = cross(ea[0], ea[1]), cross(eb[0], eb[1])
    axes = [na, nb, *(cross(u, v) for u in ea for v in eb)]
    axes += [cross(n, e) for n, some in ((na, ea), (nb, eb)) for e in some]
    for axis in axes:
        p, q = ([sum(x * y for x, y in zip(axis, c, strict=True)) for c in t] for t in (a, b))
        if max(p) < min(q) or max(q) < min(p):
            return False
    return True


def shrunk(triangle):
    """A triangle a millionth smaller."""
    middle = [sum(column) / Fraction(3) for column in zip(*triangle, strict=True)]
    return [
        [m + (x - m) * Fraction(999_999, 1_000_000) for x, m in zip(corner, middle, strict=True)]
        for corner in triangle
    ]


@pytest.mark.slow
@pytest.mark.parametrize("flat", [False, True])
def test_triangles_meet_as_in_fractions(flat):
    """On a coarse grid; a contact of boundaries may be lost to rounding."""
    rng = np.random.default_rng(1)
    answers = []
    for a, b in rng.integers(0, 5, (4000, 2, 3, 3)):
        if flat:
            a[:, 2] = b[:, 2] = 1
        if all(np.cross(t[1] - t[0], t[2] - t[0]).any() for t in (a, b)):
            exact = [[[Fraction(int(x)) for x in corner] for corner in t] for t in (a, b)]
            found = pairmesh.triangles_meet(*(float(x) for t in (a, b) for x in t.ravel()))
            assert meet(*map(shrunk, exact)) <= found <= meet(*exact), (a, b)
            answers.append(found)
    assert 0.1 < np.mean(answers) < 0.9


@pytest.mark.slow
@pytest.mark.usefixtures("kept_models")
@pytest.mark.parametrize("name", MODELS)
def test_golden_pairs(name, monkeypatch):
    model, hard, touch = MODELS[name]
    table = read_real_model(f"data/ifc/{model}.ifc", "exact").tables["elements"]
    rows = [row for row in table.to_pylist() if row["mesh"]]
    place = {row["global_id"]: k for k, row in enumerate(rows)}
    meshes = Meshes.of([(row["mesh"]["vertices"], row["mesh"]["faces"]) for row in rows])
    i, j = broad_phase.pairs(boxes.of(meshes), None, 2 * T)
    codes = pairmesh.relations(meshes, None, i, j, T)
    found = dict(zip(zip(i.tolist(), j.tolist(), strict=True), codes.tolist(), strict=True))
    lines = real_file(f"golden/clash/{name}.golden.tsv").read_text().splitlines()
    assert lines[0].split("\t")[:3] == ["guid_a", "guid_b", "label"]
    by_label = {}
    for a, b, label, *_ in (line.split("\t") for line in lines[1:]):
        pair = tuple(sorted((place[a], place[b])))
        by_label.setdefault(label, []).append(RELATIONS[found.get(pair, 0)])
    assert by_label["hard"] == ["overlap"] * hard
    assert by_label["touch"] == ["touch"] * touch
    assert not INTERIOR & {*by_label.get("near", ()), *by_label.get("apart", ())}
    monkeypatch.setenv("SPATIALQ_THREADS", "3")
    assert pairmesh.relations(meshes, meshes, i, j, T).tobytes() == codes.tobytes()
