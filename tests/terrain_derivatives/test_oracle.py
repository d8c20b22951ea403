"""The kernel against published formulas, worked examples, exact surfaces; bands, files, units."""

import warnings

import duckdb
import numpy as np
import pytest
import rasterio
from spatialq.udfs.terrain_derivatives import cpu

import spatialq
from spatialq import cluster
from spatialq.data import grid as grids
from spatialq.export.raster import Raster, hillshade, write_terrain

from ..conftest import real_file
from ..kernels import run
from .cases import CASES, arguments
from .oracle import derivatives

ALL = cpu.DERIVATIVES


def run_on(z, dx=1.0, dy=None, **options):
    """Derivatives of heights whose first row is the northernmost, of the same shape."""
    z = np.asarray(z, np.float64)
    found = spatialq.run_grid(
        "terrain_derivatives", np.ascontiguousarray(z[::-1]), dx=dx, dy=dy or dx, **options
    )
    return {name: values.reshape(z.shape)[::-1] for name, values in found.items()}


def assert_same(found, expected):
    for name in ALL:
        if name == "hillshade":  # a whole number
            assert np.nanmax(np.abs(found[name] - expected[name]), initial=0) <= 0.5 + 1e-9
            assert np.array_equal(np.isnan(found[name]), np.isnan(expected[name]))
            continue
        apart = np.abs(found[name] - expected[name])
        if name == "aspect":
            apart = np.minimum(apart, 360 - apart)
        assert np.array_equal(np.isnan(found[name]), np.isnan(expected[name])), name
        assert np.nanmax(apart, initial=0) < 1e-9 * max(
            1, np.nanmax(np.abs(expected[name]), initial=1)
        )


@pytest.mark.parametrize("case", CASES)
def test_rows_are_those_of_the_formulas(case):
    given, options = arguments(case)
    grid = given["grid"]
    found = run("terrain_derivatives", "cpu", given, **options)
    rows, columns = np.indices(grid.z.shape)
    assert np.array_equal(found["x"], (grid.x0 + grid.dx * columns).ravel())
    assert np.array_equal(found["y"], (grid.y0 + grid.dy * rows).ravel())
    assert np.array_equal(found["z"], grid.z.ravel(), equal_nan=True)
    expected = derivatives(grid.z, grid.dx, grid.dy, **options)
    assert_same(found, {name: values.ravel() for name, values in expected.items()})


def test_the_worked_examples_of_arcgis():
    """Of the pages How Slope, How Aspect and How Hillshade works."""
    slope = run_on([[50, 45, 50], [30, 30, 30], [8, 10, 10]], 5.0)["slope"]
    assert slope[1, 1] == pytest.approx(75.25762, abs=5e-5)
    aspect = run_on([[101, 92, 85], [101, 92, 85], [101, 91, 84]], 5.0)["aspect"]
    assert aspect[1, 1] == pytest.approx(92.64, abs=5e-3)
    shade = run_on([[2450, 2461, 2483], [2452, 2461, 2483], [2447, 2455, 2477]], 5.0)["hillshade"]
    assert shade[1, 1] == 154  # 153.82 of 255; gdaldem's range is 1 to 255


@pytest.mark.parametrize(("east", "north", "aspect"), [
    (0, -0.5, 0), (-0.5, -0.5, 45), (-0.5, 0, 90), (0, 0.5, 180), (0.5, 0, 270), (0.5, -0.5, 315),
])  # fmt: skip
@pytest.mark.parametrize("gradient", ["horn", "zevenbergen_thorne"])
def test_a_plane(east, north, aspect, gradient):
    """The aspect of a plane is where water runs to, clockwise from north."""
    y, x = np.mgrid[6:0:-1, 0:7] * 2.0
    found = run_on(east * x + north * y + 3, 2.0, gradient=gradient)
    inner = {name: values[1:-1, 1:-1] for name, values in found.items()}
    assert inner["slope"] == pytest.approx(np.degrees(np.arctan(np.hypot(east, north))))
    assert inner["aspect"] == pytest.approx(aspect)
    for name in ("profile_curvature", "plan_curvature", "tpi"):
        assert inner[name] == pytest.approx(0, abs=1e-12)
    for name in ALL:
        assert np.isnan(found[name]).sum() == found[name].size - inner[name].size


def test_a_paraboloid():
    """z = (x^2 + y^2) / 2: gradient x, y, and a second derivative of 1 in all directions."""
    y, x = np.mgrid[9:-10:-1, -9:10] * 0.5
    found = run_on((x**2 + y**2) / 2, 0.5, slope_unit="percent", gradient="zevenbergen_thorne")
    inner = np.s_[1:-1, 1:-1]
    assert found["slope"][inner] == pytest.approx(100 * np.hypot(x, y)[inner])
    bottom = np.isnan(found["profile_curvature"][inner])
    assert np.argwhere(bottom).tolist() == [[8, 8]]  # where no direction is the steepest
    assert np.isnan(found["aspect"][9, 9])
    assert found["profile_curvature"][inner][~bottom] == pytest.approx(1)  # concave upwards
    assert found["plan_curvature"][inner][~bottom] == pytest.approx(-1)  # a hollow


def test_a_ridge_is_convex_in_plan():
    y, x = np.mgrid[5:0:-1, -3:4] * 1.0
    found = run_on(-(x**2) + y, 1.0)
    assert found["plan_curvature"][2, 3] == pytest.approx(2)
    assert found["profile_curvature"][2, 3] == pytest.approx(0)


def test_the_shade_with_edges_is_that_of_pictures():
    z = CASES["holes, edges"][0].z[::-1]
    found = run_on(z, 2.0, edges=True)["hillshade"]
    assert np.array_equal(np.nan_to_num(found, nan=0), hillshade(Raster(z, 0, 0, 2.0)))


def table(con, query):
    return {name: np.ma.filled(v, np.nan) for name, v in con.sql(query).fetchnumpy().items()}


def test_a_file_in_bands_is_as_one_grid(tmp_path, monkeypatch):
    """Bands of few rows, tiles of a job and a table of cells in any order give the same rows."""
    z = CASES["holes"][0].z[::-1].astype(np.float32)
    write_terrain(tmp_path / "dem.tif", Raster(z, 1000.0, 2000.0, 2.0, "EPSG:25832"))
    with spatialq.connect() as con:
        whole = table(con, f"FROM terrain_derivatives('{tmp_path}/dem.tif') ORDER BY y, x")
        assert whole["x"].size == z.size
        expected = derivatives(z[::-1], 2.0, 2.0)
        assert_same(whole, {name: values.ravel() for name, values in expected.items()})
        con.execute(
            f"CREATE TABLE cells AS FROM read_grid('{tmp_path}/dem.tif') ORDER BY hash(x + 9 * y)"
        )
        of_table = table(con, "FROM terrain_derivatives('cells') ORDER BY y, x")
        monkeypatch.setattr(grids, "BAND_RESULTS", 3 * z.shape[1])
        in_bands = table(con, f"FROM terrain_derivatives('{tmp_path}/dem.tif') ORDER BY y, x")
        cluster.run(
            "terrain_derivatives", f"{tmp_path}/dem.tif", tmp_path / "job", tile_size=14,
            executor="serial",
        )  # fmt: skip
        of_job = table(con, f"FROM '{tmp_path}/job/parts/*.parquet' ORDER BY y, x")
    for name in whole:
        assert np.array_equal(in_bands[name], whole[name], equal_nan=True)
        assert np.array_equal(of_job[name], whole[name], equal_nan=True)
        assert np.array_equal(of_table[name], whole[name], equal_nan=True)


def test_units_are_those_of_the_crs(tmp_path):
    """x and y in feet with heights in metres: slopes are right, heights stay in metres."""
    z = np.array([[3.0, 2, 1]] * 3)
    with rasterio.open(
        tmp_path / "feet.tif", "w", driver="GTiff", height=3, width=3, count=1, dtype="float64",
        crs="EPSG:2263+5703", transform=rasterio.Affine(10, 0, 980_000, 0, -10, 200_000),
    ) as file:  # fmt: skip
        file.write(z, 1)
    with spatialq.connect() as con, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        query = f"FROM terrain_derivatives('{tmp_path}/feet.tif') WHERE slope IS NOT NULL"
        found = table(con, query)
    assert found["slope"] == pytest.approx(np.degrees(np.arctan(1 / (10 * 1200 / 3937))))
    assert found["aspect"] == pytest.approx(90)
    assert found["z"] == pytest.approx(2)
    assert found["roughness"] == pytest.approx(2)
    assert any("heights were converted" in str(each.message) for each in said)


def test_degrees_are_refused(tmp_path):
    write_terrain(tmp_path / "d.tif", Raster(np.ones((4, 4)), 10.0, 50.0, 0.001, "EPSG:4326"))
    with spatialq.connect() as con, pytest.raises(duckdb.Error, match=r"to_crs := 'EPSG:32632'"):
        con.sql(f"FROM terrain_derivatives('{tmp_path}/d.tif')")


def test_a_real_terrain():
    path = real_file("data/dem/SainteHelens.dem")
    with rasterio.open(path) as file:
        z, spacing = file.read(1, masked=True, out_dtype="float64").filled(np.nan), file.res
    z = z[:300, :300]
    assert_same(
        run_on(z, *spacing), {k: v[::-1] for k, v in derivatives(z[::-1], *spacing).items()}
    )
