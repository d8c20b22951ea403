"""Rasters written, read back with rasterio and Pillow, and shaded by hand."""

import json

import numpy as np
import pytest
import rasterio
from PIL import Image

import spatialq
from spatialq.database.table_files import write_table
from spatialq.errors import CrsError, FileError
from spatialq.export.raster import (
    Raster,
    from_cells,
    hillshade,
    write_terrain,
)
from spatialq.io import crs


@pytest.fixture
def hill():
    y, x = np.mgrid[0:700, 0:900]
    z = 300 + 40 * np.sin(x / 90) * np.cos(y / 70)
    z[:20, :30] = np.nan
    return z


def test_a_terrain_is_read_back_as_it_was(tmp_path, hill):
    target = tmp_path / "terrain.tif"
    write_terrain(target, Raster(hill, 500_000.5, 5_800_000.0, 0.5, "EPSG:25832"))
    with rasterio.open(target) as file:
        assert file.tags(ns="IMAGE_STRUCTURE")["LAYOUT"] == "COG"
        assert file.compression.name == "deflate"
        assert file.tags(ns="IMAGE_STRUCTURE")["PREDICTOR"] == "3"
        assert file.overviews(1)
        assert file.crs.to_epsg() == 25832
        assert tuple(file.bounds) == (500_000.5, 5_799_650.0, 500_450.5, 5_800_000.0)
        assert (file.dtypes, file.nodata) == (("float32",), -9999.0)
        read = file.read(1, masked=True)
    assert (read.mask == np.isnan(hill)).all()
    assert np.array_equal(read.filled(0), np.nan_to_num(hill).astype(np.float32))
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("code", ["EPSG:25832+7837", "EPSG:2193"])
def test_a_crs_as_projjson_or_wkt_is_kept(tmp_path, code):
    text = crs.from_text(code)
    for k, form in enumerate([text, crs.to_wkt(text)]):
        target = tmp_path / f"{k}.tif"
        write_terrain(target, Raster(np.zeros((4, 4)), 0.0, 0.0, 1.0, form))
        with rasterio.open(target) as file:
            assert crs.same(crs.from_text(file.crs.to_wkt()), text)


def test_without_crs_and_with_a_bad_one(tmp_path):
    target = tmp_path / "t.tif"
    write_terrain(target, Raster(np.zeros((4, 4)), 0.0, 9.0, 1.0))
    with rasterio.open(target) as file:
        assert file.crs is None
    with pytest.raises(CrsError, match="PROJ cannot read"):
        write_terrain(target, Raster(np.ones((4, 4)), 0.0, 9.0, 1.0, "EPSG:nonsense"))
    with rasterio.open(target) as file:
        assert file.read(1).max() == 0  # the file that was there is untouched
    with pytest.raises(FileError, match="there is no folder"):
        write_terrain(tmp_path / "missing" / "t.tif", Raster(np.zeros((4, 4)), 0.0, 9.0, 1.0))


@pytest.mark.parametrize(
    ("east", "south", "grey"),
    [
        # 1 + 254 cos(angle between normal and light), rounded: computed by hand
        (0.0, 0.0, 181),  # level: 1 + 254 / sqrt 2 = 180.6
        (1.0, 0.0, 218),  # rises to the east, faces west: (1/2 + 0.7071) / sqrt 2 = 0.8536
        (0.0, 1.0, 218),  # rises to the south, faces north
        (-1.0, 0.0, 38),  # faces east: (0.7071 - 1/2) / sqrt 2 = 0.1464
        (np.sqrt(0.5), np.sqrt(0.5), 255),  # faces the light
        (-1.0, -1.0, 1),  # turned away from it
    ],
)
def test_slopes_are_as_bright_as_horn_has_them(east, south, grey):
    row, column = np.mgrid[0:5, 0:6]
    shade = hillshade(Raster(2.0 * (east * column + south * row), 0.0, 0.0, 2.0))
    assert set(shade[1:-1, 1:-1].ravel().tolist()) == {grey}


def test_the_gradient_weighs_the_eight_neighbours_as_horn_does():
    z = np.array([[1.0, 4.0, 2.0], [7.0, 9.0, 3.0], [5.0, 8.0, 6.0]])
    east = ((2 + 2 * 3 + 6) - (1 + 2 * 7 + 5)) / 8 / 10
    south = ((5 + 2 * 8 + 6) - (1 + 2 * 4 + 2)) / 8 / 10
    light = (east / 2 + south / 2 + 0.5**0.5) / (1 + east**2 + south**2) ** 0.5
    assert hillshade(Raster(z, 0.0, 0.0, 10.0))[1, 1] == int(1 + 254 * light + 0.5)


def test_cells_in_any_order_make_a_raster():
    rng = np.random.default_rng(1)
    row, column = np.mgrid[0:7, 0:9]
    x, y = 500_000.35 + 0.7 * column.ravel(), 5_800_000.35 + 0.7 * row.ravel()
    order = rng.permutation(63)[:50]  # some are absent
    raster = from_cells(x[order], y[order], order.astype(float))
    assert raster.resolution == 0.7
    assert raster.west == pytest.approx(500_000, abs=1e-6)
    assert raster.north == pytest.approx(5_800_004.9, abs=1e-6)
    expected = np.full(63, np.nan)
    expected[order] = order
    assert np.array_equal(raster.z, expected.reshape(7, 9)[::-1], equal_nan=True)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([0.5], [0.5], "must have two cells or more, got 1"),
        ([], [], "must have two cells or more, got 0"),
        ([0.5, 1.5, 1.9], [0.5, 0.5, 0.5], "must be centres of square cells in regular rows"),
        ([0.5, 1.5, 2.5], [0.5, 0.75, 0.83], "must be centres of square cells in regular rows"),
        ([0.5, 1.5, 1.5], [0.5, 0.5, 0.5], "must have each cell once"),
        ([0.5, np.nan], [0.5, 0.5], "must be finite"),
        ([0.0, 0.01, 1e6], [0.0, 0.01, 1e6], "must have at most 268,435,456 cells"),
    ],
)
def test_what_is_no_grid_is_refused(x, y, message):
    with pytest.raises(ValueError, match=message):
        from_cells(x, y, np.zeros(len(x)))


@pytest.fixture
def site(tmp_path):
    with spatialq.connect() as con:
        write_terrain(
            tmp_path / "dem.tif", Raster(np.eye(20), 500_000.0, 5_800_020.0, 1.0, "EPSG:25832")
        )
        spatialq.load(con, tmp_path / "dem.tif", "dem")
        yield con


def test_a_query_that_gives_a_grid_can_be_a_geotiff(site, tmp_path):
    target = tmp_path / "out.tif"
    assert write_table(site, "SELECT z * 2 AS z, y, x FROM dem ORDER BY z", target) == 400
    with rasterio.open(target) as file:
        assert file.crs.to_epsg() == 25832
        assert tuple(file.bounds) == (500_000.0, 5_800_000.0, 500_020.0, 5_800_020.0)
        assert np.array_equal(file.read(1), 2 * np.eye(20, dtype=np.float32))


def test_ground_surface_goes_to_a_geotiff_and_a_hillshade(site, tmp_path):
    site.execute("CREATE TABLE points AS SELECT row_number() OVER () AS point_id, * FROM dem")
    query = "FROM ground_surface('points', source := 'points')"
    write_table(site, query, tmp_path / "out.TIF")
    write_table(site, query, tmp_path / "hillshade.png")
    expected = from_cells(*(site.sql(query).fetchnumpy()[c] for c in "xyz"))
    with rasterio.open(tmp_path / "out.TIF") as file:
        z = file.read(1, masked=True).filled(np.nan)
        assert np.array_equal(z, expected.z.astype(np.float32), equal_nan=True)
        assert file.crs is None  # `points` is no table that was loaded
    with Image.open(tmp_path / "hillshade.png") as image:
        times = 1000 // max(expected.z.shape)
        assert np.array_equal(np.asarray(image)[::times, ::times], hillshade(expected))


@pytest.mark.parametrize(
    ("query", "name", "message"),
    [
        ("SELECT x, y FROM dem", "a.tif", "must give the columns x, y, z of a grid, got x, y"),
        ("FROM dem LIMIT 0", "a.tif", "must have two cells or more, got 0"),
        ("FROM dem", "a.xyz", r"must end in one of .*\.csv, "),
        ("FROM dem", "no/a.tif", "there is no folder"),
    ],
)
def test_what_is_no_grid_is_refused_and_leaves_nothing(site, tmp_path, query, name, message):
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ValueError, match=message):
        write_table(site, query, tmp_path / name)
    assert sorted(tmp_path.iterdir()) == before


def test_tables_of_two_systems_make_no_raster(site, tmp_path):
    write_terrain(tmp_path / "other.tif", Raster(np.eye(3), 0.0, 3.0, 1.0, "EPSG:2193"))
    spatialq.load(site, tmp_path / "other.tif", "other")
    with pytest.raises(CrsError, match="reproject one of them first"):
        write_table(site, "FROM dem UNION ALL FROM other", tmp_path / "both.tif")
    assert json.loads(site.sql("SELECT crs FROM spatialq_sources").fetchall()[0][0])
