"""What `detect_planes` rejects, its error sentences, and clouds without a plane."""

import re

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from spatialq.udfs.detect_planes import Options

import spatialq
from spatialq.errors import StrayPointsWarning

from ..plane_points.cases import FLOOR, ROOM, surfaces


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        ids, x, y, z = (np.array(column) for column in zip(*surfaces(1, FLOOR), strict=True))
        con.register("cloud", pa.table({"point_id": np.argsort(ids), "x": x, "y": y, "z": z}))
        con.execute("CREATE TABLE pts AS FROM cloud")
        yield con


@pytest.mark.parametrize("function", ["detect_planes", "plane_points"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("s_ps := 0.1, s_ms := 50", "s_ps must be NULL where s_ms is given (50), got 0.1"),
    ],
)
def test_options(con, function, arguments, message):
    with pytest.raises(duckdb.InvalidInputException) as error:
        con.sql(f"FROM {function}('pts', {arguments})").fetchall()
    assert f"{function}: {message}" in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"phi_num": 4}, {"phi_num": 180}, {"rho_num": 10}, {"rho_num": 10000}, {"s_level": 0},
        {"s_level": 12}, {"s_ms": 4}, {"s_ps": 1e-9}, {"s_ps": 0.999}, {"max_thickness": 1e-9},
        {"max_thickness": 0.999}, {"min_isotropy": 0.0}, {"min_isotropy": 0.999},
        {"max_distance": 1e-9}, {"max_distance": 1e9}, {"min_points": 3},
        {"orientation_tolerance": 0.0}, {"orientation_tolerance": 45.0},
    ],
)  # fmt: skip
def test_what_is_just_allowed_runs(con, options):
    Options(**options)
    ((name, value),) = options.items()
    rows = con.sql(f"FROM plane_points('pts', {name} := {value})").fetchall()
    assert len(rows) == 1500


@pytest.mark.parametrize(
    ("points", "rows"),
    [
        ("range AS point_id, 1.0 AS x, 2.0 AS y, 3.0 AS z", 0),
        ("range AS point_id, 1.0 AS x, 2.0 AS y, 3.0 AS z", 1),
        ("range AS point_id, range AS x, 2.0 AS y, 3.0 AS z", 2),
        ("range AS point_id, range AS x, range ** 2 AS y, 3.0 AS z", 3),
        ("range AS point_id, 1.0 AS x, 2.0 AS y, 3.0 AS z", 5000),
        ("range AS point_id, 5e6 AS x, 6e6 AS y, 3e3 AS z", 5000),
        ("range AS point_id, range AS x, 2.0 AS y, 3.0 AS z", 5000),
        ("range AS point_id, range * 0.1 AS x, range * 0.2 AS y, range * 0.3 AS z", 5000),
        ("range AS point_id, 5e6 + range * 0.1 AS x, 6e6 + range * 0.2 AS y, range AS z", 5000),
        ("range AS point_id, range % 2 AS x, range % 3 AS y, range % 2 AS z", 6),
    ],
)
def test_what_has_no_plane_gives_none(con, points, rows):
    """Too few points, all at one place, all on one line."""
    cloud = f"WITH cloud AS (SELECT {points} FROM range({rows}))"
    assert con.sql(f"{cloud} FROM detect_planes(cloud)").fetchall() == []
    found = con.sql(f"{cloud} FROM plane_points(cloud)").fetchall()
    assert found == [(k, None, None) for k in range(rows)]


def test_more_points_than_there_are_asked_of_a_plane_give_none(con):
    assert con.sql("FROM detect_planes('pts', min_points := 1501)").fetchall() == []
    assert len(con.sql("FROM detect_planes('pts', min_points := 500)").fetchall()) == 1


@pytest.mark.parametrize("far", [(0.0, 0.0, 0.0), (714947.98, 5286501.93, 612.4), (-5e6, 5e6, 0)])
def test_far_coordinates_have_the_planes_of_near_ones(far):
    shift = np.array(far)
    x, y, z = (np.array(column) for column in list(zip(*surfaces(2, *ROOM), strict=True))[1:])
    near = spatialq.run("detect_planes", x, y, z)
    found = spatialq.run("detect_planes", x + far[0], y + far[1], z + far[2])
    assert len(found["plane_id"]) == len(near["plane_id"]) == 6
    # coordinates of 5e6 are known to 1e-9; normals over metres therefore as well
    for name in ("nx", "ny", "nz"):
        assert found[name] == pytest.approx(near[name], abs=1e-7)
    normals = np.column_stack([found[name] for name in ("nx", "ny", "nz")])
    centres = np.column_stack([found[name] for name in ("cx", "cy", "cz")])
    # a centre is off its plane by what its points are on average
    of_points = spatialq.run("plane_points", x + far[0], y + far[1], z + far[2])
    ids, distance = of_points["plane_id"], of_points["distance"]
    means = [distance[ids == plane].mean() for plane in found["plane_id"]]
    off = (centres * normals).sum(axis=1) - found["d"]
    assert off == pytest.approx(means, abs=1e-7)
    here = np.column_stack([near[name] for name in ("cx", "cy", "cz")])
    assert centres - shift == pytest.approx(here, abs=1e-6)


def test_a_stray_point_far_away_leaves_the_planes():
    x, y, z = (np.array(column) for column in list(zip(*surfaces(3, *ROOM), strict=True))[1:])
    stray = [np.append(values, 60.0) for values in (x, y, z)]
    with pytest.warns(StrayPointsWarning):
        found = spatialq.run("plane_points", *stray, max_distance=0.02)
    assert len(set(found["plane_id"].tolist()) - {0}) == 6
    assert found["plane_id"][-1] == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"maxdist": 1}, "no option 'maxdist'; there is crs, kernel, max_distance"),
        ({"max_distance": "a"}, "max_distance must be a number, got 'a'"),
        ({"min_points": 2.5}, "min_points must be a whole number, got 2.5"),
        ({"s_level": True}, "s_level must be a whole number, got True"),
        ({"split": "no"}, "split must be true or false, got 'no'"),
        ({"max_thickness": None}, "max_thickness must be a number, got None"),
        ({"kernel": 3}, "kernel must be text, got 3"),
    ],
)
def test_options_of_arrays_are_looked_at_as_those_of_sql(options, sentence):
    none = np.empty(0)
    with pytest.raises(ValueError, match=f"detect_planes: {re.escape(sentence)}"):
        spatialq.run("detect_planes", none, none, none, **options)
