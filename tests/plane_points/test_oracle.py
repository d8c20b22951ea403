"""The plane of each point against all the planes, one by one, and against `detect_planes`."""

import numpy as np
import pytest

import spatialq

from .cases import CASES
from .oracle import plane_points

BOUNDED = [name for name, (_, options) in CASES.items() if "max_distance" in options]


def arrays(points):
    ids, *coordinates = (np.array([p[k] for p in points]) for k in range(4))
    return (*(values.astype(np.float64) for values in coordinates), ids.astype(np.int64))


def detected(points, options):
    planes = spatialq.run("detect_planes", *arrays(points), **options)
    return planes, spatialq.run("plane_points", *arrays(points), **options)


def plane_of(found):
    return dict(zip(found["point_id"].tolist(), found["plane_id"].tolist(), strict=True))


@pytest.mark.parametrize("name", BOUNDED)
def test_every_point_is_of_the_nearest_plane_that_covers_it(name):
    points, options = CASES[name]
    planes, found = detected(points, options)
    normals = zip(*(planes[axis].tolist() for axis in ("nx", "ny", "nz")), strict=True)
    columns = planes["plane_id"].tolist(), normals, planes["d"].tolist(), planes["boundary"]
    expected = plane_points(
        points, list(zip(*columns, strict=True)), options["max_distance"], slack=1e-6
    )
    assert len(planes["plane_id"]) > 0
    assert plane_of(found) == {p: plane_id or 0 for p, (plane_id, _) in expected.items()}
    with_plane = found["plane_id"] > 0
    distances = [expected[p][1] for p in found["point_id"][with_plane].tolist()]
    assert found["distance"][with_plane] == pytest.approx(distances, abs=1e-8)
    assert np.isnan(found["distance"][~with_plane]).all()


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
        # a sum of n coordinates is known to n ulp of the largest
        centre = [values[mine].mean() for values in (x, y, z)]
        assert [planes[c][k] for c in ("cx", "cy", "cz")] == pytest.approx(centre, abs=1e-7)
        rms = np.sqrt(np.mean(found["distance"][mine] ** 2))
        assert planes["rmse"][k] == pytest.approx(rms, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("name", CASES)
def test_the_order_of_the_points_does_not_matter(name):
    points, options = CASES[name]
    turned = sorted(points, key=lambda p: (p[3], p[1], p[2], p[0]))
    assert plane_of(detected(turned, options)[1]) == plane_of(detected(points, options)[1])
