"""Planes of a survey as a job: those of one call on all files, and so are the planes of points."""

import json

import numpy as np
import pytest

import spatialq
from spatialq import cluster
from spatialq.cluster import driver
from tests.cluster import surveys
from tests.cluster.test_jobs import InThisProcess, needs_ray
from tests.conftest import made_once
from tests.detect_planes.cases import rooms

FUNCTIONS = ("detect_planes", "plane_points")


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(driver, "executor_of", lambda *_: InThisProcess())


def make(folder, columns=3, rows=2, n=20_000, unit=1.0):
    """Write tiles of a building whose walls go on across borders; many points lie on these."""
    folder.mkdir(parents=True, exist_ok=True)
    scene = rooms.building(n)
    xyz = np.round(np.array([scene.x, scene.y, scene.z]).T, 2) * unit + [1000, 5000, 20]
    xyz = np.round(xyz, 2)
    low, high = xyz.min(0), xyz.max(0)
    at = (xyz[:, :2] - low[:2]) / (high - low)[:2] * [columns, rows]
    column, row = np.minimum(at.astype(int), [columns - 1, rows - 1]).T
    for k in range(columns * rows):
        own = (column == k % columns) & (row == k // columns)
        surveys.write_tile(folder / f"tile_{k:02}.laz", *xyz[own].T)
    surveys.write_tile(folder / "nothing.laz", *np.empty((3, 0)))
    return folder


@pytest.fixture(scope="session")
def tiles(tmp_path_factory):
    return made_once(tmp_path_factory, "building", make)


def run(function, tiles, folder, **options):
    return cluster.run(function, str(tiles), folder, **({"unit": 1.0} | options))


def assert_same(function, tiles, folder, **options):
    """Compare the parts of a job with one call, as bags of rows; give how many there are."""
    given = {"unit": 1.0} | options
    arguments = "".join(
        f", {name} := {json.dumps(value) if not isinstance(value, str) else repr(value)}"
        for name, value in given.items()
    )
    with spatialq.connect() as con:
        cluster.table(con, folder, "found")
        con.execute(
            f"CREATE TABLE expected AS FROM {function}('{tiles}/*.laz'{arguments}, device := 'cpu')"
        )
        text = "SELECT * REPLACE (boundary::VARCHAR AS boundary) FROM"
        one, other = "FROM found", "FROM expected"
        if function == "detect_planes":
            one, other = f"{text} found", f"{text} expected"
        assert con.sql(f"{one} EXCEPT ALL {other}").fetchall() == []
        assert con.sql(f"{other} EXCEPT ALL {one}").fetchall() == []
        ((count,),) = con.sql("SELECT count(*) FROM expected").fetchall()
        assert con.sql("FROM found").columns == con.sql("FROM expected").columns
        return count


CASES = {
    "as it is": {},
    "split": {"split": True, "outline": "convex"},
    "deep": {"s_level": 4, "s_ms": 4},
    "the paper's kernel": {"kernel": "paper"},
    "given limits": {"max_distance": 0.03, "min_points": 40},
    "bounds": {"bounds": [1001.3, 5000.7, 1009.0, 5008.8]},
    "no planes": {"min_points": 19_000},
}


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("name", "tile_size"), [*((name, None) for name in CASES), ("as it is", 5.7), ("bounds", 5.7)]
)
def test_parts_have_the_rows_of_one_piece(at_once, tiles, tmp_path, name, tile_size, function):
    options = CASES[name]
    result = run(function, tiles, tmp_path / "out", tile_size=tile_size, **options)
    count = assert_same(function, tiles, tmp_path / "out", **options)
    assert result["rows"] == count
    assert (count > 3) is (name != "no planes" or function == "plane_points")
    if function == "detect_planes":
        assert [path.name for path in (tmp_path / "out" / "parts").iterdir()] == ["planes.parquet"]
    assert not (tmp_path / "out" / "stages").exists()


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("executor", ["local", pytest.param("ray", marks=needs_ray)])
def test_executors_give_the_same(tiles, tmp_path, executor, function):
    run(function, tiles, tmp_path / "out", executor=executor, workers=2)
    assert assert_same(function, tiles, tmp_path / "out") > 5
