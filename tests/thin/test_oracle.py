"""`thin` against brute force: dictionaries of voxels, and all distances."""

from fractions import Fraction

import duckdb
import numpy as np
import pytest
from scipy.spatial import cKDTree
from spatialq.udfs.thin import cpu

import spatialq

from ..kernels import run
from .cases import CASES, CLOUDS, columns
from .oracle import poisson, voxels_of


@pytest.mark.parametrize("name", [name for name in CASES if "poisson" not in name])
def test_one_point_of_each_voxel(name):
    given, options = CASES[name]
    found = set(run("thin", "cpu", given, **options)["point_id"].tolist())
    voxels = voxels_of(given, options["distance"])
    assert len(found) == len(voxels)
    for voxel, rows in voxels.items():
        (kept,) = [row for row in rows if row[0] in found]
        places = [[Fraction(value) for value in row[1:]] for row in rows]
        if options["method"] == "voxel":
            centre = [(Fraction(v) + Fraction(1, 2)) * Fraction(options["distance"]) for v in voxel]
        else:
            centre = [sum(values) / len(values) for values in zip(*places, strict=True)]
        squared = [sum((a - b) ** 2 for a, b in zip(p, centre, strict=True)) for p in places]
        exact = rows[squared.index(min(squared))]
        least = float(squared[rows.index(kept)])
        assert kept == exact or least == pytest.approx(float(min(squared)), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", [name for name in CASES if "poisson" in name])
def test_points_are_apart_and_no_other_fits(name):
    given, options = CASES[name]
    points = np.column_stack([given[axis] for axis in "xyz"])
    kept = np.isin(given["point_id"], run("thin", "cpu", given, **options)["point_id"])
    if not len(points):
        assert not kept.size
        return
    tree = cKDTree(points[kept])
    limit = options["distance"] * (1 - 1e-12)
    assert not tree.query_pairs(limit)
    assert (tree.query(points[~kept])[0] < options["distance"]).all()


def test_points_are_taken_in_the_turn_of_their_ids():
    given = CLOUDS["UTM"]
    found = run("thin", "cpu", given, method="poisson", distance=1.0)
    assert sorted(found["point_id"].tolist()) == sorted(poisson(given, 1.0))


@pytest.mark.parametrize("method", ["voxel", "nearest_to_mean", "poisson"])
def test_the_order_of_the_rows_does_not_matter(method, monkeypatch):
    given = CLOUDS["a lattice"]
    whole = run("thin", "cpu", given, method=method, distance=0.6)["point_id"]
    order = np.random.default_rng(2).permutation(len(given["x"]))
    mixed = {name: values[order] for name, values in given.items()}
    monkeypatch.setattr(cpu, "SORTED", 16)  # and neither do the parts that are sorted
    found = run("thin", "cpu", mixed, method=method, distance=0.6)["point_id"]
    assert sorted(found.tolist()) == sorted(whole.tolist())
    assert 0 < len(whole) < len(order)
    position = {each: i for i, each in enumerate(mixed["point_id"].tolist())}
    assert [position[each] for each in found.tolist()] == sorted(
        position[e] for e in found.tolist()
    )


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        con.execute(
            "CREATE TABLE pts AS SELECT range AS point_id, range % 20 * 1.0 AS x, "
            "range // 20 * 1.0 AS y, 0.25 AS z FROM range(400)"
        )
        yield con


def test_in_sql(con):
    count = "SELECT count(*) FROM pts SEMI JOIN thin('pts', distance := {}) USING (point_id)"
    for distance, n in ((1.0, 400), (2.0, 100), (4.0, 25), (1000.0, 1)):
        assert con.execute(count.format(distance)).fetchone() == (n,)
    assert con.execute(count.format("4.0, unit := 2")).fetchone() == (100,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("distance := 0", "thin: distance must be > 0 metres, got 0.0"),
        ("distance := -2", "thin: distance must be > 0 metres, got -2.0"),
        (
            "method := 'random'",
            "thin: method must be 'voxel' or 'nearest_to_mean' or 'poisson', got",
        ),
    ],
)
def test_refused(con, arguments, message):
    with pytest.raises(duckdb.InvalidInputException) as error:
        con.sql(f"FROM thin('pts', {arguments})").fetchall()
    assert message in str(error.value)


def test_coordinates_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="thin: x, y and z must be finite, got 1 points"):
        run("thin", "cpu", columns([(0, 0, 0), (np.nan, 0, 0)]))
