"""Planes are flat within the noise of their points: hills are none, sparse roofs are."""

import numpy as np
import pytest

import spatialq

from .cases import HILLS_NOISE as NOISE
from .cases import hills, rooms

PITCH = np.tan(np.radians(25))


def with_roofs(points, n, width=16.0, seed=2):
    """Put gable roofs, `width` on each side, on a grid over the points."""
    x, y, z = (values.copy() for values in points)
    rng = np.random.default_rng(seed)
    step = max(x.max(), y.max()) / n * 1.000001
    u, v = x % step - step / 2, y % step - step / 2
    on = np.maximum(np.abs(u), np.abs(v)) < width / 2
    house = (x // step).astype(int) * n + (y // step).astype(int)
    base = np.array([z[house == k].max() for k in range(n * n)]) + 4
    z[on] = (base[house] + PITCH * (width / 2 - np.abs(u)))[on] + rng.normal(0, NOISE, on.sum())
    return (x, y, z), np.where(on, 2 * house + (u > 0), -1)


@pytest.mark.parametrize(("density", "side"), [(0.3, 700.0), (1.0, 400.0), (4.0, 200.0)])
def test_no_plane_of_hills_is_wider_than_their_noise(density, side):
    found = spatialq.run("detect_planes", *hills(density, side))
    assert found["rmse"].max(initial=0) < 3 * NOISE


def test_roofs_are_found_where_points_are_sparse():
    """16 by 8 metres at one point per square metre; a face is found by half of its points."""
    points, face = with_roofs(hills(1.0, 400.0), 8)
    planes = spatialq.run("detect_planes", *points)
    own = spatialq.run("plane_points", *points)["plane_id"]
    assert planes["rmse"].max() < 3 * NOISE
    steep = np.append(False, np.abs(planes["nx"]) > np.sin(np.radians(20)))
    on = np.bincount(face[face >= 0], steep[own[face >= 0]])
    assert np.mean(on > 0.5 * np.bincount(face[face >= 0])) > 0.8


@pytest.mark.parametrize(("max_rmse", "planes"), [(0.003, 0), (0.01, 12)])
def test_planes_of_a_larger_rmse_are_left_out(max_rmse, planes):
    scene = rooms.room(100_000)
    found = spatialq.run("detect_planes", scene.x, scene.y, scene.z, max_rmse=max_rmse)
    assert found["plane_id"].size == planes
    assert found["rmse"].max(initial=0) <= max_rmse


@pytest.mark.parametrize("seed", range(3))
def test_the_vote_of_the_paper_finds_planes_through_the_centroid(seed):
    scene = rooms.crossing(40_000, seed=seed).moved(turn=rooms.turn(seed))
    found = spatialq.run("detect_planes", scene.x, scene.y, scene.z, kernel="paper")
    assert found["plane_id"].size == 2
