"""`intersects_with` against other means of telling how solids meet, and what must not matter."""

from functools import cache

import ifcopenshell
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from spatialq.udfs.intersects_with import RELATIONS, Options, cpu, depths

from spatialq.data.meshes import Meshes
from spatialq.database.readers.ifc_models import read_model

from ..conftest import read_real_model, real_file
from ..examples import examples
from ..io.ifc_models import Builder
from . import oracle, shapes
from .cases import CASES, CLOSE_CALLS

DTYPES = {
    "a": np.int64,
    "b": np.int64,
    "relation": np.int8,
    "penetration": np.float64,
    "thickness": np.float64,
    "distance": np.float64,
    "x": np.float64,
    "y": np.float64,
    "z": np.float64,
    "a_open": np.bool_,
    "b_open": np.bool_,
    "penetration_at_least": np.bool_,
}


def run(a, b=None, **options):
    """Run the kernel on lists of meshes; pairs that only touch are given as well."""
    chosen = Options(**{"relations": True, **options})
    return cpu.run(Meshes.of(a), None if b is None else Meshes.of(b), options=chosen)


def names(result):
    """Relation of each pair."""
    pairs = zip(result["a"].tolist(), result["b"].tolist(), strict=True)
    relations = [RELATIONS[code] for code in result["relation"].tolist()]
    return dict(zip(pairs, relations, strict=True))


def relation(a, b, **options):
    return names(run([a], [b], **options)).get((0, 0), "disjoint")


def same(one, other):
    return all(one[column].tobytes() == other[column].tobytes() for column in DTYPES)


# the cases


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_oracle_agrees_with_the_cases(name):
    a, b, expected, depth = CASES[name]
    found = oracle.relation(a, b)
    assert found == (None if name in CLOSE_CALLS else expected)
    if depth:
        common = oracle.common_part(a, b)
        assert oracle.sampled_depth(common) == pytest.approx(depth, rel=0.05)


def test_the_oracles_agree_on_boxes():
    rng = np.random.default_rng(1)
    for _ in range(200):
        low = rng.integers(0, 5, (2, 3)) / 4
        (a, b) = np.concatenate([low, low + rng.integers(1, 5, (2, 3)) / 4], axis=1)
        one, other = shapes.box(a[:3], a[3:]), shapes.box(b[:3], b[3:])
        assert oracle.box_relation(a, b, 0.001) == oracle.relation(one, other)
        convex = max(0.0, oracle.convex_depth(one, other))
        assert oracle.box_depth(a, b) == pytest.approx(convex, abs=1e-9)


NOT_CONVEX = {
    "a window 3 mm too large",
    "a core 3 mm too large for the void",
    "a shell in a larger cube",
    "the block around the shell",
    "a shell and itself",
}
"""Cases whose common part turns round corners."""


@pytest.mark.parametrize("name", CASES)
def test_cases(name):
    a, b, expected, depth = CASES[name]
    result = run([a], [b])
    assert names(result).get((0, 0), "disjoint") == expected
    for column, dtype in DTYPES.items():
        assert result[column].dtype == dtype, column
    if expected == "disjoint":
        return
    assert not result["a_open"][0]
    assert not result["b_open"][0]
    assert 0 <= result["distance"][0] <= 0.001
    place = np.array([[result["x"][0], result["y"][0], result["z"][0]]])
    if expected == "touch":
        assert result["thickness"][0] == 0
        assert oracle.to_surface(a, place)[0] <= 0.001 + 1e-9
        assert oracle.to_surface(b, place)[0] <= 0.001 + 1e-9
    else:
        assert result["distance"][0] == 0
        if name in NOT_CONVEX:  # there the depth is the one of a ball, if not the largest
            assert 0 < result["thickness"][0] <= 1.001 * depth
        elif depth is not None:
            assert result["thickness"][0] == pytest.approx(depth, rel=0.1)
        assert oracle.winding(a, place)[0] > 0.5
        assert oracle.winding(b, place)[0] > 0.5


def with_a_corner_moved(step):
    """A cube of 1 m, and the same with one corner elsewhere."""
    whole, other = shapes.cube(1.0), shapes.cube(1.0)
    other[0][other[0].sum(axis=1).argmax()] += step
    return whole, other


def sticks_out(a, b, rng):
    """How far points of the surface of a, corners and samples, lie outside of b."""
    shares = rng.dirichlet([1, 1, 1], 200)
    points = np.concatenate([a[0], *(shares @ corners for corners in a[0][a[1]])])
    return oracle.surface_distances(points[~oracle.are_inside(points, b)], b).max(initial=0.0)


@examples(60)
@given(
    st.sampled_from([0.001, 0.01]),
    st.floats(0.5, 1.5),
    st.lists(st.floats(-1, 1), min_size=3, max_size=3),
    st.integers(0, 3),
)
def test_what_sticks_out_is_measured_as_a_distance_not_along_the_axes(t, size, way, quarters):
    assume(np.linalg.norm(way) > 0.1)
    step = size * t * np.array(way) / np.linalg.norm(way)
    pair = [shapes.turned(mesh, (1, 2, 2), 25 * quarters) for mesh in with_a_corner_moved(step)]
    rng = np.random.default_rng(1)
    out = [sticks_out(*pair, rng), sticks_out(*pair[::-1], rng)]
    assume(all(abs(each - t) > 0.03 * t for each in out))
    expected = oracle.named(contact=True, a_out=out[0] > t, b_out=out[1] > t)
    assert relation(*pair, tolerance=t) == expected


def test_a_corner_that_sticks_out_by_more_than_the_tolerance_is_not_equal():
    whole, other = with_a_corner_moved(0.0064)  # 11.1 mm, along no axis more than 10 mm
    assert relation(whole, other, tolerance=0.01) == "covered_by"
    assert relation(other, whole, tolerance=0.01) == "covers"
    assert relation(*with_a_corner_moved(0.0057), tolerance=0.01) == "equals"  # 9.9 mm


def far(offset):
    return lambda mesh: shapes.moved(mesh, offset)


def tilted(mesh):
    return shapes.turned(shapes.turned(mesh, (1, 2, 3), 40), (0, 0, 1), 17)


CHANGES = {
    "at 500 km": (far((5e5, 5.5e6, 30.0)),) * 2,
    "at 5000 km": (far((5e6, -5e6, 5e6)),) * 2,
    "tilted": (tilted, tilted),
    "tilted at 5000 km": (lambda mesh: far((5e6, 5e6, 5e6))(tilted(mesh)),) * 2,
    "a flipped": (shapes.flipped, lambda mesh: mesh),
    "b flipped": (lambda mesh: mesh, shapes.flipped),
    "in another order": (
        lambda mesh: shapes.shuffled(mesh, 1),
        lambda mesh: shapes.shuffled(mesh, 2),
    ),
    "a cut finer": (shapes.subdivided, lambda mesh: mesh),
    "b cut finer": (lambda mesh: mesh, shapes.subdivided),
    "vertices of their own": (shapes.unwelded, shapes.unwelded),
    "faces without area": (
        lambda mesh: (mesh[0], np.vstack([mesh[1], mesh[1][:, [0, 1, 1]]])),
        lambda mesh: (mesh[0], np.vstack([mesh[1][:, [2, 2, 2]], mesh[1]])),
    ),
    "vertices without faces": (
        lambda mesh: (np.vstack([mesh[0], mesh[0] + 9]), mesh[1]),
        lambda mesh: (np.vstack([mesh[0] - 9, mesh[0]]), mesh[1] + len(mesh[0])),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_what_must_not_matter(change):
    change_a, change_b = CHANGES[change]
    wrong = {}
    for name, (a, b, expected, _) in CASES.items():
        found = relation(change_a(a), change_b(b))
        if found != expected:
            wrong[name] = (found, "instead of", expected)
    assert wrong == {}


@pytest.mark.slow
def test_the_other_way_round():
    wrong = {}
    for name, (a, b, expected, _) in CASES.items():
        found = relation(b, a)
        if found != oracle.CONVERSE[expected]:
            wrong[name] = (found, "instead of", oracle.CONVERSE[expected])
    assert wrong == {}


def test_the_other_way_round_to_the_bit():
    small = [name for name, (a, b, *_) in CASES.items() if len(a[1]) + len(b[1]) <= 60]
    a, b = ([CASES[name][k] for name in small] for k in (0, 1))
    found, turned = run(a, b), run(b, a)
    order = np.lexsort([turned["a"], turned["b"]])
    names_of = (np.array(RELATIONS)[each["relation"]] for each in (found, turned))
    expected = [oracle.CONVERSE[relation] for relation in next(names_of)]
    assert next(names_of)[order].tolist() == expected
    for column in ("penetration", "thickness", "distance", "x", "y", "z"):
        assert found[column].tobytes() == turned[column][order].tobytes(), column


@pytest.mark.slow
def test_a_larger_tolerance_never_makes_a_common_interior():
    tolerances = [1e-5, 1e-4, 0.0005, 0.001, 0.002, 0.005, 0.01]
    for name, (a, b, _, _) in CASES.items():
        found = [relation(a, b, tolerance=tolerance) for tolerance in tolerances]
        common = [each in oracle.INTERIOR for each in found]
        assert common == sorted(common, reverse=True), (name, found)


def test_slivers_and_gaps_at_other_tolerances():
    a, b, _, _ = CASES["a sliver of 0.4 mm"]
    result = run([a], [b], tolerance=0.0001)
    assert names(result) == {(0, 0): "overlap"}
    assert result["thickness"][0] == pytest.approx(0.0004, rel=0.1)
    assert relation(*CASES["walls with a gap of 0.5 mm"][:2], tolerance=0.0001) == "disjoint"
    assert relation(*CASES["walls with a gap of 50 mm"][:2], tolerance=0.06) == "touch"
    assert relation(*CASES["a cube 0.8 mm larger"][:2], tolerance=0.0001) == "inside"
    assert relation(*CASES["a cube 0.5 mm below the surface"][:2], tolerance=0.0001) == "contains"
    assert relation(*CASES["aligned walls, 3 mm in common"][:2], tolerance=0.005) == "touch"


SHEET = shapes.box((0, 0, 0), (2, 1, 0.0015))
PIPE_THROUGH_A_BEAM = (CASES["crossing beams"][0], shapes.pipe(0.026, 0.03, -1, 1))


def test_penetration_or_thickness_exceeds_the_tolerance():
    found = run([SHEET], [SHEET])
    assert names(found) == {(0, 0): "equals"}
    assert found["penetration"][0] == pytest.approx(0.00075, rel=0.01, abs=1e-4)
    assert found["thickness"][0] == pytest.approx(0.0015, rel=0.1)
    assert relation(SHEET, SHEET, tolerance=0.0016) == "touch"
    a, b = PIPE_THROUGH_A_BEAM
    for tolerance in (0.0001, 0.001, 0.01, 0.049):
        found = run([a], [b], tolerance=tolerance)
        assert names(found) == {(0, 0): "overlap"}
        assert found["penetration"][0] == pytest.approx(0.05, rel=0.01)
        assert found["thickness"][0] == pytest.approx(0.004, rel=0.1)
    for tolerance in (0.051, 0.2):
        found = run([a], [b], tolerance=tolerance)
        assert names(found) == {(0, 0): "touch"}
        assert found["penetration"][0] == found["thickness"][0] == 0
        assert run([a], [b], tolerance=tolerance, relations=False)["a"].size == 0


def test_thin_common_parts_are_left_out_if_asked_for():
    a, b = PIPE_THROUGH_A_BEAM
    for tolerance in (0.001, 0.01):
        assert relation(a, b, tolerance=tolerance, min_thickness=0.003) == "overlap"
        assert relation(a, b, tolerance=tolerance, min_thickness=0.005) == "touch"
        assert (
            run([a], [b], tolerance=tolerance, min_thickness=0.005, relations=False)["a"].size == 0
        )


def test_a_search_that_is_given_up_says_so(monkeypatch):
    a, b = PIPE_THROUGH_A_BEAM
    complete = run([a], [b])
    assert not complete["penetration_at_least"][0]
    monkeypatch.setattr(depths, "MAX_CELLS", 1)
    found = run([a], [b])
    assert found["penetration_at_least"][0]
    assert found["penetration"][0] <= complete["penetration"][0]


# many elements at once


def scattered(n, seed, *, turn=True):
    """Boxes and other bodies of decimetres in a few cubic metres."""
    rng = np.random.default_rng(seed)
    kinds = [
        lambda: shapes.cube(1.0),
        lambda: shapes.box((0, 0, 0), rng.integers(1, 9, 3) / 4),
        shapes.l_shape,
        shapes.u_shape,
        lambda: shapes.cylinder(0.5, 0, 1, 12),
        lambda: shapes.hollow(shapes.cube(2.0), shapes.cube(1.0)),
    ]
    return [
        shapes.moved(
            shapes.turned(
                kinds[rng.integers(len(kinds))](), rng.normal(size=3), rng.integers(0, 360)
            )
            if turn and rng.random() < 0.5
            else kinds[rng.integers(len(kinds))](),
            rng.integers(0, 12, 3) / 4,
        )
        for _ in range(n)
    ]


def test_pairs_come_once_and_in_order():
    result = run(scattered(60, 1))
    pairs = list(zip(result["a"].tolist(), result["b"].tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    assert all(a < b for a, b in pairs)
    assert len({len(column) for column in result.values()}) == 1
    assert set(names(result).values()) > {"touch", "overlap"}
    assert "disjoint" not in names(result).values()


def test_without_touching_pairs():
    meshes = scattered(60, 2, turn=False)
    every, interior = run(meshes), run(meshes, relations=False)
    keep = every["relation"] >= RELATIONS.index("overlap")
    assert 0 < keep.sum() < keep.size
    assert same(interior, {column: every[column][keep] for column in DTYPES})


def test_two_lists_give_what_one_list_gives():
    meshes = scattered(40, 3)
    inner, outer = names(run(meshes)), names(run(meshes, meshes))
    for i in range(len(meshes)):
        assert outer[i, i] == "equals"
    both = {pair: name for pair, name in outer.items() if pair[0] != pair[1]}
    assert {pair: name for pair, name in both.items() if pair[0] < pair[1]} == inner
    for (a, b), name in both.items():
        assert both[b, a] == oracle.CONVERSE[name]


def test_the_order_of_elements_does_not_matter():
    meshes = scattered(60, 4)
    order = np.random.default_rng(4).permutation(len(meshes)).tolist()
    expected = names(run(meshes))
    found = names(run([meshes[i] for i in order]))
    original = {
        (order[a], order[b]) if order[a] < order[b] else (order[b], order[a]): (
            name if order[a] < order[b] else oracle.CONVERSE[name]
        )
        for (a, b), name in found.items()
    }
    assert original == expected


def test_threads_do_not_matter(monkeypatch):
    meshes = scattered(60, 5)
    results = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("SPATIALQ_THREADS", threads)
        results.append(run(meshes))
    assert same(results[0], results[1])
    assert same(results[0], results[2])


@pytest.mark.slow
@pytest.mark.parametrize("broad_phase", ["rtree", "none"])
def test_the_broad_phase_does_not_matter(broad_phase):
    meshes, others = scattered(60, 6), scattered(30, 7)
    assert same(run(meshes, broad_phase=broad_phase), run(meshes))
    assert same(run(meshes, others, broad_phase=broad_phase), run(meshes, others))


# random bodies

quarters = st.integers(0, 8).map(lambda k: k / 4)
lengths = st.integers(1, 6).map(lambda k: k / 4)


@st.composite
def boxes(draw):
    low = np.array([draw(quarters) for _ in range(3)])
    return np.concatenate([low, low + [draw(lengths) for _ in range(3)]])


@st.composite
def turned_boxes(draw):
    box = draw(boxes())
    axis = draw(st.sampled_from([(1, 0, 0), (0, 0, 1), (1, 1, 0), (1, 1, 1), (1, 2, 3)]))
    degrees = draw(st.sampled_from([0, 30, 45, 90, 53.13010235415598, 7]))
    return shapes.turned(shapes.box(box[:3], box[3:]), axis, degrees, about=(1, 1, 1))


@st.composite
def blocks(draw):
    """A body of up to three boxes, with up to two boxes cut out."""
    made = None
    for cut in [False] * draw(st.integers(1, 3)) + [True] * draw(st.integers(0, 2)):
        each = draw(boxes())
        other = oracle.solid(shapes.box(each[:3], each[3:]))
        made = other if made is None else made - other if cut else made + other
    assume(not made.is_empty())
    return oracle.mesh_of(made)


@examples(60)
@given(st.lists(boxes(), min_size=2, max_size=12))
def test_random_boxes(sides):
    result = run([shapes.box(each[:3], each[3:]) for each in sides])
    found = names(result)
    depths = dict(zip(found, result["thickness"].tolist(), strict=True))
    for i in range(len(sides)):
        for j in range(i + 1, len(sides)):
            expected = oracle.box_relation(sides[i], sides[j], 0.001)
            assert found.get((i, j), "disjoint") == expected, (sides[i], sides[j])
            depth = oracle.box_depth(sides[i], sides[j])
            assert depths.get((i, j), 0.0) == pytest.approx(depth, rel=0.1)


@examples(100)
@given(turned_boxes(), turned_boxes())
def test_random_turned_boxes(a, b):
    found = relation(a, b)
    depth = oracle.convex_depth(a, b)
    if depth >= 0.002:
        assert found in oracle.INTERIOR
    if depth <= 0.0001:
        assert found not in oracle.INTERIOR
    assert oracle.relation(a, b) in (found, None)


@examples(100)
@given(turned_boxes(), turned_boxes())
def test_the_depth_of_random_turned_boxes(a, b):
    """A ball is found in both, and no other is much larger."""
    result = run([a], [b], relations=False)
    if result["a"].size:
        assert result["thickness"][0] == pytest.approx(oracle.convex_depth(a, b), rel=0.1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (((0.5, 1, 0.5, 1.25, 2.5, 2.5), (1, 2, 3), 0),
         ((0.75, 1.5, 0.5, 1.75, 2.75, 0.75), (1, 2, 3), 90)),
        (((1.25, 0.25, 2, 1.5, 1.5, 2.25), (1, 0, 0), 53.13010235415598),
         ((0.75, 0, 0.5, 2.5, 1, 2.25), (1, 1, 1), 45)),
        (((0.5, 0.5, 1.25, 1, 1.75, 3.25), (1, 0, 0), 30),
         ((0.75, 0.5, 1.25, 1.25, 1.75, 3), (1, 1, 0), 90)),
        (((1, 1.25, 1.75, 2.5, 3.25, 2.5), (1, 1, 0), 45),
         ((0.5, 0.25, 1.75, 1.5, 1, 3), (1, 2, 3), 0)),
    ],
)  # fmt: skip
def test_the_depth_of_turned_boxes_that_share_a_corner(one, other):
    """A search that gives up early stops in the edges of these common parts."""
    a, b = (
        shapes.turned(shapes.box(box[:3], box[3:]), axis, degrees, about=(1, 1, 1))
        for box, axis, degrees in (one, other)
    )
    (depth,) = run([a], [b], relations=False)["thickness"]
    assert depth == pytest.approx(oracle.convex_depth(a, b), rel=0.05)


@examples(100)
@given(blocks(), blocks())
def test_random_blocks(a, b):
    assert relation(a, b) == oracle.relation(a, b)


@examples(60)
@given(blocks(), blocks())
def test_the_depth_of_random_blocks(a, b):
    result = run([a], [b], relations=False)
    if result["a"].size:
        common = oracle.common_part(a, b)
        least = oracle.sampled_depth(common, rounds=6)
        body = oracle.solid(common)
        if body.volume() > 0.999 * body.hull().volume():
            assert result["thickness"][0] >= 0.9 * least
        # what was sampled may miss the largest ball, by less than its grid
        assert 0 < result["thickness"][0] <= 1.2 * least


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_bodies_that_just_meet(seed):
    """Bodies slid apart until they only touch, then by some millimetres one way or the other."""
    rng = np.random.default_rng(seed)
    for a, b in zip(scattered(6, 100 + seed), scattered(6, 200 + seed), strict=True):
        way = rng.normal(size=3)
        way /= np.linalg.norm(way)
        b = shapes.moved(b, a[0].mean(axis=0) - b[0].mean(axis=0))
        body = oracle.solid(a)
        low, high = 0.0, 12.0
        while high - low > 1e-9:
            middle = (low + high) / 2
            is_apart = (body ^ oracle.solid(shapes.moved(b, middle * way))).volume() < 1e-12
            low, high = (low, middle) if is_apart else (middle, high)
        finer = shapes.subdivided(a)
        apart = shapes.moved(b, (high + 0.004) * way)
        if body.min_gap(oracle.solid(apart), 1.0) > 0.0011:
            assert relation(a, apart) == "disjoint"
            assert relation(finer, apart) == "disjoint"
        meeting = shapes.moved(b, (high - 0.01) * way)
        if oracle.sampled_depth(oracle.common_part(a, meeting), rounds=6) > 0.002:
            assert relation(a, meeting) in oracle.INTERIOR
            assert relation(finer, meeting) in oracle.INTERIOR


# surfaces and bad meshes

OPEN_BOX = shapes.without(shapes.cube(1.0), 0)
TRIANGLE = (np.array([(-1, -1, 0), (2, -1, 0.0), (0, 2, 0)]), np.array([(0, 1, 2)]))
NOTHING = (np.empty((0, 3)), np.empty((0, 3), np.int64))
FIN = shapes.together(shapes.cube(1.0), (np.array([(0.5, 0.5, -0.5), (0.5, 0.5, 0.5), (2, 2, 0)]),
                                         np.array([(0, 1, 2)])))  # fmt: skip


def test_no_elements():
    for a, b in (([], None), ([], []), ([shapes.cube(1.0)], []), ([], [shapes.cube(1.0)])):
        result = run(a, b)
        for column, dtype in DTYPES.items():
            assert result[column].dtype == dtype, column
            assert result[column].size == 0, column


def test_meshes_without_faces_take_part_in_nothing():
    cube = shapes.cube(1.0)
    assert names(run([NOTHING, cube, NOTHING, cube, NOTHING])) == {(1, 3): "equals"}
    assert names(run([NOTHING, cube], [NOTHING])) == {}
    vertices_only = (cube[0], NOTHING[1])
    assert names(run([cube, vertices_only])) == {}


@pytest.mark.parametrize("surface", [OPEN_BOX, TRIANGLE], ids=["open box", "triangle"])
def test_an_open_surface_that_crosses_is_reported_and_flagged(surface):
    beam = shapes.moved(CASES["crossing beams"][0], (0.03, 0.07, 0.01))
    for a, b in ((surface, beam), (beam, surface)):
        result = run([a], [b], relations=False)
        assert result["relation"].size == 1
        assert (result["a_open"][0], result["b_open"][0]) == (a is surface, b is surface)
    beside = shapes.moved(surface, (0, 0, 9))
    assert names(run([surface], [beside])) == {}


def test_an_open_surface_that_touches():
    low = OPEN_BOX[0][:, 2].min()
    under = shapes.box((-2, -2, low - 1), (2, 2, low))
    result = run([OPEN_BOX], [under])
    assert names(result) == {(0, 0): "touch"}
    assert result["a_open"].tolist() == [True]


def test_two_triangles():
    upright = shapes.turned(TRIANGLE, (1, 0, 0), 90)
    assert run([TRIANGLE], [upright])["relation"].size == 1
    assert names(run([TRIANGLE], [shapes.moved(TRIANGLE, (0, 0, 0.5))])) == {}


def test_a_fin_on_a_cube():
    """Three faces at an edge: it counts as a surface, and says so."""
    result = run([FIN], [shapes.cube(1.0, (0.25, 0.1, 0.1))])
    assert result["a_open"].tolist() == [True]
    assert result["relation"].tolist() == [RELATIONS.index("overlap")]


def test_cubes_that_share_an_edge_are_a_solid():
    """Four faces at an edge, as in stairs and window frames."""
    first, second = shapes.cube(1.0), shapes.cube(1.0, (1, 1, 0))
    pair = shapes.welded(np.concatenate([mesh[0][mesh[1]] for mesh in (first, second)]))
    result = run([pair], [shapes.cube(0.5)])
    assert names(result) == {(0, 0): "contains"}
    assert result["a_open"].tolist() == [False]


def test_bodies_of_one_element_that_overlap():
    """What is inside either of them is inside the element."""
    both = shapes.together(shapes.cube(2.0), shapes.cube(2.0, (1, 0, 0)))
    assert relation(both, shapes.cube(0.5, (-0.5, 0, 0))) == "contains"
    assert relation(both, shapes.cube(0.5, (5, 0, 0))) == "disjoint"
    assert relation(both, shapes.cube(1.0, (-1, 0, 0))) == "overlap"


@examples(40)
@given(st.lists(st.lists(st.lists(quarters, min_size=9, max_size=9), max_size=6), max_size=5))
def test_any_triangles_at_all(soups):
    """Whatever a mesh is like, the answer is one relation a pair, with finite numbers."""
    meshes = [shapes.welded(np.reshape(soup, (-1, 3, 3)).astype(float)) for soup in soups]
    result = run(meshes)
    assert len(names(result)) == result["a"].size
    for column in ("distance", "x", "y", "z"):
        assert np.isfinite(result[column]).all(), column
    is_open = result["a_open"] | result["b_open"]
    is_touch = result["relation"] == 1
    assert (result["thickness"][is_touch] == 0).all()
    assert (np.isnan(result["thickness"]) == is_open & ~is_touch).all()


# files


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["millimetre", "metre", "foot"])
def test_the_unit_of_the_file_does_not_matter(unit, tmp_path):
    builder = Builder(unit=unit)
    builder.wall_with_window()
    builder.add("IfcBeam", "Beam", [builder.box((-1, 0.05, 2.5), (6, 0.1, 0.1))])
    builder.add("IfcSlab", "Slab", [builder.box((-1, -1, -0.2), (6, 3, 0.2))])
    builder.add("IfcWall", "Aligned", [builder.box((3.95, 0, 0), (2, 0.2, 3))])
    table = read_model(builder.write(tmp_path / "house.ifc")).tables["elements"]
    keep = [each != "IfcOpeningElement" for each in table["ifc_class"].to_pylist()]
    table = table.filter(keep)
    called = table["name"].to_pylist()
    found = {
        frozenset((called[a], called[b])): name for (a, b), name in names(run(of(table))).items()
    }
    assert found == {
        frozenset(("Wall", "Window")): "touch",
        frozenset(("Wall", "Slab")): "touch",
        frozenset(("Wall", "Beam")): "overlap",
        frozenset(("Wall", "Aligned")): "overlap",
        frozenset(("Slab", "Aligned")): "touch",
        frozenset(("Beam", "Aligned")): "overlap",
    }


def of(elements):
    """Meshes of a table of elements."""
    return [
        (np.reshape(mesh["vertices"], (-1, 3)), np.reshape(mesh["faces"], (-1, 3)))
        for mesh in elements["mesh"].to_pylist()
    ]


MODELS = {
    "duplex": "data/ifc/Duplex_A_20110907.ifc",
    "AC20-FZK-Haus": "data/ifc/AC20-FZK-Haus.ifc",
    "Office_A_20110811": "data/ifc/Office_A_20110811.ifc",
}


@cache
def model(name, geometry="exact"):
    """Global ids and meshes of the elements that the golden pairs are of: no openings or spaces."""
    read = read_real_model(MODELS[name], geometry)
    schema = ifcopenshell.schema_by_name(read.schema)

    def is_element(ifc_class):
        declaration = schema.declaration_by_name(ifc_class)
        return declaration._is("IfcElement") and not declaration._is("IfcFeatureElement")

    table = read.tables["elements"].filter(
        [is_element(each.as_py()) for each in read.tables["elements"]["ifc_class"]]
    )
    return table["global_id"].to_pylist(), of(table)


@cache
def golden(name):
    """Label of each pair that is not far apart; near is touching if it is within the tolerance."""
    lines = real_file(f"golden/clash/{name}.golden.tsv").read_text().splitlines()
    assert lines[0].startswith(
        "guid_a\tguid_b\tlabel\tvolume\tthickness_2V_S\tmin_extent\tdistance"
    )
    labels = {}
    for a, b, label, _, _, _, distance, _ in (line.split("\t") for line in lines[1:]):
        near = label == "near" and float(distance) <= 0.001
        labels[frozenset((a, b))] = "touch" if near else label
    return labels


def by_ids(name, *, geometry="exact", **options):
    ids, meshes = model(name, geometry)
    found = names(run(meshes, **options))
    return {frozenset((ids[a], ids[b])): relation for (a, b), relation in found.items()}


def readable(pairs):
    return sorted(map(sorted, pairs))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["exact", "pairmesh"])
@pytest.mark.usefixtures("kept_models")
@pytest.mark.parametrize("name", MODELS)
def test_golden_pairs_with_a_common_interior(name, method):
    labels = golden(name)
    found = by_ids(name, relations=False, method=method)
    hard = {pair for pair, label in labels.items() if label == "hard"}
    apart = ("touch", "near", "apart")
    assert len(hard) == {"duplex": 124, "AC20-FZK-Haus": 147, "Office_A_20110811": 41}[name]
    assert readable(hard - set(found)) == []
    assert readable(pair for pair in found if labels.get(pair, "apart") in apart) == []


FALSE_WITH_FAST_MESHES = {
    "duplex": [],
    # Round windows of 256 corners in holes that are cut with 24, up to 5 mm smaller.
    "AC20-FZK-Haus": [
        ["0knNIAVBPBFvBy_m5QVHsU", "1zOBw0Gej5Wf0QAJfHnOc0"],
        ["2ACmFFQhT1Ouf0x4YRUh9m", "3VCarUKgH1buLo22Ozxe6J"],
    ],
    "Office_A_20110811": [],
}


@pytest.mark.slow
@pytest.mark.usefixtures("kept_models")
@pytest.mark.parametrize("name", MODELS)
def test_golden_pairs_with_fast_meshes(name):
    labels = golden(name)
    found = by_ids(name, geometry="auto", relations=False)
    hard = {pair for pair, label in labels.items() if label == "hard"}
    apart = ("touch", "near", "apart")
    assert readable(hard - set(found)) == []
    wrong = readable(pair for pair in found if labels.get(pair, "apart") in apart)
    assert wrong == FALSE_WITH_FAST_MESHES[name]


@pytest.mark.slow
@pytest.mark.usefixtures("kept_models")
@pytest.mark.parametrize("name", MODELS)
def test_golden_pairs_that_touch(name):
    labels = golden(name)
    found = {pair for pair, relation in by_ids(name).items() if relation == "touch"}
    touching = {pair for pair, label in labels.items() if label == "touch"}
    free = {pair for pair, label in labels.items() if label in ("ambiguous", "open")}
    assert readable(touching - found) == []
    assert readable(found - touching - free) == []


@pytest.mark.slow
@pytest.mark.usefixtures("kept_models")
@pytest.mark.parametrize("name", MODELS)
def test_golden_containment(name):
    """A pair one of which is wholly in the other is no overlap, and the right one is inside."""
    lines = real_file(f"golden/clash/{name}.golden.tsv").read_text().splitlines()[1:]
    ids, meshes = model(name)
    rows = {global_id: row for row, global_id in enumerate(ids)}
    wrong = []
    for line in lines:
        a, b, label, *_, contains = line.split("\t")
        if label == "hard" and contains:
            found = relation(meshes[rows[a]], meshes[rows[b]])
            if found not in ("equals", *INSIDE[contains]):
                wrong.append((a, b, contains, found))
    assert wrong == []


INSIDE = {"b_contains_a": ("inside", "covered_by"), "a_contains_b": ("contains", "covers")}


@pytest.mark.slow
@pytest.mark.usefixtures("kept_models")
@pytest.mark.parametrize("name", MODELS)
def test_real_pairs_depend_on_nothing_else(name, monkeypatch):
    _, meshes = model(name)
    expected = run(meshes)
    for broad_phase in ("rtree", "none"):
        assert same(run(meshes, broad_phase=broad_phase), expected)
    monkeypatch.setenv("SPATIALQ_THREADS", "3")
    assert same(run(meshes), expected)
    moved = [shapes.moved(mesh, (691_000.0, 5_334_000.0, 520.0)) for mesh in meshes]
    assert names(run(moved)) == names(expected)


@pytest.mark.slow
def test_a_larger_tolerance_never_makes_a_real_touch_a_common_interior():
    found = [set(by_ids("AC20-FZK-Haus", relations=False, tolerance=t)) for t in (1e-4, 1e-3, 1e-2)]
    assert found[0] >= found[1] >= found[2]


def test_golden_boxes():
    """All ordered pairs of 220 boxes, by interval arithmetic."""
    stored = np.load(real_file("golden/clash/boxes.npz"))
    ids = stored["guid"].tolist()
    meshes = [
        (
            stored["verts"][stored["vert_off"][i] : stored["vert_off"][i + 1]],
            stored["tris"][stored["tri_off"][i] : stored["tri_off"][i + 1]] - stored["vert_off"][i],
        )
        for i in range(len(ids))
    ]
    found = names(run(meshes, meshes))
    once = names(run(meshes))
    lines = real_file("golden/clash/boxes.tsv").read_text().splitlines()[1:]
    rows = {global_id: row for row, global_id in enumerate(ids)}
    wrong = []
    for line in lines:
        a, b, expected, *_ = line.split("\t")
        pair = rows[a], rows[b]
        expected = {"coveredBy": "covered_by"}.get(expected, expected)
        relations = [found.get(pair, "disjoint")]
        if pair[0] < pair[1]:
            relations.append(once.get(pair, "disjoint"))
        if set(relations) != {expected}:
            wrong.append((a, b, expected, relations))
    assert len(lines) == 220 * 219
    assert wrong == []
