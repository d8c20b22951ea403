"""The plane of each point against all the planes, one by one, and against `detect_planes`."""

import numpy as np
import pytest

import spatialq

from .cases import CASES
from .oracle import plane_points

# Where clutter or another plane takes nodes away, what is found has holes or dents, which the
# boundary does not show.
CONVEX = [
    name
    for name, (_, options) in CASES.items()
    if "max_distance" in options and "clutter" not in name and "crossed" not in name
]
SLACK = 0.1  # a boundary of 32 directions is up to 0.5 % of 7.8 m short; pixels are 0.4 m wide


def arrays(points):
    ids, *coordinates = (np.array([p[k] for p in points]) for k in range(4))
    return (*(values.astype(np.float64) for values in coordinates), ids.astype(np.int64))


def detected(points, options):
    planes = spatialq.run("detect_planes", *arrays(points), **options, outline="convex")
    return planes, spatialq.run("plane_points", *arrays(points), **options)


def plane_of(found):
    return dict(zip(found["point_id"].tolist(), found["plane_id"].tolist(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", CONVEX)
def test_every_point_is_of_the_nearest_plane_that_covers_it(name):
    points, options = CASES[name]
    planes, found = detected(points, options)
    normals = zip(*(planes[axis].tolist() for axis in ("nx", "ny", "nz")), strict=True)
    columns = planes["plane_id"].tolist(), normals, planes["d"].tolist(), planes["boundary"]
    described = list(zip(*columns, strict=True))
    expected = plane_points(points, described, options["max_distance"], SLACK)
    wrong = {
        p: (k, expected[p]) for p, k in plane_of(found).items() if (k or None) not in expected[p]
    }
    assert wrong == {}
    sure = [len(planes) == 1 for planes in expected.values()]
    assert np.mean(sure) > 0.7


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_distances_are_those_from_the_planes(name):
    points, options = CASES[name]
    planes, found = detected(points, options)
    none = found["plane_id"] == 0
    assert np.isnan(found["distance"][none]).all()
    normals = np.column_stack([planes[axis] for axis in ("nx", "ny", "nz")])
    mine = found["plane_id"][~none] - 1
    xyz = np.column_stack(arrays(points)[:3])[~none]
    distance = (xyz * normals[mine]).sum(axis=1) - planes["d"][mine]
    # a plane's place follows from distances in parts of 2^-15 of the farthest, 0.05 m
    assert found["distance"][~none] == pytest.approx(distance, abs=0.05 / 2**15)
    if "max_distance" in options:
        # the plane moves to the mean of its points after it got them
        assert np.abs(distance).max(initial=0) <= 1.1 * options["max_distance"]


@pytest.mark.parametrize("name", CASES)
def test_it_has_the_points_that_detect_planes_counts(name):
    points, options = CASES[name]
    planes, found = detected(points, options)
    ids = planes["plane_id"]
    assert found["point_id"].tolist() == [p[0] for p in points]
    assert set(found["plane_id"].tolist()) <= {0, *ids.tolist()}
    assert [np.count_nonzero(found["plane_id"] == k) for k in ids] == planes["point_count"].tolist()
    x, y, z, _ = arrays(points)
    for k, plane in enumerate(ids):
        mine = found["plane_id"] == plane
        # coordinates are added up in parts of 2^-29 of the cloud
        centre = [values[mine].mean() for values in (x, y, z)]
        assert [planes[c][k] for c in ("cx", "cy", "cz")] == pytest.approx(centre, abs=1e-7)
        # distances in parts of 2^-15 of the farthest, 0.05 m
        rms = np.sqrt(np.mean(found["distance"][mine] ** 2))
        assert planes["rmse"][k] == pytest.approx(rms, abs=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_order_of_the_points_does_not_matter(name):
    points, options = CASES[name]
    turned = sorted(points, key=lambda p: (p[3], p[1], p[2], p[0]))
    assert plane_of(detected(turned, options)[1]) == plane_of(detected(points, options)[1])
