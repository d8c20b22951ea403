"""`ground` and `planes` write LAS and LAZ of clouds in any format: the same as of a LAS file."""

import warnings

import laspy
import numpy as np
import pytest

import spatialq
from spatialq.database.table_files import write_table
from spatialq.errors import FileError

from .test_ground import write_scene


@pytest.fixture(scope="module")
def clouds(tmp_path_factory):
    """One cloud in four formats, in the same order; text has no classes."""
    pytest.importorskip("pye57")
    folder = tmp_path_factory.mktemp("clouds")
    source = write_scene(folder / "scene.las")
    rows = f"SELECT * FROM read_las('{source}') ORDER BY point_id"
    with spatialq.connect() as con:
        write_table(con, rows, folder / "scene.ply")
        write_table(con, rows, folder / "scene.e57")
        points = con.sql(rows).fetchnumpy()
    np.savetxt(folder / "scene.xyz", np.column_stack([points[axis] for axis in "xyz"]), fmt="%.4f")
    return folder


def quietly(function, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **options)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scene.ply", "scene.e57"])
def test_ground_is_that_of_the_las_file(clouds, tmp_path, name):
    for source, target in (("scene.las", "a.laz"), (name, "b.laz")):
        quietly(spatialq.write_ground, clouds / source, tmp_path / target, crs="EPSG:25832")
    before, after = laspy.read(tmp_path / "a.laz"), laspy.read(tmp_path / "b.laz")
    assert set(before.classification) >= {2, 5, 7}
    for field in before.point_format.dimension_names:
        if field not in "XYZ":
            np.testing.assert_array_equal(after[field], before[field], err_msg=field)
    np.testing.assert_allclose(after.xyz, before.xyz, rtol=0, atol=1e-9)
    assert after.header.parse_crs().to_epsg() == 25832


@pytest.mark.slow
def test_ground_only_of_text(clouds, tmp_path):
    target = tmp_path / "a.las"
    done = quietly(
        spatialq.write_ground, clouds / "scene.xyz", target, ground_only=True, crs="EPSG:25832"
    )
    cloud = laspy.read(target)
    assert len(cloud.points) == done["ground_points"] > 0
    assert set(cloud.classification) == {2}


@pytest.mark.slow
def test_planes_are_those_of_the_las_file(clouds, tmp_path):
    for source, target in (("scene.las", "a.laz"), ("scene.ply", "b.laz")):
        quietly(spatialq.write_planes, clouds / source, tmp_path / target, crs="EPSG:25832")
    before, after = laspy.read(tmp_path / "a.laz"), laspy.read(tmp_path / "b.laz")
    assert before.plane_id.max() > 0
    for field in ("plane_id", "plane_distance", "intensity", "classification"):
        np.testing.assert_array_equal(after[field], before[field], err_msg=field)


def test_columns_that_las_cannot_hold_are_refused_before_the_work(tmp_path):
    source = tmp_path / "a.csv"
    source.write_text("x,y,z,label\n1,2,3,wall\n2,3,4,wall\n")
    with pytest.raises(FileError, match="column 'label' is of type VARCHAR"):
        quietly(spatialq.write_ground, source, tmp_path / "b.las", crs="EPSG:25832")
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
