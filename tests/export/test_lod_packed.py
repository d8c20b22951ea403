"""Samples in few bytes come back: voxels and points bit for bit, colours as documented."""

import re
import struct

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spatialq
from spatialq.export.lod_packed import pack, unpack
from spatialq.io.source import Layout

from ..command_line import spatialq_command
from ..conftest import real_file

COLOURS = ("red", "green", "blue")
LOW, SIZE = [500000.3, 5600000.7, -3.1], 97.7


def voxels(cells, depth, colour=None):
    """Make the samples of cells, of which each is x, y, z of a grid."""
    bits = [
        [x >> k & 1, y >> k & 1, z >> k & 1] for x, y, z in cells for k in reversed(range(depth))
    ]
    codes = np.array(bits).reshape(len(cells), -1).tolist()
    cells = [cell for _, cell in sorted(zip(codes, cells, strict=True))]
    spacing = SIZE / (1 << depth)
    xyz = [[at + (c[k] + 0.5) * spacing for c in cells] for k, at in enumerate(LOW)]
    return with_colours(np.array(xyz).T, colour), spacing


def with_colours(points, colour=None):
    given = np.zeros((len(points), 3), np.uint16) if colour is None else colour
    return dict(zip("xyz", points.T.copy(), strict=True)) | dict(
        zip(COLOURS, given.T.copy(), strict=True)
    )


def require_same(found, expected, names):
    for name in names:
        assert found[name].dtype == expected[name].dtype, name
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


@given(data=st.data())
def test_voxels_come_back_bit_for_bit(data):
    depth = data.draw(st.integers(1, 7))
    side = st.integers(0, (1 << depth) - 1)
    cells = data.draw(st.sets(st.tuples(side, side, side), min_size=1, max_size=80))
    colour = np.random.default_rng(len(cells)).integers(0, 256, (len(cells), 3)).astype(np.uint16)
    samples, spacing = voxels(list(cells), depth, colour)
    packed = pack(samples, LOW, SIZE, spacing)
    assert packed[0] == 1
    require_same(unpack(packed, LOW, SIZE), samples, samples)


def test_masks_are_as_the_description_says():
    cells = [(0, 0, 0), (0, 0, 1), (3, 2, 3)]
    samples, spacing = voxels(cells, 2, np.array([[1, 4, 7], [2, 5, 8], [3, 6, 9]], np.uint16))
    packed = pack(samples, LOW, SIZE, spacing)
    root = 1 << 0 | 1 << 7  # lower halves; upper halves of x, y and z
    masks = [root, 1 << 0 | 1 << 1, 1 << 4 * 1 + 2 * 0 + 1]
    assert packed == bytes([1, 0, 2, *masks, 1, 2, 3, 4, 5, 6, 7, 8, 9])


def test_a_surface_takes_less_than_four_bytes_a_voxel():
    at = np.arange(128)
    cells = [(x, y, int(64 + 20 * np.sin(x / 20) + 9 * np.cos(y / 9))) for x in at for y in at]
    colour = np.random.default_rng(0).integers(0, 65536, (len(cells), 3)).astype(np.uint16)
    samples, spacing = voxels(cells, 7, colour)
    assert len(pack(samples, LOW, SIZE, spacing)) <= 4 * len(cells)


@pytest.mark.parametrize("times", [1, 256, 257])
def test_colours_of_8_bits_come_back(times):
    colour = (np.arange(256)[:, None] * [1, 0, 1] * times).astype(np.uint16)
    samples, spacing = voxels([(k, k, k) for k in range(256)], 8, colour)
    for space in (spacing, 0.0):
        require_same(unpack(pack(samples, LOW, SIZE, space), LOW, SIZE), samples, COLOURS)


def test_colours_of_16_bits_are_rounded_for_voxels_alone():
    colour = np.random.default_rng(1).integers(0, 65536, (100, 3)).astype(np.uint16)
    samples, spacing = voxels([(k, 0, 0) for k in range(100)], 7, colour)
    found = unpack(pack(samples, LOW, SIZE, spacing), LOW, SIZE)
    for name in COLOURS:
        assert np.abs(found[name].astype(int) - samples[name]).max() <= 128
    require_same(unpack(pack(samples, LOW, SIZE, 0.0), LOW, SIZE), samples, samples)


@given(
    points=st.lists(
        st.tuples(*[st.floats(-1e300, 1e300) | st.integers(-(2**31), 2**31 - 1).map(float)] * 3),
        min_size=1, max_size=40,
    )
)  # fmt: skip
def test_points_come_back_bit_for_bit(points):
    samples = with_colours(np.array(points))
    require_same(unpack(pack(samples, LOW, SIZE, 0.0), LOW, SIZE), samples, "xyz")


@given(
    whole=st.lists(st.tuples(*[st.integers(-(2**31), 2**31 - 1)] * 3), min_size=1, max_size=40),
    scale=st.sampled_from([0.01, 0.00025, 1e-3, 0.3048]),
)
def test_points_of_a_las_file_take_their_steps(whole, scale):
    offset = 654321.5
    samples = with_colours(np.array(whole) * scale + offset)
    packed = pack(samples, LOW, SIZE, 0.0, [Layout((scale,) * 3, (offset,) * 3)])
    require_same(unpack(packed, LOW, SIZE), samples, "xyz")
    assert len(packed) <= 6 + 3 * 25 + (3 * 5 + 3) * len(whole)


def test_voxels_off_the_middle_are_kept_as_points():
    samples, spacing = voxels([(1, 2, 3), (4, 5, 6)], 7)
    samples["x"][0] += 1e-3
    packed = pack(samples, LOW, SIZE, spacing)
    assert packed[0] == 2
    require_same(unpack(packed, LOW, SIZE), samples, samples)


HUGE = struct.pack("<BBI", 2, 0, 2**32 - 1) + 3 * struct.pack("<ddqB", 1.0, 0.0, 0, 0) + bytes(3)
"""The number of points is damaged: arrays of as many would have 32 GB each."""


@pytest.mark.parametrize(
    "damage", [b"", b"\x01", b"\x03\x00\x01", b"\x01\x09\x00" + bytes(9), HUGE]
)
def test_what_is_no_stream(damage):
    with pytest.raises(ValueError, match="lod_samples: packed must be what"):
        unpack(damage, LOW, SIZE)


def test_a_part_of_a_stream_is_refused():
    samples, spacing = voxels([(1, 2, 3), (4, 5, 6)], 7)
    for space in (spacing, 0.0):
        packed = pack(samples, LOW, SIZE, space)
        for n in range(len(packed)):
            with pytest.raises(ValueError, match="lod_samples"):
                unpack(packed[:n], LOW, SIZE)


def morton(cells):
    """Interleave three numbers of 10 bits, bit by bit."""
    return sum(
        (int(cell) >> bit & 1) << 3 * bit + 2 - k
        for k, cell in enumerate(cells)
        for bit in range(10)
    )


def in_morton_order(table):
    """Give the samples of all nodes, points of leaves sorted by their cells among 1024^3."""
    samples, first, orders = table["samples"].combine_chunks().values, 0, []
    xyz = np.stack([samples.field(axis).to_numpy() for axis in "xyz"], axis=1)
    rows = table.drop_columns(["samples"]).to_pylist()
    for row in rows:
        here = np.arange(first, first + row["count"])
        if row["is_leaf"]:
            low = np.array([row["xmin"], row["ymin"], row["zmin"]])
            cells = np.clip((xyz[here] - low) * (1024 / row["size"]), 0, 1023)
            here = here[np.argsort([morton(each) for each in cells], kind="stable")]
        orders.append(here)
        first += row["count"]
    order = np.concatenate(orders)
    return {name: samples.field(name).to_numpy()[order] for name in samples.type.names}


DECODED = "SELECT node, lod_samples(packed, xmin, ymin, zmin, size) AS samples FROM"


@pytest.mark.slow
@pytest.mark.parametrize("memory", [None, "small"])
@pytest.mark.parametrize("full_precision", [False, True])
@pytest.mark.parametrize("name", ["lidar/autzen_trim.laz", "rgb/qcompass_outcrop.laz"])
def test_compact_tables_have_what_others_have(tmp_path, monkeypatch, name, memory, full_precision):
    source = real_file(f"data/{name}")
    if memory:
        monkeypatch.setattr("spatialq.workflows.lod._points_in", lambda *_: 60_000)
    plain, compact = tmp_path / "plain.parquet", tmp_path / "compact.parquet"
    given = {"full_precision": full_precision, "attributes": ["classification", "gps_time"]}
    spatialq.write_lod(source, plain, **given)
    spatialq.write_lod(source, compact, **given, compact=True)
    ours, theirs = pq.read_table(compact), pq.read_table(plain)
    assert ours.column_names[:-3] == theirs.column_names[:-1]
    assert ours.column_names[-3:] == ["packed", "classification", "gps_time"]
    known = [each for each in theirs.column_names if each != "samples"]
    assert ours.select(known).to_pylist() == theirs.select(known).to_pylist()
    assert {k: v for k, v in ours.schema.metadata.items() if k != b"build_lod"} == {
        k: v for k, v in theirs.schema.metadata.items() if k != b"build_lod"
    }
    samples = in_morton_order(theirs)
    with spatialq.connect() as con:
        lists = con.sql(f"{DECODED} '{compact}'").to_arrow_table()["samples"].combine_chunks()
    assert np.diff(lists.offsets).tolist() == theirs["count"].to_pylist()
    for axis in "xyz":
        np.testing.assert_array_equal(lists.values.field(axis).to_numpy(), samples[axis])
    is_point = np.repeat(theirs["is_leaf"].to_numpy(), theirs["count"].to_numpy())
    for channel in COLOURS:
        ours_in = lists.values.field(channel).to_numpy().astype(np.int64)
        off = ours_in - samples[channel]
        assert not off[is_point].any()
        assert np.abs(off).max() <= 128
    for each in ("classification", "gps_time"):
        values = ours[each].combine_chunks().values.to_numpy()
        np.testing.assert_array_equal(values, samples[each])
    if not full_precision:
        assert compact.stat().st_size < 0.8 * plain.stat().st_size
        voxels_only = ours.filter(np.logical_not(ours["is_leaf"].to_numpy()))
        size = sum(map(len, voxels_only["packed"].to_pylist()))
        assert size <= 4 * sum(voxels_only["count"].to_pylist())


@pytest.mark.slow
def test_the_command_and_sql_write_them(tmp_path):
    source = real_file("data/lidar/autzen_trim.laz")
    one, other = tmp_path / "one.parquet", tmp_path / "other.parquet"
    assert spatialq_command("lod", source, "-o", one, "--compact").returncode == 0
    with spatialq.connect() as con:
        con.execute(f"FROM write_lod('{source}', ['{other}'], compact := true)")
        assert pq.read_table(one).equals(pq.read_table(other))
        sentence = re.escape("write_lod: compact must be true or false, got 'yes'")
        with pytest.raises(duckdb.Error, match=sentence):
            con.execute(f"FROM write_lod('{source}', ['{other}'], compact := 'yes')")


@pytest.mark.slow
def test_null_where_an_argument_is():
    with duckdb.connect() as con:
        spatialq.install(con)
        assert con.sql("SELECT lod_samples(NULL, 0, 0, 0, 1)").fetchall() == [(None,)]
        with pytest.raises(duckdb.Error, match="packed must be of type BLOB, got type VARCHAR"):
            con.execute("SELECT lod_samples('a', 0, 0, 0, 1)")
