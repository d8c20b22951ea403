"""Points of any query as PLY, read back by trimesh."""

import numpy as np
import pyproj
import pytest

import spatialq
from spatialq.database.table_files import write_table
from spatialq.errors import FileError

from ..io.las_files import as_numpy, write

POINT = "SELECT i::DOUBLE / 3 AS x, 5606100 + i / 7 AS y, 2 * i AS z"
KINDS = {
    "TINYINT": "i1", "SMALLINT": "i2", "INTEGER": "i4", "BIGINT": "i4", "UTINYINT": "u1",
    "USMALLINT": "u2", "UINTEGER": "u4", "UBIGINT": "u4", "FLOAT": "f4", "DOUBLE": "f8",
    "BOOLEAN": "u1", "DECIMAL(9,2)": "f8", "HUGEINT": "f8",
}  # fmt: skip


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as connection:
        yield connection


def vertices(path):
    """Vertices as trimesh reads them, by the names of their properties."""
    import trimesh

    raw = trimesh.load(path).metadata["_ply_raw"]["vertex"]["data"]
    return {name: raw[name] for name in raw.dtype.names}


def test_all_types_come_back(con, tmp_path):
    target = tmp_path / "a.ply"
    chosen = ", ".join(f"(i % 2)::{kind} AS c{n}" for n, kind in enumerate(KINDS))
    query = f"{POINT}, {chosen} FROM range(1000) t(i) ORDER BY i"
    assert write_table(con, query, target) == 1000
    found, wanted = vertices(target), con.sql(query).fetchnumpy()
    assert list(found) == list(wanted)
    for name, values in wanted.items():
        np.testing.assert_array_equal(found[name], values.astype(np.float64), err_msg=name)
    assert [found[f"c{n}"].dtype.str[1:] for n in range(len(KINDS))] == list(KINDS.values())


def test_a_cloud_comes_back(con, tmp_path):
    """By trimesh and by our reader; point_id and file_name are not among the properties."""
    source, target = write(tmp_path / "a.laz", 8, 3000), tmp_path / "b.ply"
    rows = f"read_las('{source}')"
    assert write_table(con, f"FROM {rows} ORDER BY point_id", target) == 3000
    before = con.sql(f"FROM {rows} ORDER BY point_id").to_arrow_table()
    found = vertices(target)
    after = con.sql(f"FROM read_points('{target}') ORDER BY point_id").to_arrow_table()
    assert list(found) == [
        name for name in before.schema.names if name not in ("point_id", "file_name")
    ]
    for name, values in found.items():
        np.testing.assert_array_equal(values, as_numpy(before[name]), err_msg=name)
        np.testing.assert_array_equal(as_numpy(after[name]), values, err_msg=name)


@pytest.mark.parametrize("rows", [0, 1, 9, 10, 123_000])
def test_any_number_of_vertices(con, tmp_path, rows):
    target = tmp_path / "a.ply"
    crs = pyproj.CRS("EPSG:25832").to_json()
    assert write_table(con, f"{POINT} FROM range({rows}) t(i)", target, crs=crs) == rows
    header, body = target.read_bytes().split(b"end_header\n", 1)
    assert f"element vertex {rows}\n".encode() in header
    assert b"comment crs ETRS89 / UTM zone 32N (EPSG:25832)\n" in header
    assert len(body) == 24 * rows
    assert con.sql(f"SELECT count(*) FROM read_points('{target}')").fetchall() == [(rows,)]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("5000000000 AS n", "'n' has the value 5000000000, but only -2147483648 to 2147483647"),
        ("NULL::FLOAT AS n", r"'n' is NULL in some rows; write coalesce\(n, 0\) AS n"),
        ("'a' AS n", r"'n' is of type VARCHAR, .*; leave it out: \* EXCLUDE \(n\)"),
        (
            "[1, 2]::INTEGER[2] AS n",
            r"'n' has 2 values a row, but a property has one; write n\[1\]",
        ),
        ('1 AS "a b"', "'a b' has a name that PLY cannot have: write \"a b\" AS a_b"),
        ("1 AS größe", "'größe' has a name that PLY cannot have: write \"größe\" AS gr_e"),
    ],
)
def test_what_cannot_be_held_is_refused(con, tmp_path, column, message):
    with pytest.raises(FileError, match=message):
        write_table(con, f"{POINT}, {column} FROM range(10) t(i)", tmp_path / "a.ply")
    assert not list(tmp_path.iterdir())


def test_points_without_a_place_are_refused(con, tmp_path):
    with pytest.raises(FileError, match=r"'z' has the value nan; add WHERE isfinite\(z\)"):
        write_table(con, "SELECT 1 AS x, 2 AS y, 'nan'::DOUBLE AS z", tmp_path / "a.ply")
