"""Text, PTS and PTX against NumPy's own reader of text."""

import numpy as np
import pyarrow as pa
import pytest

from spatialq.errors import FileError, FileWarning
from spatialq.io.formats import find_reader
from spatialq.io.formats.text import TextSource
from spatialq.io.source import ROW_GROUP

from ...conftest import real_file
from ...open_files import open_files
from .cloud_files import cloud, lines, read


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("name", "skipped"), [("utm17_2.txt", 1), ("autzen.pts", 1), ("bunny_8.pts", 1)]
)
def test_real_files_against_numpy(name, skipped):
    path = real_file(f"data/formats/{name}")
    table = read(path)
    expected = np.loadtxt(path, skiprows=skipped)
    found = np.column_stack([table[each] for each in table.schema.names if each != "point_id"])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("separator", [" ", "\t", ",", ";", "  ", " \t", ", ", " ; ", "\r,"])
@pytest.mark.parametrize("end", ["\n", "\r\n", " \n", "\n\n"])
def test_separators_and_ends_of_lines(tmp_path, separator, end):
    columns = cloud(50)
    text = lines(columns, separator).replace("\n", end)
    table = read(write(tmp_path / "cloud.xyz", text.rstrip("\n")))
    assert table.schema.names == [
        *("point_id", "x", "y", "z"),
        *(f"column_{i}" for i in range(4, 9)),
    ]
    for name, values in zip(table.schema.names[1:], columns.values(), strict=True):
        # a float32 has the digits of a double here, as the file does
        np.testing.assert_array_equal(table[name], values.astype("f8"), err_msg=name)


@pytest.mark.parametrize(
    ("head", "names"),
    [
        ("x y z intensity\n", ["x", "y", "z", "intensity"]),
        ("//X Y Z I\n", ["x", "y", "z", "I"]),
        ("# made by a test\n# x,y,z,t\n", ["x", "y", "z", "t"]),
        ("\n# a comment of five words\n", ["x", "y", "z", "column_4"]),
        ('"X"\t"Y"\t"Z"\t"Point Source ID"\n', ["x", "y", "z", "point_source_id"]),
        ("label y x z\n", ["x", "y", "z", "label"]),
        ("\ufeffx;y;z;Z\n", ["x", "y", "z", "z_2"]),
        ("2\n", ["x", "y", "z", "column_4"]),
        ("2\nx y z w\n", ["x", "y", "z", "w"]),
    ],
)
def test_names_come_from_a_header(tmp_path, head, names):
    separator = next((sign for sign in "\t;" if sign in head), " ")
    body = "1 2 3 4\n5 6 7 8\n".replace(" ", separator)
    table = read(write(tmp_path / "cloud.txt", head + body))
    assert table.schema.names[1:] == names
    places = {"x": 2, "y": 1, "z": 3, "label": 0} if "label" in names else None
    for i, name in enumerate(names):
        place = places[name] if places else i
        assert table[name].to_pylist() == [1 + place, 5 + place]


def test_types_are_those_that_hold_all_values_of_the_file(tmp_path):
    n = 400_000  # several blocks: what tells the type is in the last one
    head = "x,y,z,classification,intensity,red,a,b,c,d,gps_time\n"
    row = "1,2,3,2,7,255,1,2,true,,4\n"
    last = '4,5,6,255,65535,65536,1.5,"a, b",FALSE,2,5\n'
    source = TextSource(write(tmp_path / "cloud.csv", head + n * row + last))
    assert {field.name: str(field.type) for field in source.schema} == {
        "point_id": "int64",
        "x": "double",
        "y": "double",
        "z": "double",
        "classification": "uint8",
        "intensity": "uint16",
        "red": "int64",
        "a": "double",
        "b": "string",
        "c": "bool",
        "d": "int64",
        "gps_time": "double",
    }
    assert source.rows == n + 1
    batches = list(source.batches(source.schema.names))
    assert {batch.num_rows for batch in batches[:-1]} == {ROW_GROUP}
    table = pa.Table.from_batches(batches)
    np.testing.assert_array_equal(table["point_id"], np.arange(n + 1))
    found = table.slice(n - 1).to_pylist()
    assert list(found[0].values())[1:] == [1, 2, 3, 2, 7, 255, 1, "2", True, None, 4]
    assert list(found[1].values())[1:] == [4, 5, 6, 255, 65535, 65536, 1.5, "a, b", False, 2, 5]


def test_numbers_are_read_to_the_last_digit(tmp_path):
    values = np.random.default_rng(1).normal(size=3000) * 10.0 ** np.arange(-150, 150).repeat(10)
    text = "".join(f"{value!r} {value:.17e} {value:+.17E}\n" for value in values.tolist())
    table = read(write(tmp_path / "cloud.xyz", text))
    for axis in "xyz":
        np.testing.assert_array_equal(table[axis], values)


def test_points_without_a_position_are_left_out(tmp_path):
    path = write(tmp_path / "cloud.csv", "1,2,3\nnan,5,6\n,8,9\n10,11,12\n")
    with pytest.warns(FileWarning, match="2 of its 4 records have no position and are left out"):
        assert read(path)["point_id"].to_pylist() == [0, 3]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the file is empty"),
        ("# nothing\n", "has no lines of points"),
        ("1 2\n", "line 1 must have x, y and z, got '1 2'"),
        ("a,b\n1,2\n", "its line of names has no x, y and z: 'a,b'"),
        ("1 2 3\n\n4 5\n", "line 3 has 2 values, not 3"),
        ("1 2 3\n4 5 6 7\n", "line 2 has 4 values, not 3"),
        ('1,2,"a"b\n', "line 1 cannot be divided"),
        ("1 2 3\n4 5 zz\n", "z of point_id 1 is 'zz', no number"),
        ("1,5;2,5;3,5\n", "x of point_id 0 is '1,5', no number"),
        ("x y w\n1 2 3\n", "its points have no z: there are x, y, w"),
        ("x y z\n1 2 3 4\n", "line 2 has 4 values, but the line before names 3 columns"),
        ("3\n1 2 3\n", "cut off: its first line promises 3 points, but 1 are there"),
        ("1 2 3\n".encode("utf-16"), "no text in UTF-8: it has bytes that are 0"),
        ("1 2 3\n" + "4" * (1 << 22), "a line is longer than 4194304 bytes"),
    ],
)
def test_what_cannot_be_read_whole_is_refused(tmp_path, text, reason):
    path = write(tmp_path / "cloud.txt", text)
    with pytest.raises(FileError) as caught:
        read(path)
    assert str(caught.value).startswith(f"read_points: '{path}': ")
    assert reason in str(caught.value)


def test_a_table_without_rows_is_an_empty_cloud(tmp_path):
    table = read(write(tmp_path / "cloud.csv", "x,y,z,t\n"))
    assert (table.num_rows, table.schema.names) == (0, ["point_id", "x", "y", "z", "t"])


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path):
    path = write(tmp_path / "cloud.xyz", "1 2 3\n" * 9)
    source = TextSource(path)
    write(path, "1 2 3\n" * 8)
    with pytest.raises(FileError, match="its header promises 9 points, but 8 are there"):
        list(source.batches(["x"]))
    write(path, "1 2 a\n" * 9)
    with pytest.raises(FileError, match="z of point_id 0 is 'a'"):
        list(source.batches(["x"]))


@pytest.mark.parametrize("values", [3, 4, 6, 7])
def test_pts_has_its_columns_by_their_number(tmp_path, values):
    names = {
        3: ["x", "y", "z"],
        4: ["x", "y", "z", "intensity"],
        6: ["x", "y", "z", "red", "green", "blue"],
        7: ["x", "y", "z", "intensity", "red", "green", "blue"],
    }[values]
    rows = np.arange(2 * values).reshape(2, values) - (values == 4) * 5
    text = "2\n" + "".join(" ".join(map(str, row)) + "\n" for row in rows)
    table = read(write(tmp_path / "cloud.pts", text))
    assert table.schema.names[1:] == names
    np.testing.assert_array_equal(np.column_stack([table[name] for name in names]), rows)
    if "intensity" in names:
        expected = "int64" if values == 4 else "uint16"
        assert str(table.schema.field("intensity").type) == expected


def test_scans_that_a_limit_ends_do_not_stay_open(tmp_path, monkeypatch):
    monkeypatch.setattr("spatialq.io.source.MAX_SCANS", 2)
    path = tmp_path / "a.pts"
    line = f"{1:.50f} 2 3\n"  # long, or the whole file is read and closed at once
    path.write_text(f"{2 * ROW_GROUP}\n" + line * 2 * ROW_GROUP)
    source = find_reader(path).open(path)
    for _ in range(4):
        assert source.read_span(0, ["x"]).num_rows == ROW_GROUP
    assert open_files().count(path) == 2
    assert source.read_span(1, ["x"]).num_rows == ROW_GROUP


def test_pts_compares_its_count(tmp_path):
    with pytest.raises(FileError, match="promises 3 points, but 2 are there"):
        read(write(tmp_path / "less.pts", "3\n1 2 3\n4 5 6\n"))
    with pytest.raises(FileError, match="line 2 has 5 values; in PTS a point has 3, 4, 6 or 7"):
        read(write(tmp_path / "odd.pts", "3\n1 2 3 4 5\n"))
    source = find_reader("a.pts").open(write(tmp_path / "more.pts", "1\n1 2 3\n4 5 6\n"))
    assert source.rows == 2
    assert source.warnings == ["its first line promises 1 points, but 2 are there, which are read"]


MATRIX = np.array([[0, 2, 0, 0], [-2, 0, 0, 0], [0, 0, 1, 0], [10, 20, 30, 1]], float)


def ptx(columns, rows, values):
    """A scan; the last line of the matrix is its translation."""
    head = f"{columns}\n{rows}\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n"
    matrix = "".join(" ".join(map(str, row)) + "\n" for row in MATRIX)
    return head + matrix + "".join(" ".join(map(str, row)) + "\n" for row in values)


def test_ptx_against_numpy(tmp_path):
    random = np.random.default_rng(1)
    first = np.column_stack([random.normal(size=(12, 3)), random.random(12)])
    first[[0, 5, 6], :3] = 0
    second = np.column_stack(
        [random.normal(size=(6, 3)), random.random(6), random.integers(0, 256, (6, 3))]
    ).astype(object)
    second[:, 4:] = second[:, 4:].astype(int)
    path = write(tmp_path / "scans.ptx", ptx(3, 4, first) + ptx(2, 3, second) + ptx(0, 9, []))
    with pytest.warns(FileWarning, match="3 of its 18 records have no position"):
        table = read(path)
    assert table["point_id"].to_pylist() == [1, 2, 3, 4, *range(7, 18)]
    assert table["scan"].to_pylist() == [0] * 9 + [1] * 6
    both = np.vstack([first[:, :4], second[:, :4].astype(float)])[table["point_id"]]
    placed = np.column_stack([both[:, :3], np.ones(15)]) @ MATRIX
    for i, axis in enumerate("xyz"):
        np.testing.assert_allclose(table[axis], placed[:, i], rtol=1e-14, atol=1e-14)
    np.testing.assert_array_equal(table["intensity"], both[:, 3])
    assert table["red"].to_pylist() == [None] * 9 + second[:, 4].tolist()


def test_real_ptx_against_numpy():
    path = real_file("data/formats/1.2-with-color.ptx")
    table = read(path)
    expected = np.loadtxt(path, skiprows=10)
    found = np.column_stack([table[name] for name in table.schema.names[1:-1]])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("3\n4\n", "3\n4 4\n"), "line 2 must be a number of points, got '4 4'"),
        (("3\n4\n", "3\n5\n"), "cut off: scan 0 has 15 points, the file holds 12 of them"),
        (("3\n4\n", "3\n3\n"), "line 20 must be a number of points"),
        (("1 0 0\n", "1 0\n"), "line 4 must be the scanner's position and axes: 3 numbers"),
        (("10.0 20.0", "10.0"), "line 10 must be a row of the matrix: 4 numbers"),
        (("30.0 1.0", "30.0 2.0"), "does more than rotate, scale and shift"),
        (("9 9 9 9", "9 9 9 9 9"), "line 11 has 5 values; in PTX a point has 4, or 7"),
    ],
)
def test_a_ptx_that_does_not_fit_is_refused(tmp_path, change, reason):
    text = ptx(3, 4, np.full((12, 4), 9))
    path = write(tmp_path / "scan.ptx", text.replace(*change, 1))
    with pytest.raises(FileError) as caught:
        read(path)
    assert reason in str(caught.value)
