"""What is left of a box has all points of it that are inside an element."""

import numpy as np
import pytest
from spatialq.udfs.intersects_with.cells import STACK, WORK
from spatialq.udfs.intersects_with.contraction import contract

from spatialq.data.meshes import Meshes
from spatialq.geometry import boxes
from spatialq.geometry.prepared_meshes import PreparedMeshes

from .shapes import box, cylinder, moved, pipe, turned

TOWARDS = (1, 2, 3)
MESHES = {
    "a box": box((0, 0, 0), (1, 2, 3)),
    "a turned box": turned(box((0, 0, 0), (1, 2, 3)), TOWARDS, 40),
    "a thin sheet": box((0, 0, 0), (2, 2, 1e-3)),
    "a cylinder": turned(cylinder(0.5, -1, 1), TOWARDS, 25),
    "a pipe": pipe(0.45, 0.5, -1, 1),
    "a box on the map": moved(turned(box((0, 0, 0), (1, 2, 3)), (0, 0, 1), 30), (5e5, 5e6, 30)),
}


def solids_of(mesh):
    meshes = Meshes.of([mesh])
    return PreparedMeshes(meshes, boxes.of(meshes)).solids


def is_within(mesh, points):
    """By the sum of the solid angles of the faces (van Oosterom and Strackee, 1983)."""
    vertices, faces = mesh
    corners = vertices[faces][None] - points[:, None, None]
    a, b, c = np.moveaxis(corners, 2, 0)
    la, lb, lc = (np.linalg.norm(each, axis=-1) for each in (a, b, c))
    above = np.einsum("pfi,pfi->pf", a, np.cross(b, c))
    below = la * lb * lc + (a * b).sum(-1) * lc + (b * c).sum(-1) * la + (c * a).sum(-1) * lb
    return np.abs(2 * np.arctan2(above, below).sum(axis=1)) > 2 * np.pi


@pytest.mark.parametrize("name", MESHES)
def test_nothing_inside_is_cut_off(name):
    mesh = MESHES[name]
    solids = solids_of(mesh)
    rng = np.random.default_rng(len(name))
    work = np.empty(WORK)
    low, high = mesh[0].min(axis=0), mesh[0].max(axis=0)
    empty = smaller = 0
    for n in range(200):
        frame = np.eye(3) if n % 2 else np.linalg.qr(rng.normal(size=(3, 3)))[0]
        work[STACK, :9] = frame.ravel()
        middle = rng.uniform(low - 0.1, high + 0.1)
        half = (high - low).max() * rng.choice([0.3, 0.1, 0.02, 1e-4], 3)
        given = np.concatenate([frame @ middle - half, frame @ middle + half])
        work[0, :6] = given
        there = contract(0, 0, solids, work)
        cut_off = rng.uniform(given[:3], given[3:], (300, 3))
        if there:
            left = work[0, :6]
            assert (left[:3] >= given[:3]).all()
            assert (left[3:] <= given[3:]).all()
            smaller += (left != given).any()
            slack = 1e-8
            is_left = (cut_off >= left[:3] - slack) & (cut_off <= left[3:] + slack)
            cut_off = cut_off[~is_left.all(axis=1)]
        else:
            empty += 1
        assert not is_within(mesh, cut_off @ frame).any()
    assert empty > 0
    assert smaller > 0


def test_a_box_across_a_side_ends_there():
    work = np.empty(WORK)
    work[STACK, :9] = np.eye(3).ravel()
    work[0, :6] = 0.4, 0.4, 2.5, 0.6, 0.6, 3.5
    assert contract(0, 0, solids_of(MESHES["a box"]), work)
    assert work[0, :6] == pytest.approx([0.4, 0.4, 2.5, 0.6, 0.6, 3.0], abs=1e-8)


def test_a_box_beside_a_turned_face_is_empty():
    """Its own axes and the plane of the face do not tell them apart, but an edge does."""
    roof = (
        np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, -1.0]]),
        np.array([[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]]),
    )
    work = np.empty(WORK)
    work[STACK, :9] = np.eye(3).ravel()
    work[0, :6] = 0.8, 0.8, -1e-9, 0.9, 0.9, 1e-9
    assert not contract(0, 0, solids_of(roof), work)


def test_a_flat_box_on_the_map_keeps_what_is_inside():
    """Its centre is beside the element, a side of which passes through it."""
    work = np.empty(WORK)
    work[STACK, :9] = np.eye(3).ravel()
    work[0, :6] = 5e6 + 0.5, 5e6 + 0.5, -4e-6, 5e6 + 1.7, 5e6 + 0.6, 6e-6
    assert contract(0, 0, solids_of(moved(box((0, 0, 0), (1, 2, 3)), (5e6, 5e6, 0))), work)
    left = work[0, :6]
    assert (left[:3] <= (5e6 + 0.5, 5e6 + 0.5, 0)).all()
    assert (left[3:] >= (5e6 + 1, 5e6 + 0.6, 6e-6)).all()
