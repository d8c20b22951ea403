"""The terrain of a survey in GeoTIFF parts: the cells of the one that the command writes."""

import laspy
import numpy as np
import pyproj
import pytest

from spatialq import cluster
from spatialq.errors import FileError, FileWarning
from spatialq.workflows.ground import write_ground
from tests.cluster import surveys
from tests.cluster.test_jobs import wait_for_lines
from tests.command_line import rows as command_rows
from tests.command_line import spatialq_command
from tests.conftest import made_once, real_file

rasterio = pytest.importorskip("rasterio")

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

TIF = {"part_format": "tif"}


def make(folder):
    """Tiles with a hole between them, noise far from all, classes that are kept, and an overlap."""
    surveys.make(folder, columns=3, rows=3)
    rng = np.random.default_rng(5)
    (folder / "tile_1_1.laz").unlink()
    for k, path in enumerate(sorted(folder.iterdir())):
        cloud = laspy.read(path)
        cloud.classification = rng.choice([0, 1, 2, 7, 9, 17, 18], len(cloud))
        x, y = np.array(cloud.x), np.array(cloud.y)
        x[cloud.classification == 18] -= 900.0
        if k == 5:
            y -= 12.3
        cloud.x, cloud.y = x, y
        cloud.write(path)
    return folder


@pytest.fixture(scope="session")
def holed(tmp_path_factory):
    return made_once(tmp_path_factory, "terrain_survey", make)


def read(path):
    with rasterio.open(path) as file:
        about = file.crs, file.dtypes, file.nodata
        return file.read(1), file.transform, about


def require_same(folder, whole):
    """Each value of the whole is in one part, and nothing else is in any."""
    expected, place, about = read(whole)
    nodata = about[-1]
    found, times = np.full_like(expected, nodata), np.zeros(expected.shape, int)
    for path in folder.iterdir():
        part, at, of_part = read(path)
        assert of_part == about
        assert (at.a, at.e) == (place.a, place.e)
        assert (at.c, at.f) == (round(at.c / at.a) * at.a, round(at.f / at.a) * at.a)
        column, row = (at.c - place.c) / place.a, (at.f - place.f) / place.e
        window = np.s_[
            round(row) : round(row) + part.shape[0], round(column) : round(column) + part.shape[1]
        ]
        assert found[window].shape == part.shape
        valued = part != nodata
        found[window][valued] = part[valued]
        times[window] += valued
    assert found.tobytes() == expected.tobytes()
    assert np.array_equal(times, expected != nodata)
    return int(times.sum())


CASES = {
    "as it is": {},
    "fine": {"resolution": 0.5},
    "coarse": {"resolution": 7.3, "extrapolate": True},
    "idw": {"method": "idw", "neighbours": 3, "extrapolate": True},
    "bounds": {"bounds": [1013.3, 5007.7, 1081.0, 5088.8]},
}


@pytest.mark.slow
@pytest.mark.parametrize("tile_size", [None, 23.7, 30.0])
@pytest.mark.parametrize("name", CASES)
def test_parts_have_the_cells_of_one_terrain(
    at_once, holed, tmp_path, tmp_path_factory, name, tile_size
):
    options, out = CASES[name], tmp_path / "out"
    made = cluster.run("classify_ground", holed, out, tile_size=tile_size, **TIF, **options)
    whole = made_once(
        tmp_path_factory, f"terrain {name}",
        lambda folder: write_ground(holed, folder / "whole.tif", **options),
    )  # fmt: skip
    assert made["rows"] == require_same(out / "parts", whole / "whole.tif")
    assert not (out / "stages").exists()


@pytest.mark.slow
def test_a_part_has_the_cells_of_its_tile(at_once, holed, tmp_path):
    """Tiles without points, too, as of the hole."""
    out = tmp_path / "out"
    cluster.run("classify_ground", holed, out, tile_size=30.0, **TIF)
    for path in (out / "parts").iterdir():
        column, row = map(int, path.stem.split("_"))
        with rasterio.open(path) as file:
            bounds = file.bounds
            values = file.read(1)
        assert bounds.left >= 30 * column
        assert bounds.right <= 30 * (column + 1)
        assert bounds.bottom >= 30 * row
        assert bounds.top <= 30 * (row + 1)
        if path.stem == "34_168":
            assert (values != file.nodata).all()
            break
    else:
        pytest.fail("no part of the tile in the hole")


@pytest.mark.slow
def test_a_part_has_the_name_and_the_box_of_its_file(at_once, holed, tmp_path):
    out = tmp_path / "out"
    cluster.run("classify_ground", holed, out, **TIF)
    names = {path.stem for path in (out / "parts").iterdir()}
    assert names == {path.stem for path in holed.iterdir()}
    with rasterio.open(out / "parts" / "tile_0_0.tif") as file:
        assert file.bounds[:2] == (1000.0, 5000.0)


@pytest.mark.slow
@pytest.mark.parametrize("crs", ["EPSG:2263", "EPSG:25832+8228"])
def test_units_of_files(at_once, holed, tmp_path, crs):
    copy = tmp_path / "tiles"
    copy.mkdir()
    for path in sorted(holed.iterdir()):
        cloud = laspy.read(path)
        cloud.points = cloud.points[cloud.classification != 18]
        cloud.header.add_crs(pyproj.CRS(crs))
        cloud.write(copy / path.name)
    for tile_size in (None, 40.0):
        out = tmp_path / f"out {tile_size}"
        cluster.run("classify_ground", copy, out, tile_size=tile_size, **TIF)
        write_ground(copy, tmp_path / "whole.tif")
        assert require_same(out / "parts", tmp_path / "whole.tif") > 1000


@pytest.mark.slow
def test_no_points(at_once, holed, tmp_path):
    with pytest.warns(FileWarning, match="no point is within the bounds"):
        made = cluster.run("classify_ground", holed, tmp_path / "out", bounds=[0, 0, 1, 1], **TIF)
    assert (made["rows"], made["parts"]) == (0, 0)


@pytest.mark.slow
def test_the_command(holed, tmp_path):
    out = tmp_path / "out"
    options = ["--resolution", "50cm", "--object-width", "40m"]
    job = ["--executor", "local", "--part-format", "tif"]
    (made,) = command_rows("ground", holed, "-o", out, *job, *options)
    write_ground(holed, tmp_path / "whole.tif", resolution=0.5, object_width=40.0)
    assert made["rows"] == require_same(out / "parts", tmp_path / "whole.tif")
    again = spatialq_command("ground", holed, "-o", out, *job, "--resume", *options[2:])
    assert "begun with another resolution, 0.5, not 1.0" in again.stderr


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"resolution": 0.0}, "resolution must be .* got 0"),
        ({"resolution": "1m"}, "resolution must be .* got '1m'"),
        ({"method": "spline"}, "method must be .* got 'spline'"),
    ],
)
def test_wrong_options(holed, tmp_path, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        cluster.run("classify_ground", holed, tmp_path / "out", **TIF, **options)
    assert not (tmp_path / "out").exists()


def test_two_parts_of_one_name(at_once, holed, tmp_path):
    laspy.read(holed / "tile_0_0.laz").write(tmp_path / "tile_0_0.las")
    sources = [holed / "tile_0_0.laz", tmp_path / "tile_0_0.las"]
    with pytest.raises(FileError, match=r"would both be 'tile_0_0\.tif' in it"):
        cluster.run("classify_ground", sources, tmp_path / "out", **TIF)


@pytest.mark.slow
def test_a_job_that_is_killed_goes_on(holed, tmp_path):
    """After the stage of the surface, whose file the parts are cut from."""
    out, lines = tmp_path / "out", 35
    process = surveys.begin(holed, out, function="classify_ground", unit=None, **TIF)
    wait_for_lines(out, lines, process)
    process.kill()
    process.communicate(timeout=60)
    cluster.run("classify_ground", holed, out, workers=2, resume=True, **TIF)
    write_ground(holed, tmp_path / "whole.tif")
    require_same(out / "parts", tmp_path / "whole.tif")
    assert surveys.journal_lines(out) == 4 * 8 + 3 + 8


@pytest.mark.slow
def test_real_tiles(at_once, tmp_path):
    cloud = laspy.read(real_file("data/lidar/ahn3_cropped_1.laz"))
    tiles = surveys.cut(cloud, tmp_path / "tiles")
    write_ground(tiles, tmp_path / "whole.tif")
    for tile_size in (None, 17.0):
        out = tmp_path / f"out {tile_size}"
        made = cluster.run("classify_ground", tiles, out, tile_size=tile_size, **TIF)
        assert made["rows"] == require_same(out / "parts", tmp_path / "whole.tif")
