"""`cloud_distance` against NumPy, and on clouds whose distance is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spatialq.data.cloud import Cloud

from ..kernels import arguments_of, run
from . import oracle
from .cases import CASES

MEASURES = ("distance", "neighbours", "reference_neighbours", "spread", "reference_spread",
            "level_of_detection")  # fmt: skip


def columns(points, first=0):
    return dict(zip("xyz", points.T.copy(), strict=True)) | {
        "point_id": np.arange(first, first + len(points))
    }


def compare(points, others, normals=None, **options):
    given = columns(points, 7) | {"reference": Cloud(**columns(others, 1000))}
    if normals is not None:
        given |= dict(zip(("nx", "ny", "nz"), normals.T.copy(), strict=True))
    return run("cloud_distance", "cpu", given, **options)


@pytest.fixture(scope="module")
def clouds():
    """Give a rough slope with a wall, and another scan of it, with a gap."""
    draw = np.random.default_rng(3)

    def scan(n, lift):
        x, y = draw.uniform(0, 10, (2, n))
        ground = np.column_stack((x, y, 0.3 * x + lift + draw.normal(0, 0.02, n)))
        k = n // 2
        wall = np.column_stack(
            (10 + draw.normal(0, 0.02, k), draw.uniform(0, 10, k), draw.uniform(3, 8, k))
        )
        return np.vstack((ground, wall))

    points, others = scan(600, 0.1), scan(500, 0.0)
    return points, others[others[:, 1] < 8]


def test_nearest(clouds):
    points, others = clouds
    found = compare(points, others)
    rows, apart = oracle.nearest(points, others)
    assert found["point_id"].tolist() == list(range(7, 7 + len(points)))
    assert found["reference_id"].tolist() == rows.tolist()
    assert found["distance"] == pytest.approx(apart, rel=1e-12)
    assert np.isnan(found["level_of_detection"]).all()


def test_nearest_within_a_distance(clouds):
    points, others = clouds
    _, apart = oracle.nearest(points, others)
    limit = float(np.median(apart))
    found = compare(points, others, max_distance=limit)
    is_near = apart <= limit
    assert (np.isnan(found["distance"]) == ~is_near).all()
    assert ((found["reference_id"] < 0) == ~is_near).all()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"radius": 0.8, "normal_radius": 1.3, "max_distance": 0.4},
        {"radius": 0.3, "registration_error": 0.01},
        {"radius": 0.05, "normal_radius": 0.25},
    ],
    ids=str,
)
def test_m3c2(clouds, options):
    points, others = clouds
    found = compare(points, others, method="m3c2", **options)
    radius = options.get("radius", 0.5)
    length = options.get("max_distance", 10 * radius)
    without = 0
    for at in range(0, len(points), 3):
        normal = oracle.normal_of(points, at, options.get("normal_radius", 1.0))
        got = [found[name][at] for name in ("nx", "ny", "nz")]
        if normal is None:
            without += 1
            assert np.isnan([*got, found["distance"][at]]).all()
            continue
        assert got == pytest.approx(normal, abs=1e-9)
        expected = oracle.m3c2(
            points, others, at, normal, radius, length, options.get("registration_error", 0.0)
        )
        assert [found[name][at] for name in MEASURES] == pytest.approx(
            expected, rel=1e-9, abs=1e-9, nan_ok=True
        )
    assert (without > 0) == (options.get("normal_radius") == 0.25)
    assert (found["reference_id"] < 0).all()


def test_m3c2_along_given_normals(clouds):
    points, others = clouds
    normals = np.tile([0.0, 0.0, 3.0], (len(points), 1))
    normals[::2] *= 1e300  # whose square is no number
    normals[5] = np.nan
    found = compare(points, others, normals, method="m3c2")
    assert np.isnan(found["distance"][5])
    for at in range(0, len(points), 10):
        if at != 5:
            expected = oracle.m3c2(points, others, at, np.array([0.0, 0, 1]), 0.5, 5.0)
            got = [found[name][at] for name in MEASURES]
            assert got == pytest.approx(expected, rel=1e-9, abs=1e-9, nan_ok=True)


def test_normals_that_are_none_have_no_distance():
    """The case of normals of any length has ones that are masked, 0, infinite, or no number."""
    *_, normals = CASES["given normals"]
    given, options = arguments_of("cloud_distance", "given normals")
    found = run("cloud_distance", "cpu", given, **options)
    size = np.abs(normals).max(axis=1).filled(np.nan)
    is_one = np.isfinite(normals.filled(np.nan)).all(axis=1) & (size > 0)
    assert 0 < (~is_one).sum() < len(is_one)
    assert (np.isfinite(found["nx"]) == is_one).all()


def test_a_change_is_found_and_noise_is_none():
    draw = np.random.default_rng(8)
    n, side = 20_000, 20.0
    xy = draw.uniform(0, side, (2, n, 2))
    before = np.column_stack((xy[0], draw.normal(0, 0.03, n)))
    after = np.column_stack((xy[1], draw.normal(0, 0.03, n)))
    dug = after[:, 0] > side / 2
    after[dug, 2] -= 0.05
    found = compare(after, before, method="m3c2", radius=0.4)
    is_significant = np.abs(found["distance"]) > found["level_of_detection"]
    inside = np.abs(after[:, 0] - side / 2) > 2
    assert found["distance"][dug & inside].mean() == pytest.approx(-0.05, abs=0.002)
    assert is_significant[dug & inside].mean() > 0.99
    # 5 % of what did not change, as the level is one of 95 %; cylinders share points
    assert 0.02 < is_significant[~dug & inside].mean() < 0.09


@pytest.mark.parametrize("method", ["nearest", "m3c2"])
@pytest.mark.parametrize(("n", "m"), [(0, 0), (0, 9), (9, 0), (1, 1)])
def test_few_points(method, n, m):
    draw = np.random.default_rng(1)
    found = compare(draw.random((n, 3)), draw.random((m, 3)), method=method)
    assert len(found["distance"]) == n
    assert np.isnan(found["distance"]).all() == (method == "m3c2" or m == 0 or n == 0)


@pytest.mark.parametrize("method", ["nearest", "m3c2"])
@pytest.mark.parametrize("which", ["points", "reference"])
def test_coordinates_that_are_not_finite(method, which):
    clouds = [np.random.default_rng(1).random((20, 3)) for _ in range(2)]
    clouds[which == "reference"][3, 1] = np.nan
    with pytest.raises(ValueError, match=r"^cloud_distance.*must be finite, got 1 points"):
        compare(*clouds, method=method)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 1e3, 1e6]))
def test_far_from_the_origin(seed, shift):
    """The rows do not depend on where both clouds lie, but for rounding of the coordinates."""
    draw = np.random.default_rng(seed)
    points, others = np.round(draw.random((2, 60, 3)) * 1024) / 1024
    near = compare(points, others, method="m3c2", radius=0.3)
    far = compare(points + shift, others + shift, method="m3c2", radius=0.3)
    for name in (*MEASURES, "nx", "ny", "nz"):
        assert far[name] == pytest.approx(near[name], rel=1e-9, abs=1e-9, nan_ok=True)
