"""Arguments and data that `pops_features` rejects, and its error sentences."""

import warnings

import duckdb
import numpy as np
import pytest
import rasterio

import spatialq
from spatialq.errors import CrsWarning, FileWarning

SIZES = "scales := [2, 3], example_scale := 5"


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        con.execute(
            "CREATE TABLE cells AS SELECT 100 + a AS x, 200 + b AS y, (a * b) % 7 AS z "
            "FROM range(12) r(a), range(10) s(b)"
        )
        yield con


def refused(con, query):
    with pytest.raises(duckdb.Error) as error:
        con.sql(query).fetchall()
    return str(error.value)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("scales := []", "scales must be one or more, all different, got []"),
        ("scales := [2, 2.0]", "scales must be one or more, all different, got [2.0, 2.0]"),
        ("scales := [1.9]", "scales must be from 2, two cells along x, to example_scale (5), got "),
        ("scales := [6]", "scales must be from 2, two cells along x, to example_scale (5), got "),
        ("scales := [1e30]", "scales must be from 2, two cells along x, to example_scale (5), got"),
        ("scales := [2, 1e308]", "scales must be from 2, two cells along x, to example_scale (5)"),
        ("steps := [1]", "steps must be as many as scales (2), or NULL, got [1.0]"),
        ("example_scale := 1.5", "example_scale must be from 2, two cells along x, to 10, all"),
        ("example_scale := 11", "example_scale must be from 2, two cells along x, to 10, all"),
        ("example_scale := 1e30", "example_scale must be from 2, two cells along x, to 10, all"),
        ("example_scale := 1e308", "example_scale must be from 2, two cells along x, to 10, all"),
        ("methods := ['pac']", "no method 'pac'; there is pca, stat, pca_ternary, stat_centred"),
        ("methods := []", "methods must be one or more, all different, got []"),
        ("device := NULL", "device must not be NULL"),
        ("nodata := -9999", "nodata, band, to_crs and resolution are for files, got the table"),
        ("band := 2", "nodata, band, to_crs and resolution are for files, got the table 'cells'"),
        ("band := NULL", "band must not be NULL"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("function", ["pops_features", "pops_patches"])
def test_options(con, function, arguments, sentence):
    given = {name.strip() for name in arguments.split(":=")[:1]}
    sizes = {"scales": "[2, 3]", "example_scale": "5"}
    rest = "".join(f", {name} := {value}" for name, value in sizes.items() if name not in given)
    query = f"FROM {function}(cells, {arguments}{rest})"
    assert f"{function}: {sentence}" in refused(con, query)


def test_the_grid_must_be_named(con):
    assert "pops_features: grid must not be NULL" in refused(con, "FROM pops_features(NULL)")
    sentence = "pops_features: grid must be the name of a table or a file, got 5 of type INTEGER"
    assert sentence in refused(con, "FROM pops_features(5)")
    missing = "Table with name nothing does not exist"
    assert missing in refused(con, "FROM pops_features('nothing')")


OFF = "{} is not regularly spaced: {} cells off, with cells {}"


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ("if(x = 103, 103.4, x) AS x", OFF.format("x", "103.4 is 0.4", "1 apart from 100.0 on")),
        ("if(y = 203, 203.02, y) AS y", OFF.format("y", "203.02 is 0.02", "1 apart from 200.0")),
        ("if(x = 105 AND y = 203, 105.5, x) AS x", OFF.format("x", "105.5 is 0.5", "1 apart")),
        ("x * x AS x", "x is not regularly spaced"),
        ("random() AS x, random() AS y", " is not regularly spaced: "),
        ("if(x = 104 AND y = 202, 103, x) AS x", "cell must be there once, got x = 103.0, y = 2"),
        ("if(x = 111, 6e9, x) AS x", "apart, with a gap from x = 110.0 to x = 6000000000.0"),
        ("100 AS x", "the grid must have two rows and two columns or more, got x = 100.0 in all "),
        ("7 AS y", "the grid must have two rows and two columns or more, got y = 7.0 in all cells"),
        ("if(x > 105, NULL, x) AS x", "x must not be NULL, got 60 of them"),
        ("if(y > 208, NULL, y) AS y", "y must not be NULL, got 12 of them"),
        ("if(x > 105, 'nan'::DOUBLE, x) AS x", "x must be finite, got nan"),
        ("if(y > 208, 'inf'::DOUBLE, y) AS y", "y must be finite, got inf"),
        ("if(y > 208, '-inf'::DOUBLE, y) AS y", "y must be finite, got -inf"),
        ("if(x = 101, 1, -1) * 1e308 AS x", "x must be finite, got"),
        ("if(x = 101 AND y = 202, 'inf'::DOUBLE, z) AS z", "missing, got inf at x = 101.0, y = "),
        ("NULL AS z", "'bad' must have a column z of numbers"),
        ("'nan'::DOUBLE AS z", "the grid has no value: all 120 cells are missing"),
    ],
)  # fmt: skip
def test_cells(con, columns, sentence):
    query = (
        f"WITH bad AS (SELECT * REPLACE ({columns}) FROM cells) FROM pops_features(bad, {SIZES})"
    )
    message = refused(con, query)
    assert "pops_features: " in message
    assert sentence in message


def test_points_are_no_grid(con):
    con.execute(
        "CREATE OR REPLACE TABLE points AS SELECT 0.5 * a AS x, 0.5 * (a * 7 % 1000) AS y, 1 AS z "
        "FROM range(1000) r(a)"
    )
    sentence = "x and y must be those of a grid's cells, got 1000 in 1000 x 1000 places 0.5 x 0.5 "
    assert sentence in refused(con, f"FROM pops_features(points, {SIZES})")


def test_a_column_must_be_there_and_a_number(con):
    con.execute("CREATE OR REPLACE TABLE names AS SELECT 'a' AS x, 1 AS y, 2 AS z")
    sentence = "pops_features: 'names' must have a column x of numbers, got one of type VARCHAR"
    assert sentence in refused(con, "FROM pops_features(names)")
    con.execute("CREATE OR REPLACE TABLE few AS SELECT 1 AS x, 2 AS y")
    sentence = "pops_features: 'few' must have a column z of numbers"
    assert sentence in refused(con, "FROM pops_features(few)")


# Files


def write(path, z, transform=(2.0, 0.0, 100.0, 0.0, -2.0, 300.0), **options):
    count = 1 if z.ndim == 2 else len(z)
    with rasterio.open(
        path, "w", driver="GTiff", height=z.shape[-2], width=z.shape[-1], count=count,
        dtype=z.dtype, transform=rasterio.Affine(*transform), **options,
    ) as file:  # fmt: skip
        file.write(z.reshape(count, *z.shape[-2:]))
    return path


@pytest.fixture
def hill():
    return np.random.default_rng(1).normal(100, 5, (20, 30)).astype(np.float32)


FILE = "scales := [4, 6], example_scale := 10"


def test_files_that_are_not_there_or_no_grids(con, tmp_path):
    there = f"FROM pops_features('{tmp_path}/none.tif')"
    assert f"'{tmp_path}/none.tif': there is no such file" in refused(con, there)
    there = f"FROM pops_features('{tmp_path}/*.tif')"
    assert "pops_features: " in (message := refused(con, there))
    assert "no file matches this pattern" in message
    (tmp_path / "text.tif").write_text("this is no grid")
    there = f"FROM pops_features('{tmp_path}/text.tif')"
    assert f"pops_features: '{tmp_path}/text.tif': cannot be read by" in refused(con, there)


@pytest.mark.parametrize("name", ["cloud.laz", "house.ifc", "z.npz"])
def test_a_file_that_is_no_grid_is_no_table_either(con, tmp_path, name):
    path = tmp_path / name
    path.touch()
    sentence = f"pops_features: '{path}': is no grid: its name must end in one of .asc, .dem, "
    assert sentence in refused(con, f"FROM pops_features('{path}')")


def test_degrees_are_warned_of_once(con, tmp_path, hill):
    for k in (0, 1):
        place = (0.001, 0.0, 10.0 + k, 0.0, -0.001, 50.0)
        write(tmp_path / f"{k}.tif", hill, place, crs="EPSG:4326")
    query = f"FROM pops_features('{tmp_path}/*.tif', scales := [0.004], example_scale := 0.01)"
    with pytest.warns(CrsWarning) as warned:
        con.sql(query).fetchall()
    assert {str(each.message).partition(", is not")[0] for each in warned} == {
        f"pops_features: the CRS of '{tmp_path}/0.tif', WGS 84 (EPSG:4326)"
    }


def test_a_rotated_file_is_refused(con, tmp_path, hill):
    path = write(tmp_path / "turned.tif", hill, (2.0, 0.5, 100.0, 0.5, -2.0, 300.0))
    sentence = f"pops_features: '{path}': is rotated: its rows do not run along x"
    assert sentence in refused(con, f"FROM pops_features('{path}', {FILE})")


def test_infinite_cells_of_a_file_are_refused(con, tmp_path, hill):
    hill[19, 4] = np.inf  # the southernmost row
    path = write(tmp_path / "odd.tif", hill)
    must = "z must be from -1e+60 to 1e+60, or missing"
    sentence = f"pops_features: '{path}': {must}, got inf at x = 109.0, y = 261"
    assert sentence in refused(con, f"FROM pops_features('{path}', {FILE})")


def test_a_file_without_a_value_is_refused_but_not_such_a_band(con, tmp_path, hill, monkeypatch):
    monkeypatch.setattr("spatialq.data.grid.BAND_CELLS", 1)
    hill[:] = -1
    path = write(tmp_path / "empty.tif", hill, nodata=-1)
    sentence = (
        f"pops_features: '{path}': the grid has no value: all cells of its examples are missing"
    )
    query = f"SELECT count(*), count(mean) FROM pops_features('{path}', {FILE})"
    assert sentence in refused(con, query)
    hill[18] = 1.0
    path = write(tmp_path / "south.tif", hill, nodata=-1)
    # six columns and four rows of examples, two scales, 11 features; a row of values in each of
    # the southern ones is no patch, unless that is asked for
    assert con.sql(query.replace("empty", "south")).fetchall() == [(528, 0)]
    query = query.replace("empty", "south").replace(
        "4, 6]", "4, 6], min_valid := 0, min_points := 2"
    )
    assert con.sql(query).fetchall()[0][1] > 0


def test_options_that_do_not_fit_a_file_are_refused_before_it_is_read(con, tmp_path, hill):
    path = write(tmp_path / "hill.tif", hill)
    query = f"FROM pops_features('{path}', scales := [3], example_scale := 10)"
    assert "scales must be from 4, two cells along x" in refused(con, f"EXPLAIN {query}")
    for band in (2, 99999999999):
        query = f"FROM pops_features('{path}', band := {band})"
        assert f"pops_features: band must be 1 to 1 for '{path}', got {band}" in refused(con, query)


def test_an_undeclared_nodata_value_is_warned_of(con, tmp_path, hill):
    hill[3, 4] = -9999
    path = write(tmp_path / "hill.tif", hill)
    query = f"SELECT min(min) FROM pops_features('{path}', methods := ['stat'], {FILE}"
    with pytest.warns(FileWarning, match="pops_features: .* nodata := -9999"):
        assert con.sql(f"{query})").fetchall()[0][0] < -2000
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert con.sql(f"{query}, nodata := -9999)").fetchall()[0][0] > -10


# Arrays


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"dx": 0.0}, "pops_features: dx must be > 0, got 0.0"),
        ({"dx": np.nan}, "pops_features: dx must be > 0, got nan"),
        ({"dy": -1.0}, "pops_features: dy must be > 0, got -1.0"),
        ({"x0": np.inf}, "pops_features: x0 must be finite, got inf"),
        ({"scales": "ab"}, "pops_features: scales must be a list of numbers, got 'ab'"),
        ({"scales": [True]}, "pops_features: scales must be a list of numbers, got [True]"),
        ({"scales": np.ones((2, 2))}, "pops_features: scales must be a list of numbers, got array"),
        (
            {"scale": 3},
            "pops_features: no option 'scale'; there is crs, example_scale",
        ),
        ({"z": np.zeros(5)}, "pops_features: z must be numbers [rows, columns], got float64 of "),
        ({"z": np.array([["a"]])}, "pops_features: z must be numbers [rows, columns], got <U1 of "),
        ({"dx": "60"}, "pops_features: dx must be > 0, got '60'"),
        ({"dx": None}, "pops_features: dx must be > 0, got None"),
        ({"dy": [60.0]}, "pops_features: dy must be > 0, got [60.0]"),
        ({"y0": "a"}, "pops_features: y0 must be finite, got 'a'"),
        ({"z": np.eye(9) * 1j}, "pops_features: z must be numbers [rows, columns], got complex"),
        ({"z": np.eye(9) * 1e61}, "pops_features: z must be from -1e+60 to 1e+60, or missing, got"),
        ({"z": np.eye(9)[:1]}, "pops_features: the grid must have two rows and two columns or mor"),
        ({"z": np.eye(9)[:0]}, "pops_features: the grid must have two rows and two columns or mor"),
        ({"z": np.full((9, 9), np.nan)}, "pops_features: the grid has no value: all 81 cells are "),
        (
            {"dy": 0.5, "example_scale": 5.0},
            "pops_features: example_scale must be from 2, two cells along x, to 4.5, all 9 along y",
        ),
        (
            {"dy": 0.5, "example_scale": 4.0, "scales": (1.0,)},
            "pops_features: scales must be from 2, two cells along x, to example_scale (4), got ",
        ),
        ({"function": "owm_ground"}, "run_grid: owm_ground is no function of grids: use"),
        ({"function": "pops"}, "run_grid: no spatial function 'pops'; there is build_lod"),
    ],
)
def test_run_grid(options, sentence):
    arguments = {"function": "pops_features", "z": np.eye(9), "dx": 1.0} | options
    with pytest.raises(ValueError) as error:  # noqa: PT011 (the sentence is below)
        spatialq.run_grid(**arguments)
    assert str(error.value).startswith(sentence)


def test_a_result_that_has_no_room_in_memory():
    z, large = np.broadcast_to(np.float32(1), (2000, 1000)), {"scales": [2], "steps": [1]}
    options = {"example_scale": 200, "example_step": 1, "methods": ["stat"], **large}
    sentence = (
        r"^pops_patches: not enough memory for a result of 514155979809 rows: .* beyond the memory"
    )
    with pytest.raises(MemoryError, match=sentence):
        spatialq.run_grid("pops_patches", z, dx=1, **options)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"z": np.zeros(3)}, "pops_features: the columns must be one-dimensional, of one length"),
        ({"z": list("1234")}, "pops_features: z must be numbers, got <U1"),
        ({"z": [1j] * 4}, "pops_features: z must be numbers, got complex128"),
        ({"z": [1, [2], 3, 4]}, "pops_features: z must be numbers, got setting an array element "),
        ({"z": [1, 2, 3, 2e60]}, "pops_features: z must be from -1e+60 to 1e+60, or missing, got "),
        ({"x": np.ma.masked_equal([0, 0, 1, 1], 1)}, "pops_features: x must have all its values, "),
        ({"y": np.ma.masked_equal([0, 1, 0, 1], 0)}, "pops_features: y must have all its values, "),
        ({"x": [], "y": [], "z": [], "scales": []}, "pops_features: scales must be one or more, "),
        ({"point_id": [0, 1, 2, 3]}, "run: pops_features is a function of grids, it takes x, y"),
    ],
)
def test_run(columns, sentence):
    arguments = {"x": [0, 0, 1, 1], "y": [0, 1, 0, 1], "z": [1, 2, 3, 4]} | columns
    with pytest.raises(ValueError) as error:  # noqa: PT011
        spatialq.run("pops_features", **arguments)
    assert str(error.value).startswith(sentence)
