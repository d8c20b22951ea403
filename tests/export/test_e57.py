"""Points of any query as E57, read back by pye57."""

import numpy as np
import pyproj
import pytest

import spatialq
from spatialq.database.table_files import write_table
from spatialq.errors import FileError

from ..io.las_files import as_numpy, write

pye57 = pytest.importorskip("pye57")

POINT = "SELECT i::DOUBLE / 3 AS x, 5606100 + i / 7 AS y, 2 * i AS z"
INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as connection:
        yield connection


def field(path, name):
    """All values of a field, by buffers of libE57Format."""
    libe57 = pye57.libe57
    image = libe57.ImageFile(str(path), "r")
    points = image.root()["data3D"][0]["points"]
    is_float = isinstance(libe57.StructureNode(points.prototype())[name], libe57.FloatNode)
    values = np.zeros(points.childCount(), "d" if is_float else "q")
    buffers = libe57.VectorSourceDestBuffer()
    buffers.append(libe57.SourceDestBuffer(image, name, values, values.size, True, True))  # noqa: FBT003
    reader = points.reader(buffers)
    assert reader.read() == values.size
    reader.close()
    image.close()
    return values


def test_the_extremes_of_all_types_come_back(con, tmp_path):
    target = tmp_path / "a.e57"
    chosen = []
    for kind in INTEGERS:
        is_signed = not kind.startswith("U")
        bits = {"TINY": 8, "SMAL": 16, "INTE": 32, "BIGI": 64}[kind.removeprefix("U")[:4]]
        low = -(2 ** (bits - 1)) if is_signed else 0
        high = 2 ** (bits - is_signed) - 1
        chosen.append(
            f"(CASE i % 3 WHEN 0 THEN {low} WHEN 1 THEN {high} ELSE 7 END)::{kind} AS {kind}_"
        )
    chosen.append("(2 * i)::UBIGINT AS UBIGINT_, i::FLOAT / 3 AS FLOAT_, i / 9 AS DOUBLE_")
    query = f"{POINT}, {', '.join(chosen)} FROM range(1000) t(i) ORDER BY i"
    assert write_table(con, query, target) == 1000
    wanted = con.sql(query).fetchnumpy()
    for name, values in wanted.items():
        stored = f"cartesian{name.upper()}" if len(name) == 1 else f"las:{name}"
        np.testing.assert_array_equal(field(target, stored), values, err_msg=name)


def test_a_cloud_comes_back(con, tmp_path):
    source, target = write(tmp_path / "a.laz", 7, 130_000, crs="EPSG:25832"), tmp_path / "b.e57"
    rows = f"(FROM read_las('{source}') ORDER BY point_id)"
    assert write_table(con, f"FROM {rows}", target) == 130_000
    before = con.sql(f"FROM {rows}").to_arrow_table()
    file = pye57.E57(str(target))
    header = file.get_header(0)
    assert header.point_count == 130_000
    assert set(before.schema.names) - {"point_id", "file_name", *"xyz", "intensity"} == {
        {"colorRed": "red", "colorGreen": "green", "colorBlue": "blue"}.get(
            name, name.removeprefix("las:")
        )
        for name in header.point_fields
        if not name.startswith("cartesian") and name != "intensity"
    }
    names = {"cartesianX": "x", "cartesianY": "y", "cartesianZ": "z", "colorGreen": "green",
             "intensity": "intensity", "las:gps_time": "gps_time", "las:overlap": "overlap",
             "las:scan_angle": "scan_angle"}  # fmt: skip
    for stored, name in names.items():
        values = as_numpy(before[name])
        np.testing.assert_array_equal(field(target, stored), values, err_msg=name)
    xyz = [as_numpy(before[axis]) for axis in "xyz"]
    bounds = header["cartesianBounds"]
    for axis, values in zip("xyz", xyz, strict=True):
        assert bounds[f"{axis}Minimum"].value() == values.min()
        assert bounds[f"{axis}Maximum"].value() == values.max()
    assert header["colorLimits"]["colorRedMaximum"].value() == as_numpy(before["red"]).max()
    crs = file.root["coordinateMetadata"].value()
    assert pyproj.CRS("EPSG:25832").equals(pyproj.CRS(crs))
    after = con.sql(f"FROM read_points('{target}') ORDER BY point_id").to_arrow_table()
    for name in names.values():
        np.testing.assert_array_equal(as_numpy(after[name]), as_numpy(before[name]), err_msg=name)


def test_nan_is_a_value_of_a_field(con, tmp_path):
    target = tmp_path / "a.e57"
    query = f"{POINT}, CASE WHEN i > 4 THEN 'nan'::FLOAT ELSE i END AS intensity FROM range(9) t(i)"
    write_table(con, query, target)
    assert np.isnan(field(target, "intensity")).sum() == 4
    file = pye57.E57(str(target))
    assert file.get_header(0)["intensityLimits"]["intensityMaximum"].value() == 4


def test_an_empty_result_is_a_valid_file(con, tmp_path):
    target = tmp_path / "a.e57"
    crs = pyproj.CRS("EPSG:25832+7837")
    assert write_table(con, f"{POINT}, 1 AS n FROM range(0) t(i)", target, crs=crs.to_json()) == 0
    file = pye57.E57(str(target))
    assert (file.scan_count, file.get_header(0).point_count) == (1, 0)
    assert crs.equals(pyproj.CRS(file.root["coordinateMetadata"].value()))
    assert con.sql(f"SELECT count(*) FROM read_points('{target}')").fetchall() == [(0,)]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("10000000000000000000::UBIGINT AS n", "'n' has the value 10000000000000000000, but only"),
        ("NULL::FLOAT AS n", r"'n' is NULL in some rows; write coalesce\(n, 0\) AS n"),
        ("'a' AS n", r"'n' is of type VARCHAR, .*; leave it out: \* EXCLUDE \(n\)"),
        ("[1, 2]::INTEGER[2] AS n", r"'n' has 2 values a row, but a field has one; write n\[1\]"),
        ('1 AS "a b"', "'a b' has a name that E57 cannot have: write \"a b\" AS a_b"),
    ],
)
def test_what_cannot_be_held_is_refused(con, tmp_path, column, message):
    with pytest.raises(FileError, match=message):
        write_table(con, f"{POINT}, {column} FROM range(10) t(i)", tmp_path / "a.e57")
    assert not list(tmp_path.iterdir())
