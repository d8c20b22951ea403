"""`pops_features` and `pops_patches` through DuckDB, and `spatialq.run` and `run_grid`."""

import numpy as np
import pytest
import rasterio
from spatialq.udfs import pops_features

import spatialq
from spatialq.data import grid as data_grid
from spatialq.data.grid import Grid
from spatialq.data.grid_cells import grid_of
from spatialq.functions.catalogue import catalogue
from spatialq.io.grid.source import GridSource
from spatialq.planner import devices, log

from ..conftest import real_file
from ..host.device import HostDevice

ROWS, COLUMNS = 40, 55
X0, Y0, DX, DY = 500_030.0, 4_200_050.0, 60.0, 50.0
SCALES = {"scales": (300.0, 400.0), "example_scale": 1000.0}
SIZES = "scales := [300, 400], example_scale := 1000"
FUNCTIONS = ("pops_features", "pops_patches")
both = pytest.mark.parametrize("function", FUNCTIONS)


def heights():
    rng = np.random.default_rng(6)
    z = rng.normal(1000, 20, (ROWS, COLUMNS)).astype(np.float32)
    z[rng.random(z.shape) < 0.1] = np.nan
    z[:20, :17] = np.nan  # an example without a value
    return z


GRID = Grid(heights(), X0, Y0, DX, DY)


@pytest.fixture
def con():
    """Cells in a random order: those without a value are NULL, NaN or not there at all."""
    with spatialq.connect() as con:
        row, column = np.mgrid[:ROWS, :COLUMNS]
        arrays = X0 + DX * column, Y0 + DY * row, GRID.z.astype(float)
        x, y, z = map(np.ravel, arrays)
        known = {"x": x, "y": y, "z": z}  # noqa: F841 (DuckDB finds it by its name)
        con.execute(
            "CREATE TABLE cells AS SELECT x, y, if(isnan(z) AND x::INT % 120 = 30, NULL, z) AS z "
            "FROM known WHERE NOT (isnan(z) AND y::INT % 100 = 0) ORDER BY hash(x + y)"
        )
        assert con.sql("SELECT count(*), count(z) FROM cells").fetchall()[0][0] < GRID.z.size
        yield con


def kernel(function, grid=GRID, **options):
    """The rows that the kernel gives, in an order of their own."""
    found = catalogue()[function].kernel("cpu")(grid, pops_features.Options(**options))
    columns = []
    for name in catalogue()[function].output.columns:
        values = found[name]
        if catalogue()[function].output.columns[name] == "VARCHAR":
            values = np.array(values.names, object)[values.codes]
        columns.append([None if value != value else value for value in values.tolist()])
    return in_order(zip(*columns, strict=True))


def in_order(rows):
    return sorted(rows, key=lambda row: [(value is not None, value) for value in row])


def rows_of(relation):
    return in_order(relation.fetchall())


@both
def test_columns_and_types(con, function):
    relation = con.sql(f"FROM {function}('cells', {SIZES})")
    returns = catalogue()[function].output.columns
    assert dict(zip(relation.columns, map(str, relation.types), strict=True)) == returns


@pytest.mark.slow
@both
@pytest.mark.parametrize(
    "call",
    [
        "(cells, {})",
        "('cells', {})",
        "(main.cells, {})",
        "('main.cells', {})",
        "(seen, {})",
        "('temp.main.passing', {})",
        '("odd name", {})',
        "('odd name', {}, device := 'cpu')",
        "(cells, {}, min_valid := 0.5::FLOAT, methods := ['pca', 'stat'], steps := NULL)",
    ],
)
def test_all_ways_to_name_a_table_give_what_the_kernel_gives(con, function, call):
    con.execute("CREATE VIEW seen AS FROM cells")
    con.execute("CREATE TEMP VIEW passing AS SELECT z, y, x, 7 AS other FROM cells")
    con.execute('CREATE TABLE "odd name" AS FROM cells')
    found = rows_of(con.sql(f"FROM {function}{call.format(SIZES)}"))
    assert found == kernel(function, **SCALES)
    assert len(found) > 100


@both
@pytest.mark.parametrize("name", ["near", "'near'"])
def test_a_part_of_the_query_is_a_table_too(con, function, name):
    query = f"WITH near AS (FROM cells WHERE x < 502000) FROM {function}({name}, {SIZES})"
    columns = np.count_nonzero(X0 + DX * np.arange(COLUMNS) < 502000)
    part = Grid(np.ascontiguousarray(GRID.z[:, :columns]), X0, Y0, DX, DY)
    assert rows_of(con.sql(query)) == kernel(function, part, **SCALES)


@both
@pytest.mark.parametrize(
    "option",
    [
        {"scales": (300.0,)},
        {"scales": (300.0, 250.0, 700.0)},
        {"steps": (60.0, 120.0)},
        {"example_scale": 660.0},
        {"example_step": 500.0},
        {"methods": ("stat_centred", "pca_ternary")},
        {"min_valid": 1.0},
        {"min_points": 25},
        {"min_patches": 29},
        {"quantiles": "linear"},
    ],
)
def test_each_option_reaches_the_kernel(con, function, option):
    (name,) = option
    chosen = {**SCALES, **option}
    sql = ", ".join(
        f"{key} := {list(of) if isinstance(of, tuple) else repr(of)}" for key, of in chosen.items()
    )
    found = rows_of(con.sql(f"FROM {function}(cells, {sql})"))
    assert found == kernel(function, **chosen)
    aggregates = {"min_patches", "quantiles"} if function == "pops_features" else {"quantiles"}
    if name not in {"min_patches", "quantiles"} or name in aggregates:
        assert found != kernel(function, **SCALES)


def test_the_defaults_are_the_papers_small_scales(con):
    found = con.sql("SELECT DISTINCT scale FROM pops_features(cells) ORDER BY ALL").fetchall()
    assert found == [(300.0,), (400.0,), (500.0,)]
    assert rows_of(con.sql("FROM pops_features(cells)")) == kernel("pops_features")


def test_what_is_aggregated_is_what_pops_patches_gives(con):
    difference = con.sql(
        f"SELECT count(*), max(abs(f.mean - p.mean)), max(abs(f.patches - p.n)) "
        f"FROM pops_features(cells, {SIZES}) f JOIN (SELECT example_id, method, scale, feature, "
        f"avg(value) AS mean, count(value) AS n FROM pops_patches(cells, {SIZES}) GROUP BY ALL) p "
        "USING (example_id, method, scale, feature)"
    ).fetchall()[0]
    assert difference[0] == len(kernel("pops_features", **SCALES))
    assert difference[1] < 1e-9
    assert difference[2] == 0


@both
def test_an_empty_table_gives_an_empty_result(con, function):
    con.execute("CREATE TABLE nothing AS FROM cells LIMIT 0")
    relation = con.sql(f"FROM {function}(nothing)")
    assert relation.columns == list(catalogue()[function].output.columns)
    assert relation.fetchall() == []
    found = spatialq.run(function, [], [], [])
    assert list(found) == relation.columns
    assert {values.shape for values in found.values()} == {(0,)}


def test_the_log_and_the_plan(con):
    con.sql(f"FROM pops_features(cells, {SIZES})").fetchall()
    query = (
        "SELECT function, row_count, device, reason <> '', seconds > 0, error FROM spatialq_log()"
    )
    assert con.sql(query).fetchall()[-1] == ("pops_features", GRID.z.size, "cpu", True, True, None)
    rows = con.sql("FROM spatialq_plan('pops_features', 900_000_000)").fetchall()
    assert [row[:2] for row in rows] == [("cpu", True), ("gpu", False)]


def test_explain_runs_no_kernel(con):
    log._entries.clear()
    con.sql(f"EXPLAIN FROM pops_features(cells, {SIZES})").fetchall()
    assert log.entries() == []


# Cells in any order


def cells_of(grid, digits=None):
    """x, y, z of the cells, as text with so many digits has them."""
    rows, columns = grid.z.shape
    row, column = np.mgrid[:rows, :columns]
    x, y = grid.x0 + grid.dx * column, grid.y0 + grid.dy * row
    if digits is not None:
        x, y = x.round(digits), y.round(digits)
    return x.ravel(), y.ravel(), grid.z.ravel().astype(float)


def assert_same_grid(found, expected, near=1e-9):
    np.testing.assert_array_equal(found.z, expected.z)
    assert found.z.dtype == expected.z.dtype
    for name in ("x0", "y0"):
        assert abs(getattr(found, name) - getattr(expected, name)) < near * expected.dx
    for name in ("dx", "dy"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=near)


SPACINGS = {
    "metres": (X0, Y0, 60.0, 50.0),
    "seconds of arc": (86.0 + 1 / 7200, 27.0 + 1 / 7200, 1 / 3600, 1 / 3600),
    "a third": (-1e6 / 3, 1e7 / 3, 1 / 3, 1 / 7),
    "tiny": (1e-9, 0.0, 1e-9, 1e9),
    "south of the origin": (-5000.0, -70.5, 30.0, 0.1),
}


@pytest.mark.parametrize("name", SPACINGS)
@pytest.mark.parametrize("threads", ["1", "3"])
def test_the_spacing_is_found(name, threads, monkeypatch):
    monkeypatch.setenv("SPATIALQ_THREADS", threads)
    grid = Grid(heights(), *SPACINGS[name])
    order = np.random.default_rng(1).permutation(grid.z.size)
    assert_same_grid(grid_of("f", *(values[order] for values in cells_of(grid))), grid)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_cells_may_be_absent(share):
    grid = Grid(np.random.default_rng(2).normal(size=(300, 400)), X0, Y0, 60.0, 50.0)
    x, y, z = cells_of(grid)
    there = np.random.default_rng(3).random(z.size) < share
    corners = np.isin(np.arange(z.size), [0, z.size - 1])
    there |= corners
    expected = Grid(np.where(there.reshape(grid.z.shape), grid.z, np.nan), X0, Y0, 60.0, 50.0)
    assert_same_grid(grid_of("f", x[there], y[there], z[there]), expected)


def test_parts_of_a_grid_may_lie_far_apart():
    grid = Grid(np.random.default_rng(2).normal(size=(20, 900)), 0.0, 0.0, 60.0, 60.0)
    grid.z[:, 20:870] = np.nan
    x, y, z = (values[~np.isnan(grid.z.ravel())] for values in cells_of(grid))
    assert_same_grid(grid_of("f", x, y, z), grid)


def test_rounded_coordinates_are_near_their_places():
    grid = Grid(heights(), 86.0001389, 27.0001389, 1 / 3600, 1 / 3600)
    assert_same_grid(grid_of("f", *cells_of(grid, 6)), grid, near=0.01)


def test_arithmetic_may_leave_cells_of_one_place_apart():
    rng = np.random.default_rng(5)
    grid = Grid(heights(), X0, Y0, 60.0, 50.0)
    for off in (1e-9, 0.2):
        x, y, z = cells_of(grid)
        x, y = x + rng.uniform(-off, off, x.size), y + rng.uniform(-off, off, y.size)
        assert_same_grid(grid_of("f", x, y, z), grid, near=0.01)


def test_the_ends_may_be_off_as_the_others_are():
    grid = Grid(heights(), X0, Y0, 60.0, 50.0)
    x, y, z = cells_of(grid)
    off = 0.4 * np.random.default_rng(6).choice([-1, 1], x.size)
    off[x == x.min()], off[x == x.max()] = -0.4, 0.4
    assert_same_grid(grid_of("f", x + off, y, z), grid, near=0.01)


def test_single_precision_is_kept_where_it_is_exact():
    grid = Grid(heights(), X0, Y0, DX, DY)
    x, y, z = cells_of(grid)
    assert grid_of("f", x, y, z).z.dtype == np.float32
    z[7] = 0.1
    assert grid_of("f", x, y, z).z.dtype == np.float64
    z[7] = 1e50
    assert grid_of("f", x, y, z).z.dtype == np.float64


# Files


def write(path, z, transform, *, crs="EPSG:32633", **options):
    with rasterio.open(
        path, "w", driver="GTiff", height=z.shape[0], width=z.shape[1], count=1, dtype=z.dtype,
        crs=crs, transform=rasterio.Affine(*transform), **options,
    ) as file:  # fmt: skip
        file.write(z, 1)
    return path


NORTH_UP = (DX, 0.0, X0 - DX / 2, 0.0, -DY, Y0 + (ROWS - 0.5) * DY)


@pytest.fixture
def tif(tmp_path):
    z = np.where(np.isnan(GRID.z), np.float32(-9999), GRID.z)[::-1]
    return write(tmp_path / "it's a dem.tif", z, NORTH_UP, nodata=-9999)


@pytest.mark.slow
@both
@pytest.mark.parametrize(
    ("limit", "size"), [("CELLS", 1), ("CELLS", 30 * COLUMNS), ("CELLS", 1 << 24), ("RESULTS", 1)]
)
@pytest.mark.parametrize("step", [1000.0, 300.0, 1200.0])
def test_a_file_is_what_the_array_is_in_bands_of_any_size(
    con, tif, function, limit, size, step, monkeypatch
):
    monkeypatch.setattr(data_grid, f"BAND_{limit}", size)
    path = str(tif).replace("'", "''")
    found = con.sql(f"FROM {function}('{path}', {SIZES}, example_step := {step})")
    returns = catalogue()[function].output.columns
    assert dict(zip(found.columns, map(str, found.types), strict=True)) == returns
    assert rows_of(found) == kernel(function, example_step=step, **SCALES)


def test_a_band_is_a_call_and_a_limit_stops_early(con, tif, monkeypatch):
    monkeypatch.setattr(data_grid, "BAND_CELLS", 1)
    path = str(tif).replace("'", "''")
    query = f"FROM pops_features('{path}', {SIZES}, example_step := 50)"

    def calls_of(text):
        before = len(log.entries())
        con.sql(text).fetchall()
        return len(log.entries()) - before

    log._entries.clear()
    assert calls_of(f"EXPLAIN {query}") == 0
    assert calls_of(query) == 21
    assert calls_of(f"{query} LIMIT 1") < 21


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["int16", "uint8", "float32", "int32", "float64"])
@pytest.mark.parametrize("direction", [(1, -1), (1, 1), (-1, -1), (-1, 1)], ids=str)
def test_files_of_any_type_and_direction(con, tmp_path, kind, direction):
    across, up = direction
    z = np.random.default_rng(7).integers(0, 250, (ROWS, COLUMNS)).astype(kind)
    x0 = X0 - DX / 2 if across > 0 else X0 + (COLUMNS - 0.5) * DX
    y0 = Y0 - DY / 2 if up > 0 else Y0 + (ROWS - 0.5) * DY
    transform = (across * DX, 0.0, x0, 0.0, up * DY, y0)
    path = write(tmp_path / "dem.tif", z[::up, ::across], transform)
    grid = Grid(z.astype(np.float64), X0, Y0, DX, DY)
    assert rows_of(con.sql(f"FROM pops_features('{path}', {SIZES})")) == kernel(
        "pops_features", grid, **SCALES
    )
    source = GridSource(path)
    expected = np.float64 if kind in ("int32", "float64") else np.float32
    assert source.grid(3, 9).z.dtype == expected
    np.testing.assert_array_equal(source.grid(3, 9).z, grid.z[3:9])
    window = source.grid(3, 9, (5, 20))
    assert (window.first_row, window.first_column) == (3, 5)
    assert (window.rows, window.columns) == (ROWS, COLUMNS)
    np.testing.assert_array_equal(window.z, grid.z[3:9, 5:20])


def test_each_of_several_files_is_a_grid_of_its_own(con, tmp_path):
    z = np.random.default_rng(8).normal(size=(ROWS, COLUMNS)).astype(np.float32)
    for name, part, crs in (("a", z, "EPSG:32633"), ("b", z[10:, 5:], "EPSG:25832")):
        write(tmp_path / f"{name}.tif", part, NORTH_UP, crs=crs)
    for pattern, names in (("*.tif", "ab"), ("b.*", "b")):
        found = con.sql(f"FROM pops_features('{tmp_path}/{pattern}', {SIZES})")
        assert found.columns == [*catalogue()["pops_features"].output.columns, "file_name"]
        rows = found.fetchall()
        expected = []
        for name in names:
            path = f"{tmp_path}/{name}.tif"
            alone = con.sql(f"FROM pops_features('{path}', {SIZES})").fetchall()
            expected += [(*row, path) for row in alone]
        assert rows == expected


def test_a_file_whose_name_looks_like_a_pattern_is_one_file(con, tmp_path):
    write(tmp_path / "a[1].tif", GRID.z, NORTH_UP)
    found = con.sql(f"FROM pops_features('{tmp_path}/a[1].tif', {SIZES})")
    assert found.columns == list(catalogue()["pops_features"].output.columns)


REAL = {
    "EMD_andrews_x1_trueDTM.npy": "scales := [3, 5, 10], example_scale := 33",
    "Exploradores_ASTER_Z.tif": "scales := [100, 150, 300], example_scale := 1000",
    "N27E086.hgt": "scales := [0.003, 0.005], example_scale := 0.02",
    "SainteHelens.dem": "scales := [100, 150, 300], example_scale := 1000",
    "bigtujunga_srtm30m.tif": "scales := [100, 150, 300], example_scale := 1000",
    "landlab_tidal_zSW3.asc": "scales := [6, 10, 20], example_scale := 66",
    "opengeos_lidar_dem.tif": "scales := [3, 5, 10], example_scale := 33",
    # the spacing that is found in these degrees is not to the bit that of the file
    "pysheds_dem.tif": "scales := [0.003, 0.005], example_scale := 0.02, methods := ['stat']",
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*x and y are degrees")
@pytest.mark.parametrize("name", REAL)
def test_a_real_file_is_what_the_table_of_its_cells_is(con, name, monkeypatch):
    path, options = real_file(f"data/dem/{name}"), REAL[name]
    con.execute(f"CREATE TABLE a AS FROM pops_features('{path}', {options})")
    con.execute(f"CREATE TABLE real_cells AS FROM read_grid('{path}') ORDER BY hash(x * y)")
    con.execute(f"CREATE TABLE b AS FROM pops_features(real_cells, {options})")
    monkeypatch.setattr(data_grid, "BAND_CELLS", 20_000)
    con.execute(f"CREATE TABLE c AS FROM pops_features('{path}', {options})")
    n = con.sql("SELECT count(*) FROM a").fetchall()[0][0]
    assert n > 1000
    assert con.sql("SELECT count(*) FROM (FROM a INTERSECT ALL FROM c)").fetchall() == [(n,)]
    differences = ", ".join(
        f"max(abs(a.{name} - b.{name}) / greatest(1, abs(a.{name})))"
        for name in ("x", "y", *pops_features.STATISTICS, "patches")
    )
    joined = "FROM a JOIN b USING (example_id, method, scale, feature)"
    (counted, *off) = con.sql(f"SELECT count(*), {differences} {joined}").fetchall()[0]
    assert counted == n
    assert max(off) < 1e-9


def test_bands_of_a_file_with_several(con, tmp_path):
    z = np.random.default_rng(9).normal(size=(2, 30, 30))
    path = tmp_path / "two.tif"
    with rasterio.open(
        path, "w", driver="GTiff", height=30, width=30, count=2, dtype="float64",
        transform=rasterio.Affine(1, 0, 0, 0, -1, 30),
    ) as file:  # fmt: skip
        file.write(z)
    query = "FROM pops_features('{}', scales := [10], example_scale := 30, band := {})"
    for band, heights in enumerate(z, start=1):
        found = rows_of(con.sql(query.format(path, band)))
        grid = Grid(np.ascontiguousarray(heights[::-1]), x0=0.5, y0=0.5)
        assert found == kernel("pops_features", grid, scales=(10.0,), example_scale=30.0)


# Arrays


def rows_from(function, result):
    assert set(result) == set(catalogue()[function].output.columns)
    columns = []
    for name, kind in catalogue()[function].output.columns.items():
        assert isinstance(result[name], np.ndarray)
        assert (result[name].dtype.kind == "U") == (kind == "VARCHAR")
        columns.append([None if value != value else value for value in result[name].tolist()])
    return in_order(zip(*columns, strict=True))


@both
def test_run_grid_and_run_give_what_sql_gives(con, function):
    expected = kernel(function, **SCALES)
    place = {"x0": X0, "y0": Y0, "dx": DX, "dy": DY}
    found = spatialq.run_grid(function, GRID.z, **place, scales=[300, 400], example_scale=1000)
    assert rows_from(function, found) == expected
    x, y, z = cells_of(GRID)
    found = spatialq.run(function, x, y, z, scales=np.array([300.0, 400.0]), example_scale=1000)
    assert rows_from(function, found) == expected


def test_run_takes_masked_heights():
    x, y, z = cells_of(GRID)
    masked = np.ma.masked_invalid(z).copy()
    masked.data[masked.mask] = 7.0
    found = spatialq.run("pops_features", x, y, masked, **SCALES)
    assert rows_from("pops_features", found) == kernel("pops_features", **SCALES)


def test_run_grid_takes_integers_masks_and_rows_from_the_north():
    z = np.random.default_rng(7).integers(0, 99, (30, 30))
    masked = np.ma.masked_equal(z, 5)
    expected = np.where(z == 5, np.nan, z.astype(float))
    chosen = {"dx": 1.0, "scales": [5.0], "example_scale": 15.0}
    known = rows_from("pops_patches", spatialq.run_grid("pops_patches", expected, **chosen))
    found = spatialq.run_grid("pops_patches", masked.astype(np.int16), **chosen)
    assert rows_from("pops_patches", found) == known
    turned = spatialq.run_grid("pops_patches", expected[::-1].copy()[::-1], **chosen)
    assert rows_from("pops_patches", turned) == known


@both
def test_run_grid_on_the_gpu_gives_what_the_cpu_gives(device, function, monkeypatch):
    if isinstance(device, HostDevice):
        monkeypatch.setattr(
            devices, "gpus", lambda: [devices.DeviceInfo("gpu", "host", 2, 2**33, "")]
        )
    chosen = {"x0": X0, "y0": Y0, "dx": DX, "dy": DY, **SCALES}
    expected = spatialq.run_grid(function, GRID.z, **chosen, device="cpu")
    for z in (GRID.z, device.xp.asarray(GRID.z)):
        found = spatialq.run_grid(function, z, **chosen, device="gpu")
        assert list(found) == list(expected)
        for name, values in expected.items():
            if values.dtype.kind == "U":
                np.testing.assert_array_equal(found[name], values)
            else:
                assert isinstance(found[name], type(z))
                there = device.download(found[name])
                np.testing.assert_allclose(there, values, rtol=1e-9, atol=1e-9, err_msg=name)


def test_values_become_pythons_own():
    given = {
        "example_scale": np.float32(20),
        "min_points": np.int8(4),
        "quantiles": np.str_("linear"),
    }
    chosen = catalogue()["pops_features"].choose(given)
    assert [type(getattr(chosen, name)) for name in given] == [float, int, str]


def test_lists_become_tuples():
    udf = catalogue()["pops_features"]
    chosen = udf.choose({"scales": [2, 3.5], "steps": None, "methods": ["pca"]})
    assert chosen.scales == (2.0, 3.5)
    assert all(isinstance(scale, float) for scale in chosen.scales)
    assert chosen.steps is None
    assert chosen.methods == ("pca",)
