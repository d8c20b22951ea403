"""Pictures of hillshades: their size, and their place on the map as rasterio reads it."""

import numpy as np
import pytest
import rasterio
from PIL import Image

from spatialq.export.hillshade import LARGE, SMALL, coarser, write_hillshade
from spatialq.export.raster import Raster


def test_missing_heights_are_transparent_and_spoil_no_neighbour(tmp_path):
    z = np.zeros((4, 5))
    z[1, 2] = np.nan
    target = tmp_path / "hillshade.png"
    write_hillshade(target, Raster(z, 0.0, 0.0, 1.0))
    with Image.open(target) as image:
        assert (image.mode, image.size, image.info["transparency"]) == ("L", (1000, 800), 0)
        cells = np.asarray(image).reshape(4, 200, 5, 200)
    assert (cells == cells[:, :1, :, :1]).all()
    assert cells[1, 0, 2, 0] == 0
    assert np.delete(cells[:, 0, :, 0].ravel(), 7).tolist() == [181] * 19


@pytest.mark.parametrize("shape", [(3, 7), (1000, 20), (4000, 1000), (30, 4001), (8002, 9)])
def test_the_picture_lies_where_the_cells_are(tmp_path, shape):
    rows, columns = shape
    raster = Raster(np.zeros(shape), 500_000.25, 5_800_000.0, 0.5, "EPSG:25832+7837")
    write_hillshade(tmp_path / "h.png", raster)
    with rasterio.open(tmp_path / "h.png") as file:
        assert SMALL / 2 < max(file.shape) <= LARGE
        assert "DHHN2016" in file.crs.to_wkt()
        west, south, east, north = file.bounds
        pixel = file.transform.a
        assert file.transform.e == -pixel
    assert (west, north) == pytest.approx((500_000.25, 5_800_000.0), abs=1e-6)
    # of several cells that are one pixel, the last may be fewer
    assert 0 <= east - (west + columns * 0.5) < max(pixel, 1e-6)
    assert -max(pixel, 1e-6) < south - (north - rows * 0.5) <= 1e-6
    names = sorted(each.name for each in tmp_path.iterdir())
    assert names == ["h.pgw", "h.png", "h.png.aux.xml"]


def test_an_unknown_crs_takes_the_place_of_an_older_one(tmp_path):
    write_hillshade(tmp_path / "h.png", Raster(np.eye(3), 0.0, 3.0, 1.0, "EPSG:25832"))
    write_hillshade(tmp_path / "h.png", Raster(np.eye(3), 9.0, 3.0, 1.0))
    with rasterio.open(tmp_path / "h.png") as file:
        assert file.crs is None
        assert file.bounds.left == 9.0


def test_cells_are_averaged():
    z = np.array([[1.0, 3.0, np.nan], [5.0, 7.0, 4.0], [np.nan, np.nan, 8.0]])
    coarse = coarser(Raster(z, 10.0, 20.0, 2.0), 2)
    assert np.array_equal(coarse.z, [[4.0, 4.0], [np.nan, 8.0]], equal_nan=True)
    assert (coarse.west, coarse.north, coarse.resolution) == (10.0, 20.0, 4.0)
