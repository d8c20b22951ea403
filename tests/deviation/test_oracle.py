"""`deviation` against brute force: every point, every triangle, and winding numbers."""

import numpy as np
import pytest

from spatialq.data.meshes import Meshes
from spatialq.functions.catalogue import catalogue

from ..kernels import run
from . import oracle
from .cases import CASES, WALL, arguments, inside_out, moved, triangles_of


def require_as_expected(points, triangles, found, limit):
    """Compare rows with the oracle's; of faces as near any may be given, and the first if exact."""
    signs = 0
    for i, (element, _, distance, ties) in enumerate(oracle.deviation(points, triangles, limit)):
        given = int(found["element"][i]), int(found["face"][i])
        if element < 0:
            assert given == (-1, -1)
            assert np.isnan(found["distance"][i])
            assert found["orientation"][i] == -1
            continue
        assert given in ties
        triangle = triangles[given[0]]
        volume, extent = oracle.volume(triangle), np.ptp(triangle, axis=(0, 1)).max()
        kind = 1 if not oracle.is_closed(triangle) else (2 if volume < 0 else 0)
        if kind == 1 or abs(volume) > 1e-9 * extent**3:  # a closed sheet has no side
            assert found["orientation"][i] == kind
        if np.isnan(distance):  # inside one of several that are as near: that of the one given
            is_inside = kind != 1 and abs(oracle.winding(points[i], triangle)) > 0.5
            least = oracle.distances(points[i], triangle).min()
            distance = -least if is_inside else least
        if abs(distance) > 1e-9:
            assert found["distance"][i] == pytest.approx(distance, abs=1e-9, rel=0)
            signs += distance < 0
        else:
            assert abs(found["distance"][i]) <= 2e-9
    return signs


@pytest.mark.parametrize("name", CASES)
def test_as_by_brute_force(name):
    points, normals, elements, options = CASES[name]
    given, _ = arguments(name)
    found = run("deviation", "cpu", given, **options)
    assert found["point_id"].tolist() == given["point_id"].tolist()
    chosen = catalogue()["deviation"].choose(options)
    triangles = [triangles_of(each) for each in elements]
    require_as_expected(points * chosen.metres, triangles, found, chosen.max_distance)
    angles = np.full(len(points), np.nan)
    for i, (element, face) in enumerate(zip(found["element"], found["face"], strict=True)):
        if normals is None or element < 0:
            continue
        a, b, c = triangles[element][face]
        normal = np.cross(b - a, c - a) * (-1 if found["orientation"][i] == 2 else 1)
        sizes = np.linalg.norm(normal) * np.linalg.norm(normals[i])
        if sizes > 0:
            angles[i] = np.degrees(np.arccos(np.clip(normal @ normals[i] / sizes, -1, 1)))
    np.testing.assert_allclose(found["angle"], angles, atol=2e-5)


def test_of_faces_as_near_the_first_element_and_face_is_given():
    # exactly representable: two walls in one place, the diagonals of their sides, and a point
    # between two walls
    walls = [moved(WALL, (0, 1, 0)), WALL, WALL]
    points = np.array([(2.0, -0.0625, 1.25), (2.0, 0.625, 1.25), (1.0, 1.0625, 1.0)])
    columns = dict(zip("xyz", points.T, strict=True))
    given = {**columns, "point_id": None, "elements": Meshes.of(walls)}
    found = run("deviation", "cpu", given, max_distance=0.5)
    for i, point in enumerate(points):
        near = [oracle.distances(point, triangles_of(each)) for each in walls]
        least = min(each.min() for each in near)
        first = next(e for e, each in enumerate(near) if each.min() == least)
        assert found["element"][i] == first
        assert found["face"][i] == int(np.flatnonzero(near[first] == least)[0])


def test_a_mesh_that_is_inside_out_has_the_same_distances_and_angles():
    given, options = arguments("a wall, and normals")
    turned = {**given, "elements": Meshes.of([inside_out(WALL)])}
    one = run("deviation", "cpu", {**given, "elements": Meshes.of([WALL])}, **options)
    two = run("deviation", "cpu", turned, **options)
    assert set(one["orientation"]) == {0}
    assert set(two["orientation"]) == {2}
    np.testing.assert_allclose(one["distance"], two["distance"], atol=1e-12)
    same = one["face"] == two["face"]  # beside an edge rounding decides between two
    assert np.count_nonzero(same) > 100
    np.testing.assert_allclose(one["angle"][same], two["angle"][same], atol=1e-5)


def test_the_rows_do_not_depend_on_what_else_is_there():
    given, options = arguments("many elements")
    whole = run("deviation", "cpu", given, **options)
    rows = np.flatnonzero(np.isin(np.arange(40), whole["element"][:50]))
    few = {name: each[:50] for name, each in given.items() if name != "elements"}
    part = run("deviation", "cpu", {**few, "elements": given["elements"].take(rows)}, **options)
    for name in ("face", "distance", "angle", "orientation"):
        np.testing.assert_array_equal(part[name], whole[name][:50])
