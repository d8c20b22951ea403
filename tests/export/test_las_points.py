"""Points of any query as LAS and LAZ: read back by laspy, and equal where they were LAS before."""

import warnings

import laspy
import numpy as np
import pyarrow as pa
import pyproj
import pytest

import spatialq
from spatialq.database.table_files import write_table
from spatialq.errors import FileError, FileWarning

from ..conftest import real_file
from ..io.las_files import as_numpy, write, write_copc
from .test_las import check_counts

EXTRA = [
    laspy.ExtraBytesParams("height", "int32", offsets=np.array([5.0]), scales=np.array([0.01])),
    laspy.ExtraBytesParams("triple", "3f4"),
    laspy.ExtraBytesParams("pair", "2u2", offsets=np.array([1, 2]), scales=np.array([0.5, 0.25])),
    laspy.ExtraBytesParams("Größe", "uint64"),
]
REAL = [
    "lidar/4_6_crop.las",
    "lidar/870000_6618000.subset.postValidation.laz",
    "lidar/autzen_trim.laz",
    "lidar/file_with_both_wkt_and_geotiff_vlrs.las",
    "lidar/hexbin-crop.las",
    "lidar/isprs_samp11.laz",
    "lidar/test_data_77050_627755_LA93_IGN69.laz",
    "rgb/certainty3d-color-utm-feet-navd88.las",
    "rgb/simple.copc.laz",
    "indoor/caixa3.laz",
    "bad/laspy_1_4_w_evlr.las",
    "bad/laspy_extra.laz",
    "bad/laspy_unregistered_extra_bytes.las",
    "bad/loadersgl_pdrf4-1.3.laz",
    "bad/pdal_1.0_0.las",
    "bad/pdal_extrabytes.las",
    "bad/pdal_gps-time-nan.las",
    "bad/pdal_no-points.las",
    "bad/pdal_numerical_imprecision.laz",
    "bad/rlas_extra_byte.laz",
]
POINT = "SELECT i::DOUBLE AS x, i + 0.25 AS y, 2 * i AS z"


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as connection:
        yield connection


def header(path):
    with laspy.open(path) as file:
        return file.header


def write_query(con, query, path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error", FileWarning)
        return write_table(con, query, path, **options)


def columns(con, path):
    """Every column of a cloud but the name of its file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = con.sql(f"SELECT * FROM read_las('{path}') ORDER BY point_id").to_arrow_table()
    return {name: table[name] for name in table.schema.names if name != "file_name"}


def assert_equal(con, source, target):
    before, after = columns(con, source), columns(con, target)
    assert {name: each.type for name, each in after.items()} == {
        name: each.type for name, each in before.items()
    }
    for name, column in before.items():
        np.testing.assert_array_equal(as_numpy(after[name]), as_numpy(column), err_msg=name)
    check_counts(target)


@pytest.mark.slow
@pytest.mark.parametrize("extra", [[], EXTRA], ids=["plain", "extra bytes"])
@pytest.mark.parametrize("point_format", range(11))
def test_every_point_format_comes_back(con, tmp_path, point_format, extra):
    ending = "las" if point_format > 8 else "laz"
    source, target = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    write(source, point_format, 3000, extra=extra, crs="EPSG:25832")
    assert write_query(con, f"FROM read_las('{source}')", target) == 3000
    assert_equal(con, source, target)
    copy = header(target)
    original = header(source)
    assert copy.point_format.id == point_format
    assert copy.are_points_compressed == (ending == "laz")
    np.testing.assert_array_equal([copy.scales, copy.offsets], [original.scales, original.offsets])
    assert pyproj.CRS("EPSG:25832").equals(copy.parse_crs())


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_files_come_back(con, tmp_path, name):
    source, target = real_file(f"data/{name}"), tmp_path / "b.laz"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write_table(con, f"FROM read_las('{source}')", target)
    assert_equal(con, source, target)


def test_a_loaded_table_keeps_scale_offset_and_crs(tmp_path):
    source, target = write(tmp_path / "a.laz", 7, 500, crs="EPSG:25832"), tmp_path / "b.laz"
    with spatialq.connect() as con:
        spatialq.load(con, source)
        n = write_query(con, "SELECT x, y, z, red FROM points WHERE point_id % 2 = 1", target)
    before, after = laspy.read(source), laspy.read(target)
    assert n == len(after.points) == 250
    for axis in "XYZ":
        np.testing.assert_array_equal(after[axis], before[axis][1::2])
    np.testing.assert_array_equal(after.red, before.red[1::2])
    assert after.header.global_encoding.wkt
    np.testing.assert_array_equal(after.header.offsets, before.header.offsets)


def test_coordinates_that_leave_the_scale_of_the_source_get_a_finer_one(con, tmp_path):
    """The first rows are written with the scale of the source before the others are seen."""
    source, target = write(tmp_path / "a.las", 6, 400_000), tmp_path / "b.laz"
    query = f"""SELECT * REPLACE (CASE WHEN point_id < 390000 THEN x ELSE x + 0.0001 END AS x)
        FROM read_las('{source}') ORDER BY point_id"""
    assert write_query(con, query, target) == 400_000
    wanted = columns(con, source)
    shifted = wanted["x"].to_numpy() + 0.0001 * (np.arange(400_000) >= 390_000)
    found = columns(con, target)
    assert header(target).scales.tolist() == [0.0001, 0.001, 0.001]
    np.testing.assert_allclose(found.pop("x").to_numpy(), shifted, rtol=0, atol=1e-9)
    for name, column in found.items():
        np.testing.assert_array_equal(as_numpy(column), as_numpy(wanted[name]), err_msg=name)


@pytest.mark.parametrize(
    ("expression", "scale"),
    [
        ("i", 1), ("i * 0.1", 0.1), ("652100 + i * 0.01", 0.01), ("-i * 0.001", 0.001),
        ("5606100 + i * 0.00025", 0.00025), ("i * 0.0005", 0.0005), ("7 + i * 0.0001", 0.0001),
        ("i * 1e-5", 1e-5), ("8.5 + i * 1e-7", 1e-7),
    ],
)  # fmt: skip
def test_the_scale_of_values_is_found(con, tmp_path, expression, scale):
    target = tmp_path / "a.las"
    write_query(con, f"SELECT ({expression})::DOUBLE AS x, i AS y, 0 AS z FROM range(1001) t(i)",
                target)  # fmt: skip
    cloud = laspy.read(target)
    assert cloud.header.scales.tolist() == [scale, 1, 1]
    wanted = con.sql(f"SELECT ({expression})::DOUBLE AS x FROM range(1001) t(i)").fetchnumpy()["x"]
    np.testing.assert_allclose(np.sort(cloud.x), np.sort(wanted), rtol=1e-15, atol=1e-16)


@pytest.mark.parametrize(("factor", "scale"), [(1e6, 0.001), (1e-3, 1e-7)])
def test_values_without_a_scale_are_rounded_and_that_is_said(con, tmp_path, factor, scale):
    target = tmp_path / "a.las"
    query = f"SELECT {factor} * sqrt(i) / 100 AS x, 0 AS y, 0 AS z FROM range(1001) t(i)"
    with pytest.warns(FileWarning, match=f"column 'x' is rounded to steps of {scale:g}"):
        write_table(con, query, target)
    cloud = laspy.read(target)
    assert cloud.header.scales[0] == pytest.approx(scale, rel=1e-12)
    wanted = factor * np.sqrt(np.arange(1001)) / 100
    np.testing.assert_allclose(np.sort(cloud.x), wanted, rtol=0, atol=scale * 0.5001)


def test_degrees_are_rounded_to_a_hundredth_of_a_metre(con, tmp_path):
    target, crs = tmp_path / "a.laz", pyproj.CRS("EPSG:4326").to_json()
    query = "SELECT 8 + sqrt(i) AS x, 50 + sqrt(i) AS y, sqrt(i) AS z FROM range(101) t(i)"
    with pytest.warns(FileWarning, match="rounded"):
        write_table(con, query, target, crs=crs)
    np.testing.assert_allclose(header(target).scales, [1e-7, 1e-7, 1e-5], rtol=1e-12)


def test_dimensions_are_known_in_any_spelling(con, tmp_path):
    target = tmp_path / "a.laz"
    write_query(
        con,
        f"""{POINT}, 7 AS "Intensity", 2 AS "ReturnNumber", 3 AS num_returns,
        4 AS "Point Source ID", 1e9 AS GPSTIME, 5 AS Red, 6 AS green, 7 AS blue, 8 AS "NIR",
        true AS keypoint, 1.2 AS "Scan Angle", 9 AS reflectance FROM range(10) t(i)""",
        target,
    )
    cloud = laspy.read(target)
    assert cloud.header.point_format.id == 8
    assert list(cloud.point_format.extra_dimension_names) == ["reflectance"]
    names = ("intensity", "return_number", "number_of_returns", "point_source_id", "gps_time",
             "red", "green", "blue", "nir", "key_point", "scan_angle", "reflectance")  # fmt: skip
    assert [cloud[name][3] for name in names] == [7, 2, 3, 4, 1e9, 5, 6, 7, 8, 1, 200, 9]
    assert cloud.header.global_encoding.gps_time_type == laspy.header.GpsTimeType.STANDARD


@pytest.mark.parametrize(("time", "kind"), [(6e5, 0), (4.2e8, 1)])
def test_the_kind_of_times_is_told_of_points_with_the_layout_of_a_source(con, tmp_path, time, kind):
    source, target = tmp_path / "a.las", tmp_path / "b.laz"
    write_query(con, f"{POINT}, {time} AS gps_time FROM range(10) t(i)", source)
    write_query(con, f"FROM read_las('{source}')", target)
    assert header(target).global_encoding.gps_time_type == kind


@pytest.mark.parametrize(
    ("names", "point_format"),
    [
        ("classification", 6), ("gps_time", 6), ("red", 7), ("nir", 8), ("x_t", 9),
        ("x_t, nir", 10), ("scan_angle_rank", 0), ("scan_angle_rank, gps_time", 1),
        ("scan_angle_rank, blue", 2), ("scan_angle_rank, blue, gps_time", 3),
        ("scan_angle_rank, y_t", 4), ("scan_angle_rank, y_t, green", 5),
        ("scan_angle_rank, overlap", 6), ("scan_angle_rank, scan_angle, nir", 8),
    ],
)  # fmt: skip
def test_the_point_format_has_the_dimensions(con, tmp_path, names, point_format):
    target = tmp_path / "a.las"
    given = ", ".join(f"1 AS {name}" for name in names.split(", "))
    query = f"{POINT}, {given} FROM range(10) t(i)"
    if ", scan_angle," in f", {names},":
        query = query.replace("1 AS scan_angle,", "6 AS scan_angle,")
    write_query(con, query, target)
    assert header(target).point_format.id == point_format
    found = columns(con, target)
    for name in names.split(", "):
        assert set(as_numpy(found[name])) == {6 if name == "scan_angle" else 1}


def test_other_columns_become_extra_bytes(con, tmp_path):
    kinds = {
        "TINYINT": "i1", "SMALLINT": "i2", "INTEGER": "i4", "BIGINT": "i8", "UTINYINT": "u1",
        "USMALLINT": "u2", "UINTEGER": "u4", "UBIGINT": "u8", "FLOAT": "f4", "DOUBLE": "f8",
        "BOOLEAN": "u1", "DECIMAL(9,2)": "f8", "HUGEINT": "f8", "FLOAT[2]": "2f4",
        "BIGINT[3]": "3i8",
    }  # fmt: skip
    chosen = ", ".join(
        f"[i + {k} for k in range({kind[-2]})]::{kind} AS c{n}" if "[" in kind
        else f"{'(i % 2)' if kind == 'BOOLEAN' else 'i'}::{kind} AS c{n}"
        for n, kind in enumerate(kinds) for k in ["k"]
    )  # fmt: skip
    target = tmp_path / "a.laz"
    write_query(con, f"{POINT}, {chosen} FROM range(100) t(i)", target)
    cloud = laspy.read(target)
    order = np.argsort(cloud.x)
    for n, (kind, code) in enumerate(kinds.items()):
        values = np.asarray(cloud[f"c{n}"])[order]
        assert values.dtype == np.dtype(code).base, kind
        wanted = np.arange(100) % (2 if kind == "BOOLEAN" else 1000)
        if "[" in kind:
            wanted = wanted[:, None] + np.arange(int(kind[-2]))
        np.testing.assert_array_equal(values, wanted, err_msg=kind)


@pytest.mark.parametrize("ending", ["las", "laz"])
@pytest.mark.parametrize("name", ["scan_angle_rank", "nir"])
def test_an_empty_result_is_a_valid_file(con, tmp_path, name, ending):
    target = tmp_path / f"a.{ending}"
    crs = pyproj.CRS("EPSG:25832+7837")
    query = f"{POINT}, 1 AS {name}, 2 AS own FROM range(0) t(i)"
    assert write_query(con, query, target, crs=crs.to_json()) == 0
    cloud = laspy.read(target)
    assert len(cloud.points) == 0
    assert cloud.header.parse_crs().to_epsg() is not None or crs.equals(cloud.header.parse_crs())
    assert set(columns(con, target)) >= {"x", "y", "z", name, "own"}


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("70000 AS intensity", r"'intensity' has the value 70000, but only 0 to 65535 can be held"),
        (
            "70001 AS red",
            r"; write least\(red, 65535\) AS red, or leave it out: \* EXCLUDE \(red\)",
        ),
        ("300 AS classification", "'classification' has the value 300, but only 0 to 255"),
        ("-1 AS user_data", r"has the value -1, .*; write greatest\(user_data, 0\)"),
        ("3.7 AS red", r"'red' has the value 3.7, but only whole .*; write round\(red\) AS red"),
        ("'nan'::FLOAT AS nir", "'nir' has the value nan, but only whole numbers can be held"),
        ("2 AS withheld", "'withheld' has the value 2, but only 0 to 1 can be held"),
        ("16 AS return_number", "'return_number' has the value 16, but only 0 to 15 can be held"),
        (
            "200.0 AS scan_angle",
            "'scan_angle' has the value 200.0, but only -196.608 to 196.602 can",
        ),
        ("9007199254740993::HUGEINT AS n", "'n' has the value 9007199254740992, which is rounded"),
        (
            "9007199254740993 AS gps_time",
            "'gps_time' has the value 9007199254740993, which float64",
        ),
        ("NULL::INTEGER AS green", r"'green' is NULL in some rows; write coalesce\(green, 0\)"),
        ("[1, NULL]::INTEGER[2] AS pair", "'pair' is NULL in some rows; leave it out"),
        ("'a' AS label", r"'label' is of type VARCHAR, .*; leave it out: \* EXCLUDE \(label\)"),
        ("DATE '2026-01-01' AS day", r"'day' is of type DATE, .*; write epoch\(day\) AS day"),
        ("'a'::ENUM('a') AS kind", r"'kind' is of type ENUM.*; write enum_code\(kind\) AS kind"),
        ("[1] AS list", r"'list' is of type INTEGER\[\], .*; write list\[1\] AS list"),
        ("[1, 2, 3, 4]::TINYINT[4] AS four", "'four' has 4 values a row, but extra bytes have 3"),
        ("1e18::DOUBLE::HUGEINT AS n", "'n' has the value 1000000000000000000, which is rounded"),
        ("1 AS a_name_of_more_than_thirty_two_bytes", "which may have 32 bytes"),
        (
            "9 AS return_number, 1 AS scan_angle_rank",
            r"'return_number' has the value 9, .* hold 0 to 7; write scan_angle_rank::FLOAT AS",
        ),
        ("0.1::DOUBLE AS x_t", "the value 0.1, which float32 .*; write x_t::FLOAT AS x_t"),
    ],
)
def test_what_cannot_be_held_is_refused(con, tmp_path, column, message):
    target = tmp_path / "a.las"
    with pytest.raises(FileError, match=f"^output: '.*a.las': column .*{message}"):
        write_table(con, f"{POINT}, {column} FROM range(10) t(i)", target)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT 1 AS x, 2 AS y, 3 AS height", "there is no z among x, y, height"),
        ("SELECT 1 AS x, 2 AS y, 'a' AS z", "column 'z' is of type VARCHAR"),
        ("SELECT 1 AS x, NULL::DOUBLE AS y, 1 AS z", "'y' is NULL .*; add WHERE y IS NOT NULL"),
        ("SELECT 'nan'::DOUBLE AS x, 0 AS y, 1 AS z", r"'x' has the value nan; add WHERE isfinite"),
        ("SELECT 1e30 * i AS x, 0 AS y, 1 AS z FROM range(2) t(i)",
         "'x' reaches from 0.0 to 1e[+]30, too far for steps of 0.001"),
    ],
)  # fmt: skip
def test_coordinates_that_are_none_are_refused(con, tmp_path, query, message):
    with pytest.raises(FileError, match=message):
        write_table(con, query, tmp_path / "a.laz")
    assert not list(tmp_path.iterdir())


def test_a_value_that_cannot_be_held_keeps_the_file_that_was_there(con, tmp_path):
    target = tmp_path / "a.las"
    write_query(con, f"{POINT} FROM range(10) t(i)", target)
    before = target.read_bytes()
    with pytest.raises(FileError, match="300"):
        write_table(con, f"{POINT}, 300 AS user_data FROM range(10) t(i)", target)
    assert target.read_bytes() == before


def test_waveform_points_are_not_compressed(con, tmp_path):
    with pytest.raises(
        FileError, match=r"format 9 cannot be compressed without loss; write a .las"
    ):
        write_table(con, f"{POINT}, 1 AS wavepacket_index FROM range(10) t(i)", tmp_path / "a.laz")


@pytest.mark.parametrize(
    ("expression", "factor"), [("i / 100.0", 65535), ("i", 1), ("(i // 99)", 65535)]
)
def test_intensities_of_a_floating_type(con, tmp_path, expression, factor):
    target = tmp_path / "a.laz"
    query = f"{POINT}, ({expression})::FLOAT AS intensity FROM range(100) t(i)"
    if factor == 1:
        write_query(con, query, target)
    else:
        with pytest.warns(FileWarning, match=r"written as round\(65535 \* intensity\)"):
            write_table(con, query, target)
    cloud = laspy.read(target)
    values = con.sql(query).fetchnumpy()["intensity"].astype(np.float64)
    np.testing.assert_array_equal(np.sort(cloud.intensity), np.sort(np.rint(factor * values)))


@pytest.mark.parametrize("values", ["1.5", "-0.5", "70000.0", "'inf'"])
def test_intensities_that_are_neither_fractions_nor_whole_are_refused(con, tmp_path, values):
    query = f"{POINT}, CASE i WHEN 7 THEN {values}::FLOAT ELSE 0.5 END AS intensity"
    with pytest.raises(FileError, match="column 'intensity' has the value"):
        write_table(con, f"{query} FROM range(10) t(i)", tmp_path / "a.las")


def test_scan_angles_between_the_steps_are_rounded_and_that_is_said(con, tmp_path):
    with pytest.warns(FileWarning, match="'scan_angle' is rounded to steps of 0.006 degrees"):
        write_table(con, f"{POINT}, 12.5 AS scan_angle FROM range(3) t(i)", tmp_path / "a.las")
    assert set(laspy.read(tmp_path / "a.las").scan_angle) == {2083}


def test_the_query_runs_once(con, tmp_path):
    con.execute("CREATE OR REPLACE SEQUENCE counted")
    query = "SELECT nextval('counted')::DOUBLE / 3 AS x, 0 AS y, 0 AS z FROM range(1000)"
    with pytest.warns(FileWarning, match="rounded"):
        write_table(con, query, tmp_path / "a.laz")
    assert con.sql("SELECT nextval('counted')").fetchall() == [(1001,)]
    np.testing.assert_allclose(
        np.sort(laspy.read(tmp_path / "a.laz").x), np.arange(1, 1001) / 3, rtol=0, atol=0.001
    )


def test_a_cloud_with_an_octree_becomes_one_without(con, tmp_path):
    grid = np.random.default_rng(0).integers(0, 1000, (200, 3))
    source = write_copc(tmp_path / "a.copc.laz", [((0, 0, 0, 0), grid)])
    write_query(con, f"FROM read_las('{source}')", tmp_path / "b.laz")
    assert_equal(con, source, tmp_path / "b.laz")


def test_a_system_that_wkt1_cannot_describe_is_said(con, tmp_path):
    crs = pyproj.CRS("EPSG:4979")
    with pytest.warns(match="written as WKT2"):
        write_table(con, f"{POINT} FROM range(3) t(i)", tmp_path / "a.las", crs=crs.to_json())
    assert crs.equals(header(tmp_path / "a.las").parse_crs())


def test_no_temporary_file_stays(con, tmp_path):
    write_query(con, f"{POINT} FROM range(3) t(i)", tmp_path / "a.las")
    assert [path.name for path in tmp_path.iterdir()] == ["a.las"]


def test_rows_of_arrow_need_no_database(tmp_path):
    """The module below the writer takes batches of any reader."""
    from spatialq.export.las_points import write_points
    from spatialq.export.point_columns import sql_types

    batch = pa.record_batch(
        {"x": [0.5], "y": [1.5], "z": [2.5], "pair": pa.array([[1, 2]], pa.list_(pa.int16(), 2))}
    )
    assert write_points(tmp_path / "a.las", sql_types(batch.schema), [batch]) == 1
    np.testing.assert_array_equal(laspy.read(tmp_path / "a.las")["pair"], [[1, 2]])
