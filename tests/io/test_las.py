"""LAS and LAZ files against laspy, column by column."""

import os
import threading
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from spatialq.errors import CrsError, FileError, FileWarning
from spatialq.io import crs as crs_text
from spatialq.io.clouds import read_points
from spatialq.io.las.laz import Laszip
from spatialq.io.las.source import LasSource, open_las
from spatialq.io.source import ROW_GROUP
from spatialq.io.view import table_name

from ..conftest import real_file
from .las_files import as_numpy, truth, write

GOOD = (
    "lidar/4_6_crop.las",
    "lidar/870000_6618000.subset.postValidation.laz",
    "lidar/Coromandel_points.laz",
    "lidar/Megaplot_small.laz",
    "lidar/Topography.laz",
    "lidar/ahn3_cropped_1.laz",
    "lidar/autzen_trim.laz",
    "lidar/bcts_1.laz",
    "lidar/bcts_2.laz",
    "lidar/bcts_4.laz",
    "lidar/file_with_both_wkt_and_geotiff_vlrs.las",
    "lidar/hexbin-crop.las",
    "lidar/interesting.las",
    "lidar/isprs_CSite1_red1.laz",
    "lidar/isprs_CSite2_orig.laz",
    "lidar/isprs_CSite3_orig.laz",
    "lidar/isprs_FSite6_orig.laz",
    "lidar/isprs_FSite8_orig.laz",
    "lidar/isprs_samp11.laz",
    "lidar/isprs_samp12.laz",
    "lidar/isprs_samp21.laz",
    "lidar/isprs_samp22.laz",
    "lidar/isprs_samp23.laz",
    "lidar/isprs_samp31.laz",
    "lidar/isprs_samp41.laz",
    "lidar/isprs_samp51.laz",
    "lidar/isprs_samp53.laz",
    "lidar/isprs_samp61.laz",
    "lidar/lone-star.copc.laz",
    "lidar/mvk-thin.las",
    "lidar/test_data_77050_627755_LA93_IGN69.laz",
    "lidar/test_semis_2023_0292_6833_LA93_IGN69.laz",
    "lidar/warsaw_small.las",
    "rgb/1.2-with-color.las",
    "rgb/autzen_2010_rgb_west.laz",
    "rgb/certainty3d-color-utm-feet-navd88.las",
    "rgb/ellipsoid.copc.laz",
    "rgb/lion_takanawa.copc.laz",
    "rgb/open3d_fragment.laz",
    "rgb/qcompass_outcrop.laz",
    "rgb/simple.copc.laz",
    "indoor/3dtk_scan000.laz",
    "indoor/3dtk_scan001.laz",
    "indoor/caixa.laz",
    "indoor/caixa3.laz",
    "indoor/caixa5.laz",
    "indoor/indoor.laz",
    "indoor/pcl_capture0001.laz",
    "indoor/pcl_office1.laz",
    "indoor/pcl_region_growing_tutorial.laz",
    "indoor/pcl_room_scan1.laz",
    "indoor/pcl_table_scene_mug_stereo_textured.laz",
    "indoor/redkitchen_000.laz",
)
ODD_BUT_GOOD = (
    "laspy_1_4_w_evlr.las",
    "laspy_autzen_geo_proj.las",
    "laspy_extra.laz",
    "laspy_fullwave.laz",
    "laspy_simple1_1.las",
    "laspy_simple1_4.las",
    "laspy_unregistered_extra_bytes.las",
    "laszip_5points_14.las",
    "liblas_bad_points_1.1.las",
    "liblas_srs_vertcs.las",
    "loadersgl_pdrf4-1.3.las",
    "loadersgl_pdrf4-1.3.laz",
    "loadersgl_pdrf6-1.4.las",
    "loadersgl_pdrf6-1.4.laz",
    "loadersgl_pdrf7-v4-1.4.las",
    "loadersgl_pdrf9-1.4.las",
    "loadersgl_pdrf9-1.4.laz",
    "loadersgl_pdrf9-1.5.las",
    "pdal_1.0_0.las",
    "pdal_1.2-empty-geotiff-vlrs.las",
    "pdal_1.2_0.las",
    "pdal_1.2_2.las",
    "pdal_1.2_3.las",
    "pdal_100-points.las",
    "pdal_bad-geotiff-keys.las",
    "pdal_epsg_4326.las",
    "pdal_extrabytes.las",
    "pdal_gps-time-nan.las",
    "pdal_laszip_2bytespadding.laz",
    "pdal_liblas_generated.laz",
    "pdal_lots_of_vlr.las",
    "pdal_no-points.las",
    "pdal_noise-dirty.las",
    "pdal_numerical_imprecision.laz",
    "pdal_spec_3.las",
    "pdal_test1_4.las",
    "rlas_extra_byte.laz",
)
SLOW_MACRO_ROWS = 150_000


def assert_like_laspy(table: pa.Table, path: Path) -> None:
    import laspy

    cloud = laspy.read(path)
    assert table.num_rows == len(cloud)
    assert as_numpy(table["point_id"]).tolist()[:5] == list(range(table.num_rows))[:5]
    for name in table.column_names[1:]:
        expected = np.asarray(cloud["intensity" if name == "Intensity_2" else name])
        if name == "scan_angle":
            expected = (expected * 0.006).astype(np.float32)
        got = as_numpy(table[name])
        same = np.array_equal(got, expected.astype(got.dtype), equal_nan=got.dtype.kind == "f")
        assert same, f"{path.name}: column {name}"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::spatialq.errors.FileWarning")
@pytest.mark.parametrize("name", [*GOOD, *(f"bad/{name}" for name in ODD_BUT_GOOD)])
def test_every_readable_file_gives_what_laspy_gives(con, name):
    path = real_file(f"data/{name}")
    view = read_points(con, path, name="cloud").to_arrow_table()
    assert_like_laspy(view, path)
    if view.num_rows <= SLOW_MACRO_ROWS:
        macro = con.sql(f"FROM read_las('{path}')").to_arrow_table()
        assert macro.schema == con.sql("FROM cloud").to_arrow_table().schema
        assert_like_laspy(macro, path)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["las", "laz"])
@pytest.mark.parametrize("point_format", range(11))
def test_every_point_format_has_every_field(con, tmp_path, point_format, suffix):
    path = write(tmp_path / f"cloud.{suffix}", point_format, 1000)
    assert_like_laspy(read_points(con, path).to_arrow_table(), path)
    assert_like_laspy(con.sql(f"FROM read_las('{path}')").to_arrow_table(), path)


@pytest.mark.slow
@pytest.mark.parametrize("point_format", [3, 8])
def test_each_column_alone_is_the_same_as_with_all_others(con, tmp_path, point_format):
    """Layers that are not decoded leave no trace in those that are."""
    path = write(tmp_path / "cloud.laz", point_format, 3000)
    read_points(con, path)
    everything = con.sql("FROM cloud").to_arrow_table()
    for name in everything.column_names:
        assert con.sql(f"SELECT {name} FROM cloud").to_arrow_table()[name].equals(everything[name])
        macro = con.sql(f"FROM read_las('{path}', columns := ['{name}'])").to_arrow_table()
        assert macro.column_names == [name]
        assert macro[name].equals(everything[name])


@pytest.mark.parametrize("version", ["1.1", "1.2", "1.3", "1.4"])
def test_versions(con, tmp_path, version):
    path = write(tmp_path / "cloud.las", 1, 10, version=version)
    assert_like_laspy(read_points(con, path).to_arrow_table(), path)


@pytest.mark.parametrize("suffix", ["las", "laz"])
@pytest.mark.parametrize("n_points", [0, 1])
@pytest.mark.parametrize("point_format", [1, 7])
def test_no_points_and_one(con, tmp_path, n_points, suffix, point_format):
    path = write(tmp_path / f"cloud.{suffix}", point_format, n_points)
    read_points(con, path)
    assert len(con.sql("FROM cloud").fetchall()) == n_points
    assert con.sql("SELECT count(*) FROM cloud").fetchall() == [(n_points,)]
    macro = con.sql(f"FROM read_las('{path}')")
    assert macro.columns == con.sql("FROM cloud").columns
    assert len(macro.fetchall()) == n_points


@pytest.mark.parametrize("suffix", ["las", "laz"])
@pytest.mark.parametrize("point_format", [1, 6])
def test_extra_bytes_of_every_type(con, tmp_path, point_format, suffix):
    import laspy

    kinds = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8")
    extra = [laspy.ExtraBytesParams(f"one_{kind}", kind) for kind in kinds]
    extra += [laspy.ExtraBytesParams(f"three_{kind}", f"3{kind}") for kind in kinds]
    path = write(tmp_path / f"cloud.{suffix}", point_format, 500, extra=extra)
    assert_like_laspy(read_points(con, path).to_arrow_table(), path)
    macro = con.sql(f"FROM read_las('{path}')")
    assert_like_laspy(macro.to_arrow_table(), path)
    assert [str(kind) for kind in macro.types] == [
        str(kind) for kind in con.sql("FROM cloud").types
    ]


def test_scaled_extra_bytes_are_scaled(con, tmp_path):
    import laspy

    height = laspy.ExtraBytesParams(
        "height", "i2", scales=np.array([0.5]), offsets=np.array([10.0])
    )
    path = write(tmp_path / "cloud.laz", 6, 100, extra=[height])
    relation = read_points(con, path)
    assert str(relation.select("height").types[0]) == "DOUBLE"
    assert np.array_equal(as_numpy(relation.to_arrow_table()["height"]), truth(path, "height"))
    assert (
        con.sql(f"SELECT height FROM read_las('{path}')").fetchall()
        == relation.select("height").fetchall()
    )


def test_an_extra_name_that_is_taken_gets_a_number_and_a_warning(con, tmp_path):
    import laspy

    names = {"#": "X", "@@@@": "Gps_Time", "nir": "nir", "~~~~": "FILE_NAME"}
    extra = [laspy.ExtraBytesParams(name, "u1") for name in names]
    path = write(tmp_path / "cloud.laz", 6, 10, extra=extra)
    raw = path.read_bytes()  # laspy writes no taken name itself
    for placeholder, name in names.items():
        raw = raw.replace(placeholder.encode().ljust(32, b"\0"), name.encode().ljust(32, b"\0"))
    path.write_bytes(raw)
    with pytest.warns(FileWarning) as caught:
        columns = read_points(con, path).columns
    assert "its extra bytes 'X' are called 'X_2' here" in str(caught[0].message)
    assert columns[-4:] == ["X_2", "Gps_Time_2", "nir", "FILE_NAME_2"]
    with pytest.warns(FileWarning):
        macro = con.sql(f"FROM read_las('{path}')").fetchall()
    assert macro == con.sql("FROM cloud").fetchall()


@pytest.mark.slow
def test_batches_are_whole_row_groups_and_spans_give_the_same(tmp_path):
    source = LasSource(write(tmp_path / "cloud.laz", 1, 400_000))
    batches = list(source.batches(source.schema.names))
    assert [batch.num_rows % ROW_GROUP for batch in batches[:-1]] == [0] * (len(batches) - 1)
    spans = [source.read_span(span, source.schema.names) for span in reversed(source.spans())]
    whole = pa.Table.from_batches(batches)
    assert pa.Table.from_batches(spans[::-1]).equals(whole)
    assert whole["point_id"].to_pylist() == list(range(400_000))


def test_count_decodes_nothing_and_xyz_decodes_less(con, tmp_path, monkeypatch):
    import lazrs

    path = write(tmp_path / "cloud.laz", 7, 60_000)
    selections = []
    decode = Laszip.decode

    def counted(self, raw, chunks, selection, records):
        selections.append(selection)
        decode(self, raw, chunks, selection, records)

    monkeypatch.setattr(Laszip, "decode", counted)
    read_points(con, path)
    assert con.sql("SELECT count(*) FROM cloud").fetchall() == [(60_000,)]
    assert con.sql("SELECT max(point_id) FROM cloud").fetchall() == [(59_999,)]
    count = f"SELECT count(*) FROM read_las('{path}', columns := ['point_id'])"
    assert con.sql(count).fetchall() == [(60_000,)]
    assert selections == []
    con.sql("SELECT max(x), max(z) FROM cloud").fetchall()
    assert set(selections) == {lazrs.SELECTIVE_DECOMPRESS_Z}
    selections.clear()
    con.sql("SELECT max(red) FROM cloud WHERE classification = 3").fetchall()
    assert set(selections) == {
        lazrs.SELECTIVE_DECOMPRESS_RGB + lazrs.SELECTIVE_DECOMPRESS_CLASSIFICATION
    }


@pytest.mark.slow
def test_limit_stops_the_reading(con, tmp_path, monkeypatch):
    path = write(tmp_path / "cloud.laz", 0, 1_000_000)
    decoded = []
    decode = Laszip.decode

    def counted(self, raw, chunks, selection, records):
        decoded.append(sum(chunk.rows for chunk in chunks))
        decode(self, raw, chunks, selection, records)

    monkeypatch.setattr(Laszip, "decode", counted)
    read_points(con, path)
    assert len(con.sql("FROM cloud LIMIT 5").fetchall()) == 5
    assert sum(decoded) <= 200_000
    decoded.clear()
    assert len(con.sql(f"FROM read_las('{path}') LIMIT 5").fetchall()) == 5
    assert sum(decoded) <= 200_000


@pytest.mark.slow
def test_a_glob_is_one_table(con, tmp_path):
    write(tmp_path / "a.laz", 1, 70_000, seed=1)
    write(tmp_path / "b.las", 3, 10, seed=2)
    view = read_points(con, tmp_path / "*.la[sz]", name="cloud")
    assert view.columns[-1] == "file_name"
    for table in ("cloud", f"read_las('{tmp_path}/*.la[sz]')"):
        rows = con.sql(
            "SELECT file_name, count(*), count(red), min(point_id), max(point_id) "
            f"FROM {table} GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        assert rows == [
            (str(tmp_path / "a.laz"), 70_000, 0, 0, 69_999),
            (str(tmp_path / "b.las"), 10, 10, 70_000, 70_009),
        ]
    view = con.sql("FROM cloud ORDER BY point_id").fetchall()
    assert con.sql(f"FROM read_las('{tmp_path}/*.la[sz]') ORDER BY point_id").fetchall() == view


def test_extra_bytes_of_different_types_are_joined(con, tmp_path):
    import laspy

    write(
        tmp_path / "a.laz",
        1,
        5,
        extra=[laspy.ExtraBytesParams("echo", "u1"), laspy.ExtraBytesParams("nir", "f4")],
        seed=1,
    )
    write(tmp_path / "b.laz", 1, 5, extra=[laspy.ExtraBytesParams("echo", "i4")], seed=2)
    view = read_points(con, tmp_path / "*.laz", name="cloud")
    macro = con.sql(f"FROM read_las('{tmp_path}/*.laz')")
    assert dict(zip(view.columns, map(str, view.types), strict=True))["echo"] == "INTEGER"
    assert view.types == macro.types
    assert view.order("point_id").fetchall() == macro.order("point_id").fetchall()


def test_files_of_different_crs_are_not_mixed(con, tmp_path):
    write(tmp_path / "a.laz", 6, 5, crs="EPSG:25832")
    write(tmp_path / "b.laz", 6, 5, crs="EPSG:2154")
    with pytest.raises(CrsError, match=r"EPSG:25832\) but .*EPSG:2154"):
        read_points(con, tmp_path / "*.laz")
    with pytest.raises(duckdb.Error, match=r"EPSG:25832\) but .*EPSG:2154"):
        con.sql(f"FROM read_las('{tmp_path}/*.laz')")


@pytest.mark.parametrize("point_format", [1, 6])
def test_the_crs_of_a_file(tmp_path, point_format):
    source = LasSource(write(tmp_path / "cloud.las", point_format, 1, crs="EPSG:25832"))
    assert crs_text.name(source.crs) == "ETRS89 / UTM zone 32N (EPSG:25832)"
    assert source.crs_text


@pytest.mark.parametrize(
    ("name", "horizontal", "vertical"),
    [
        ("lidar/bcts_1.laz", "NAD83 / BC Albers", "CGVD28 height"),
        ("bad/liblas_srs_vertcs.las", "WGS 84 / UTM zone 17N", "NAVD88 height"),
    ],
)
def test_geo_keys_with_a_vertical_crs_are_compound(name, horizontal, vertical):
    import pyproj

    crs = pyproj.CRS.from_json(LasSource(real_file(f"data/{name}")).crs)
    assert [part.name for part in crs.sub_crs_list] == [horizontal, vertical]


def test_the_unit_of_geo_keys_counts_more_than_that_of_their_code():
    """A file in feet with the code of the system in metres: in metres it lies in New Jersey."""
    import pyproj

    source = LasSource(real_file("data/lidar/mvk-thin.las"))
    (warning,) = source.warnings
    assert "give US survey foot as the unit of x and y, and EPSG:26995" in warning
    to_degrees = pyproj.Transformer.from_crs(source.crs, "EPSG:4326", always_xy=True)
    x, y = source.header.box[:2]
    west, south, east, north = pyproj.CRS("EPSG:26995").area_of_use.bounds
    longitude, latitude = to_degrees.transform(x, y)
    assert west < longitude < east
    assert south < latitude < north


@pytest.mark.parametrize(
    ("keys", "units"),
    [
        ({3072: 32632, 4099: 9003}, (1.0, 1200 / 3937)),  # no vertical CRS
        ({3072: 32632, 4096: 5103, 4099: 9002}, (1.0, 0.3048)),  # one that PROJ does not know
        ({3072: 32632, 4096: 5703, 4099: 9003}, (1.0, 1200 / 3937)),  # a known one in metres
        ({3072: 2229, 4099: 9001}, (1200 / 3937, 1.0)),
        ({3072: 2229, 4099: 9003}, (1200 / 3937, 1200 / 3937)),
        ({3072: 26995, 3076: 9003, 4099: 9003}, (1200 / 3937, 1200 / 3937)),
        ({3072: 26995, 3076: 9001, 4099: 9001}, (1.0, 1.0)),
        ({3072: 26995, 3076: 32767, 4099: 32767}, (1.0, 1.0)),
    ],
)
def test_geo_keys_of_units(tmp_path, keys, units):
    import laspy

    path = write(tmp_path / "cloud.las", 1, 5)
    cloud = laspy.read(path)
    entries = [number for key, value in sorted(keys.items()) for number in (key, 0, 1, value)]
    raw = np.array([1, 1, 0, len(keys), *entries], "<u2").tobytes()
    cloud.header.vlrs = [laspy.VLR("LASF_Projection", 34735, "", raw)]
    cloud.write(path)
    assert crs_text.metres_per_unit(LasSource(path).crs) == pytest.approx(units, rel=1e-9)


def test_wkt_in_an_extended_record_and_bad_wkt(tmp_path):
    import laspy

    good = write(tmp_path / "good.las", 6, 1)
    cloud = laspy.read(good)
    import pyproj

    wkt = pyproj.CRS("EPSG:25832").to_wkt("WKT1_GDAL").encode()
    cloud.evlrs.append(laspy.VLR("LASF_Projection", 2112, "", wkt))
    cloud.write(good)
    assert crs_text.name(LasSource(good).crs).endswith("(EPSG:25832)")
    cloud.evlrs[0].record_data = b"PROJCS[\xff broken"
    cloud.evlrs[0].string = "PROJCS[ broken"
    cloud.write(good)
    source = LasSource(good)
    assert source.crs is None
    assert source.crs_text.startswith("PROJCS[")
    assert "coordinate reference system is not used" in source.warnings[0]


def test_points_outside_the_header_box_give_a_warning(con, tmp_path):
    path = write(tmp_path / "cloud.las", 0, 100)
    raw = bytearray(path.read_bytes())
    raw[211:219] = np.float64(50.0).tobytes()  # z maximum
    raw[219:227] = np.float64(40.0).tobytes()
    path.write_bytes(raw)
    read_points(con, path)
    with pytest.warns(FileWarning, match=r"its points reach from z = .* outside the header's 40.0"):
        assert con.sql("SELECT count(z) FROM cloud").fetchall() == [(100,)]
    con.sql("SELECT max(x) FROM cloud").fetchall()  # z is not read: nothing to warn about


def test_a_file_that_changes_is_opened_anew(con, tmp_path):
    path = write(tmp_path / "cloud.laz", 0, 10)
    count = f"SELECT count(*) FROM read_las('{path}')"
    assert con.sql(count).fetchall() == [(10,)]
    assert open_las(path) is open_las(path)
    write(path, 0, 20)
    os.utime(path, ns=(1, 1))
    assert con.sql(count).fetchall() == [(20,)]


def test_a_file_that_changes_under_a_plan_is_an_error(con, tmp_path):
    path = write(tmp_path / "cloud.laz", 0, 10)
    ((text,),) = con.sql(
        f"SELECT spatialq_read_points_sql('read_las', '{path}', NULL, NULL, NULL, NULL)"
    ).fetchall()
    assert len(con.sql(text).fetchall()) == 10
    write(path, 0, 20)
    with pytest.raises(duckdb.Error, match="was changed while the query ran"):
        con.sql(text).fetchall()


@pytest.mark.slow
def test_threads_with_their_own_cursors(con, tmp_path):
    path = write(tmp_path / "cloud.laz", 7, 120_000)
    read_points(con, path)
    expected = con.sql("SELECT sum(intensity), max(gps_time) FROM cloud").fetchall()
    results = []

    def work(index: int) -> None:
        with con.cursor() as cursor:
            table = f"read_las('{path}')"
            if index % 2:
                read_points(cursor, path)
                table = "cloud"
            results.append(
                cursor.sql(f"SELECT sum(intensity), max(gps_time) FROM {table}").fetchall()
            )

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 6


def test_a_view_in_the_database_reads_the_file_each_time(con, tmp_path):
    path = write(tmp_path / "cloud.laz", 0, 10)
    con.execute(f"CREATE VIEW points AS SELECT point_id, z FROM read_las('{path}')")
    assert len(con.sql("FROM points").fetchall()) == 10
    write(path, 0, 30)
    assert len(con.sql("FROM points").fetchall()) == 30


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("NULL", "path must be a file or a pattern such as 'tiles/\\*', got NULL"),
        ("'no/such.laz'", "'no/such.laz': there is no such file"),
        ("'no/such/*.laz'", "no file matches this pattern"),
        (
            "'{path}', bounds := [1, 2, 3]",
            r"bounds must be \[xmin, ymin, xmax, ymax\], got \[1.0, 2.0, 3.0\]",
        ),
        ("'{path}', bounds := [5, 0, 1, 1]", "with the minima first"),
        ("'{path}', bounds := ['nan'::DOUBLE, 0, 1, 1]", "with the minima first"),
        ("'{path}', bounds := [NULL, 0, 1, 1]", r"bounds must be \[xmin, ymin, xmax, ymax\]"),
        (
            "'{path}', columns := ['height']",
            "there is no column 'height'; there are point_id, x, y, z, ",
        ),
        ("'{path}', columns := []::VARCHAR[]", "columns must name at least one of point_id, x"),
    ],
)
def test_wrong_arguments_get_one_sentence(con, tmp_path, arguments, message):
    path = write(tmp_path / "cloud.laz", 0, 10)
    with pytest.raises(duckdb.Error, match=message):
        con.sql(f"FROM read_las({arguments.format(path=path)})")


def test_the_python_function_checks_too(con, tmp_path):
    path, empty = write(tmp_path / "cloud.laz", 0, 10), tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ValueError, match="no column 'height'"):
        read_points(con, path, columns=["height"])
    with pytest.raises(FileError, match="there is no point cloud in this folder"):
        read_points(con, empty)
    con.execute("CREATE TABLE cloud (a INTEGER)")
    with pytest.raises(ValueError, match="there is a table 'cloud' already"):
        read_points(con, path)
    assert read_points(con, path, name="other", columns=["Z", "x"]).columns == ["z", "x"]


@pytest.mark.parametrize(
    ("file", "name"),
    [("forest.copc.laz", "forest"), ("2024 Süd-1.laz", "t_2024_s_d_1"), ("ü.las", "t")],
)
def test_view_names_need_no_quotes(file, name):
    assert table_name(Path(file)) == name
