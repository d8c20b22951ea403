"""COPC that is written: read back by laspy, by our own reader, and by the words of the format."""

import struct

import laspy
import numpy as np
import pytest
from spatialq.udfs.build_lod import Options, additive, cpu

import spatialq
from spatialq.errors import FileError, FileWarning
from spatialq.export import copc
from spatialq.export.additive_points import copy_records
from spatialq.export.copc import write_copc
from spatialq.export.las_join import join
from spatialq.io.las.source import LasSource

from ..conftest import real_file

OPTIONS = Options(strategy="first", max_points=200, grid_size=8)
NAN = float("nan")


def make(path, n=5000, point_format=7, seed=1, scale=0.01, offset=(1000.0, 2000.0, 0.0), **given):
    """A cloud with values in every field."""
    rng = np.random.default_rng(seed)
    header = laspy.LasHeader(point_format=point_format, version="1.4")
    header.scales, header.offsets = [scale] * 3, offset
    if given.get("extra"):
        header.add_extra_dim(laspy.ExtraBytesParams("ratio", np.float32))
        header.add_extra_dim(laspy.ExtraBytesParams("three", "3u1"))
    if given.get("crs"):
        import pyproj

        header.add_crs(pyproj.CRS(given["crs"]))
    cloud = laspy.LasData(header)
    steps = rng.integers(0, 100_000, (3, n)) // np.array([[1], [1], [20]])
    cloud.X, cloud.Y, cloud.Z = steps.astype(np.int32)
    for name in cloud.point_format.dimension_names:
        if name not in ("X", "Y", "Z"):
            fill(cloud, name, n, rng)
    cloud.write(path)
    return path


def fill(cloud, name, n, rng):
    dimension = cloud.point_format.dimension_by_name(name)
    if dimension.kind == laspy.point.dims.DimensionKind.BitField:
        cloud[name] = rng.integers(0, 1 << dimension.num_bits, n)
    elif name == "scan_angle_rank":
        cloud[name] = rng.integers(-90, 91, n)
    elif dimension.kind == laspy.point.dims.DimensionKind.FloatingPoint:
        cloud[name] = rng.uniform(0, 1e6, n)
    else:
        kind = np.dtype(dimension.dtype).base
        shape = (n, dimension.num_elements) if dimension.num_elements > 1 else n
        limits = np.iinfo(kind)
        cloud[name] = rng.integers(limits.min, limits.max, shape, endpoint=True, dtype=kind)


def write(target, *sources, options=OPTIONS, crs=None):
    clouds = [LasSource(source) for source in sources]
    parts = [laspy.read(source) for source in sources]
    xyz = [np.concatenate([getattr(part, axis) for part in parts]).astype(float) for axis in "xyz"]
    table = cpu.run(*xyz, *[None] * 6, options=options)
    collected = additive.Additive(len(xyz[0]))
    collected.add(table)
    records = copy_records(target, join(clouds, target), target.with_suffix(".records"))
    octree = collected.octree(options.grid_size, records.rows)
    with records.in_order(octree) as points:
        write_copc(target, points, crs=crs)
    return octree


def read_copc(path):
    with laspy.CopcReader.open(path) as reader:
        return reader.query(), reader.copc_info, reader.header


def ranked(points, names):
    columns = [np.asarray(points[name]).reshape(len(points), -1) for name in names]
    rows = np.concatenate([column.astype(np.float64) for column in columns], axis=1)
    return rows[np.lexsort(rows.T[::-1])]


def entries(path):
    """All nodes of the hierarchy, page by page, as the specification has it."""
    raw = path.read_bytes()
    offset, size = struct.unpack_from("<2Q", raw, 429 + 40)
    pages, found = [(offset, size)], {}
    while pages:
        offset, size = pages.pop()
        for entry in struct.iter_unpack("<4iQii", raw[offset : offset + size]):
            if entry[6] == -1:
                pages.append(entry[4:6])
            else:
                assert entry[:4] not in found
                found[entry[:4]] = entry[4:]
    return found


@pytest.mark.parametrize("point_format", [6, 7, 8])
def test_every_field_of_every_point_is_read_back(tmp_path, point_format):
    source = make(tmp_path / "a.laz", point_format=point_format, extra=True)
    target = tmp_path / "a.copc.laz"
    write(target, source)
    found, _, header = read_copc(target)
    expected = laspy.read(source)
    names = list(expected.point_format.dimension_names)
    assert list(found.point_format.dimension_names) == names
    assert header.scales.tolist() == expected.header.scales.tolist()
    assert header.offsets.tolist() == expected.header.offsets.tolist()
    np.testing.assert_array_equal(ranked(found, names), ranked(expected, names))
    plain = laspy.read(target)  # any reader of LAZ sees all points
    np.testing.assert_array_equal(ranked(plain, names), ranked(expected, names))


@pytest.mark.parametrize(("older", "newer"), [(0, 6), (1, 6), (2, 7), (3, 7)])
def test_older_formats_are_promoted(tmp_path, older, newer):
    source = make(tmp_path / "a.las", point_format=older, extra=True)
    target = tmp_path / "a.copc.laz"
    write(target, source)
    found, _, header = read_copc(target)
    assert header.point_format.id == newer
    expected = laspy.read(source)
    names = [n for n in expected.point_format.dimension_names if n != "scan_angle_rank"]
    np.testing.assert_array_equal(ranked(found, names), ranked(expected, names))
    angles = np.sort(np.rint(np.asarray(found.scan_angle) * 0.006))
    np.testing.assert_array_equal(angles, np.sort(expected.scan_angle_rank))


def test_waveforms_are_left_out_with_a_warning(tmp_path):
    source = make(tmp_path / "a.las", point_format=4)
    with pytest.warns(FileWarning, match="waveforms are left out"):
        write(tmp_path / "a.copc.laz", source)
    assert read_copc(tmp_path / "a.copc.laz")[2].point_format.id == 6


def test_header_and_info_are_as_the_specification_says(tmp_path):
    source, target = make(tmp_path / "a.laz"), tmp_path / "a.copc.laz"
    write(target, source)
    raw = target.read_bytes()
    assert raw[24:26] == b"\x01\x04"
    assert struct.unpack_from("<H", raw, 94) == (375,)
    assert raw[104] == 7 | 0x80
    assert raw[377:393].rstrip(b"\0") == b"copc"
    assert struct.unpack_from("<HH", raw, 393) == (1, 160)
    expected = laspy.read(source)
    x, y, z, half, spacing, _, _, low, high = struct.unpack_from("<5d2Q2d", raw, 429)
    assert raw[429 + 72 : 429 + 160] == bytes(88)
    mins, maxs = expected.header.mins, expected.header.maxs
    assert half == pytest.approx((maxs - mins).max() / 2, rel=1e-12)
    np.testing.assert_allclose([x - half, y - half, z - half], mins, rtol=1e-12, atol=1e-9)
    assert spacing == pytest.approx(2 * half / 8)
    assert (low, high) == (expected.gps_time.min(), expected.gps_time.max())
    found = laspy.read(target).header
    assert (found.point_count, found.maxs.tolist()) == (5000, maxs.tolist())
    assert found.number_of_points_by_return.tolist() == (
        expected.header.number_of_points_by_return.tolist()
    )


@pytest.mark.parametrize("page", [1000, 5])
def test_each_point_lies_in_the_cell_of_its_node(tmp_path, page, monkeypatch):
    monkeypatch.setattr(copc, "PAGE_NODES", page)
    monkeypatch.setattr(copc, "PAGE_LEVELS", 2)
    source, target = make(tmp_path / "a.laz"), tmp_path / "a.copc.laz"
    octree = write(target, source)
    nodes = entries(target)
    assert len(nodes) == len(octree.names) > 80
    assert sum(each[2] for each in nodes.values()) == 5000
    for key in nodes:
        assert key[0] == 0 or (key[0] - 1, *(k >> 1 for k in key[1:])) in nodes
    x, y, z, half = struct.unpack_from("<4d", target.read_bytes(), 429)
    with laspy.CopcReader.open(target) as reader:
        for level in range(max(key[0] for key in nodes) + 1):
            found = reader.query(level=level)
            own = {key: each[2] for key, each in nodes.items() if key[0] == level and each[2]}
            side = 2 * half / 2**level
            places = np.column_stack([found.x - x + half, found.y - y + half, found.z - z + half])
            cells = np.minimum(places / side, 2**level - 1e-9).astype(int)
            cells, counts = np.unique(cells, axis=0, return_counts=True)
            assert dict(zip(map(tuple, cells.tolist()), counts.tolist(), strict=True)) == {
                key[1:]: count for key, count in own.items()
            }


def test_our_reader_uses_the_octree(tmp_path, monkeypatch):
    monkeypatch.setattr(copc, "PAGE_NODES", 5)
    source, target = make(tmp_path / "a.laz"), tmp_path / "a.copc.laz"
    write(target, source)
    read = LasSource(target)
    assert not read.warnings
    assert all(chunk.box for span in read.spans() for chunk in span)
    assert sum(c.rows for s in read.spans((1000, 2000, 0, 1100, 2100, 50)) for c in s) < 2500
    cut = "x, y, z, intensity FROM read_las('{}', bounds := [1000, 2000, 1100, 2200]) ORDER BY ALL"
    with spatialq.connect() as con:
        found, expected = (con.sql(f"SELECT {cut.format(p)}").fetchall() for p in (target, source))
    assert found == expected
    assert len(found) > 10


def test_crs_and_records_are_kept(tmp_path):
    source = make(tmp_path / "a.laz", point_format=6, crs="EPSG:25832", extra=True)
    cloud = laspy.read(source)
    cloud.header.vlrs.append(laspy.VLR("somebody", 7, "", b"anything"))
    cloud.write(source)
    target = tmp_path / "a.copc.laz"
    write(target, source)
    assert LasSource(target).crs == LasSource(source).crs
    kept = {(v.user_id, v.record_id): v.data for v in LasSource(target).header.vlrs}
    for vlr in LasSource(source).header.vlrs:
        if vlr.user_id != "laszip encoded":
            assert kept[vlr.user_id, vlr.record_id] == vlr.data
    assert target.read_bytes()[6] & 16


def test_another_crs_takes_the_place_of_that_of_the_source(tmp_path):
    from spatialq.io.crs import from_text

    source = make(tmp_path / "a.laz", point_format=6, crs="EPSG:25832")
    write(tmp_path / "a.copc.laz", source, crs=from_text("EPSG:25833"))
    assert "25833" in (LasSource(tmp_path / "a.copc.laz").crs or "")


def test_several_files_are_one_cloud(tmp_path):
    """Of scales and offsets of their own."""
    one = make(tmp_path / "a.laz", 3000, 3, scale=0.01)
    other = make(tmp_path / "b.las", 2000, 3, 2, scale=0.02, offset=(1500.0, 2000.0, 10.0))
    target = tmp_path / "c.copc.laz"
    write(target, one, other)
    found, _, header = read_copc(target)
    assert (header.point_format.id, header.scales.tolist()) == (7, [0.01] * 3)
    parts = [laspy.read(one), laspy.read(other)]
    for axis in "xyz":
        values = np.sort(np.concatenate([np.asarray(getattr(part, axis)) for part in parts]))
        np.testing.assert_allclose(np.sort(np.asarray(getattr(found, axis))), values, atol=1e-9)
    for name in ("intensity", "gps_time", "user_data", "classification"):
        values = np.sort(np.concatenate([np.asarray(part[name]) for part in parts]))
        np.testing.assert_array_equal(np.sort(np.asarray(found[name])), values)


def test_files_that_are_no_one_cloud_are_refused(tmp_path):
    one, other = make(tmp_path / "a.laz", 100), make(tmp_path / "b.laz", 100, extra=True)
    with pytest.raises(FileError, match="have different extra bytes"):
        write(tmp_path / "c.copc.laz", one, other)
    empty = join([LasSource(make(tmp_path / "e.laz", 0))], tmp_path / "c.copc.laz")
    with pytest.raises(FileError, match="must have a point, there is none"):
        copy_records(tmp_path / "c.copc.laz", empty, tmp_path / "records")


def test_times_with_an_offset_of_their_own_are_refused(tmp_path):
    """LAS 1.5 has a longer header; the records follow it."""
    source, newer = make(tmp_path / "a.las", 50), tmp_path / "b.las"
    raw = bytearray(source.read_bytes())
    raw[375:375] = bytes(18)
    raw[25] = 5
    struct.pack_into("<HI", raw, 94, 393, struct.unpack_from("<I", raw, 96)[0] + 18)
    newer.write_bytes(raw)
    write(tmp_path / "b.copc.laz", newer)
    raw[6] |= 64
    newer.write_bytes(raw)
    with pytest.raises(FileError, match=r"GPS times with an offset of LAS 1.5: COPC is LAS 1.4"):
        write(tmp_path / "c.copc.laz", newer)


def test_points_in_one_place(tmp_path):
    source, target = make(tmp_path / "a.laz", 50), tmp_path / "a.copc.laz"
    cloud = laspy.read(source)
    cloud.X[:], cloud.Y[:], cloud.Z[:] = 5, 6, 7
    cloud.write(source)
    write(target, source)
    assert len(read_copc(target)[0]) == 50
    assert not LasSource(target).warnings


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["lidar/ahn3_cropped_1.laz", "lidar/autzen_trim.laz", "lidar/4_6_crop.las",
             "rgb/lion_takanawa.copc.laz", "lidar/bcts_1.laz"],
)  # fmt: skip
def test_real_files(tmp_path, name):
    source, target = real_file(f"data/{name}"), tmp_path / "a.copc.laz"
    write(target, source, options=Options(strategy="first", max_points=5000, grid_size=64))
    found, expected = read_copc(target)[0], laspy.read(source)
    names = [n for n in expected.point_format.dimension_names if n != "scan_angle_rank"]
    np.testing.assert_array_equal(ranked(found, names), ranked(expected, names))
    assert LasSource(target).crs == LasSource(source).crs
