"""The matching of planes and elements against brute force, and what must not matter."""

import numpy as np
import pytest
from spatialq.udfs.intersects_with.meshes import Meshes
from spatialq.udfs.plane_elements import Options
from spatialq.udfs.plane_elements.match import match
from spatialq.udfs.plane_elements.sample import CELLS, Sample

from . import oracle
from .cases import CASES, FRONT, ROOM, ROOM_PLANES, SIDES, WALL, moved, patch

MATCH = ("nearest", "overlap", "coverage", "angle", "deviation")


def detected(given):
    """What `detect_planes` would give for planes: points, their labels, and the planes."""
    points = np.concatenate([np.empty((0, 3)), *(points for points, _ in given)])
    labels = np.repeat(np.arange(len(given)) + 1, [len(points) for points, _ in given])
    normals = np.array([normal for _, normal in given]).reshape(-1, 3)
    planes = {
        "plane_id": np.arange(len(given)) + 1,
        **{f"n{axis}": normals[:, i] for i, axis in enumerate("xyz")},
        "d": np.array([np.mean(points @ normal) for points, normal in given]),
        "point_count": np.bincount(labels, minlength=len(given) + 1)[1:],
        "area": np.array([extent(points) for points, _ in given]),
    }
    return *np.ascontiguousarray(points.T), labels, planes


def extent(points):
    """Area of a parallelogram from the variances of what is spread over it."""
    values = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    return 12 * values[0] * values[1] / len(points)


def run(given, elements, **options):
    x, y, z, labels, planes = detected(given)
    return match(x, y, z, labels, planes, Meshes.of(elements), Options(**options))


def rows(result):
    names = ("plane_id", "element", *MATCH)
    return list(zip(*(result[name].tolist() for name in names), strict=True))


def sampled(given, options):
    """The planes with those of their points that the kernel looks at, in metres."""
    unit = options.get("unit", 1.0)
    x, y, z, labels, planes = detected(given)
    sample = Sample.of(x, y, z, labels, planes, unit)
    parts = [sample.points[i:j] for i, j in zip(sample.starts, sample.starts[1:], strict=False)]
    parts = [points[~np.isnan(points[:, 0])] for points in parts]
    return [(points, normal) for points, (_, normal) in zip(parts, given, strict=True)]


@pytest.mark.parametrize("case", CASES)
def test_every_case_is_as_brute_force_has_it(case):
    given, elements, options = CASES[case]
    areas = detected(given)[-1]["area"]
    expected = oracle.rows(sampled(given, options), elements, areas=areas, **options)
    found = rows(run(given, elements, **options))
    assert [row[:2] for row in found] == [
        (number + 1, -1 if element is None else element) for number, element, *_ in expected
    ]
    for one, other in zip(found, expected, strict=True):
        if one[1] < 0:
            assert np.isnan(one[2:]).all()
        else:
            # degrees: the oracle's come from a cosine
            near = (1e-12, 1e-12, 1e-9, 1e-5, 1e-9)
            assert np.all(np.abs(np.subtract(one[2:], other[2:])) <= near), (one, other)
