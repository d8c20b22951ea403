"""`spatialq noise` and `thin`: files of points with classified noise or without, and thinned."""

import numpy as np
import pytest

import spatialq
from spatialq.cli.main import main
from spatialq.io.formats import open_source

from .classify_noise.cases import terrain
from .classify_noise.oracle import noise


@pytest.fixture
def cloud(tmp_path):
    """A surface with odd points, of which one has been classified as noise and one is water."""
    import laspy

    points = np.round(terrain(at=(1000.0, 2000.0, 100.0)), 3)
    las = laspy.create(point_format=6, file_version="1.4")
    las.header.scales, las.header.offsets = [0.001] * 3, [1000.0, 2000.0, 100.0]
    las.x, las.y, las.z = points.T
    classes = np.ones(len(points), np.uint8)
    classes[1500], classes[3] = 18, 9
    las.classification = classes
    las.write(tmp_path / "cloud.laz")
    return tmp_path / "cloud.laz"


def read(path):
    source = open_source("test", path)
    rows = [batch.to_pydict() for batch in source.batches(["x", "y", "z", "classification"])]
    return {name: np.concatenate([each[name] for each in rows]) for name in rows[0]}


def test_noise_gets_its_classes_and_all_else_stays(cloud, tmp_path):
    given = read(cloud)
    row = spatialq.write_noise(cloud, tmp_path / "out.laz", multiplier=3.0)
    found = read(tmp_path / "out.laz")
    expected = given["classification"].copy()
    rows = np.flatnonzero(expected != 18)
    points = np.column_stack([given[axis] for axis in "xyz"])[rows]
    classes = noise(points, multiplier=3.0)
    expected[rows[classes > 0]] = classes[classes > 0]
    assert found["classification"].tolist() == expected.tolist()
    assert found["z"].tolist() == given["z"].tolist()
    assert {7, 9, 18} <= set(expected.tolist())
    n = np.isin(expected, [7, 18]).sum()
    assert (row["points"], row["noise_points"], row["points_written"]) == (1507, n, 1507)


def test_noise_is_left_out(cloud, tmp_path, monkeypatch, capsys):
    spatialq.write_noise(cloud, tmp_path / "classes.laz")
    words = ["noise", str(cloud), "-o", str(tmp_path / "out.laz"), "--drop-noise", "--json"]
    monkeypatch.setattr("sys.argv", ["spatialq", *words])
    main()
    assert '"points_written": ' in capsys.readouterr().out
    kept = ~np.isin(read(tmp_path / "classes.laz")["classification"], [7, 18])
    assert read(tmp_path / "out.laz")["x"].tolist() == read(cloud)["x"][kept].tolist()


def test_only_points_within_bounds_are_considered(cloud, tmp_path):
    row = spatialq.write_noise(cloud, tmp_path / "out.laz", bounds=(1000, 2000, 1010, 2010))
    given = read(cloud)
    inside = (given["x"] <= 1010) & (given["y"] <= 2010)
    assert row["points"] == row["points_written"] == np.count_nonzero(inside)


def test_wrong_options_are_refused_before_files_are_read(cloud, tmp_path):
    with pytest.raises(ValueError, match="classify_noise: mean_k must be >= 1"):
        spatialq.write_noise(cloud, tmp_path / "out.laz", mean_k=0)
    with pytest.raises(ValueError, match="noise: outputs must name a file, got none"):
        spatialq.write_noise(cloud, [])
    assert not (tmp_path / "out.laz").exists()


def test_thinned_points_are_those_of_the_function(cloud, tmp_path, monkeypatch):
    words = ["thin", str(cloud), "-o", str(tmp_path / "out.laz"), "--distance", "2m"]
    monkeypatch.setattr("sys.argv", ["spatialq", *words])
    main()
    given, found = read(cloud), read(tmp_path / "out.laz")
    rows = np.flatnonzero(given["classification"] != 18)
    kept = spatialq.run("thin", *(given[axis][rows] for axis in "xyz"), distance=2.0, point_id=rows)
    assert found["x"].tolist() == given["x"][kept["point_id"]].tolist()
    assert found["classification"].tolist() == given["classification"][kept["point_id"]].tolist()
    assert 100 < len(found["x"]) < 500
