"""The nodes of a search against the points of their cells, and against planes and points."""

import numpy as np
import pytest
from spatialq.udfs.detect_planes import NODE_STATES, Options, cpu
from spatialq.udfs.detect_planes.octree import Cube

from spatialq.functions.catalogue import catalogue

from ..detect_planes.cases import rooms
from .cases import CASES
from .oracle import described

OUTPUTS = ["detect_planes", "plane_points", "plane_nodes"]
LATTICE = 1 / 1024


def columns_of(points):
    return np.array([p[1:] for p in points], np.float64).reshape(-1, 3).T.copy()


def search(columns, **options):
    """Planes, points and nodes of one search."""
    found = cpu.run(*columns, None, Options(**options), OUTPUTS)
    return tuple(found[name] for name in OUTPUTS)


def states(nodes):
    return np.array(NODE_STATES)[nodes["state"]]


def stacked(table, *names):
    return np.column_stack([table[name] for name in names])


@pytest.mark.parametrize("case", CASES)
def test_nodes_and_planes_agree(case):
    points, options = CASES[case]
    planes, _, nodes = search(columns_of(points), **options)
    state, plane_id = states(nodes), nodes["plane_id"]
    assert ((plane_id > 0) == (state == "plane")).all()
    assert set(plane_id.tolist()) - {0} <= set(planes["plane_id"].tolist())
    votes = np.bincount(plane_id, nodes["votes"], planes["plane_id"].size + 1)[1:]
    np.testing.assert_allclose(votes, planes["votes"], rtol=1e-12)
    normals = stacked(nodes, "nx", "ny", "nz")
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, rtol=1e-12)
    order = np.lexsort((np.arange(state.size), nodes["level"]))
    assert order.tolist() == list(range(state.size))
    np.testing.assert_allclose(nodes["size"] * 2.0 ** nodes["level"], nodes["size"].max(initial=0)
                               * 2.0 ** nodes["level"].min(initial=99), rtol=1e-12)  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_it_is_the_same_alone_and_with_planes_and_points(case):
    points, options = CASES[case]
    together = dict(zip(OUTPUTS, search(columns_of(points), **options), strict=True))
    for name, expected in together.items():
        kernel = catalogue()[name].kernel("cpu")
        alone = kernel(*columns_of(points), None, Options(**options))
        assert list(alone) == list(expected)
        for column, values in expected.items():
            np.testing.assert_array_equal(alone[column], values, err_msg=f"{name}, {column}")
            assert alone[column].dtype == values.dtype


def test_nodes_are_the_points_of_their_cells():
    """A search that has found planes goes on with the other points; its nodes have fewer."""
    scene = rooms.room(20_000).moved(turn=rooms.turn(2))
    points = np.column_stack([scene.x, scene.y, scene.z])
    cube = Cube.around(points.min(axis=0).tolist(), points.max(axis=0).tolist())
    _, own, nodes = search(points.T.copy())
    step, exact, most_on_it = cube.side / 2**21, 0, 0
    for k, place in enumerate(stacked(nodes, "cx", "cy", "cz")):
        size = nodes["size"][k]
        inside, of_node, mean, normal, thickness = described(points, cube.low, size, place)
        assert nodes["point_count"][k] <= inside.sum()
        if nodes["point_count"][k] == of_node.sum():
            exact += 1
            np.testing.assert_allclose(place, mean, rtol=0, atol=step)
            assert abs(normal @ stacked(nodes, "nx", "ny", "nz")[k]) > 1 - 1e-6
            assert nodes["thickness"][k] == pytest.approx(thickness, rel=0.01, abs=step)
        if nodes["plane_id"][k]:
            on_it = own["plane_id"][of_node] == nodes["plane_id"][k]
            most_on_it += on_it.mean() > 0.5
    assert exact > 0.8 * nodes["level"].size
    assert most_on_it > 0.95 * np.count_nonzero(nodes["plane_id"])


def test_votes_are_those_of_the_paper():
    points, options = CASES["a room"]
    *_, nodes = search(columns_of(points), **options)
    expected = 0.75 / 2.0 ** nodes["level"] + 0.25 * nodes["point_count"] / len(points)
    np.testing.assert_allclose(nodes["votes"], expected, rtol=1e-12)


# Why a wall is missing.


def test_the_layers_of_a_depth_camera_are_named():
    points, options = CASES["a depth camera"]
    planes, _, nodes = search(columns_of(points), **options)
    assert (states(nodes) == "stair").mean() > 0.5
    assert not set(planes["plane_id"].tolist()) & set(nodes["plane_id"][states(nodes) == "stair"])


def test_nodes_of_two_walls_are_thick():
    """Two faces, 10 cm apart, of one wall; the noise is that of the rest of the room."""
    scene = rooms.thin_wall(40_000)
    *_, nodes = search((scene.x, scene.y, scene.z))
    thick = states(nodes) == "thick"
    assert thick.any()
    assert nodes["thickness"][thick].min() > 2 * np.median(nodes["thickness"][~thick])


def test_nodes_of_a_plane_without_enough_points_are_free_or_small():
    points, _ = CASES["a room"]
    columns = columns_of(points)
    *_, usual = search(columns)
    planes, _, nodes = search(columns, min_points=500)
    assert planes["point_count"].min() >= 500
    lost = np.isin(states(nodes), ("free", "small")).sum()
    assert lost > np.isin(states(usual), ("free", "small")).sum() + 50


def test_clutter_has_free_nodes_only():
    rng = np.random.default_rng(3)
    planes, _, nodes = search(rng.random((3, 6000)) * 10)
    assert planes["plane_id"].size == 0
    assert set(states(nodes)) == {"free"}
