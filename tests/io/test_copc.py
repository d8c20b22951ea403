"""COPC: parts that are skipped, and a hierarchy that cannot be trusted."""

import struct
from pathlib import Path

import numpy as np
import pytest

import spatialq
from spatialq.errors import FileError
from spatialq.io.clouds import read_points
from spatialq.io.las.laz import Laszip
from spatialq.io.las.source import LasSource

from ..conftest import real_file
from .las_files import assert_same_rows, write_copc


def cells(n: int = 3000) -> list[tuple[tuple[int, int, int, int], np.ndarray]]:
    """Make a root, eight children and one grandchild with points of their own cells."""
    random = np.random.default_rng(1)
    clouds = [((0, 0, 0, 0), random.integers(0, 1000, (n, 3)))]
    for i in range(8):
        key = (i & 1, i >> 1 & 1, i >> 2 & 1)
        clouds.append(((1, *key), random.integers(0, 500, (n, 3)) + np.array(key) * 500))
    clouds.append(((2, 3, 3, 3), random.integers(750, 1000, (n, 3))))
    return [(key, grid.astype(np.int32)) for key, grid in clouds]


@pytest.fixture
def copc(tmp_path) -> Path:
    return write_copc(tmp_path / "tree.copc.laz", cells())


@pytest.fixture
def decoded(monkeypatch) -> list[int]:
    rows: list[int] = []
    decode = Laszip.decode

    def counted(self, raw, chunks, selection, records):
        rows.append(sum(chunk.rows for chunk in chunks))
        decode(self, raw, chunks, selection, records)

    monkeypatch.setattr(Laszip, "decode", counted)
    return rows


def test_all_pages_of_the_hierarchy_are_read(con, copc):
    source = LasSource(copc)
    assert not source.warnings
    assert all(chunk.box for span in source.spans() for chunk in span)
    grids = np.concatenate([grid for _, grid in cells()])
    rows = (
        read_points(con, copc, name="tree").select("x, y, z, point_id").order("point_id").fetchall()
    )
    assert [row[:3] for row in rows] == [tuple(map(float, point)) for point in grids]


def test_a_box_decodes_only_the_nodes_it_meets(con, copc, decoded):
    read_points(con, copc, name="tree")
    con.execute("CREATE TABLE everything AS FROM tree")
    decoded.clear()
    corner = "WHERE x <= 100 AND y <= 100 AND z <= 100"
    got = con.sql(f"FROM tree {corner}").to_arrow_table()
    assert_same_rows(got, con.sql(f"FROM everything {corner}").to_arrow_table())
    assert sum(decoded) == 2 * 3000  # the root and one child


@pytest.mark.parametrize("bounds", [(0, 0, 499, 499), (500, 500, 500, 500), (-5, 990, 3, 2000)])
def test_bounds_are_exact_and_point_ids_stay(con, copc, decoded, bounds):
    read_points(con, copc, name="tree")
    con.execute("CREATE TABLE everything AS FROM tree")
    xmin, ymin, xmax, ymax = bounds
    inside = f"x BETWEEN {xmin} AND {xmax} AND y BETWEEN {ymin} AND {ymax}"
    expected = con.sql(f"FROM everything WHERE {inside}").to_arrow_table()
    decoded.clear()
    assert_same_rows(read_points(con, copc, name="cut", bounds=bounds).to_arrow_table(), expected)
    assert sum(decoded) < 30_000
    macro = con.sql(f"FROM read_las('{copc}', bounds := {list(bounds)})")
    assert_same_rows(macro.to_arrow_table(), expected)


def test_bounds_away_from_everything_give_no_rows(con, copc, decoded):
    assert read_points(con, copc, name="cut", bounds=[5000, 0, 6000, 10]).fetchall() == []
    assert con.sql(f"FROM read_las('{copc}', bounds := [5000, 0, 6000, 10])").fetchall() == []
    assert sum(decoded) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["lidar/lone-star.copc.laz", "rgb/lion_takanawa.copc.laz", "rgb/ellipsoid.copc.laz"]
)
def test_real_files_are_cut_exactly(con, decoded, name):
    path = real_file(f"data/{name}")
    source = LasSource(path)
    assert all(chunk.box for span in source.spans() for chunk in span)
    read_points(con, path, name="tree")
    con.execute("CREATE TABLE everything AS FROM tree")
    quantiles = "SELECT {}, {} FROM everything".format(
        *(f"quantile_disc({axis}, [0.4, 0.5])" for axis in "xy")
    )
    (((xmin, xmax), (ymin, ymax)),) = con.sql(quantiles).fetchall()
    bounds = [xmin, ymin, xmax, ymax]
    inside = "x BETWEEN {0} AND {2} AND y BETWEEN {1} AND {3}".format(*map(repr, bounds))
    decoded.clear()
    cut = read_points(con, path, name="cut", bounds=bounds).to_arrow_table()
    assert 0 < sum(decoded) < source.rows
    assert_same_rows(cut, con.sql(f"FROM everything WHERE {inside}").to_arrow_table())


def info_offset(path: Path) -> int:
    return path.read_bytes().index(b"copc\0") + 52


def evlr_offset(path: Path) -> int:
    return struct.unpack_from("<Q", path.read_bytes(), 235)[0] + 60


def put(path: Path, offset: int, value: bytes) -> None:
    raw = bytearray(path.read_bytes())
    raw[offset : offset + len(value)] = value
    path.write_bytes(raw)


def link(path: Path) -> int:
    """Give the offset of the entry that leads to the second page: the tenth."""
    return evlr_offset(path) + 9 * 32


def child(path: Path) -> int:
    """Give the offset of the second entry, of the first child."""
    return evlr_offset(path) + 32


@pytest.mark.parametrize(
    ("place", "shift", "value", "message"),
    [
        (info_offset, 24, struct.pack("<d", -1), "its cube is no cube"),
        (info_offset, 40, struct.pack("<Q", 1 << 60), "runs past the end of the file"),
        (info_offset, 48, struct.pack("<Q", 33), "a page of 33 bytes is no list"),
        (evlr_offset, 0, struct.pack("<i", -7), "there can be no node -7-0-0-0"),
        (evlr_offset, 4, struct.pack("<i", 9), "there can be no node 0-9-0-0"),
        (evlr_offset, 16, struct.pack("<Q", 1), "no node is the chunk of 3000 points"),
        (evlr_offset, 28, struct.pack("<i", 2999), "no node is the chunk of 3000 points"),
        (evlr_offset, 28, struct.pack("<i", 0), "it has 9 nodes with points, the file 10 chunks"),
        (link, 24, struct.pack("<i", -32), "a page of -32 bytes is no list"),
        (child, 0, struct.pack("<4i", 0, 0, 0, 0), "node 0-0-0-0 is listed twice"),
        (child, 0, struct.pack("<4i", 1, 1, 1, 1), "node 1-1-1-1 is listed twice"),
        (child, 0, struct.pack("<4i", 3, 1, 1, 1), "node 3-1-1-1 has no parent"),
        (evlr_offset, 0, struct.pack("<4i", 1, 0, 0, 0), "node 1-0-0-0 is listed twice"),
    ],
)
def test_a_damaged_hierarchy_costs_no_point(con, copc, place, shift, value, message):
    put(copc, place(copc) + shift, value)
    with pytest.warns(UserWarning, match=f"COPC octree is not used.*: .*{message}"):
        tree = read_points(con, copc, name="tree", bounds=[0, 0, 499, 499])
    grids = np.concatenate([grid for _, grid in cells()])
    inside = ((grids[:, 0] <= 499) & (grids[:, 1] <= 499)).sum()
    assert len(tree.fetchall()) == inside
    with pytest.raises(FileError, match=f"cannot be read by resolution: its COPC .*: .*{message}"):
        spatialq.read_points(con, copc, resolution=1e9)


def entry(path: Path, number: int) -> bytes:
    return path.read_bytes()[evlr_offset(path) + 32 * number :][:32]


def test_two_nodes_of_the_same_bytes(con, copc):
    put(copc, child(copc) + 16, entry(copc, 0)[16:])
    with pytest.warns(UserWarning, match="two of its nodes are the same chunk"):
        assert len(read_points(con, copc, name="tree").fetchall()) == 30_000


def test_a_page_that_leads_to_itself_ends(con, copc):
    put(copc, link(copc) + 16, struct.pack("<Q", evlr_offset(copc)))
    with pytest.warns(UserWarning, match="is listed twice"):
        assert len(read_points(con, copc, name="tree").fetchall()) == 30_000
