"""What functions of points give, and say, of clouds with stray points."""

import warnings

import numpy as np
import pyarrow as pa
import pytest

import spatialq
from spatialq.errors import StrayPointsWarning

N = 3000


@pytest.fixture
def cloud():
    """Return a hilly ground with a box on it, in integers / 64, and three stray points."""
    rng = np.random.default_rng(8)
    x, y = (np.round(rng.uniform(0, 60, N) * 64) / 64 + offset for offset in (5e5, 5e6))
    z = 400 + np.where((x < 5e5 + 20) & (y < 5e6 + 20), 8, np.sin(x / 30)) + rng.normal(0, 0.02, N)
    x[[5, 70]], y[[5, 70]], z[[5, 900]] = 0, 0, [0, -1e9]
    return x, y, z


STRAYS = [5, 70, 900]


def of_others(function, cloud, ids=None, **options):
    ids = np.arange(N) if ids is None else ids
    x, y, z, ids = (np.delete(values, STRAYS) for values in (*cloud, ids))
    with warnings.catch_warnings():
        warnings.simplefilter("error", StrayPointsWarning)
        return spatialq.run(function, x, y, z, ids, device="cpu", **options)


def test_rows_of_points_keep_their_order(cloud):
    with pytest.warns(StrayPointsWarning) as told:
        found = spatialq.run("classify_ground", *cloud, device="cpu")
    expected = of_others("classify_ground", cloud)
    np.testing.assert_array_equal(found["point_id"], np.arange(N))
    assert np.isnan(found["height"][STRAYS]).all()
    assert np.isnan(found["margin"][STRAYS]).all()
    assert not found["is_ground"][STRAYS].any()
    for name, values in expected.items():
        np.testing.assert_array_equal(np.delete(found[name], STRAYS), values)
    (message,) = (str(each.message) for each in told)
    here = ", ".join(f"{values[900]:.10g}" for values in cloud)
    assert message == (
        "classify_ground: 3 of 3000 points are far from all others, at (0, 0, 0), (0, 0, "
        f"{cloud[2][70]:.10g}) and ({here}): they were left out and have height NULL, is_ground "
        "false, margin NULL"
    )


@pytest.mark.parametrize("function", ["owm_ground", "detect_planes", "plane_nodes", "build_lod"])
@pytest.mark.parametrize("with_ids", [False, True])
def test_other_rows_are_those_of_the_others(cloud, function, with_ids):
    ids = np.random.default_rng(3).permutation(N) + 70 if with_ids else None
    with pytest.warns(StrayPointsWarning, match="left out$"):
        found = spatialq.run(function, *cloud, ids, device="cpu")
    expected = of_others(function, cloud, ids)
    assert list(found) == list(expected)
    for name, values in expected.items():
        if name == "samples":
            assert found[name].offsets.tolist() == values.offsets.tolist()
            for field, column in values.columns.items():
                np.testing.assert_array_equal(found[name].columns[field], column)
        else:
            np.testing.assert_array_equal(found[name], values)


def test_planes_of_points_are_null(cloud):
    with pytest.warns(StrayPointsWarning, match="have plane_id NULL, distance NULL$"):
        found = spatialq.run("plane_points", *cloud, device="cpu")
    assert found["point_id"].tolist() == list(range(N))
    assert found["plane_id"][STRAYS].tolist() == [0, 0, 0]
    assert np.isnan(found["distance"][STRAYS]).all()
    assert (found["plane_id"] > 0).any()


def test_the_grid_covers_the_others(cloud):
    with pytest.warns(StrayPointsWarning):
        found = spatialq.run("ground_surface", *cloud, device="cpu")
    expected = of_others("ground_surface", cloud)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)


def test_attributes_are_left_out_with_the_points(cloud):
    red = np.arange(N, dtype=np.uint16)
    masked = np.ma.MaskedArray(red, red % 7 == 0)
    given = {"red": red, "green": masked, "blue": red, "strategy": "first"}
    with pytest.warns(StrayPointsWarning):
        found = spatialq.run("build_lod", *cloud, device="cpu", **given)
    keep = np.delete(np.arange(N), STRAYS)
    given |= {"red": red[keep], "green": masked[keep], "blue": red[keep]}
    expected = of_others("build_lod", cloud, **given)["samples"].columns
    assert expected["red"].max() > 900
    for field, column in expected.items():
        np.testing.assert_array_equal(found["samples"].columns[field], column)


def test_sql_says_null(cloud):
    connection = spatialq.connect()
    x, y, z = cloud
    points = pa.table({"point_id": np.arange(N) * 2, "x": x, "y": y, "z": z})
    connection.register("points", points)
    with pytest.warns(StrayPointsWarning, match="3 of 3000"):
        rows = connection.sql(
            "SELECT point_id, height, is_ground FROM classify_ground('points') "
            "WHERE point_id IN (10, 140, 1800) ORDER BY ALL"
        ).fetchall()
    assert rows == [(10, None, False), (140, None, False), (1800, None, False)]


@pytest.mark.parametrize(
    "points",
    [
        np.zeros((0, 3)),
        np.zeros((1, 3)),
        [[0, 0, 0], [1e3, 0, 0]],
        np.zeros((300, 3)),
        np.outer(np.arange(300), [1, 0, 0]),
        np.vstack([np.zeros((299, 3)), [[1, 1, 1]]]),
    ],
    ids=["none", "one", "two", "one place", "a line", "one place and another"],
)
@pytest.mark.parametrize(
    "function",
    ["owm_ground", "classify_ground", "ground_surface", "detect_planes", "plane_points",
     "plane_nodes", "build_lod"],
)  # fmt: skip
def test_strange_clouds_are_as_they_were(points, function):
    x, y, z = np.array(points, np.float64).reshape(-1, 3).T
    with warnings.catch_warnings():
        warnings.simplefilter("error", StrayPointsWarning)
        spatialq.run(function, x, y, z, device="cpu")


def test_points_that_are_not_finite_are_told_as_before(cloud):
    x, y, z = cloud
    z[33] = np.nan
    with pytest.raises(
        ValueError, match="1 points with NaN or infinity, the first with point_id 33"
    ):
        spatialq.run("owm_ground", x, y, z, device="cpu")
