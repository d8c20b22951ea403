"""A point far away changes no row of any other point, in any function of points."""

import numpy as np
import pytest

import spatialq
from spatialq.errors import StrayPointsWarning
from spatialq.functions.catalogue import catalogue
from spatialq.functions.declaration import (
    PointsAndElementsInput,
    PointsAndOtherInput,
    PointsInput,
)

from ..conftest import real_file
from ..kernels import arrays_in

pytestmark = pytest.mark.slow

FUNCTIONS = [
    name
    for name, each in catalogue().items()
    if isinstance(each.inputs, PointsInput | PointsAndOtherInput)
    and not each.declaration.keeps_strays
]
FAR = {
    "the origin": (0, 0, 0),
    "a million": (1e6, 1e6, 1e6),
    "a billion": (1e9, 1e9, 1e9),
    "minus a billion": (-1e9, -1e9, -1e9),
    "x": (1e9, None, None),
    "y": (None, -1e6, None),
    "high": (None, None, 1e6),
    "low": (None, None, -1e9),
    "south-west, and low": (-1e7, -1e9, -1e5),
    "the end of numbers": (1e308, -1e308, 1e300),
}
"""Where a point is; None stands for the coordinate of a point of the cloud."""
OF_FILES = {
    "ISPRS sample": "data/lidar/isprs_samp11.laz",
    "aerial": "data/lidar/ahn3_cropped_1.laz",
    "indoor": "data/indoor/pcl_office1.laz",
}
SOME = 20_000
BOX = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]]
FACES = [[0, 2, 1], [0, 3, 2], [4, 5, 6], [4, 6, 7], [0, 1, 5], [0, 5, 4],
         [1, 2, 6], [1, 6, 5], [2, 3, 7], [2, 7, 6], [3, 0, 4], [3, 4, 7]]  # fmt: skip


def part_of(path):
    """Cut a cloud without noise around a point of it; move it if it is about the origin."""
    laspy = pytest.importorskip("laspy")
    file = laspy.read(path)
    points = np.stack([np.array(each, np.float64) for each in (file.x, file.y, file.z)])
    points = points[:, ~np.isin(file.classification, (7, 18))]
    middle = points[:2, points.shape[1] // 3, None]
    near = np.sort(np.argsort(np.hypot(*(points[:2] - middle)), kind="stable")[:SOME])
    points = points[:, near]
    return points + (np.array([[100.0], [200.0], [50.0]]) if abs(points).max() < 50 else 0)


@pytest.fixture(scope="module", params=[*OF_FILES, "village"])
def cloud(request):
    if request.param == "village":
        return part_of(request.getfixturevalue("world").las)
    return part_of(real_file(OF_FILES[request.param]))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_other_point_is_changed(function, cloud):
    declared = catalogue()[function]
    given = {"device": "cpu"}
    if isinstance(declared.inputs, PointsAndElementsInput):
        size = np.ptp(cloud, axis=1) / 3
        given["elements"] = [(cloud.mean(axis=1) + np.array(BOX) * size, np.array(FACES))]
    n = cloud.shape[1]
    at, ids = n // 2, np.arange(n) * 3
    others = np.delete(np.arange(n + 1), at) if declared.output.of_strays else slice(None)
    expected = arrays_in(spatialq.run(function, *cloud, ids, **given))
    for name, place in FAR.items():
        here = [cloud[k, 7] if value is None else value for k, value in enumerate(place)]
        more = np.insert(cloud, at, here, axis=1)
        with pytest.warns(StrayPointsWarning, match=f"{function}: 1 of {n + 1} points is far"):
            found = spatialq.run(function, *more, np.insert(ids, at, -1), **given)
        found = arrays_in(found)
        assert list(found) == list(expected)
        for column, values in expected.items():
            got = found[column][others]
            np.testing.assert_array_equal(got, values, err_msg=f"{name}: {column}")
