"""`direction` against brute force, golden boxes, and what must not matter."""

from itertools import product

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from spatialq.udfs.direction import Options, cpu
from spatialq.udfs.direction.polygons import wider

from spatialq.data.meshes import Meshes
from spatialq.database.readers.ifc_models import read_model

from ..conftest import real_file
from . import oracle
from .cases import CASES, box, together

KINDS = [(model, strict) for model in ("projection", "halfspace") for strict in (False, True)]
ACROSS = ("north", "east", "south", "west")


def run(a, b=None, **options):
    result = cpu.run(Meshes.of(a), None if b is None else Meshes.of(b), options=Options(**options))
    assert [values.dtype for values in result.values()] == [np.int64, np.int64]
    return list(zip(result["a"].tolist(), result["b"].tolist(), strict=True))


def moved(mesh, matrix=None, by=(0.0, 0.0, 0.0)):
    """A mesh after a linear map and a shift; its winding is left as it is."""
    return mesh[0] @ (np.eye(3) if matrix is None else matrix).T + np.array(by), mesh[1]


def turn(degrees):
    """The matrix that turns about the z axis, counter-clockwise seen from above."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.array([(c, -s, 0), (s, c, 0), (0, 0, 1)])


def cells(rng):
    """Some cells of a small grid, not all of them neighbours."""
    n = rng.integers(1, 7)
    return {tuple(rng.integers(0, (3, 3, 4)).tolist()) for _ in range(n)}


def cubes(some):
    return together(*(box(cell, np.add(cell, 1)) for cell in sorted(some)))


def scene(seed, n=40):
    """Elements of cubes, sheared and turned: lines along z are still lines along z."""
    rng = np.random.default_rng(seed)
    matrix = turn(rng.uniform(0, 360)) @ np.array([(1, 0.3, 0), (0, 1.2, 0), (0.4, -0.7, 1)])
    chosen = [cells(rng) for _ in range(n)]
    return chosen, [moved(cubes(each), matrix) for each in chosen]


def blocks(seed, n=30):
    rng = np.random.default_rng(seed)
    return [box(low, low + rng.uniform(0.3, 3, 3)) for low in rng.uniform(0, 5, (n, 3))]


@pytest.mark.parametrize("name", CASES)
def test_cases(name):
    a, b, options, expected = CASES[name]
    assert run([a], [b], **options) == ([(0, 0)] if expected else [])


@pytest.mark.slow
@pytest.mark.parametrize(("column", "kind"), list(enumerate(KINDS)))
def test_golden_boxes(column, kind):
    with np.load(real_file("golden/clash/boxes.npz")) as golden:
        corners = golden["verts"].reshape(-1, 8, 3)
    lines = real_file("golden/clash/boxes.tsv").read_text().splitlines()
    assert lines[0].split("\t")[4:] == [
        "above_proj_relaxed", "above_proj_strict", "above_half_relaxed", "above_half_strict",
    ]  # fmt: skip
    rows = [line.split("\t") for line in lines[1:]]
    expected = [(int(r[0][3:]), int(r[1][3:])) for r in rows if r[4 + column] == "1"]
    boxes = [box(each.min(axis=0), each.max(axis=0)) for each in corners]
    model, strict = kind
    assert run(boxes, model=model, strict=strict) == sorted(expected)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("strict", [False, True])
def test_sheared_cubes_are_as_their_cells(seed, strict):
    chosen, meshes = scene(seed)
    truth = oracle.strict_cells if strict else oracle.relaxed_cells
    pairs = product(range(len(chosen)), repeat=2)
    expected = [(i, j) for i, j in pairs if i != j and truth(chosen[i], chosen[j])]
    assert run(meshes, strict=strict) == expected
    assert 10 < len(expected) < 0.8 * len(chosen) ** 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_convex_bodies_are_as_lines_through_them_have_it(seed):
    """A body a little larger, or smaller, stands for what lies between the lines."""
    rng = np.random.default_rng(seed)

    def hull(spread):
        points = rng.normal(0, spread, (30, 3)) + rng.uniform(-1.5, 1.5, 3)
        return points, ConvexHull(points).simplices

    def heights(mesh, factor):
        middle = mesh[0].mean(axis=0)
        return oracle.heights((middle + factor * (mesh[0] - middle), mesh[1]), places)

    places = np.array(list(product(np.arange(-6, 6, 0.1), repeat=2)))
    large, small = [hull(0.8) for _ in range(6)], [hull(0.15) for _ in range(12)]
    a = {factor: [heights(mesh, factor) for mesh in large] for factor in (0.9, 1.0, 1.1)}
    b = {factor: [heights(mesh, factor) for mesh in small] for factor in (1.0, 1.3, 1.6)}
    for strict in (False, True):
        found = set(run(large, small, strict=strict))
        for i, j in product(range(len(large)), range(len(small))):
            if strict:
                least = oracle.strict(a[0.9][i], b[1.3][j])
                most = oracle.strict(a[1.0][i], b[1.0][j])
            else:
                least = oracle.relaxed(a[1.0][i], b[1.0][j])
                most = oracle.relaxed(a[1.1][i], b[1.6][j])
            assert least <= ((i, j) in found) <= most, (strict, i, j)
        assert 3 < len(found) < 60


@pytest.mark.parametrize(("model", "strict"), KINDS)
def test_below_is_above_in_the_mirror(model, strict):
    _, meshes = scene(5)
    mirrored = [moved(mesh, np.diag([1.0, 1.0, -1.0])) for mesh in meshes]
    found = run(meshes, direction="below", model=model, strict=strict)
    assert found == run(mirrored, model=model, strict=strict)
    assert found != run(meshes, model=model, strict=strict)


@pytest.mark.parametrize(("model", "strict"), KINDS)
def test_a_quarter_turn_turns_north_into_west(model, strict):
    meshes = blocks(6)
    turned = [(mesh[0][:, [1, 0, 2]] * (-1, 1, 1), mesh[1]) for mesh in meshes]
    for k, direction in enumerate(ACROSS):
        expected = run(meshes, direction=direction, model=model, strict=strict)
        after = {"direction": ACROSS[k - 1], "model": model, "strict": strict}
        assert run(turned, **after) == expected
        assert 0 < len(expected) < len(meshes) * (len(meshes) - 1)
        # seen from a north 90 degrees further to the east, west is where north was
        assert run(meshes, **after, true_north=90.0) == expected


def test_west_is_at_minus_x_and_south_at_minus_y():
    stone = box((0, 0, 0), (1, 1, 1))
    places = {"east": (2, 0, 0), "west": (-2, 0, 0), "north": (0, 2, 0), "south": (0, -2, 0),
              "above": (0, 0, 2), "below": (0, 0, -2)}  # fmt: skip
    others = [moved(stone, by=by) for by in places.values()]
    for k, direction in enumerate(places):
        for model, strict in KINDS:
            found = run([stone], others, direction=direction, model=model, strict=strict)
            assert found == [(0, k)]


@pytest.mark.slow
@pytest.mark.parametrize("degrees", [0.0, 17.0, 90.0, 200.0, -45.0, 725.0])
@pytest.mark.parametrize(("model", "strict"), KINDS)
def test_true_north_is_counted_clockwise(degrees, model, strict):
    """A model turned clockwise, with its north: nothing changes."""
    meshes = blocks(7)
    turned = [moved(mesh, turn(-degrees)) for mesh in meshes]
    for direction in (*ACROSS, "above"):
        chosen = {"direction": direction, "model": model, "strict": strict}
        assert run(turned, **chosen, true_north=degrees) == run(meshes, **chosen)


@pytest.mark.parametrize(("model", "strict"), KINDS)
def test_far_from_the_origin_nothing_changes(model, strict):
    _, meshes = scene(8)
    far = [moved(mesh, by=(500_000.3, 5_800_000.7, 120.1)) for mesh in meshes]
    for direction in ("above", "south"):
        chosen = {"direction": direction, "model": model, "strict": strict}
        assert run(far, **chosen) == run(meshes, **chosen)


@pytest.mark.parametrize(("model", "strict"), KINDS)
def test_order_and_threads_do_not_matter(model, strict, monkeypatch):
    _, meshes = scene(9)
    expected = run(meshes, model=model, strict=strict)
    order = np.random.default_rng(10).permutation(len(meshes))
    monkeypatch.setenv("SPATIALQ_THREADS", "3")
    shuffled = [(meshes[k][0], np.roll(meshes[k][1][::-1], 1, axis=1)[:, ::-1]) for k in order]
    found = run(shuffled, model=model, strict=strict)
    assert sorted((int(order[i]), int(order[j])) for i, j in found) == expected
    assert found == sorted(found)


@pytest.mark.parametrize(("model", "strict"), KINDS)
def test_strict_pairs_are_relaxed_ones_and_one_set_is_two(model, strict):
    _, meshes = scene(11)
    found = run(meshes, model=model, strict=strict)
    assert set(found) <= set(run(meshes, model=model))
    assert [pair for pair in run(meshes, meshes, model=model, strict=strict)
            if pair[0] != pair[1]] == found  # fmt: skip


@pytest.mark.parametrize(("model", "strict"), KINDS)
def test_pairs_that_are_asked_for(model, strict):
    _, meshes = scene(12)
    found = set(run(meshes, meshes, model=model, strict=strict))
    rows = np.random.default_rng(13).integers(0, len(meshes), (2, 60))
    each = Meshes.of(meshes)
    options = Options(model=model, strict=strict)
    result = cpu.run(each, each, options=options, pairs=(rows[0], rows[1]))
    pairs = zip(*rows.tolist(), strict=True)
    assert list(zip(*(result[name].tolist() for name in "ab"), strict=True)) == [
        pair for pair in pairs if pair in found
    ]


def test_a_finely_cut_surface_bears_like_a_whole_one():
    n = 40
    steps = np.linspace(0, 4, n + 1)
    tiles = [
        ((steps[i], steps[j]), (steps[i + 1], steps[j + 1])) for i in range(n) for j in range(n)
    ]
    sheets = [
        (
            np.array([(x, y, 0), (u, y, 0), (u, v, 0), (x, v, 0)], float),
            np.array([(0, 1, 2), (0, 2, 3)]),
        )
        for (x, y), (u, v) in tiles
    ]
    on_top = box((0.33, 0.33, 1), (3.67, 3.67, 2))
    assert run([together(*sheets)], [on_top], strict=True) == [(0, 0)]
    hole = n * (n // 2) + n // 2
    assert run([together(*sheets[:hole], *sheets[hole + 1 :])], [on_top], strict=True) == []


@pytest.mark.parametrize(
    ("corners", "expected"),
    [
        ([(0, 0), (4, 0), (4, 0.002), (0, 0.002)], True),
        ([(0, 0), (4, 0), (4, 0.0005), (0, 0.0005)], False),
        ([(0, 0), (4, 0), (4, 0), (4, 3), (0, 0)], True),  # a corner may come twice
        ([(0, 0), (4, 0), (4, 1e-16), (2, 1e-17)], False),
        ([(2, 2), (2, 2), (2, 2)], False),
        ([(2, 2), (2, 2)], False),
    ],
)
def test_what_is_wide(corners, expected):
    x, y = np.array(corners, float).T
    assert wider(x.copy(), y.copy(), 0, len(x), 0.001) == expected


def test_nothing_at_all():
    for model, strict in KINDS:
        assert run([], model=model, strict=strict) == []
        assert run([box((0, 0, 0), (1, 1, 1))], [], model=model, strict=strict) == []
        assert run([], blocks(1), model=model, strict=strict) == []


@pytest.mark.slow
def test_the_roof_of_a_house_is_above_its_floors():
    table = read_model(real_file("data/ifc/AC20-FZK-Haus.ifc")).tables["elements"]
    rows = [row for row in table.to_pylist() if row["ifc_class"] == "IfcSlab"]
    meshes = [
        [np.reshape(row["mesh"][part], (-1, 3)) for part in ("vertices", "faces")] for row in rows
    ]
    names = [row["name"] for row in rows]

    def named(**options):
        return {(names[i], names[j]) for i, j in run(meshes, **options)}

    ground, floor, roofs = "Bodenplatte", "Slab-033", ("Dach-1", "Dach-2")
    above = {(ground, floor), *product((ground, floor), roofs)}
    assert set(names) == {ground, floor, *roofs}
    assert named() == named(model="halfspace") - {roofs, roofs[::-1]} == above
    assert named(direction="below") == {(b, a) for a, b in above}
    assert named(strict=True) == {(ground, floor)}  # the roofs stick out
    assert named(model="halfspace", strict=True) == above
    assert named(direction="south") >= {roofs}
    assert roofs[::-1] not in named(direction="south", strict=True, model="halfspace")
