"""Clouds whose attributes are not those of LAS: NULL, fractions, text; points without a place."""

import pytest

import spatialq
from spatialq.errors import FileError, FileWarning
from spatialq.io.formats import open_source
from spatialq.workflows.cloud_points import read_points
from spatialq.workflows.info import describe


@pytest.fixture
def cloud(tmp_path):
    def write(*rows):
        path = tmp_path / "odd.csv"
        path.write_text("\n".join(("x,y,z,classification", *rows)) + "\n")
        return path

    return write


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        (("2", "2", "", "300"), {"2": 2, "300": 1, "NULL": 1}),
        (("2.5", "6"), {"2.5": 1, "6.0": 1}),
        (("tree", "tree"), {"tree": 2}),
    ],
)
def test_info_counts_classes_of_any_type(cloud, values, classes):
    assert describe(cloud(*(f"{i},0,0,{each}" for i, each in enumerate(values))))["classes"] == (
        classes
    )


def test_info_and_lod_count_the_points_that_have_a_position(cloud):
    path = cloud("0,0,0,2", "nan,0,0,2", "1,1,0,2")
    with pytest.warns(FileWarning, match="left out"):
        assert describe(path)["rows"] == 2
    with pytest.warns(FileWarning, match="left out"):
        assert spatialq.write_lod(path, [], device="cpu")["points"] == 2


@pytest.mark.parametrize("value", ["263", "-1", "2.5", "tree"])
def test_a_class_that_is_none_of_las_is_refused(cloud, value):
    path = cloud("0,0,0,2", f"1,0,0,{value}", "1,1,0,2")
    with pytest.raises(FileError, match="the values of column 'classification' must be uint8"):
        spatialq.write_planes(path, [], device="cpu")


def test_a_class_that_is_null_is_0(cloud):
    path = cloud("0,0,0,7", "1,0,0,", "1,1,0,2")
    points = read_points([open_source("planes", path)], None, None)
    assert (points.classes.tolist(), points.point_id.tolist()) == ([7, 0, 2], [1, 2])
