"""`spatialq terrain`: rasters, tables, contours and pictures of a grid."""

import json

import numpy as np
import pyarrow.parquet as pq
import pyogrio.raw
import pytest
import rasterio
from PIL import Image

import spatialq
from spatialq.data import grid as grids
from spatialq.errors import CrsError
from spatialq.export.raster import Raster, hillshade, write_terrain

from .command_line import spatialq_command

RNG = np.random.default_rng(4)


def run(*arguments):
    done = spatialq_command(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def z():
    y, x = np.mgrid[:40, :50]
    heights = 20 * np.sin(x / 9) * np.cos(y / 8) + RNG.normal(0, 0.1, x.shape)
    heights[5, 7] = np.nan
    return heights.astype(np.float32)


@pytest.fixture
def dem(z, tmp_path):
    write_terrain(tmp_path / "dem.tif", Raster(z, 500_000.0, 5_600_080.0, 2.0, "EPSG:25832"))
    return tmp_path / "dem.tif"


def test_rasters_have_the_values_of_the_function(z, dem, tmp_path, monkeypatch):
    monkeypatch.setattr(grids, "BAND_RESULTS", 7 * z.shape[1])  # several bands of rows
    told = []
    row = spatialq.write_terrain_products(
        dem, [tmp_path / "all.tif", tmp_path / "t.parquet"], azimuth=90.0,
        progress=lambda *what: told.append(what),
    )  # fmt: skip
    assert row["cells"] == z.size
    assert told[-1] == (dem, z.size, z.size)
    expected = spatialq.run_grid(
        "terrain_derivatives", np.ascontiguousarray(z[::-1]), dx=2.0, azimuth=90.0
    )
    table = pq.read_table(tmp_path / "t.parquet").sort_by([("y", "ascending"), ("x", "ascending")])
    with rasterio.open(tmp_path / "all.tif") as file, rasterio.open(dem) as source:
        assert file.transform == source.transform
        assert file.crs == source.crs
        assert file.descriptions == tuple(table.column_names[3:])
        for k, name in enumerate(file.descriptions):
            values = file.read(k + 1, masked=True).filled(np.nan)[::-1].ravel()
            assert np.array_equal(values, expected[name].astype(np.float32), equal_nan=True)
            there = table[name].to_numpy(zero_copy_only=False)
            assert np.array_equal(there, expected[name], equal_nan=True)


def test_chosen_bands_contours_and_a_picture(z, dem, tmp_path):
    targets = [tmp_path / name for name in ("slope.tif", "c.gpkg", "relief.png")]
    row = json.loads(run(
        "terrain", dem, *(f"-o{each}" for each in targets), "--show", "aspect,slope",
        "--interval", "5", "--base", "1", "--altitude", "30", "--json",
    ))  # fmt: skip
    with rasterio.open(targets[0]) as file:
        assert file.descriptions == ("aspect", "slope")
    known, _, lines, (heights, *_) = pyogrio.raw.read(targets[1])
    assert known["crs"] == "EPSG:25832"
    assert set(heights % 5) == {1}
    assert row[0]["contours"] == len(lines) > 4
    picture = np.array(Image.open(targets[2]))
    times = picture.shape[0] // z.shape[0]
    plain = hillshade(Raster(z.astype(float), 0, 0, 2.0), 315.0, 30.0)
    shade = plain.repeat(times, axis=0).repeat(times, axis=1)
    drawn = picture != shade
    assert set(picture[drawn]) == {1}
    assert 0.01 < drawn.mean() < 0.2
    # a line is where heights on either side of it differ from the contour in sign
    side = np.floor((z - 1) / 5).repeat(times, axis=0).repeat(times, axis=1)
    rows, columns = np.nonzero(drawn)
    near = [
        len(np.unique(side[max(r - times, 0) : r + times + 1, max(c - times, 0) : c + times + 1]))
        for r, c in zip(rows[::50], columns[::50], strict=True)
    ]
    assert min(near) > 1


def test_a_job_writes_a_table(z, dem, tmp_path):
    run("terrain", dem, "-o", tmp_path / "job", "--tile-size", "30", "--executor", "serial")
    with spatialq.connect() as con:
        rows = con.sql(f"SELECT count(*), count(slope) FROM '{tmp_path}/job/parts/*.parquet'")
        ((cells, with_slope),) = rows.fetchall()
    assert (cells, with_slope) == (z.size, 38 * 48 - 9)


@pytest.mark.parametrize(("outputs", "options", "error"), [
    (["c.gpkg"], {}, "terrain: interval must be given for the contours in "),
    (["c.gpkg"], {"interval": 0.0}, "contours: interval must be > 0"),
    (["s.tif"], {"show": ["steepness"]}, "terrain: show must be of slope, aspect, .*'steepness'"),
    (["s.tif"], {"azimuth": 400.0}, "terrain_derivatives: azimuth must be >= 0 and <= 360 degrees"),
    (["s.tif"], {"colour": 1}, "terrain_derivatives: no option 'colour'"),
    (["s.las"], {}, "terrain: output '.*s.las' must end in one of"),
    ([], {}, "terrain: outputs must be one file or more, got 0"),
])  # fmt: skip
def test_what_is_refused(dem, tmp_path, outputs, options, error):
    with pytest.raises(ValueError, match=error):
        spatialq.write_terrain_products(dem, [tmp_path / name for name in outputs], **options)


def test_one_file_in_metres(dem, tmp_path):
    write_terrain(tmp_path / "d.tif", Raster(np.ones((4, 4)), 10.0, 50.0, 0.001, "EPSG:4326"))
    with pytest.raises(ValueError, match="terrain: source must be one file, got 2"):
        spatialq.write_terrain_products([dem, tmp_path / "d.tif"], tmp_path / "s.tif")
    with pytest.raises(ValueError, match=r"terrain: 8 bands of 2,000 cells need .* show fewer"):
        spatialq.write_terrain_products(dem, tmp_path / "s.tif", memory=0.0001)
    for name in ("s.tif", "s.png", "s.parquet"):
        with pytest.raises(CrsError, match="is not projected"):
            spatialq.write_terrain_products(tmp_path / "d.tif", tmp_path / name)
