"""`point_features` against NumPy's eigenvalues and the formulas of PDAL's documentation."""

import duckdb
import numpy as np
import pytest
from spatialq.udfs.point_features import FEATURES

import spatialq

from ..kernels import run
from .cases import CASES, COMPARED, SCENE, columns
from .oracle import features_of, neighbourhoods


@pytest.mark.parametrize("name", [name for name in COMPARED if "equal" not in name])
def test_as_by_numpy(name):
    given, options = CASES[name]
    found = run("point_features", "cpu", given, **options)
    assert found["point_id"].tolist() == given["point_id"].tolist()
    points = np.column_stack([given[axis] for axis in "xyz"])
    made = 0
    for i, rows in enumerate(neighbourhoods(points, **options)):
        assert found["neighbours"][i] == len(rows)
        if len(rows) < options.get("min_k", 3):
            assert all(np.isnan(found[feature][i]) for feature in FEATURES)
            continue
        local = points - points[i]
        more = {each: options[each] for each in ("radius", "mode") if each in options}
        expected = features_of(local[rows], 0.0, **more)
        values = np.linalg.eigvalsh(np.cov(local[rows].T))
        is_line = values[1] < 1e-12 * values[2]
        made += 1
        for feature in FEATURES:
            value = found[feature][i]
            if is_line and feature in ("nx", "ny", "nz", "demantke_verticality"):
                assert np.isnan(value)
            elif feature in ("nx", "ny", "nz"):
                assert abs(value) == pytest.approx(abs(expected[feature]), abs=1e-6)
            elif feature == "omnivariance":  # of flat points the cube root of a rounding error
                assert value**3 == pytest.approx(expected[feature] ** 3, abs=1e-10)
            else:
                assert value == pytest.approx(expected[feature], abs=2e-8, rel=1e-9), feature
        if not is_line:
            assert found["nz"][i] >= 0
    assert made or name in ("empty", "one point", "two points")


def test_points_at_one_place_have_no_shape():
    for name in ("all equal", "all equal, radius"):
        found = run("point_features", "cpu", CASES[name][0], **CASES[name][1])
        assert np.isnan([found[each] for each in FEATURES if each != "density"]).all()
    assert found["density"] == pytest.approx(30 / (4 / 3 * np.pi))
    assert found["neighbours"].tolist() == [30] * 30


def test_a_radius_may_be_of_any_size():
    with spatialq.connect() as con:
        con.execute("""
            CREATE TABLE p AS
            SELECT i AS point_id, i % 7 AS x, i % 5 AS y, i AS z FROM range(35) t(i)
        """)
        found = {
            radius: con.sql(
                "SELECT * EXCLUDE (density) "
                f"FROM point_features('p', radius := {radius}) ORDER BY ALL"
            ).fetchall()
            for radius in ("1e3", "1e155", "1.7e308")
        }
    assert found["1e3"] == found["1e155"] == found["1.7e308"]
    assert {row[1] for row in found["1e3"]} == {35}


@pytest.mark.parametrize("apart", [0.0, 1e-120, 1e-106])
def test_a_ball_without_volume_has_no_density(apart):
    points = np.zeros((8, 3))
    points[:4, 0] = apart * np.arange(4)  # whose third power is 0, or too small to divide by
    found = run("point_features", "cpu", columns(points), k=3)
    assert np.isnan(found["density"]).all()


def test_of_points_at_one_place_those_that_reach_farther_have_a_density():
    points = np.repeat([[0.0, 0, 0], [2.0, 0, 0]], [6, 2], axis=0)
    found = run("point_features", "cpu", columns(points), k=3)
    assert np.isnan(found["density"][:6]).all()
    assert found["density"][6:] == pytest.approx(4 / (4 / 3 * np.pi * 8))


def test_a_floor_a_wall_and_a_pole():
    found = run("point_features", "cpu", columns(SCENE), k=12)
    floor, wall, pole = slice(0, 200), slice(200, 400), slice(400, 450)
    assert np.median(found["nz"][floor]) == pytest.approx(1)
    assert np.median(np.abs(found["nx"][wall])) == pytest.approx(1)
    assert np.median(found["demantke_verticality"][wall]) == pytest.approx(1)
    assert np.median(found["linearity"][pole]) > 0.9
    assert np.median(found["planarity"][wall]) > 0.5 > np.median(found["planarity"][pole])
    assert np.median(found["verticality"][pole]) > 0.9 > np.median(found["verticality"][floor])


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        con.execute(
            "CREATE TABLE pts AS SELECT range AS point_id, range % 20 * 1.0 AS x, "
            "range // 20 * 1.0 AS y, x / 2 AS z FROM range(400)"
        )
        yield con


def test_in_sql(con):
    found = con.execute(
        "SELECT DISTINCT round(nz, 9), round(surface_variation, 9) FROM point_features('pts')"
    ).fetchall()
    assert found == [(pytest.approx(2 / np.sqrt(5)), 0)]
    few = "SELECT count(*), count(nz), max(neighbours) FROM point_features('pts', radius := 0.5)"
    assert con.execute(few).fetchall() == [(400, 0, 1)]


def test_a_radius_is_in_metres(con):
    """Of 4 m, that is 13.1 feet."""
    count = "SELECT max(neighbours) FROM point_features('pts', radius := 4.0, unit := {})"
    metres, feet = (con.execute(count.format(unit)).fetchone()[0] for unit in (1, 0.3048))
    assert feet > metres > 9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("k := 1", "point_features: k must be >= 2 and <= 1000, got 1"),
        ("radius := -1", "point_features: radius must be > 0 metres or NULL, got -1.0"),
        ("min_k := 2", "point_features: min_k must be >= 3, got 2"),
        (
            "mode := 'log'",
            "point_features: mode must be 'sqrt' or 'raw' or 'normalized', got 'log'",
        ),
    ],
)
def test_refused(con, arguments, message):
    with pytest.raises(duckdb.InvalidInputException) as error:
        con.sql(f"FROM point_features('pts', {arguments})").fetchall()
    assert message in str(error.value)
