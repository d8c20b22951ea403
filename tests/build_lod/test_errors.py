"""Arguments and data that `build_lod` rejects, and its error sentences."""

import re

import duckdb
import numpy as np
import pytest
from spatialq.udfs.build_lod import Options, validation

import spatialq
from spatialq.database.transport import points
from spatialq.errors import FileWarning
from spatialq.functions.catalogue import Function, catalogue

from .test_sql import CLOUD, write_las

SIZES = "max_points := 100, grid_size := 16"


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        known = {name: values[:500] for name, values in CLOUD.items()}
        known["point_id"] = np.arange(500)
        con.execute("CREATE TABLE pts AS FROM known")
        yield con


def refused(con, query):
    with pytest.raises(duckdb.Error) as error:
        con.sql(query).fetchall()
    return str(error.value)


COLUMNS = "point_id, x, y, z"
STRATEGIES = "strategy must be 'first' or 'random' or 'average' or 'weighted', got "


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("strategy := 'mean'", STRATEGIES + "'mean'"),
        ("strategy := ''", STRATEGIES + "''"),
        ("grid_size := 0", "grid_size must be a power of two from 2 to 128, got 0"),
        ("grid_size := 1", "grid_size must be a power of two from 2 to 128, got 1"),
        ("grid_size := 100", "grid_size must be a power of two from 2 to 128, got 100"),
        ("grid_size := 256", "grid_size must be a power of two from 2 to 128, got 256"),
        ("device := NULL", "device must not be NULL"),
    ],
)
def test_options(con, arguments, sentence):
    """Of the table macro and the one over lists."""
    for query in (
        f"FROM build_lod(pts, {arguments})",
        f"SELECT build_lod_list({COLUMNS}, {arguments}) FROM pts",
    ):
        assert f"build_lod: {sentence}" in refused(con, query)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("strategy := 3", "strategy must be text, got 3"),
        ("max_points := 2.5", "max_points must be a whole number, got 2.5"),
        (f"max_points := {2**63}", f"max_points must be >= 1 and < 2**63, got {2**63}"),
        ("max_points := 'many'", "max_points must be a whole number, got 'many'"),
        ("grid_size := [128]", "grid_size must be a whole number, got [128]"),
        ("full_precision := 1", "full_precision must be true or false, got 1"),
        ("seed := true", "seed must be a whole number, got True"),
    ],
)
def test_options_of_another_type(con, arguments, sentence):
    assert f"build_lod: {sentence}" in refused(con, f"FROM build_lod(pts, {arguments})")
    name, value = arguments.split(" := ")
    python = {"true": True, "[128]": [128]}.get(value) or eval(value)
    with pytest.raises(ValueError, match=f"build_lod: {re.escape(sentence)}"):
        spatialq.run("build_lod", [1.0], [1.0], [1.0], **{name: python})


@pytest.mark.parametrize(
    "option",
    [
        {"max_points": 1},
        {"max_points": 2**63 - 1},
        {"grid_size": 2},
        {"grid_size": 128},
        {"seed": 2**32 - 1},
    ],
)
def test_what_is_just_allowed_runs(con, option):
    Options(**option)
    ((name, value),) = option.items()
    query = f"SELECT sum(count) FROM build_lod(pts, {name} := {value}) WHERE is_leaf"
    assert con.sql(query).fetchall() == [(500,)]


FINITE = "x, y and z must be finite, got"
INFINITY = "if(point_id > 497, '-inf'::DOUBLE, x) AS x"


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ("'nan'::DOUBLE AS z", f"{FINITE} 500 points with NaN or infinity, the first with "),
        ("if(point_id = 9, 'inf'::DOUBLE, z) AS z", f"{FINITE} 1 points with NaN or infinity"),
        (INFINITY, f"{FINITE} 2 points with NaN or infinity, the first with point_id 498"),
        ("if(point_id < 2, NULL, y) AS y", "y must not be NULL, got 2 of them, the first with"),
        ("if(point_id = 4, NULL, point_id) AS point_id", "point_id must not be NULL, got 1 of"),
        ("if(point_id % 2 = 0, 1e308, -1e308) AS x", "x must be from -8e+12 to 8e+12, where"),
        ("if(point_id % 2 = 0, 1e308, -1e308) AS z", "z must be from -8e+12 to 8e+12, where"),
        ("if(point_id = 77, 78, point_id) AS point_id", "point_id must be unique, got 78 more"),
        ("7 AS point_id", "point_id must be unique, got 7 more than once"),
    ],
)
def test_points(con, columns, sentence):
    bad = f"WITH bad AS (SELECT * REPLACE ({columns}) FROM pts)"
    message = refused(con, f"{bad} FROM build_lod(bad, {SIZES})")
    assert f"build_lod: {sentence}" in message


@pytest.mark.parametrize("turned", [False, True])
def test_ids_of_points_in_any_order_must_be_unique(turned):
    ids = np.random.default_rng(2).permutation(5000)
    ids[[17, 4000]] = 123
    if turned:
        ids = np.sort(ids)
    x = np.arange(5000.0)
    with pytest.raises(ValueError, match="build_lod: point_id must be unique, got 123 more than"):
        spatialq.run("build_lod", x, x, x, point_id=ids)


@pytest.mark.parametrize("rows", ["", "WHERE false"])
@pytest.mark.parametrize("axis", ["x", "y", "z", "point_id"])
def test_a_missing_column_is_named(con, axis, rows):
    query = f"WITH bad AS (SELECT * EXCLUDE ({axis}) FROM pts {rows}) FROM build_lod(bad)"
    assert f"build_lod: 'bad' must have a column {axis}" in refused(con, query)


WHOLE = "must be whole numbers from 0 to"
TYPE = ", of a type such as"
IDS = "point_id must be whole numbers of 64 bits"


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ("if(point_id = 7, -1, red) AS red", f"red {WHOLE} 65535, got -1"),
        ("if(point_id = 7, 65536, green) AS green", f"green {WHOLE} 65535, got 65536"),
        ("1e30::HUGEINT AS blue", f"blue {WHOLE} 65535, got 10000000000000000"),
        ("0.5 AS red", f"red {WHOLE} 65535{TYPE} USMALLINT, got 0.5 of type DECIMAL"),
        ("255::DOUBLE AS blue", f"blue {WHOLE} 65535{TYPE} USMALLINT, got 255.0 of type DOUBLE"),
        ("[1] AS blue", f"blue {WHOLE} 65535{TYPE} USMALLINT, got [1] of type INTEGER[]"),
        ("'12' AS intensity", f"intensity {WHOLE} 65535{TYPE} USMALLINT, got 12 of type VARCHAR"),
        ("256 AS classification", f"classification {WHOLE} 255, got 256 of type INTEGER"),
        ("-1 AS classification", f"classification {WHOLE} 255, got -1"),
        ("point_id + 0.5 AS point_id", f"{IDS}{TYPE} BIGINT, got 0.5 of type DECIMAL"),
        ("point_id::DOUBLE AS point_id", f"{IDS}{TYPE} BIGINT, got 0.0 of type DOUBLE"),
        ("point_id::VARCHAR AS point_id", f"{IDS}{TYPE} BIGINT, got 0 of type VARCHAR"),
        (f"point_id + {2**63} AS point_id", f"{IDS}, got {2**63} of type HUGEINT"),
    ],
)
def test_whole_numbers(con, columns, sentence):
    bad = f"WITH bad AS (SELECT * REPLACE ({columns}) FROM pts)"
    assert f"build_lod: {sentence}" in refused(con, f"{bad} FROM build_lod(bad, {SIZES})")


def test_columns_of_null_may_be_of_any_type(con):
    kinds = ("DOUBLE", "VARCHAR", "INTEGER", "BOOLEAN", "DATE")
    named = zip(catalogue()["build_lod"].inputs.attributes, kinds, strict=True)
    nothing = ", ".join(f"NULL::{kind} AS {name}" for name, kind in named)
    query = f"WITH plain AS (SELECT * REPLACE ({nothing}) FROM pts) FROM build_lod(plain, {SIZES})"
    absent = "SELECT point_id, x, y, z FROM pts"
    expected = con.sql(f"WITH plain AS ({absent}) FROM build_lod(plain, {SIZES})").fetchall()
    assert con.sql(query).fetchall() == expected


def test_the_points_must_be_named(con):
    sentence = "build_lod: points must be the name of a table or a file, or a list of files, got "
    assert f"{sentence}NULL" in refused(con, "FROM build_lod(NULL)")
    assert f"{sentence}''" in refused(con, "FROM build_lod('')")
    assert f"{sentence}5 of type INTEGER" in refused(con, "FROM build_lod(5)")
    for given in ("'nothing'", "nothing"):
        missing = "Table with name nothing does not exist"
        assert missing in refused(con, f"FROM build_lod({given})")


def test_a_table_has_no_more_points_than_a_list(con, monkeypatch):
    """On a connection without the extension, which needs lists."""
    monkeypatch.setattr(points, "MAX_ROWS", 499)
    assert len(con.sql("FROM build_lod(pts)").fetchall()) == 1
    pts = con.sql("FROM pts").to_arrow_table()
    with duckdb.connect() as other:
        spatialq.install(other)
        other.register("pts", pts)
        sentence = "build_lod: points must be at most 499 in a table, got 500"
        assert sentence in refused(other, "FROM build_lod(pts)")
        few = "WITH few AS (FROM pts LIMIT 499) FROM build_lod(few)"
        assert len(other.sql(few).fetchall()) == 1


def test_what_was_interrupted_is_named(con, monkeypatch):
    def stopped(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Function, "kernel", lambda *_: stopped)
    assert "build_lod: interrupted" in refused(con, "FROM build_lod(pts)")


# Arrays


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"red": [-1, 0]}, f"red {WHOLE} 65535, got -1"),
        ({"red": [1, 65536]}, f"red {WHOLE} 65535, got 65536"),
        ({"green": [0.5, 1.0]}, f"green {WHOLE} 65535, got float64"),
        ({"blue": ["a", "b"]}, f"blue {WHOLE} 65535, got <U1"),
        ({"classification": [3, 256]}, f"classification {WHOLE} 255, got 256"),
        ({"intensity": [1]}, "the columns must be one-dimensional, of one length, got {'x': (2,)"),
        ({"point_id": [4, 4]}, "point_id must be unique, got 4 more than once"),
        ({"point_id": [0.5, 1.5]}, f"{IDS}, got float64"),
        ({"point_id": [4.0, np.nan]}, f"{IDS}, got float64"),
        ({"point_id": ["4", "5"]}, f"{IDS}, got <U1"),
        ({"point_id": np.array([4, 2**63], np.uint64)}, f"{IDS}, got {2**63}"),
        (
            {"point_id": np.ma.MaskedArray([1, 2], [0, 1])},
            "point_id must have all its values, got 1 masked",
        ),
        (
            {"x": [1.0, np.nan]},
            f"{FINITE} 1 points with NaN or infinity, the first with point_id 1",
        ),
        ({"x": np.ma.MaskedArray([1, 2], [1, 0])}, "x must have all its values, got 1 masked"),
        (
            {"reds": [1, 2]},
            "no option 'reds'; there is attributes, bounds, crs, full_precision, grid_size, ",
        ),
    ],
)
def test_arrays(given, sentence):
    with pytest.raises(ValueError, match=f"^build_lod: {re.escape(sentence)}"):
        spatialq.run("build_lod", **{**{axis: [1.0, 2.0] for axis in "xyz"}, **given})


@pytest.mark.parametrize("function", ["owm_ground", "detect_planes"])
def test_ids_of_other_functions(function):
    with pytest.raises(ValueError, match=f"{function}: {IDS}, got float64"):
        spatialq.run(function, [1.0], [1.0], [1.0], point_id=[0.5])


def test_whole_numbers_of_other_types_are_taken():
    x = np.arange(4.0)
    expected = spatialq.run("build_lod", x, x, x, point_id=[1, 2, 4, 5], red=[6, 7, 8, 9])
    ids = np.array([1, 2, 4, 5], np.uint64)
    found = spatialq.run("build_lod", x, x, x, point_id=ids, red=np.arange(6.0, 10).astype(">i2"))
    for name, values in expected["samples"].columns.items():
        assert values.tolist() == found["samples"].columns[name].tolist()
    assert spatialq.run("build_lod", [], [], [], [], red=[])["node"].size == 0


def test_other_functions_carry_no_colours():
    with pytest.raises(ValueError, match="owm_ground: no option 'red'; there is"):
        spatialq.run("owm_ground", [1.0], [1.0], [1.0], red=[1])


def test_a_tree_has_fewer_than_2_32_points():
    """Arrays of one value take no memory."""
    x = np.broadcast_to(0.0, 2**32)
    sentence = "build_lod: points must be at most 4294967295 in one tree, got 4294967296"
    with pytest.raises(ValueError, match=sentence):
        validation.validate(x, x, x, np.broadcast_to(0, 2**32), None, None, None, None, None)


# Files


def test_files(con, tmp_path):
    las = write_las(tmp_path / "a.laz", {name: each[:50] for name, each in CLOUD.items()})
    (tmp_path / "b.doc").write_text("points")
    (tmp_path / "c.las").write_text("points")
    (tmp_path / "d.tif").write_text("points")
    for name, sentence in (
        ("nothing.laz", f"build_lod: '{tmp_path}/nothing.laz': there is no such file"),
        ("*.las_", "*.las_': no file matches this pattern"),
        ("b.doc", "b.doc': is no point cloud: its name must end in one of .csv, "),
        ("d.tif", "d.tif': is no point cloud: its name must end in one of .csv, "),
        ("c.las", "c.las': "),
    ):
        message = refused(con, f"FROM build_lod('{tmp_path / name}')")
        assert sentence in message, message
    assert len(con.sql(f"FROM build_lod('{las}', max_points := 10)").fetchall()) > 5


def test_files_must_be_of_one_crs(con, tmp_path):
    part = {name: each[:50] for name, each in CLOUD.items()}
    write_las(tmp_path / "a.laz", part)
    write_las(tmp_path / "b.laz", part, crs="EPSG:25833")
    message = refused(con, f"FROM build_lod('{tmp_path}/*.laz')")
    assert "CrsError: build_lod: " in message
    assert "zone 33N" in message
    write_las(tmp_path / "b.laz", part)
    query = f"SELECT sum(count) FROM build_lod('{tmp_path}/*.laz') WHERE is_leaf"
    assert con.sql(query).fetchall() == [(100,)]


def test_a_file_that_changes_meanwhile_is_refused(con, tmp_path):
    path = tmp_path / "a.laz"
    write_las(path, {name: each[:50] for name, each in CLOUD.items()})
    con.execute(
        "CREATE TABLE plan AS "
        f'SELECT spatialq_build_lod_sql(\'"{path}"\', \'{{"device": "cpu"}}\') AS q'
    )
    ((query,),) = con.sql("FROM plan").fetchall()
    assert len(con.sql(query).fetchall()) == 1
    write_las(path, {name: each[:60] for name, each in CLOUD.items()})
    assert "a.laz': was changed while the query ran" in refused(con, query)


def test_an_odd_file_warns(con, tmp_path):
    path = tmp_path / "a.las"
    write_las(path, {name: each[:50] for name, each in CLOUD.items()})
    with path.open("r+b") as file:  # the greatest x of the header
        file.seek(179)
        file.write(np.float64(500000.5).tobytes())
    with pytest.warns(FileWarning, match=r"a\.las': its points reach from x = 5000.* to 5000"):
        con.sql(f"FROM build_lod('{path}')").fetchall()
