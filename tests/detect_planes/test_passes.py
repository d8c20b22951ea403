"""A search pass by pass over runs of points has the planes of one over the whole cloud."""

import numpy as np
import pytest
from spatialq.udfs.detect_planes import passes
from spatialq.udfs.detect_planes.octree import Cube

from spatialq.functions.catalogue import catalogue

from ..kernels import arguments_of, assert_same
from .cases import CASES, rooms

OUTPUTS = ("detect_planes", "plane_points")


class InRuns:
    """What passes find in runs of points, all of it in memory."""

    def __init__(self, xyz, runs):
        self.xyz, self.runs = xyz, runs
        self.merged, self.found = [], []

    def listed(self, run, number):
        return None if number is None else self.found[number][run]["listed"]

    def kept(self, run, number):
        if number is None:
            return None
        found = self.found[number][run]
        return {name: found[name].copy() for name in ("points", "slots")}

    def search(self, options):
        size = self.xyz.shape[1]
        cube = Cube((0.0,) * 3, 0.0)
        if size > 0:
            cube = Cube.around(self.xyz.min(1).tolist(), self.xyz.max(1).tolist())
        while True:
            done = passes.Passes([lambda each=each: each for each in self.merged])
            try:
                return passes.search_with(size, cube, options, done, label=True), done.naming
            except passes.Pending as pending:
                wanted = pending.wanted
            found = [
                passes.go_over(
                    wanted,
                    self.xyz[:, run],
                    self.listed(k, wanted.listed),
                    self.kept(k, wanted.kept),
                )
                for k, run in enumerate(self.runs)
            ]
            self.found.append(found)
            self.merged.append(passes.put_together(wanted, found))

    def planes_of_points(self, naming):
        size = self.xyz.shape[1]
        plane_id, distance = np.zeros(size, np.int64), np.zeros(size)
        for k, run in enumerate(self.runs):
            settled = {} if naming is None else self.found[naming.settled][k]
            plane_id[run], distance[run] = passes.planes_of(run.size, naming, settled)
        return plane_id, distance


def assert_same_in_runs(columns, options, count, seed=1):
    function = catalogue()["detect_planes"]
    options = function.choose(options)
    expected = function.kernel_of_all("cpu")(**columns, options=options, outputs=OUTPUTS)
    xyz = np.array([columns[axis] for axis in "xyz"], np.float64).reshape(3, -1)
    # runs of cells of space, of which one is empty
    run_of = np.random.default_rng(seed).integers(0, count, 64)[
        np.floor(xyz * 0.7).astype(np.int64).sum(0) % 64
    ]
    runs = [np.flatnonzero(run_of == k) for k in range(count + 1)]
    job = InRuns(xyz, runs)
    found, naming = job.search(options)
    assert_same(found.columns, expected["detect_planes"])
    plane_id, distance = job.planes_of_points(naming)
    assert np.array_equal(plane_id, expected["plane_points"]["plane_id"])
    assert np.array_equal(distance, expected["plane_points"]["distance"], equal_nan=True)
    return len(job.merged)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_case_in_runs(name):
    columns, options = arguments_of("detect_planes", name)
    assert_same_in_runs(columns, options, 3)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 7, 40])
def test_a_building_in_runs(count):
    scene = rooms.building(20_000)
    columns = {"x": scene.x, "y": scene.y, "z": scene.z, "point_id": None}
    assert assert_same_in_runs(columns, {}, count) > 8


@pytest.mark.parametrize("options", [{}, {"split": True, "outline": "convex"}, {"s_level": 7}])
def test_a_room_in_runs(options):
    scene = rooms.room(3000)
    columns = {"x": scene.x, "y": scene.y, "z": scene.z, "point_id": None}
    assert_same_in_runs(columns, options, 3)
