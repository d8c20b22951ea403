"""`to_crs` of the readers, of `load` and of functions of files; `spatialq_transform` in SQL."""

import json
import math
import warnings
from pathlib import Path

import duckdb
import numpy as np
import pyproj
import pytest
import rasterio
from rasterio.enums import Resampling
from rasterio.transform import Affine
from rasterio.vrt import WarpedVRT

import spatialq
from spatialq.errors import CrsError, CrsWarning, FileError, FileWarning
from spatialq.io.crs import from_text, same
from spatialq.io.grid.grids import find_grids
from tests.command_line import spatialq_command
from tests.io.las_files import truth, write

N = 150_000


@pytest.fixture(scope="module")
def cloud(tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp("cloud") / "a.las", 3, N, crs="EPSG:25832")


def by_pyproj(path: Path, target: str, source: str = "EPSG:25832") -> np.ndarray:
    loop = pyproj.Transformer.from_crs(source, target, always_xy=True)
    return np.array([*loop.transform(truth(path, "x"), truth(path, "y")), truth(path, "z")])


def read(con, text: str, columns: str = "x, y, z") -> np.ndarray:
    found = con.sql(f"SELECT {columns} FROM {text}").fetchnumpy()
    return np.array([np.ma.filled(values, np.nan) for values in found.values()])


@pytest.mark.parametrize("reader", ["read_las", "read_points"])
@pytest.mark.parametrize("target", ["EPSG:25833", "EPSG:4258", "EPSG:3035"])
def test_points_of_files(con, cloud, reader, target):
    """In SQL and as a view, against a loop over pyproj."""
    expected = by_pyproj(cloud, target)
    found = read(con, f"{reader}('{cloud}', to_crs := '{target}') ORDER BY point_id")
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-9)
    getattr(spatialq, reader)(con, cloud, name="moved", to_crs=target)
    np.testing.assert_allclose(read(con, "moved"), expected, rtol=1e-15, atol=1e-9)
    rows = getattr(spatialq, reader)(con, cloud, to_crs=target)
    assert rows.sql().count(target) == 1


def test_bounds_count_in_the_target(con, cloud):
    expected = by_pyproj(cloud, "EPSG:4258")
    west, south, east, north = (
        *np.quantile(expected[:2], 0.3, 1),
        *np.quantile(expected[:2], 0.6, 1),
    )
    inside = np.flatnonzero(
        (west <= expected[0])
        & (expected[0] <= east)
        & (south <= expected[1])
        & (expected[1] <= north)
    )
    bounds = [float(side) for side in (west, south, east, north)]
    text = f"read_las('{cloud}', to_crs := 'EPSG:4258', bounds := {bounds})"
    np.testing.assert_array_equal(read(con, f"{text} ORDER BY 1", "point_id")[0], inside)
    spatialq.read_las(con, cloud, name="moved", to_crs="EPSG:4258", bounds=bounds)
    np.testing.assert_array_equal(read(con, "moved", "point_id")[0], inside)
    spatialq.read_las(con, cloud, name="moved", to_crs="EPSG:4258")
    pushed = f"moved WHERE x >= {west} AND x <= {east} AND y >= {south} AND y <= {north}"
    np.testing.assert_array_equal(read(con, pushed, "point_id")[0], inside)


def test_nothing_is_done_to_what_is_there(con, cloud):
    """To the bit: neither the coordinates nor the scale of the file are lost."""
    found = read(con, f"read_las('{cloud}', to_crs := 'EPSG:25832') ORDER BY point_id")
    np.testing.assert_array_equal(found, read(con, f"read_las('{cloud}') ORDER BY point_id"))


def test_files_of_several_systems_together(con, tmp_path):
    one = write(tmp_path / "a.las", 3, 500, crs="EPSG:25832")
    other = write(tmp_path / "b.las", 3, 700, crs="EPSG:25833")
    with pytest.raises(duckdb.Error, match=r"is in .*33N"):
        con.sql(f"FROM read_las('{tmp_path}/*.las')")
    expected = np.hstack([by_pyproj(one, "EPSG:3035"), by_pyproj(other, "EPSG:3035", "EPSG:25833")])
    found = read(con, f"read_las('{tmp_path}/*.las', to_crs := 'EPSG:3035') ORDER BY point_id")
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-9)
    records = spatialq.load(con, [one, other], "together", to_crs="EPSG:3035")
    assert [record.rows for record in records] == [500, 700]
    np.testing.assert_allclose(
        read(con, "together ORDER BY point_id"), expected, rtol=1e-15, atol=1e-9
    )
    comment = con.sql(
        "SELECT comment FROM duckdb_tables() WHERE table_name = 'together'"
    ).fetchall()
    assert json.loads(comment[0][0])["crs"] == "EPSG:3035"
    assert "scale" not in json.loads(comment[0][0])  # of the file: it does not fit any more
    ((west, east),) = con.sql("SELECT min(xmin), max(xmax) FROM spatialq_sources").fetchall()
    assert west <= expected[0].min() < expected[0].max() <= east


def test_load_names_the_crs_that_is_missing(con, tmp_path):
    path = write(tmp_path / "a.las", 3, 10)
    with pytest.raises(CrsError, match=r"load: to_crs: '.*a.las' has no CRS to reproject from"):
        spatialq.load(con, path, to_crs="EPSG:3035")
    spatialq.load(con, path, crs="EPSG:25832", to_crs="EPSG:3035")
    expected = by_pyproj(path, "EPSG:3035")
    np.testing.assert_allclose(read(con, "points ORDER BY point_id"), expected, atol=1e-9)


def test_a_query_has_the_crs_of_the_target(con, cloud):
    """Functions get it: of degrees they make an error, of metres none."""
    degrees = f"SELECT * FROM read_las('{cloud}', to_crs := 'EPSG:4258')"
    with pytest.raises(duckdb.Error, match=r"the CRS of 'a', ETRS89 .*4258.*, is not projected"):
        con.sql(f"WITH a AS ({degrees}) SELECT count(*) FROM classify_ground('a')").fetchall()
    con.sql(f"CREATE VIEW b AS SELECT * FROM read_las('{cloud}', to_crs := 'EPSG:25833') LIMIT 10")
    with warnings.catch_warnings():
        warnings.simplefilter("error", CrsWarning)
        con.sql("SELECT count(*) FROM classify_ground('b')").fetchall()


def test_a_file_in_degrees_says_what_reprojects_it(con, tmp_path):
    path = tmp_path / "degrees.las"
    import laspy

    header = laspy.LasHeader(point_format=3, version="1.4")
    header.scales, header.offsets = [1e-7, 1e-7, 0.01], [9, 50, 0]
    header.add_crs(pyproj.CRS("EPSG:4326"))
    points = laspy.LasData(header)
    points.x, points.y, points.z = np.array([9.1, 9.2]), np.array([50.1, 50.2]), np.zeros(2)
    points.write(path)
    with pytest.raises(duckdb.Error) as raised:
        con.sql(f"FROM classify_ground('{path}')").fetchall()
    remedy = f"read_points('{path}', to_crs := 'EPSG:32632')"
    assert f"{remedy} reprojects them" in str(raised.value)
    assert con.sql(f"SELECT count(*) FROM {remedy} WHERE x > 500000").fetchall() == [(2,)]


def test_points_outside_the_domain_are_left_out_and_counted(con, tmp_path):
    import laspy

    header = laspy.LasHeader(point_format=3, version="1.4")
    header.scales, header.offsets = [1.0, 1.0, 1.0], [0, 0, 0]
    header.add_crs(pyproj.CRS("EPSG:25832"))
    points = laspy.LasData(header)
    points.x, points.y, points.z = (
        np.array([5e5, 1e9, 6e5]),
        np.full(3, 5.6e6),
        np.array([1.0, 2, 3]),
    )
    path = tmp_path / "far.las"
    points.write(path)
    with pytest.warns(FileWarning, match=r"'.*far.las': 1 point is left out, as it lies outside"):
        (record,) = spatialq.load(con, path, to_crs="EPSG:4258")
    assert record.rows == 2
    assert con.sql("SELECT list(point_id), list(z) FROM points").fetchall() == [
        ([0, 2], [1.0, 3.0])
    ]
    assert "1 point is left out" in record.warnings[0]


def test_a_missing_grid_is_a_warning_of_each_door(con, tmp_path):
    path = write(tmp_path / "old.las", 3, 10, crs="EPSG:31466", offsets=(2_500_000, 5_600_000, 0))
    says = r"accurate to \d m; it would be better with .*BETA2007.tif \(0.9 m\)"
    with pytest.warns(CrsWarning, match=f"read_las: .*{says}"):
        spatialq.read_las(con, path, name="old", to_crs="EPSG:25832")
    with pytest.warns(CrsWarning, match=f"load: .*{says}"):
        (record,) = spatialq.load(con, path, to_crs="EPSG:25832")
    assert "BETA2007" in record.warnings[0]
    with pytest.warns(CrsWarning, match=f"spatialq_transform: .*{says}"):
        con.sql(
            "SELECT spatialq_transform(2500000, 5600000, 0, 'EPSG:31466', 'EPSG:25832')"
        ).fetchall()
    asked = "SELECT unnest(spatialq_operation('EPSG:31466', 'EPSG:25832'))"
    ((operation, accuracy, note),) = con.sql(asked).fetchall()
    assert ("DHDN to ETRS89 (2)" in operation, accuracy) == (True, 3)
    assert "BETA2007" in note


def test_transform_of_columns(con):
    """Rows come in chunks and in several threads; the operation is one for all of them."""
    con.sql(
        "CREATE TABLE t AS SELECT i, 2500000.0 + i % 1000 * 100 AS x, 5400000 + i AS y, "
        "CASE WHEN i % 3 > 0 THEN i::DOUBLE END AS z FROM range(300000) r(i)"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrsWarning)
        found = con.sql(
            "SELECT t.x, t.y, t.z FROM (SELECT i, spatialq_transform(x, y, z, 'EPSG:31466', "
            "'EPSG:25832') AS t FROM t) ORDER BY i"
        ).fetchnumpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = pyproj.transformer.TransformerGroup("EPSG:31466", "EPSG:25832", always_xy=True)
    shift = next(t for t in group.transformers if "DHDN to ETRS89 (2)" in t.description)
    given = con.sql("SELECT x, y, z FROM t ORDER BY i").fetchnumpy()
    expected = shift.transform(given["x"], given["y"])
    np.testing.assert_allclose((found["x"], found["y"]), expected, rtol=1e-15)
    np.testing.assert_array_equal(np.ma.filled(found["z"], -1), np.ma.filled(given["z"], -1))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("NULL, 5e6, 1, 'EPSG:25832', 'EPSG:4326'", (None, None, None)),
        ("1e9, 5e6, 1, 'EPSG:25832', 'EPSG:4326'", (None, None, None)),
        ("100, 200, NULL, 'EPSG:25832', 'EPSG:25832'", (100.0, 200.0, None)),
        ("100, 200, 300, 'EPSG:2230+6360', 'EPSG:2230+5703'", (100.0, 200.0, 300 * 1200 / 3937)),
    ],
)
def test_transform_of_a_point(con, arguments, expected):
    ((found,),) = con.sql(f"SELECT spatialq_transform({arguments})").fetchall()
    for value, wanted in zip((found["x"], found["y"], found["z"]), expected, strict=True):
        assert value == (wanted if wanted is None else pytest.approx(wanted, abs=1e-6))


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        (
            "SELECT spatialq_transform(1, 2, 3, 4, 'EPSG:4326')",
            "spatialq_transform: from_crs must be",
        ),
        ("SELECT spatialq_transform(1, 2, 3, 'EPSG:4326', NULL)", "transform: to_crs must be text"),
        ("SELECT spatialq_transform('a', 2, 3, 'EPSG:4326', 'x')", "transform: x must be a number"),
        ("SELECT spatialq_operation('EPSG:4326', 'x')", "spatialq_operation: to_crs: PROJ cannot"),
        ("FROM read_las('{cloud}', to_crs := 25832)", "read_las: to_crs must be text such as"),
        ("FROM read_las('{cloud}', to_crs := 'EPSG:0')", "read_las: to_crs: PROJ cannot read"),
        (
            "FROM read_points('{cloud}', to_crs := ['a'])",
            "read_points: to_crs must be text such as",
        ),
        ("FROM read_grid('x.tif', resolution := 'a')", "read_grid: resolution must be a number"),
    ],
)
def test_sentences(con, cloud, statement, sentence):
    with pytest.raises(duckdb.Error, match=sentence):
        con.sql(statement.replace("{cloud}", str(cloud))).fetchall()


@pytest.mark.slow
def test_load_of_the_command(tmp_path, cloud):
    found = spatialq_command("load", cloud, "-d", tmp_path / "a.duckdb", "--to-crs", "EPSG:4258")
    assert found.returncode == 0, found.stderr
    with spatialq.connect(tmp_path / "a.duckdb") as con:
        assert con.sql("SELECT max(x) < 10 FROM points").fetchall() == [(True,)]


# Grids


def smooth(x, y):
    return 300 + 40 * np.sin(x / 700) + 30 * np.cos(y / 900)


def write_grid(path: Path, crs: str, corner: tuple[float, float], cell: float, *, kind="float32",
               shape=(260, 300), nodata=None, hole=None, **tags) -> Path:  # fmt: skip
    step = cell if cell > 0.1 else cell * 1e5
    x, y = np.meshgrid(np.arange(shape[1]) * step, np.arange(shape[0]) * step)
    z = smooth(x, y).astype(kind)
    if hole is not None:
        z[100:120, 50:90] = hole
    with rasterio.open(
        path, "w", driver="GTiff", width=shape[1], height=shape[0], count=1, dtype=kind, crs=crs,
        transform=Affine(cell, 0, corner[0], 0, -cell, corner[1]), nodata=nodata,
    ) as file:  # fmt: skip
        file.write(z, 1)
        if tags:
            file.scales, file.offsets = (tags["scale"],), (tags["offset"],)
    return path


def warped(path: Path, to_crs: str, **options):
    (grid,) = find_grids("read_grid", [path], to_crs=to_crs, **options)
    z, missing = grid._read((0, grid.shape[1], 0, grid.shape[0]))
    return grid, np.where(missing, np.nan, z)


def by_gdal(path: Path, grid, to_crs: str) -> np.ndarray:
    """The values of rasterio's own way to GDAL's warper."""
    size = {"width": grid.shape[0], "height": grid.shape[1], "transform": Affine(*grid._transform)}
    with (
        rasterio.open(path) as file,
        WarpedVRT(
            file,
            crs=to_crs,
            resampling=Resampling.bilinear,
            tolerance=1e-9,
            nodata=math.nan,
            **size,
        ) as virtual,
    ):
        return virtual.read(1)


def by_formula(path: Path, grid, to_crs: str) -> np.ndarray:
    """Bilinear between the four cells around; NaN where one of them is missing."""
    a, _, c, _, e, f = grid._transform
    columns, rows = np.meshgrid(*(np.arange(n) + 0.5 for n in grid.shape))
    with rasterio.open(path) as file:
        z, back, source = (
            file.read(1, masked=True).astype(float).filled(np.nan),
            ~file.transform,
            file.crs,
        )
    there = pyproj.Transformer.from_crs(to_crs, source.to_wkt(), always_xy=True)
    x, y = there.transform(a * columns + c, e * rows + f)
    across, down = back.a * x + back.c - 0.5, back.e * y + back.f - 0.5
    i, j = np.floor(down).astype(int), np.floor(across).astype(int)
    inside = (i >= 0) & (j >= 0) & (i < z.shape[0] - 1) & (j < z.shape[1] - 1)
    i, j = np.where(inside, i, 0), np.where(inside, j, 0)
    u, v = down - i, across - j
    upper = z[i, j] * (1 - v) + z[i, j + 1] * v
    lower = z[i + 1, j] * (1 - v) + z[i + 1, j + 1] * v
    return np.where(inside, upper * (1 - u) + lower * u, np.nan)


@pytest.mark.parametrize(
    ("source", "corner", "cell", "target", "resolution"),
    [
        ("EPSG:4326", (9.0, 50.5), 1 / 3600, "EPSG:32632", 20.0),
        ("EPSG:25832", (500000.0, 5600000.0), 25.0, "EPSG:3035", 25.0),
        ("EPSG:25832", (500000.0, 5600000.0), 25.0, "EPSG:4258", 0.0002),
        ("EPSG:2230", (6300000.0, 1900000.0), 30.0, "EPSG:2230", 20.0),
    ],
)
def test_grids_by_formula_and_by_rasterio(tmp_path, source, corner, cell, target, resolution):
    path = write_grid(tmp_path / "a.tif", source, corner, cell, nodata=-9999, hole=-9999)
    grid, found = warped(path, target, resolution=resolution)
    assert grid.cell_size == (resolution, resolution)
    expected = by_formula(path, grid, target)
    inside = ~np.isnan(expected)
    assert np.count_nonzero(inside) > 0.7 * found.size
    np.testing.assert_allclose(found[inside], expected[inside], rtol=0, atol=5e-5)
    other = by_gdal(path, grid, target)
    assert np.count_nonzero(np.isnan(found)) > 700
    assert np.count_nonzero(np.isnan(found) != np.isnan(other)) <= 2e-4 * found.size
    np.testing.assert_allclose(found, other, rtol=0, atol=1e-3)


def test_values_do_not_depend_on_the_window(tmp_path, con):
    path = write_grid(tmp_path / "a.tif", "EPSG:4326", (9.0, 50.5), 1 / 3600, shape=(700, 900))
    grid, whole = warped(path, "EPSG:32632")
    for top, left, height, width in [(0, 0, 40, 50), (511, 300, 3, 400), (100, 499, 250, 33)]:
        z, missing = grid._read((top, top + height, left, left + width))
        part = np.where(missing, np.nan, z)
        np.testing.assert_array_equal(part, whole[top : top + height, left : left + width])
    rows = read(con, f"read_grid('{path}', to_crs := 'EPSG:32632') ORDER BY y DESC, x")
    np.testing.assert_array_equal(rows[2].reshape(whole.shape), whole)
    spatialq.read_grid(con, path, name="g", to_crs="EPSG:32632")
    np.testing.assert_array_equal(read(con, "g ORDER BY y DESC, x"), rows)
    south = grid.grid(10, 20).z
    np.testing.assert_array_equal(south, whole[::-1][10:20])


def test_default_cells_are_as_large_as_those_of_the_file(tmp_path):
    path = write_grid(tmp_path / "a.tif", "EPSG:4326", (9.0, 50.5), 1 / 3600)
    grid, _ = warped(path, "EPSG:32632")
    area = (1852 * 60 / 3600) ** 2 * math.cos(math.radians(50.5))
    assert grid.cell_size[0] == grid.cell_size[1] == pytest.approx(math.sqrt(area), rel=0.05)
    assert grid._transform[2] % grid.cell_size[0] == 0  # corners at multiples of it
    assert same(grid.crs, from_text("EPSG:32632"))


def test_the_same_grid_is_exact(tmp_path):
    path = write_grid(tmp_path / "a.tif", "EPSG:25832", (500000.0, 5600000.0), 25.0)
    original = rasterio.open(path).read(1)
    for options in ({}, {"resolution": 25.0}):
        np.testing.assert_array_equal(warped(path, "EPSG:25832", **options)[1], original)


@pytest.mark.parametrize(
    ("kind", "nodata", "hole", "given"),
    [
        ("int16", -32768, -32768, None),
        ("int16", None, -32768, -32768.0),
        ("float32", None, math.nan, None),
        ("float32", -3.4028234663852886e38, -3.4028234663852886e38, None),
        ("int32", 0, 0, None),
        ("uint16", None, None, None),
    ],
)
def test_missing_values_stay_missing(tmp_path, kind, nodata, hole, given):
    """None is mixed into its neighbours, and whole numbers are not rounded to such."""
    path = write_grid(
        tmp_path / "a.tif",
        "EPSG:25832",
        (500000.0, 5600000.0),
        25.0,
        kind=kind,
        nodata=nodata,
        hole=hole,
    )
    _, found = warped(path, "EPSG:25833", nodata=given)
    there = found[~np.isnan(found)]
    assert 225 < there.min() < there.max() < 375
    assert np.any(there % 1 > 0.01)
    without = write_grid(tmp_path / "b.tif", "EPSG:25832", (500000.0, 5600000.0), 25.0, kind=kind)
    more = np.count_nonzero(np.isnan(found)) - np.count_nonzero(
        np.isnan(warped(without, "EPSG:25833")[1])
    )
    assert more == (0 if hole is None else pytest.approx(800, rel=0.15))


def test_scale_offset_and_feet(tmp_path):
    where = ("EPSG:2230", (6300000.0, 1900000.0), 30.0)
    plain = warped(write_grid(tmp_path / "a.tif", *where), "EPSG:26911", resolution=10.0)[1]
    assert np.nanmax(plain) < 375 * 1200 / 3937 < np.nanmax(plain) * 1.1
    scaled = write_grid(tmp_path / "b.tif", *where, scale=2.0, offset=-100.0)
    found = warped(scaled, "EPSG:26911", resolution=10.0)[1]
    np.testing.assert_allclose(found, plain * 2 - 100 * 1200 / 3937, rtol=1e-6)


def test_a_coarser_grid_averages(tmp_path):
    path = tmp_path / "a.tif"
    noise = np.random.default_rng(3).normal(0, 1, (400, 400)).astype(np.float32)
    with rasterio.open(
        path, "w", driver="GTiff", width=400, height=400, count=1, dtype="float32",
        crs="EPSG:25832", transform=Affine(1, 0, 500000, 0, -1, 5600000),
    ) as file:  # fmt: skip
        file.write(noise, 1)
    found = warped(path, "EPSG:25833", resolution=10.0)[1]
    assert np.nanstd(found) < 0.15  # a tenth for the mean of a hundred


def test_grids_that_cannot_be_reprojected(con, tmp_path):
    where = ((500000.0, 5600000.0), 25.0)
    path = write_grid(tmp_path / "a.tif", "EPSG:25832", *where, nodata=-1)
    with pytest.raises(ValueError, match=r"^read_grid: resolution must be > 0, got 0"):
        warped(path, "EPSG:25833", resolution=0.0)
    with pytest.raises(ValueError, match=r"resolution must be larger, as 0.0001 makes"):
        warped(path, "EPSG:25833", resolution=0.0001)
    with pytest.raises(ValueError, match=r"nodata must be -1, which '.*' declares, where it is"):
        warped(path, "EPSG:25833", nodata=-2.0)
    with pytest.raises(ValueError, match="resolution needs to_crs"):
        find_grids("read_grid", [path], resolution=3.0)
    with pytest.raises(ValueError, match="load: resolution needs to_crs"):
        spatialq.load(con, path, resolution=3.0)
    with pytest.raises(CrsError, match="has no CRS to reproject from"):
        warped(write_grid(tmp_path / "b.tif", None, *where), "EPSG:25833")
    world = write_grid(tmp_path / "c.tif", "EPSG:4326", (-180.0, 90.0), 0.6, shape=(300, 600))
    with pytest.raises(FileError, match="reaches outside the domain of"):
        warped(world, "EPSG:32632")
    with rasterio.open(path, "r+") as file:
        file.nodata = None
        file.write_mask(np.zeros((260, 300), np.bool_))
    with pytest.raises(FileError, match="marks missing cells by a mask, which reprojecting would"):
        warped(path, "EPSG:25833")


def test_grids_of_one_table_have_one_size(con, tmp_path):
    for i in (0, 1):
        write_grid(tmp_path / f"{i}.tif", "EPSG:4326", (9.0, 50.0 + i), 1 / 3600, shape=(60, 50))
    spatialq.load(con, f"{tmp_path}/*.tif", to_crs="EPSG:32632")
    steps = "SELECT DISTINCT x / 25 % 1, y / 25 % 1 FROM grid"
    assert con.sql(steps).fetchall() == [(0.5, 0.5)]
    same_rows = f"SELECT count(*) FROM read_grid('{tmp_path}/*.tif', to_crs := 'EPSG:32632')"
    assert con.sql(same_rows).fetchall() == con.sql("SELECT count(*) FROM grid").fetchall()


def test_features_of_a_grid_in_degrees_need_one_argument(con, tmp_path):
    path = write_grid(tmp_path / "a.tif", "EPSG:4326", (9.0, 50.5), 1 / 3600)
    call = f"pops_features('{path}', scales := [100], example_scale := 1000"
    remedy = "to_crs := 'EPSG:32632'"
    with pytest.warns(CrsWarning, match=f"lengths are in degrees, .*; {remedy} reprojects"):
        con.sql(f"FROM pops_features('{path}', scales := [0.003], example_scale := 0.03)")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = con.sql(f"FROM {call}, {remedy}) ORDER BY ALL").fetchall()
    spatialq.read_grid(con, path, name="utm", to_crs="EPSG:32632")
    from_cells = "pops_features('utm', scales := [100], example_scale := 1000"
    cells = con.sql(f"FROM {from_cells}) ORDER BY ALL").fetchall()
    assert len(found) > 50
    assert found == cells
    arguments = ["features", path, "--scales", "100m", "--example-scale", "1000m"]
    refused = spatialq_command(*arguments)
    assert refused.returncode == 1
    assert "are degrees: --to-crs EPSG:32632 reprojects it to its UTM zone, or" in refused.stderr
    done = spatialq_command(*arguments, "--to-crs", "EPSG:32632", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["rows"] == len(found)


@pytest.fixture(scope="module")
def bare_grid(tmp_path_factory) -> tuple[Path, Path]:
    """Write a grid that names no CRS, and the same one with it."""
    folder = tmp_path_factory.mktemp("bare")
    rng = np.random.default_rng(4)
    z = 100 + rng.normal(0, 1, (60, 50)).cumsum(axis=0).astype(np.float32)
    place = Affine(10, 0, 600_000, 0, -10, 5_600_000)
    paths = []
    for name, crs in (("bare", None), ("named", "EPSG:25832")):
        path = folder / f"{name}.tif"
        shape = {"width": 50, "height": 60, "count": 1, "dtype": z.dtype, "nodata": -9999}
        with rasterio.open(path, "w", driver="GTiff", transform=place, crs=crs, **shape) as file:
            file.write(z, 1)
        paths.append(path)
    return paths[0], paths[1]


@pytest.mark.parametrize("target", [None, "EPSG:25833"])
def test_a_grid_that_names_no_crs(con, bare_grid, target):
    bare, named = bare_grid
    to_crs = "" if target is None else f", to_crs := '{target}'"
    found = read(con, f"read_grid('{bare}', crs := 'EPSG:25832'{to_crs})")
    np.testing.assert_array_equal(found, read(con, f"read_grid('{named}'{to_crs})"))
    spatialq.read_grid(con, bare, name="seen", crs="EPSG:25832", to_crs=target)
    np.testing.assert_array_equal(read(con, "seen"), found)
    options = f"scales := [40], example_scale := 200{to_crs}"
    text = "pops_features('{}', {}) ORDER BY ALL"
    rows = con.sql(
        "FROM " + text.format(bare, f"crs := 'EPSG:25832', {options}"),
    ).fetchall()
    assert rows == con.sql("FROM " + text.format(named, options)).fetchall()


@pytest.mark.parametrize("job", [False, True])
def test_commands_on_a_grid_that_names_no_crs(tmp_path, bare_grid, job):
    options = ["--scales", "40m", "--example-scale", "200m", "--to-crs", "EPSG:25833"]
    options += ["--executor", "local"] if job else []
    tables = []
    for path, given in zip(bare_grid, (["--crs", "EPSG:25832"], []), strict=True):
        out = tmp_path / (path.stem if job else f"{path.stem}.parquet")
        spatialq_command("features", path, "-o", out, *options, *given)
        rows = f"read_parquet('{out}{'/parts/*.parquet' if job else ''}')"
        tables.append(duckdb.sql(f"SELECT * FROM {rows} ORDER BY ALL").fetchall())
    assert tables[0] == tables[1]
    assert tables[0]


def test_products_of_a_grid_that_names_no_crs_have_the_one_that_is_given(tmp_path, bare_grid):
    out = tmp_path / "slope.tif"
    spatialq_command("terrain", bare_grid[0], "-o", out, "--crs", "EPSG:25832")
    with rasterio.open(out) as file:
        assert file.crs.to_epsg() == 25832


@pytest.mark.parametrize("call", ["read_grid('{}'{})", "pops_features('{}', scales := [40]{})"])
def test_a_grid_that_names_another_crs(con, bare_grid, call):
    _, named = bare_grid
    sentence = r"crs is .*25833.*, but that of '.*named\.tif' is .*25832.*: leave crs out, or"
    with pytest.raises(duckdb.Error, match=sentence):
        con.sql("FROM " + call.format(named, ", crs := 'EPSG:25833'")).fetchall()
