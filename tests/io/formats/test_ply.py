"""PLY files against trimesh, and against the columns that they were made of."""

import numpy as np
import pyarrow as pa
import pytest

from spatialq.errors import FileError, FileWarning
from spatialq.io.formats.ply import PlySource
from spatialq.io.source import ROW_GROUP

from ...conftest import real_file
from .cloud_files import cloud, lines, packed, ply, read

ORDERS = pytest.mark.parametrize("order", ["<", ">", ""])
FACE = "element face 1\nproperty list uchar int i\n"
POSITION = "property float x\nproperty float y\nproperty float z\n"


def write(path, raw):
    path.write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    return path


@ORDERS
def test_every_column_comes_back(tmp_path, order):
    columns = cloud(2000)
    table = read(write(tmp_path / "cloud.ply", ply(columns, order)))
    assert table.schema.names == ["point_id", *columns]
    np.testing.assert_array_equal(table["point_id"], np.arange(2000))
    for name, values in columns.items():
        np.testing.assert_array_equal(table[name], values, err_msg=name)
    types = {name: str(table.schema.field(name).type) for name in ("x", "red", "curvature", "ring")}
    assert types == {"x": "double", "red": "uint16", "curvature": "float", "ring": "int16"}


@ORDERS
def test_a_file_of_several_row_groups_streams(tmp_path, order):
    n = 2 * ROW_GROUP + 17
    columns = {name: np.arange(n, dtype="f4") + i for i, name in enumerate("xyz")}
    path = write(tmp_path / "cloud.ply", ply(columns, order))
    source = PlySource(path)
    batches = list(source.batches(["z", "point_id"]))
    assert [batch.num_rows for batch in batches] == [ROW_GROUP, ROW_GROUP, 17]
    table = pa.Table.from_batches(batches)
    np.testing.assert_array_equal(table["point_id"], np.arange(n))
    np.testing.assert_array_equal(table["z"], columns["z"])


def read_by_trimesh(path):
    trimesh = pytest.importorskip("trimesh")
    with path.open("rb") as file:
        return trimesh.exchange.ply.load_ply(file, fix_texture=False, skip_materials=True)


@ORDERS
def test_trimesh_reads_the_same_points_and_colours(tmp_path, order):
    path = write(tmp_path / "cloud.ply", ply(cloud(50), order))
    table, other = read(path), read_by_trimesh(path)
    points = np.column_stack([table[axis] for axis in "xyz"])
    np.testing.assert_allclose(points, np.asarray(other["vertices"]), rtol=1e-12)
    colours = np.column_stack([table[each] for each in ("red", "green", "blue")])
    np.testing.assert_array_equal(colours, np.asarray(other["vertex_colors"])[:, :3])


@pytest.mark.parametrize("name", ["simple_binary", "simple_text", "mesh"])
def test_trimesh_reads_the_same_points_of_real_files(name):
    path = real_file(f"data/formats/{name}.ply")
    table = read(path)
    points = np.column_stack([table[axis] for axis in "xyz"])
    np.testing.assert_allclose(points, np.asarray(read_by_trimesh(path)["vertices"]), rtol=1e-7)


def test_both_spellings_of_types_name_the_same(tmp_path):
    columns = cloud(20)
    raw = ply(columns, "<")
    other = (
        raw.replace(b"uchar", b"uint8").replace(b"double", b"float64").replace(b"short", b"int16")
    )
    assert read(write(tmp_path / "a.ply", raw)).equals(read(write(tmp_path / "b.ply", other)))


@ORDERS
def test_elements_before_and_after_the_vertices_are_passed_over(tmp_path, order):
    columns = cloud(30)
    before = "element camera 3\nproperty double f\nproperty uchar g\n"
    after = "element face 2\nproperty list uchar int vertex_indices\n"
    header, _, body = ply(columns, order, before=before, after=after).partition(b"end_header\n")
    cameras = {"f": np.arange(3.0), "g": np.arange(3, dtype="u1")}
    raw = packed(cameras, order).tobytes() if order else lines(cameras).encode()
    faces = b"\x03" + bytes(12) if order else b"3 0 1 2\n"
    path = write(tmp_path / "cloud.ply", header + b"end_header\n" + raw + body + 2 * faces)
    assert not PlySource(path).warnings
    for name, values in columns.items():
        np.testing.assert_array_equal(read(path)[name], values, err_msg=name)


def test_header_lines_may_end_in_cr_and_lf(tmp_path):
    header, _, body = ply(cloud(30), "<").partition(b"end_header\n")
    path = write(tmp_path / "crlf.ply", (header + b"end_header\n").replace(b"\n", b"\r\n") + body)
    assert read(path).equals(read(write(tmp_path / "lf.ply", ply(cloud(30), "<"))))


@ORDERS
def test_records_without_a_position_are_left_out_after_numbering(tmp_path, order):
    columns = cloud(9)
    columns["y"][[2, 5]] = np.nan, np.inf
    path = write(tmp_path / "cloud.ply", ply(columns, order))
    with pytest.warns(FileWarning, match="2 of its 9 records have no position and are left out"):
        table = read(path)
    assert table["point_id"].to_pylist() == [0, 1, 3, 4, 6, 7, 8]
    with pytest.warns(FileWarning, match="2 of its 9"):
        assert read(path, ["point_id"]).num_rows == 7


def test_las_dimensions_have_their_names_and_types(tmp_path):
    columns = {name: np.ones(3, "f4") for name in "XYZ"}
    columns |= {
        "scalar_Intensity": np.full(3, 0.5, "f4"),
        "scalar_Classification": np.full(3, 2, "f4"),
        "diffuse_red": np.full(3, 200, "u1"),
        "Return_Number": np.full(3, 1, "u1"),
        "nx": np.zeros(3, "f4"),
        "NX": np.ones(3, "f4"),
    }
    source = PlySource(write(tmp_path / "cloud.ply", ply(columns, "<")))
    assert {field.name: str(field.type) for field in source.schema} == {
        "point_id": "int64",
        "x": "double",
        "y": "double",
        "z": "double",
        "intensity": "float",
        "classification": "float",
        "red": "uint16",
        "return_number": "uint8",
        "nx": "float",
        "NX_2": "float",
    }
    assert source.warnings == ["its field 'NX' is called 'NX_2' here"]


def test_text_keeps_digits_that_its_header_would_cut(tmp_path):
    text = (
        f"ply\nformat ascii 1.0\nelement vertex 1\n{POSITION}end_header\n289814.15 4320978.61 1\n"
    )
    table = read(write(tmp_path / "utm.ply", text))
    assert table["y"].to_pylist() == [4320978.61]


HEADER = "ply\nformat binary_little_endian 1.0\nelement vertex {n}\n" + POSITION + "end_header\n"


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("", "not a PLY file: its first line is not 'ply'"),
        ("plyx\n", "not a PLY file"),
        ("ply\nformat ascii 1.0\n", "its header has no line 'end_header'"),
        ("ply\nend_header\n", "its header has no line 'format'"),
        ("ply\nformat ascii 1.0\nend_header\n", "has no vertices: its elements are none"),
        ("ply\nformat ascii 2.0\nend_header\n", "not understood: 'format ascii 2.0'"),
        ("ply\nformat ascii 1.0\nelement vertex -1\nend_header\n", "line 3 of its header"),
        (
            "ply\nformat ascii 1.0\nelement vertex 1\nproperty list uchar int i\nend_header\n",
            "its elements 'vertex' have lists",
        ),
        (
            f"ply\nformat ascii 1.0\n{FACE}element vertex 1\n{POSITION}end_header\n",
            "its elements 'face' have lists",
        ),
        (HEADER.format(n=5) + "0" * 59, "its header promises 5 vertices, the file holds 4"),
        (HEADER.format(n=10**14) + "0" * 59, "the file holds 4"),
        (
            f"ply\nformat ascii 1.0\nelement vertex 2\n{POSITION}end_header\n1 2 3\n",
            "cut off: its header promises 2 vertices, the file holds 1",
        ),
        (
            f"ply\nformat ascii 1.0\nelement vertex 2\n{POSITION}end_header\n1 2 3\n4 5\n",
            "line 9 has 2 values, not 3",
        ),
        (
            f"ply\nformat ascii 1.0\nelement vertex 2\n{POSITION}end_header\n1 2 3\n4 5 zz\n",
            "z of point_id 1 is 'zz', no double",
        ),
        ("ply\nformat ascii 1.0\nelement vertex 0\nproperty int x\nend_header\n", "have no y"),
    ],
)
def test_what_cannot_be_read_whole_is_refused(tmp_path, raw, reason):
    path = write(tmp_path / "cloud.ply", raw)
    with pytest.raises(FileError) as caught:
        read(path)
    assert str(caught.value).startswith(f"read_points: '{path}': ")
    assert reason in str(caught.value)


def test_more_than_the_header_promises_is_a_warning(tmp_path):
    path = write(tmp_path / "cloud.ply", HEADER.format(n=4) + "0" * 60)
    assert PlySource(path).warnings == ["12 bytes follow after what its header promises"]
    text = f"ply\nformat ascii 1.0\nelement vertex 1\n{POSITION}end_header\n1 2 3\n4 5 6\n"
    path = write(tmp_path / "text.ply", text)
    assert PlySource(path).warnings == ["1 lines follow after what its header promises"]
