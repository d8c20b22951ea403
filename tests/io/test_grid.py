"""Grids against rasterio and NumPy read directly."""

import warnings

import duckdb
import numpy as np
import pytest
import rasterio
from rasterio import Affine

import spatialq
from spatialq.errors import CrsError, FileError, FileWarning
from spatialq.io.grid.source import GridSource

from ..conftest import real_file

QUERY = "SELECT count(*), count(z), min(z), max(z), min(x), max(x), min(y), max(y)"


def write_tif(path, z, *, nodata=None, crs="EPSG:25832", size=2.0, transform=None, **options):
    place = transform or (size, 0, 500000.0, 0, -size, 5600000.0)
    with rasterio.open(
        path, "w", driver="GTiff", height=z.shape[0], width=z.shape[1], count=1, dtype=z.dtype,
        crs=crs, transform=Affine(*place), nodata=nodata, **options,
    ) as file:  # fmt: skip
        file.write(z, 1)
    return path


@pytest.fixture
def hill():
    rng = np.random.default_rng(3)
    return rng.normal(400.0, 20.0, (300, 700)).astype(np.float32)


@pytest.mark.parametrize(
    "options",
    [{}, {"tiled": True, "blockxsize": 64, "blockysize": 128, "compress": "deflate"}],
    ids=["strips", "tiles"],
)
def test_every_cell_is_where_it_belongs(con, tmp_path, hill, options):
    hill[5, 7], hill[200, 650] = -9999, np.nan
    path = write_tif(tmp_path / "hill.tif", hill, nodata=-9999, **options)
    for relation in (
        con.sql(f"FROM read_grid('{path}')"),
        spatialq.read_grid(con, path, name="hill").relation(),
    ):
        x, y, z = (relation.fetchnumpy()[axis] for axis in "xyz")
        column, row = ((x - 500000.0) / 2 - 0.5).round(), ((5600000.0 - y) / 2 - 0.5).round()
        found = np.full(hill.shape, np.inf)
        found[row.astype(int), column.astype(int)] = z.filled(np.nan)
        expected = np.where(hill == -9999, np.nan, hill).astype(float)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(x, 500001.0 + 2 * column)
        assert z.size == hill.size


def test_blocks_of_any_shape_give_every_cell_once(con, tmp_path):
    z = np.arange(700 * 1500, dtype=np.float64).reshape(700, 1500)
    path = write_tif(tmp_path / "wide.tif", z, tiled=True, blockxsize=512, blockysize=512)
    query = f"SELECT count(*), count(DISTINCT z), sum(z) FROM read_grid('{path}')"
    assert con.sql(query).fetchall() == [(z.size, z.size, z.sum())]
    spatialq.read_grid(con, path, name="wide")
    query = "SELECT count(*), count(DISTINCT z), sum(z) FROM wide"
    assert con.sql(query).fetchall() == [(z.size, z.size, z.sum())]


def test_bounds_cut_exactly_in_the_macro_and_the_view(con, tmp_path, hill):
    path = write_tif(tmp_path / "hill.tif", hill)
    box = [500101.0, 5599801.0, 500201.0, 5599850.0]
    inside = f"x BETWEEN {box[0]} AND {box[2]} AND y BETWEEN {box[1]} AND {box[3]}"
    expected = con.sql(f"{QUERY} FROM read_grid('{path}') WHERE {inside}").fetchall()
    assert expected[0][0] == 51 * 25
    assert con.sql(f"{QUERY} FROM read_grid('{path}', bounds := {box})").fetchall() == expected
    spatialq.read_grid(con, path, name="part", bounds=box)
    assert con.sql(f"{QUERY} FROM part").fetchall() == expected
    outside = "bounds := [0, 0, 1, 1]"
    assert con.sql(f"FROM read_grid('{path}', {outside})").fetchall() == []


def test_integers_scale_and_band(con, tmp_path):
    path = tmp_path / "two.tif"
    with rasterio.open(
        path, "w", driver="GTiff", height=2, width=2, count=2, dtype="int16", nodata=-1,
        transform=Affine(1, 0, 0, 0, -1, 2),
    ) as file:  # fmt: skip
        file.write(np.array([[1, 2], [3, -1]], np.int16), 1)
        file.write(np.array([[10, 20], [30, -1]], np.int16), 2)
        file.scales, file.offsets = (1.0, 0.1), (0.0, 5.0)
    query = f"SELECT list(z ORDER BY y DESC, x) FROM read_grid('{path}', band := 2)"
    assert con.sql(query).fetchall() == [([6.0, 7.0, 8.0, None],)]
    with pytest.raises(duckdb.InvalidInputException, match="read_grid: band must be 1 to 2 for"):
        con.sql(f"FROM read_grid('{path}', band := 3)")


def test_a_nodata_value_that_no_file_declares(con, tmp_path, hill):
    hill[0, :3] = -9999
    path = write_tif(tmp_path / "hill.tif", hill)
    relation = spatialq.read_grid(con, path, nodata=-9999)
    assert relation.aggregate("count(z)").fetchall() == [(hill.size - 3,)]
    with spatialq.connect() as other, pytest.warns(FileWarning, match="nodata := -9999"):
        assert other.sql(f"SELECT count(z) FROM read_grid('{path}')").fetchall() == [(hill.size,)]


def test_a_nodata_value_that_no_cell_can_have(con, tmp_path, hill):
    hill[0, 0] = np.inf
    path = write_tif(tmp_path / "a.tif", hill)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = con.sql(f"SELECT count(z), max(z) FROM read_grid('{path}', nodata := 1e300)")
        assert found.fetchall() == [(hill.size, np.inf)]


def test_numpy_files(con, tmp_path):
    z = np.array([[1.0, 2.0, np.nan], [4.0, 5.0, 6.0]])
    np.save(tmp_path / "z.npy", z)
    rows = con.sql(f"FROM read_grid('{tmp_path}/z.npy') ORDER BY y DESC, x").fetchall()
    assert rows == [
        (0.5, 1.5, 1.0), (1.5, 1.5, 2.0), (2.5, 1.5, None),
        (0.5, 0.5, 4.0), (1.5, 0.5, 5.0), (2.5, 0.5, 6.0),
    ]  # fmt: skip


def test_a_crs_in_no_utf_8_is_no_crash(con, tmp_path, hill):
    wkt = rasterio.crs.CRS.from_proj4("+proj=tmerc +lon_0=9.5 +x_0=1234 +ellps=GRS80").to_wkt()
    path = write_tif(tmp_path / "a.tif", hill, crs=wkt.replace("unknown", "here_is_a_name", 1))
    raw = path.read_bytes()
    assert b"here_is_a_name" in raw
    path.write_bytes(raw.replace(b"here_is_a_name", b"here_is_\xe4_name"))
    with pytest.raises(FileError, match="cannot be read by GDAL: 'utf-8' codec can't decode"):
        spatialq.read_grid(con, path)


@pytest.mark.parametrize(
    ("name", "write", "message"),
    [
        ("none.tif", None, "there is no such file"),
        ("text.tif", b"this is no grid", "cannot be read by GDAL"),
        ("text.npy", b"this is no array", "is no .npy array"),
        ("cube.npy", np.zeros((2, 2, 2)), "must hold numbers in two dimensions"),
        ("words.npy", np.array([["a", "b"]]), "must hold numbers in two dimensions"),
        ("empty.npy", np.zeros((0, 3)), "must hold numbers in two dimensions"),
        ("cut.tif", "cut", "cannot be read by GDAL"),
        ("complex.tif", np.ones((3, 3), np.complex64), "must hold real numbers, got complex64"),
        ("flat.tif", (2.0, 0, 100.0, 0, 0, 300.0), r"has no usable georeference: \(2.0, 0.0, 10"),
        ("nan.tif", (2.0, 0, 100.0, 0, np.nan, 300.0), r"has no usable georeference: \(2.0, 0.0"),
    ],
)
def test_files_that_are_no_grids(con, tmp_path, hill, name, write, message):
    path = tmp_path / name
    if isinstance(write, bytes):
        path.write_bytes(write)
    elif path.suffix == ".npy":
        np.save(path, write)
    elif isinstance(write, np.ndarray):
        write_tif(path, write)
    elif isinstance(write, tuple):
        write_tif(path, hill, transform=write)
    elif write == "cut":
        whole = write_tif(tmp_path / "whole.tif", hill).read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(duckdb.Error, match=f"read_grid: '{path}': {message}"):
        con.sql(f"SELECT sum(z) FROM read_grid('{path}')").fetchall()
    with pytest.raises((FileError, duckdb.Error), match=message):
        spatialq.read_grid(con, path).fetchall()


def test_several_files_need_one_crs(con, tmp_path, hill):
    for name in ("a", "b"):
        write_tif(tmp_path / f"{name}.tif", hill)
    query = f"SELECT file_name, count(*) FROM read_grid('{tmp_path}/*.tif') GROUP BY ALL ORDER BY 1"
    expected = [(str(tmp_path / f"{name}.tif"), hill.size) for name in ("a", "b")]
    assert con.sql(query).fetchall() == expected
    write_tif(tmp_path / "c.tif", hill, crs="EPSG:25833")
    with pytest.raises(duckdb.InvalidInputException, match="is in ETRS89 / UTM zone 32N"):
        con.sql(query)
    with pytest.raises(CrsError, match="is in ETRS89 / UTM zone 32N"):
        spatialq.read_grid(con, tmp_path / "*.tif")


REAL = {
    "Exploradores_ASTER_Z.tif": (618 * 539, "EPSG:32718"),
    "N27E086.hgt": (1201 * 1201, "EPSG:4326"),
    "SainteHelens.dem": (468 * 327, "EPSG:26710"),
    "bigtujunga_srtm30m.tif": (643 * 1197, "EPSG:32611"),
    "landlab_tidal_zSW3.asc": (452 * 300, None),
    "opengeos_lidar_dem.tif": (400 * 400, "EPSG:26915"),
    "pysheds_dem.tif": (359 * 367, "EPSG:4326"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_grids(con, name):
    path = real_file(f"data/dem/{name}")
    cells, code = REAL[name]
    with rasterio.open(path) as file:
        z = file.read(1, masked=True)
        left, bottom, right, top = file.bounds
    count, values, low, high, *extent = con.sql(f"{QUERY} FROM read_grid('{path}')").fetchall()[0]
    assert (count, values, low, high) == (cells, z.count(), float(z.min()), float(z.max()))
    assert left < extent[0] < extent[1] < right
    assert bottom < extent[2] < extent[3] < top
    (record,) = spatialq.load(con, path, "g")
    assert code is None or code in con.sql("SELECT crs_name FROM spatialq_sources").fetchall()[0][0]
    assert record.rows == cells


def test_real_numpy_and_archives(con):
    path = real_file("data/dem/EMD_andrews_x1_trueDTM.npy")
    z = np.load(path)
    assert con.sql(f"SELECT count(*), max(z) FROM read_grid('{path}')").fetchall() == [
        (z.size, z.max())
    ]
    for name in ("POPS_GEDI_Etna.npz", "etopo20data.gz"):
        with pytest.raises(duckdb.InvalidInputException, match="cannot be read by GDAL"):
            con.sql(f"FROM read_grid('{real_file(f'data/dem/{name}')}')")


@pytest.mark.parametrize("order", ["from the north", "from the south", "from the east"])
def test_an_overview_has_every_so_many_cells(tmp_path, hill, order):
    hill[0, 0] = -9999
    z, north, east = {
        "from the north": (hill, 1, 1),
        "from the south": (hill[::-1], -1, 1),
        "from the east": (hill[:, ::-1], 1, -1),
    }[order]
    path = tmp_path / "a.tif"
    with rasterio.open(
        path, "w", driver="GTiff", height=300, width=700, count=1, dtype=z.dtype, nodata=-9999,
        transform=Affine(2.0 * east, 0, 500000.0, 0, -2.0 * north, 5600000.0),
    ) as file:  # fmt: skip
        file.write(z, 1)
    whole = GridSource(path).overview(700)
    assert np.isnan(whole[0, 0])
    np.testing.assert_array_equal(whole.ravel()[1:], hill.ravel()[1:])
    part = GridSource(path).overview(100)
    assert part.shape == (43, 100)
    rows, columns = (((np.arange(n) + 0.5) * m / n).astype(int) for n, m in ((43, 300), (100, 700)))
    np.testing.assert_array_equal(part, z[np.ix_(rows, columns)][::north, ::east])


def test_an_overview_of_an_array(tmp_path, hill):
    hill[14, 0] = np.nan
    np.save(tmp_path / "a.npy", hill)
    np.testing.assert_array_equal(GridSource(tmp_path / "a.npy").overview(100), hill[::7, ::7])
