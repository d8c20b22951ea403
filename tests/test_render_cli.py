"""`spatialq render`: pictures of models and clouds."""

import numpy as np
import pytest
from PIL import Image

from spatialq.demo.house import write_house

from .command_line import rows, spatialq_command
from .test_load import write_las


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("render")
    write_house(folder / "house.ifc")
    write_las(folder / "cloud.las")
    return folder


def test_a_model_fills_the_picture_and_the_bytes_are_the_same(folder, tmp_path):
    for name in ("a.png", "b.png"):
        (row,) = rows("render", folder / "house.ifc", "-o", tmp_path / name, "--size", "200x150")
    assert row["elements"] > 20
    assert row["points"] == 0
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    with Image.open(tmp_path / "a.png") as picture:
        assert (picture.format, picture.size) == ("PNG", (200, 150))
        drawn = (np.asarray(picture) != (252, 252, 250)).any(axis=2)
    across, down = np.flatnonzero(drawn.any(axis=0)), np.flatnonzero(drawn.any(axis=1))
    assert drawn.mean() > 0.2
    assert across[0] > 0
    assert across[-1] < 199
    assert down[0] > 0
    assert down[-1] < 149


def test_a_model_that_is_named_twice_is_drawn_once(folder, tmp_path):
    other = folder / ".." / folder.name / "house.ifc"
    (once,) = rows("render", folder / "house.ifc", "-o", tmp_path / "a.png")
    (twice,) = rows("render", folder / "house.ifc", other, "-o", tmp_path / "a.png")
    assert twice == once


def test_a_camera_that_is_given(folder, tmp_path):
    (row,) = rows(
        "render", folder / "house.ifc", "-o", tmp_path / "a.png", "--eye", "3,3,40",
        "--target", "3,3,0", "--up", "0,1,0", "--view-height", "20", "--size", "100x80",
    )  # fmt: skip
    assert (row["eye"], row["target"], row["fov"]) == ([3, 3, 40], [3, 3, 0], None)
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.size == (100, 80)


def test_points_are_drawn(folder, tmp_path):
    (row,) = rows("render", folder / "cloud.las", "-o", tmp_path / "a.png", "--size", "100x80")
    assert row["elements"] == 0
    assert row["points"] > 100
    with Image.open(tmp_path / "a.png") as picture:
        assert (np.asarray(picture) != (252, 252, 250)).any()


def test_clashes_are_drawn_in_front_of_faded_models(folder, tmp_path):
    rows("clash", folder / "house.ifc", "-o", tmp_path / "clashes.parquet")
    (row,) = rows("render", tmp_path / "clashes.parquet", "-o", tmp_path / "a.png")
    assert row["elements"] > 20
    with Image.open(tmp_path / "a.png") as picture:
        red, green, blue = np.moveaxis(np.asarray(picture).astype(int), 2, 0)
    is_red, is_blue = (red > 2 * blue) & (red > 2 * green), (blue > 2 * red) & (blue > green)
    assert is_red.any()
    assert is_blue.any()
    others = ~is_red & ~is_blue
    assert np.abs(red - blue)[others].max() < 10
    table = tmp_path / "other.parquet"
    spatialq_command("sql", "SELECT 1 AS a", "-o", table)
    result = spatialq_command("render", table, "-o", tmp_path / "b.png")
    assert "other.parquet': has no clashes, as column a_file is missing" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "a.jpg"], "error: render: output 'a.jpg' must end in one of .png"),
        (["-o", "a.png", "--eye", "1,2"], "error: render: --eye must be three numbers x,y,z such"),
        (["-o", "a.png", "--size", "0x9"], "error: render: --size must be width x height such as"),
        (["-o", "a.png", "--size", "big"], "error: render: --size must be width x height such as"),
        (["-o", "a.png", "--fov", "200"], "error: render: camera: fov must be "),
        (
            ["-o", "a.png", "--eye", "0,0,9", "--target", "0,0,0"],
            "error: render: camera: up must be across the view",
        ),
    ],
)
def test_errors_are_one_line(folder, tmp_path, arguments, message):
    result = spatialq_command("render", folder / "house.ifc", *arguments, cwd=tmp_path)
    assert result.returncode == 1
    assert result.stderr.startswith(message)
    assert len(result.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_models_and_clouds_in_other_coordinates_are_warned_about(folder, tmp_path):
    """The cloud lies near the origin, the map conversion of the house places it far away."""
    result = spatialq_command(
        "render", folder / "house.ifc", folder / "cloud.las", "-o", tmp_path / "a.png"
    )
    assert result.returncode == 0
    assert "warning: render: models and clouds are 5," in result.stderr
    assert "km apart" in result.stderr


def test_a_model_that_is_cut_off_is_named(folder, tmp_path):
    (tmp_path / "half.ifc").write_bytes((folder / "house.ifc").read_bytes()[:20000])
    result = spatialq_command("render", tmp_path / "half.ifc", "-o", tmp_path / "a.png")
    assert result.stderr.startswith(f"error: render: '{tmp_path}/half.ifc': cut off")
