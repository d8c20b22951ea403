"""PCD files against NumPy, by the header alone, and against the columns that they were made of."""

from pathlib import Path

import numpy as np
import pytest

from spatialq.errors import FileError, FileWarning
from spatialq.io.formats.pcd import PcdSource
from spatialq.io.lzf import decode
from spatialq.io.source import ROW_GROUP

from ...conftest import real_file
from .cloud_files import cloud, lzf, pcd, read

FORMS = pytest.mark.parametrize("data", ["ascii", "binary", "binary_compressed"])
REAL = ["ascii", "ascii_organized", "ascii_multi_count", "utm17_space", "binary", "autzen-utm"]


def write(path: Path, raw: bytes) -> Path:
    path.write_bytes(raw)
    return path


def brute_force(path: Path) -> dict[str, np.ndarray]:
    """Each field as NumPy reads it with what the header says of it, one column per COUNT."""
    raw = path.read_bytes()
    begin = raw.index(b"\n", raw.index(b"\nDATA") + 1) + 1
    header = {}
    for line in raw[:begin].decode().splitlines():
        key, *words = line.split()
        header[key] = words
    counts = list(map(int, header["COUNT"]))
    types = [f"<{t.lower()}{s}" for t, s in zip(header["TYPE"], header["SIZE"], strict=True)]
    shapes = zip(header["FIELDS"], types, counts, strict=True)
    record = np.dtype([(name, kind, (count,)) for name, kind, count in shapes])
    n = int(header["POINTS"][0])
    if header["DATA"] == ["ascii"]:
        values = np.loadtxt(raw[begin:].decode().splitlines(), ndmin=2)
        ends = np.cumsum([0, *counts])
        return {
            name: values[:, ends[i] : ends[i + 1]].astype(types[i] if name == "rgb" else "f8")
            for i, name in enumerate(header["FIELDS"])
        }
    records = np.frombuffer(raw[begin : begin + n * record.itemsize], record)
    return {name: records[name] for name in record.names}


@pytest.mark.parametrize("name", REAL)
def test_real_files_against_their_headers(name):
    path = real_file(f"data/formats/{name}.pcd")
    table, fields = read(path), brute_force(path)
    source = PcdSource(path)
    names = [each for each in source.schema.names if each != "point_id"]
    expected = {}
    for field, values in fields.items():
        if field == "rgb":
            bits = np.ascontiguousarray(values[:, 0]).view("u4")
            expected |= {"red": bits >> 16 & 255, "green": bits >> 8 & 255, "blue": bits & 255}
        else:
            columns = values.T
            ends = [f"_{i + 1}" for i in range(len(columns))] if len(columns) > 1 else [""]
            expected |= {field + end: each for end, each in zip(ends, columns, strict=True)}
    assert len(names) == len(expected)
    plain = {each.lower().replace("_", ""): values for each, values in expected.items()}
    for column in names:
        np.testing.assert_allclose(
            table[column], plain[column.replace("_", "")], rtol=1e-7, err_msg=column
        )


def test_the_compressed_file_is_the_binary_one():
    binary, compressed = (
        read(real_file(f"data/formats/{name}.pcd")) for name in ("binary", "binary_compressed")
    )
    assert binary.equals(compressed)


def test_an_organised_cloud_leaves_out_what_the_camera_did_not_see():
    path = real_file("data/formats/learn0.pcd")
    with pytest.warns(FileWarning, match="124908 of its 307200 records have no position"):
        table = read(path)
    assert table.num_rows == 182292
    assert table["point_id"][0].as_py() == 99213
    assert PcdSource(path).rows == 640 * 480


@FORMS
def test_every_column_comes_back(tmp_path, data):
    columns = cloud(3000)
    table = read(write(tmp_path / "cloud.pcd", pcd(columns, data)))
    assert table.schema.names == ["point_id", *columns]
    for name, values in columns.items():
        np.testing.assert_array_equal(table[name], values, err_msg=name)


@FORMS
def test_a_file_of_several_row_groups_streams(tmp_path, data):
    n = ROW_GROUP + 17
    columns = {name: np.arange(n, dtype="f4") // 50 + i for i, name in enumerate("xyz")}
    source = PcdSource(write(tmp_path / "cloud.pcd", pcd(columns, data)))
    batches = list(source.batches(["z"]))
    assert [batch.num_rows for batch in batches] == [ROW_GROUP, 17]
    found = np.concatenate([batch["z"] for batch in batches])
    np.testing.assert_array_equal(found, columns["z"])


@FORMS
@pytest.mark.parametrize("kind", ["f4", "u4"])
def test_packed_colours(tmp_path, data, kind):
    bits = np.array([0x00_01_80_FF, 0x40_FE_7F_00, 0x01_00_00_01], "u4")
    columns = {name: np.arange(3.0) for name in "xyz"} | {"rgba": bits.view(kind)}
    table = read(write(tmp_path / "cloud.pcd", pcd(columns, data)))
    assert table.schema.names[4:] == ["red", "green", "blue", "alpha"]
    found = [table[name].to_pylist() for name in ("red", "green", "blue", "alpha")]
    assert found == [[1, 254, 0], [128, 127, 0], [255, 0, 1], [0, 64, 1]]


@FORMS
def test_fields_of_several_values_and_padding(tmp_path, data):
    n = 4
    columns = {name: np.arange(n, dtype="f4") for name in ("x", "y", "z")}
    columns |= {"p": np.arange(n, dtype="u1"), "h": np.arange(n, dtype="f4")}
    names = {"FIELDS": "x y z _ h", "COUNT": "1 1 1 2 3"}
    raw = pcd(columns, data, **names)
    header = raw[: raw.index(b"\n", raw.index(b"\nDATA") + 1) + 1]
    values = np.arange(12, dtype="f4").reshape(n, 3)
    pads = np.full((n, 2), 7, "u1")
    if data == "ascii":
        rows = [[*[i] * 3, 7, 7, *values[i]] for i in range(n)]
        body = "".join(" ".join(map(str, row)) + "\n" for row in rows).encode()
    elif data == "binary":
        body = b"".join(
            np.full(3, i, "f4").tobytes() + pads[i].tobytes() + values[i].tobytes()
            for i in range(n)
        )
    else:
        axes = np.arange(n, dtype="f4").tobytes() * 3
        plain = axes + pads.tobytes() + values.tobytes()
        packed = lzf(plain)
        body = np.array([len(packed), len(plain)], "<u4").tobytes() + packed
    table = read(write(tmp_path / "cloud.pcd", header + body))
    assert table.schema.names == ["point_id", "x", "y", "z", "h_1", "h_2", "h_3"]
    np.testing.assert_array_equal(np.column_stack([table[f"h_{i}"] for i in (1, 2, 3)]), values)


@pytest.mark.parametrize("plain", [b"abc" * 500, bytes(3000), b"", bytes(range(256)) * 40])
def test_lzf(plain):
    packed = np.frombuffer(lzf(plain), np.uint8)
    assert not plain or len(packed) < len(plain)
    out = np.empty(len(plain), np.uint8)
    assert decode(packed, out)
    assert out.tobytes() == plain
    assert not decode(packed, np.empty(len(plain) + 1, np.uint8))
    for n in range(1, min(len(plain), 50)):
        assert not decode(packed, np.empty(len(plain) - n, np.uint8))


def test_a_copy_from_before_the_beginning_is_refused():
    assert not decode(np.array([32, 5], np.uint8), np.empty(3, np.uint8))


def test_a_viewpoint_is_not_applied_and_said(tmp_path):
    columns = cloud(5)
    path = write(tmp_path / "cloud.pcd", pcd(columns, "binary", VIEWPOINT="1 2 3 1 0 0 0"))
    assert PcdSource(path).warnings == [
        "its VIEWPOINT 1 2 3 1 0 0 0 is not applied: coordinates are as they are stored"
    ]
    np.testing.assert_array_equal(read(path)["x"], columns["x"])


def test_zeros_up_to_a_page_are_no_warning_and_other_bytes_are(tmp_path):
    raw = pcd(cloud(5), "binary")
    assert not PcdSource(write(tmp_path / "a.pcd", raw + bytes(900))).warnings
    assert "the rest is not read" in PcdSource(write(tmp_path / "b.pcd", raw + b"1")).warnings[0]


@pytest.mark.parametrize(
    ("data", "others", "reason"),
    [
        ("binary", {"POINTS": "7"}, "promises 7 POINTS, but a WIDTH of 5 and a HEIGHT of 1"),
        ("binary", {"WIDTH": "-5"}, "its WIDTH must be a whole number, got '-5'"),
        ("binary", {"SIZE": "8 8 8"}, "8 FIELDS, 8 TYPEs, 3 SIZEs and 8 COUNTs"),
        ("binary", {"TYPE": "F F F U U U Q I"}, "has TYPE Q and SIZE 4, which is no type"),
        ("binary", {"COUNT": "1 1 1 1 1 1 1 0"}, "must have a COUNT of 1 to 4096, got 0"),
        ("binary", {"POINTS": "6", "WIDTH": "6"}, "cut off: its header promises"),
        ("ascii", {"POINTS": "6", "WIDTH": "6"}, "promises 6 points, the file holds 5"),
        ("binary_compressed", {"POINTS": "6", "WIDTH": "6"}, "damaged: its points are"),
        ("binary", {"VIEWPOINT": "0 0 0"}, "its VIEWPOINT must be 7 numbers"),
        ("binary", {"FIELDS": "x y w a b c d e"}, "its points have no z"),
        ("binary", {"OTHER": "1"}, "line 11 of its header is not understood"),
    ],
)
def test_a_header_that_does_not_fit_is_refused(tmp_path, data, others, reason):
    path = write(tmp_path / "cloud.pcd", pcd(cloud(5), data, **others))
    with pytest.raises(FileError) as caught:
        read(path)
    assert reason in str(caught.value)


def test_another_compression_is_refused(tmp_path):
    raw = pcd(cloud(5), "binary").replace(b"DATA binary\n", b"DATA zip\n")
    with pytest.raises(FileError, match="its DATA must be ascii, binary, binary_compressed, got"):
        read(write(tmp_path / "cloud.pcd", raw))


@pytest.mark.parametrize("cut", [1, 40, 200])
@FORMS
def test_a_cut_file_is_refused(tmp_path, data, cut):
    raw = pcd(cloud(50), data)
    path = write(tmp_path / "cloud.pcd", raw[:-cut] if data != "ascii" or cut > 1 else raw[:-70])
    with pytest.raises(FileError):
        read(path)


def test_damaged_compressed_points_are_refused(tmp_path):
    raw = bytearray(pcd(cloud(50), "binary_compressed"))
    raw[raw.index(b"binary_compressed\n") + 26] = 255
    with pytest.raises(FileError, match="its compressed points are damaged"):
        read(write(tmp_path / "cloud.pcd", bytes(raw)))
