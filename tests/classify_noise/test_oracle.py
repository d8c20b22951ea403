"""`classify_noise` against brute force, through SQL, and on what it refuses."""

import duckdb
import numpy as np
import pytest

import spatialq

from ..kernels import run
from . import oracle
from .cases import CASES, COMPARED, among_strays, columns, terrain


@pytest.mark.parametrize("name", COMPARED)
def test_as_by_brute_force(name):
    given, options = CASES[name]
    found = run("classify_noise", "cpu", given, **options)
    assert found["point_id"].tolist() == given["point_id"].tolist()
    points = np.column_stack([given[axis] for axis in "xyz"])
    assert found["classification"].tolist() == oracle.noise(points, **options).tolist()


def test_what_is_above_is_high_and_what_is_below_is_low():
    found = run("classify_noise", "cpu", columns(terrain()), method="isolated", voxel_size=3.0)
    assert not found["classification"][:1500].any()
    assert found["classification"][1500:1505].tolist() == [18, 18, 18, 7, 7]
    assert found["classification"][1505:].all()


def test_the_order_of_the_points_does_not_matter():
    points = terrain()
    order = np.random.default_rng(3).permutation(len(points))
    whole, mixed = (
        run("classify_noise", "cpu", columns(each))["classification"]
        for each in (points, points[order])
    )
    assert whole[order].tolist() == mixed.tolist()
    assert np.count_nonzero(whole) > 3


def test_stray_points_are_noise_and_change_nothing_else():
    points = terrain()[:1500]
    for options in ({}, {"method": "isolated"}):
        alone = run("classify_noise", "cpu", columns(points), **options)["classification"]
        mixed = among_strays(points)
        found = run("classify_noise", "cpu", columns(mixed), **options)["classification"]
        assert found[99:112].tolist() == [18] * 3 + [7] * 10
        assert np.delete(found, np.s_[99:112]).tolist() == alone.tolist()


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        con.execute(
            "CREATE TABLE pts AS SELECT range AS point_id, range % 20 * 1.0 AS x, "
            "range // 20 * 1.0 AS y, if(range IN (57, 143), range % 2 * 18.0 - 9, 1.0) AS z "
            "FROM range(400)"
        )
        yield con


def test_in_sql(con):
    found = con.sql("FROM classify_noise('pts') WHERE classification > 0 ORDER BY ALL")
    assert [str(each) for each in found.types] == ["BIGINT", "UTINYINT"]
    assert found.fetchall() == [(57, 18), (143, 18)]
    con.execute("CREATE OR REPLACE VIEW low AS SELECT * REPLACE (-z AS z) FROM pts")
    found = con.sql("FROM classify_noise('low', unit := 1) WHERE classification = 7 ORDER BY 1")
    assert [row[0] for row in found.fetchall()] == [57, 143]


def test_other_points_keep_their_classes(con):
    con.execute(
        "CREATE OR REPLACE TABLE classes AS SELECT *, if(point_id % 3 = 0, NULL, "
        "point_id % 3 + 1)::UTINYINT AS classification FROM pts"
    )
    found = con.execute("FROM classify_noise('classes') ORDER BY point_id").fetchall()
    noise = {57: 18, 143: 18}
    assert found == [(i, noise.get(i, i % 3 and i % 3 + 1)) for i in range(400)]
    query = spatialq.table(con, "classes").classify_noise().where("classification = 2")
    assert query.count() == 133  # a builder's rows have the new classes


def test_voxels_are_in_metres(con):
    """In feet, a voxel of 5 m is 16.4 units wide."""
    count = "SELECT count(*) FROM classify_noise('pts', method := 'isolated', max_points := 300, unit := {}) WHERE classification = 18"  # noqa: E501
    counts = [con.execute(count.format(unit)).fetchone()[0] for unit in (1, 0.3048)]
    assert counts[0] > counts[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("mean_k := 0", "classify_noise: mean_k must be >= 1 and <= 1000, got 0"),
        ("multiplier := -1", "classify_noise: multiplier must be >= 0, got -1.0"),
        (
            "method := 'sor'",
            "classify_noise: method must be 'statistical' or 'isolated', got 'sor'",
        ),
        ("voxel_size := 0", "classify_noise: voxel_size must be > 0 metres, got 0.0"),
    ],
)
def test_refused(con, arguments, message):
    with pytest.raises(duckdb.InvalidInputException) as error:
        con.sql(f"FROM classify_noise('pts', {arguments})").fetchall()
    assert message in str(error.value)
