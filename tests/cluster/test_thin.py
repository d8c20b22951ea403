"""`thin` as a job: the points of one call on all files."""

import pytest

import spatialq
from spatialq import cluster
from tests.cluster import surveys
from tests.conftest import made_once
from tests.examples import combinations

CASES = {
    "voxels": {"distance": 1.5},
    "voxels as wide as tiles": {"distance": 30.0},
    "wider than a tile": {"distance": 47.0},
    "nearest to the mean": {"method": "nearest_to_mean", "distance": 4.0},
    "bounds": {"distance": 3.0, "bounds": (1012.0, 5007.5, 1071.25, 5048.0)},
}


@pytest.fixture(scope="module")
def tiles(tmp_path_factory):
    return made_once(
        tmp_path_factory, "six_tiles", lambda path: surveys.make(path, columns=3, rows=2)
    )


@pytest.mark.parametrize(("name", "tile_size"), combinations(CASES, [None, 17.0]))
def test_points_are_those_of_one_call(at_once, tiles, tmp_path, name, tile_size):
    options = surveys.QUIET | CASES[name]
    source, out = f"{tiles}/*.laz", tmp_path / "out"
    made = cluster.run("thin", source, out, tile_size=tile_size, **options)
    given = "".join(
        f", {key} := {list(value) if isinstance(value, tuple) else repr(value)}"
        for key, value in options.items()
    )
    expected = surveys.rows_of_call(f"thin('{source}'{given})")
    assert surveys.of_job(out) == expected
    assert made["rows"] == len(expected) > 5


def test_disks_are_refused(at_once, tiles, tmp_path):
    sentence = (
        r"^thin: method must be 'voxel' or 'nearest_to_mean' in a job, got 'poisson', of which no "
        "halo is wide enough$"
    )
    with pytest.raises(ValueError, match=sentence):
        cluster.run(
            "thin", f"{tiles}/*.laz", tmp_path / "out", method="poisson",
            progress=lambda *_: pytest.fail("a file was read"), **surveys.QUIET,
        )  # fmt: skip
    assert not (tmp_path / "out").exists()


def test_no_point_is_kept_of_none(at_once, tiles, tmp_path):
    with pytest.warns(spatialq.errors.FileWarning, match="no point is within the bounds"):
        made = cluster.run(
            "thin", f"{tiles}/*.laz", tmp_path / "out", bounds=(0.0, 0.0, 1.0, 1.0), **surveys.QUIET
        )
    assert made["rows"] == 0
