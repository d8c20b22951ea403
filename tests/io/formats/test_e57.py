"""E57 files against pye57's own reader, and against the columns that they were made of."""

import struct
import sys

import numpy as np
import pytest

from spatialq.errors import FileError, FileWarning
from spatialq.io import crs
from spatialq.io.formats.e57 import E57Source, matrix_of
from spatialq.io.source import ROW_GROUP

from ...conftest import real_file
from .cloud_files import cloud, e57, read

pye57 = pytest.importorskip("pye57")

HALF = np.sqrt(0.5)
REFUSED = {
    "bad-crc": "cut off or damaged: checksum mismatch",
    "corrupt_crc": "cut off or damaged: checksum mismatch",
}
READ_BY_PYE57 = (
    *("A4", "A_B", "ColouredCubeDouble", "bunnyFloat", "bunnyInt21", "integer_intensity"),
    *("scaled_integer_intensity", "tiny_pc_and_images", "tiny_spherical", "read_error"),
    *("translationWithoutRotation", "cartesian_invalid_state_single"),
)


def fields(columns, *, kind="Float"):
    """x, y and z as the fields of a scan."""
    return {f"cartesian{axis.upper()}": (kind, columns[axis]) for axis in "xyz"}


@pytest.mark.filterwarnings("ignore::spatialq.errors.FileWarning")
@pytest.mark.parametrize("name", READ_BY_PYE57)
def test_real_files_against_pye57(name):
    path = real_file(f"data/formats/{name}.e57")
    table = read(path)
    scans = []
    with pye57.E57(str(path)) as file:
        for i in range(file.scan_count):
            colours = "colorRed" in file.get_header(i).point_fields
            intensity = "intensity" in file.get_header(i).point_fields
            scans.append(
                file.read_scan(i, intensity=intensity, colors=colours, ignore_missing_fields=True)
            )
    names = {f"cartesian{axis.upper()}": axis for axis in "xyz"}
    names |= {f"color{name.title()}": name for name in ("red", "green", "blue")}
    for field, column in {**names, "intensity": "intensity"}.items():
        if field in scans[0]:
            expected = np.concatenate([scan[field] for scan in scans])
            np.testing.assert_allclose(table[column], expected, rtol=1e-6, atol=1e-12)
    numbers = np.repeat(np.arange(len(scans)), [len(scan["cartesianX"]) for scan in scans])
    np.testing.assert_array_equal(table["scan"], numbers)


@pytest.mark.parametrize("name", ["ZeroPoints", "empty_pc", "InvalidCVHeader"])
def test_scans_without_points_are_empty_tables(name):
    table = read(real_file(f"data/formats/{name}.e57"))
    assert table.num_rows == 0
    assert table.schema.names == ["point_id", "x", "y", "z", "scan"]


@pytest.mark.parametrize("name", REFUSED)
def test_damaged_files_are_refused(name):
    path = real_file(f"data/formats/{name}.e57")
    with pytest.raises(FileError) as caught:
        read(path)
    assert str(caught.value).startswith(f"read_points: '{path}': {REFUSED[name]}")
    assert "\n" not in str(caught.value)


def test_colours_of_16_bits():
    table = read(real_file("data/formats/ColourRepresentation.e57"))
    assert set(table["blue"].to_pylist()) == {0, 65280}
    assert str(table.schema.field("point_source_id").type) == "uint16"


def test_fields_that_pye57_does_not_know():
    table = read(real_file("data/formats/testWithNormals.e57"))
    assert table.schema.names[4:] == ["nor:normalX", "nor:normalY", "nor:normalZ", "scan"]
    np.testing.assert_allclose(table["nor:normalZ"][0].as_py(), 1, atol=1e-5)


def test_every_field_comes_back(tmp_path):
    columns = cloud(700)
    given = fields(columns) | {
        "intensity": ("Integer", 0, 0, 2047, columns["red"]),
        "colorRed": ("Integer", 0, 0, 255, columns["red"]),
        "colorGreen": ("Integer", 0, 0, 65535, columns["green"].astype("i8") * 256),
        "colorBlue": ("Integer", 0, 0, 1 << 40, columns["blue"].astype("i8") << 32),
        "timeStamp": ("ScaledInteger", 0, 0, 1 << 20, 0.25, 5.0, 5 + columns["red"] / 4),
        "rowIndex": ("Integer", 0, 0, 1 << 20, columns["red"].astype("i8") * 4000),
        "nor:normalX": ("Float", columns["curvature"]),
    }
    table = read(e57(tmp_path / "cloud.e57", {"fields": given}))
    types = {field.name: str(field.type) for field in table.schema}
    assert types == {
        "point_id": "int64",
        "x": "double",
        "y": "double",
        "z": "double",
        "intensity": "uint16",
        "red": "uint16",
        "green": "uint16",
        "blue": "int64",
        "timeStamp": "double",
        "rowIndex": "int64",
        "nor:normalX": "double",
        "scan": "int32",
    }
    for (*_, values), name in zip(given.values(), list(types)[1:-1], strict=True):
        np.testing.assert_array_equal(table[name], values, err_msg=name)


def test_scans_of_different_fields_are_put_in_place_and_numbered_on(tmp_path):
    first, second, third = cloud(40, 1), cloud(30, 2), cloud(20, 3)
    turn = [HALF, 0, 0, HALF]  # by 90 degrees about z
    radius, azimuth, elevation = 5 + third["red"] / 9, third["green"] / 99, third["blue"] / 999
    path = e57(
        tmp_path / "scans.e57",
        {"fields": fields(first) | {"intensity": ("Float", first["curvature"])}},
        {
            "fields": fields(second) | {"colorRed": ("Integer", 0, 0, 255, second["red"])},
            "pose": (turn, [100, 200, 300]),
        },
        {
            "fields": {
                "sphericalRange": ("Float", radius),
                "sphericalAzimuth": ("Float", azimuth),
                "sphericalElevation": ("Float", elevation),
            },
            "pose": (np.multiply(turn, 3), [1, 2, 3]),
        },
    )
    table = read(path)
    assert table["scan"].to_pylist() == [0] * 40 + [1] * 30 + [2] * 20
    np.testing.assert_array_equal(table["point_id"], np.arange(90))
    assert table["intensity"].to_pylist()[40:] == [None] * 50
    assert table["red"].to_pylist() == [None] * 40 + second["red"].tolist() + [None] * 20
    x = radius * np.cos(elevation) * np.cos(azimuth)
    y = radius * np.cos(elevation) * np.sin(azimuth)
    z = radius * np.sin(elevation)
    expected = {
        "x": [first["x"], 100 - second["y"], 1 - y],
        "y": [first["y"], 200 + second["x"], 2 + x],
        "z": [first["z"], 300 + second["z"], 3 + z],
    }
    for axis, parts in expected.items():
        np.testing.assert_allclose(table[axis], np.concatenate(parts), rtol=1e-13, atol=1e-13)


def test_a_quaternion_turns_as_that_of_pyquaternion():
    from pyquaternion import Quaternion

    for parts in np.random.default_rng(1).normal(size=(20, 4)):
        expected = Quaternion(parts).rotation_matrix
        np.testing.assert_allclose(matrix_of(*parts), expected, atol=1e-14)


def test_points_that_the_file_calls_invalid_are_left_out(tmp_path):
    columns = cloud(9)
    state = [0, 1, 2, 0, 0, 2, 0, 0, 1]
    given = fields(columns) | {"cartesianInvalidState": ("Integer", 0, 0, 2, state)}
    path = e57(tmp_path / "cloud.e57", {"fields": given})
    with pytest.warns(FileWarning, match="4 of its 9 records have no position and are left out"):
        table = read(path)
    assert table["point_id"].to_pylist() == [0, 3, 4, 6, 7]
    assert table.schema.names == ["point_id", "x", "y", "z", "scan"]


def test_a_scan_of_several_row_groups_streams(tmp_path):
    n = ROW_GROUP + 17
    columns = {axis: np.arange(n) / 8 + i for i, axis in enumerate("xyz")}
    source = E57Source(e57(tmp_path / "cloud.e57", {"fields": fields(columns)}))
    batches = list(source.batches(["y"]))
    assert [batch.num_rows for batch in batches] == [ROW_GROUP, 17]
    np.testing.assert_array_equal(np.concatenate([b["y"] for b in batches]), columns["y"])


def test_its_crs(tmp_path):
    scan = {"fields": fields(cloud(3))}
    wkt = crs.to_wkt(crs.from_text("EPSG:25832"))
    source = E57Source(e57(tmp_path / "utm.e57", scan, crs=wkt))
    assert crs.same(source.crs, crs.from_text("EPSG:25832"))
    assert not source.warnings
    source = E57Source(e57(tmp_path / "odd.e57", scan, crs="the yard"))
    assert source.crs is None
    assert source.warnings[0].startswith("its coordinate reference system is not used: PROJ cannot")


def test_a_file_without_scans_or_coordinates_is_refused(tmp_path):
    with pytest.raises(FileError, match="has no scans"):
        read(e57(tmp_path / "none.e57"))
    scan = {"fields": {"cartesianX": ("Float", np.ones(3)), "intensity": ("Float", np.ones(3))}}
    with pytest.raises(FileError, match="the points of scan 0 have no coordinates: cartesianX, in"):
        read(e57(tmp_path / "flat.e57", scan))


def test_without_pye57_the_error_says_what_to_install(tmp_path, monkeypatch):
    path = e57(tmp_path / "cloud.e57", {"fields": fields(cloud(3))})
    monkeypatch.setitem(sys.modules, "pye57", None)
    with pytest.raises(FileError) as caught:
        read(path)
    assert str(caught.value) == (
        f"read_points: '{path}': E57 files need pye57: pip install 'spatialq[e57]'"
    )


def checksum(page):
    crc = 0xFFFFFFFF
    for byte in page:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 & -(crc & 1))
    return crc ^ 0xFFFFFFFF


def with_xml(path, change):
    """Change the XML at the end of a file."""
    raw = path.read_bytes()
    begin, size = struct.unpack_from("<QQ", raw, 24)
    data = b"".join(raw[i : i + 1020] for i in range(0, len(raw), 1024))
    at = begin // 1024 * 1020 + begin % 1024
    xml = change(data[at : at + size])
    data = data[:at] + xml
    sizes = struct.pack("<QQQ", -(-len(data) // 1020) * 1024, begin, len(xml))
    data = data[:16] + sizes + data[40:]
    parts = (data[i : i + 1020].ljust(1020, b"\0") for i in range(0, len(data), 1020))
    path.write_bytes(b"".join(part + struct.pack(">I", checksum(part)) for part in parts))
    return path


DOCTYPE = b'?><!DOCTYPE e57Root SYSTEM "http://127.0.0.1:9/a.dtd">'


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b"?>", DOCTYPE, "its XML has '<!DOCTYPE'"),
        (b"?>", b"?><!-- <![CDATA[ -->" + DOCTYPE[2:] + b"<!-- ]]> -->", "its XML has '<!DOCTYPE'"),
        (b"?>", b"?><?a <!-- ?>" + DOCTYPE[2:] + b"<!-- -->", "its XML has '<!DOCTYPE'"),
        (
            b"<e57Root ",
            (
                b'<e57Root xmlns:i="http://www.w3.org/2001/XMLSchema-instance" '
                b'i:schemaLocation="a http://127.0.0.1:9/a.xsd" '
            ),
            "its XML has 'schemaLocation'",
        ),
        (b"UTF-8", b"UTF-7", "its XML is not in UTF-8"),
        (b"?>", b"?>\0", "its XML is not in UTF-8"),
    ],
)
def test_xml_that_names_a_file(tmp_path, old, new, reason):
    path = e57(tmp_path / "a.e57", {"fields": fields(cloud(100))})
    with_xml(path, lambda xml: xml.replace(old, new, 1))
    with pytest.raises(FileError, match=reason):
        E57Source(path)


def test_texts_of_xml_are_texts(tmp_path):
    path = e57(tmp_path / "a.e57", {"fields": fields(cloud(100))})
    text = b"?><!-- <!DOCTYPE a> schemaLocation --><?a <!DOCTYPE a>?>"
    with_xml(path, lambda xml: xml.replace(b"?>", text, 1))
    assert E57Source(path).rows == 100
