"""The copy of a point cloud with further fields: all else byte for byte."""

import resource
import struct

import laspy
import numpy as np
import pytest

from spatialq.errors import FileError
from spatialq.export.las import write_copy
from spatialq.export.las_extra import Field, lay_out
from spatialq.io.las.source import LasSource

from ..conftest import real_file
from ..io.las_files import write, write_copc
from .test_las import EXTRA, REAL, check_counts, described, records

DESCRIBES = ("LASF_Spec", 4)


def fields(n, seed=1):
    """A number of each kind, and the words that describe it."""
    random = np.random.default_rng(seed)
    ids = random.integers(0, 1 << 31, n).astype(np.int32)
    distances = np.where(ids % 3 == 0, np.nan, random.normal(0, 1e3, n)).astype(np.float32)
    return (
        Field("plane_id", ids, "plane of the point, 0: none", 0),
        Field("plane_distance", distances, "from it along its normal", np.nan),
    )


def assert_extended(source, target, added):
    before, after = records(source), records(target)
    np.testing.assert_array_equal(after[:, : before.shape[1]], before)
    copy = laspy.read(target)
    for field in added:
        found = np.asarray(copy[field.name])
        assert found.dtype == field.values.dtype
        np.testing.assert_array_equal(found, field.values)
    old, new = described(source), described(target)
    assert new[:3] == old[:3]
    assert [v for v in new[3] if v[:2] != DESCRIBES] == [v for v in old[3] if v[:2] != DESCRIBES]
    assert LasSource(target).crs == LasSource(source).crs
    check_counts(target)


@pytest.mark.slow
@pytest.mark.parametrize("extra", [[], EXTRA], ids=["plain", "extra bytes"])
@pytest.mark.parametrize("ending", ["las", "laz"])
@pytest.mark.parametrize("point_format", range(11))
def test_every_point_format(tmp_path, point_format, ending, extra):
    source, target = tmp_path / "a.las", tmp_path / f"b.{ending}"
    write(source, point_format, 3000, extra=extra, crs="EPSG:25832")
    if ending == "laz" and point_format in (9, 10):
        with pytest.raises(FileError, match=r"cannot be compressed without loss; write a \.las"):
            write_copy(source, target, fields=fields(3000))
        assert not target.exists()
        return
    added = fields(3000)
    assert write_copy(source, target, fields=added) == 3000
    assert_extended(source, target, added)
    dimensions = list(laspy.read(target).point_format.extra_dimension_names)
    assert dimensions == [*(each.name for each in extra), "plane_id", "plane_distance"]


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_files(tmp_path, name):
    source = real_file(f"data/{name}")
    opened = LasSource(source)
    target = tmp_path / ("b.las" if opened.header.point_format in (9, 10) else "b.laz")
    added = fields(opened.rows)
    assert write_copy(source, target, fields=added) == opened.rows
    assert_extended(source, target, added)


def test_a_reader_learns_what_they_are(tmp_path):
    source, target = write(tmp_path / "a.las", 6, 10), tmp_path / "b.laz"
    write_copy(source, target, fields=fields(10))
    first, second = laspy.read(target).header.vlrs.get("ExtraBytesVlr")[0].extra_bytes_structs
    assert first.description == b"plane of the point, 0: none"
    assert second.description == b"from it along its normal"
    assert first.no_data.tolist() == [0]
    assert np.isnan(second.no_data).all()
    assert LasSource(target).schema.names[-2:] == ["plane_id", "plane_distance"]


def test_fields_of_an_earlier_run_are_written_over(tmp_path):
    paths = [tmp_path / f"{name}.laz" for name in "abc"]
    write(paths[0], 7, 500, extra=EXTRA)
    for source, target, seed in ((*paths[:2], 1), (*paths[1:], 2)):
        write_copy(source, target, fields=fields(500, seed))
    again, once = laspy.read(paths[2]), laspy.read(paths[1])
    assert again.header.point_format.num_extra_bytes == once.header.point_format.num_extra_bytes
    for field in fields(500, 2):
        np.testing.assert_array_equal(again[field.name], field.values)
    np.testing.assert_array_equal(again["triple"], laspy.read(paths[0])["triple"])
    np.testing.assert_array_equal(records(paths[2])[:, :-8], records(paths[1])[:, :-8])


def test_a_field_of_another_type_is_not_touched(tmp_path):
    for other in (
        laspy.ExtraBytesParams("plane_id", "uint16"),
        laspy.ExtraBytesParams("plane_id", "2i4"),
        laspy.ExtraBytesParams("plane_id", "int32", offsets=np.zeros(1), scales=np.ones(1)),
    ):
        source = write(tmp_path / "a.las", 3, 10, extra=[other])
        sentence = r"a\.las': has extra bytes 'plane_id' of another type; rename or drop them"
        with pytest.raises(FileError, match=sentence):
            write_copy(source, tmp_path / "b.las", fields=fields(10))
        assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("left", [3, 255, 256, 700])
def test_bytes_that_nothing_describes_keep_their_place(tmp_path, left):
    """Two fields are described, further bytes are not."""
    source, target = tmp_path / "a.las", tmp_path / "b.laz"
    write(source, 3, 200, extra=[*EXTRA, laspy.ExtraBytesParams("rest", f"{left}u1")])
    raw = bytearray(source.read_bytes())
    (vlr,) = (v for v in LasSource(source).header.vlrs if (v.user_id, v.record_id) == DESCRIBES)
    # one entry is cut off: what is left of it goes to the bytes before the points
    struct.pack_into("<H", raw, vlr.begin + 20, 2 * 192)
    source.write_bytes(raw)
    opened = LasSource(source)
    added = fields(200)
    write_copy(source, target, fields=added)
    copy = laspy.read(target)
    for field in added:
        np.testing.assert_array_equal(copy[field.name], field.values)
    length = opened.header.record_length
    np.testing.assert_array_equal(records(target)[:, :length], records(source))
    np.testing.assert_array_equal(copy["height"], laspy.read(source)["height"])


@pytest.mark.slow
def test_a_file_without_room_is_refused(tmp_path):
    most = [laspy.ExtraBytesParams(f"e{k}", "uint8") for k in range(341)]
    source = write(tmp_path / "a.las", 0, 3, extra=most)
    with pytest.raises(FileError, match="has no room for plane_id, plane_distance: its point rec"):
        write_copy(source, tmp_path / "b.las", fields=fields(3))
    assert len(lay_out(LasSource(source).header, ()).description) == 341 * 192


def test_the_octree_is_left_out(tmp_path):
    grids = [np.full((100, 3), 10 * i, np.int32) for i in range(1, 4)]
    keys = [(0, 0, 0, 0), (1, 0, 0, 0), (1, 1, 0, 0)]
    source = write_copc(tmp_path / "a.copc.laz", list(zip(keys, grids, strict=True)))
    write_copy(source, tmp_path / "b.laz", fields=fields(300))
    assert_extended(source, tmp_path / "b.laz", fields(300))
    assert not LasSource(tmp_path / "b.laz").header.find("copc", 1)


def test_no_points(tmp_path):
    source = write(tmp_path / "a.las", 7, 0)
    for target in (tmp_path / "b.las", tmp_path / "b.laz"):
        assert write_copy(source, target, fields=fields(0)) == 0
        assert LasSource(target).rows == 0


def test_a_full_disk(tmp_path):
    source = write(tmp_path / "a.las", 3, 100_000)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limit[1]))
    try:
        with pytest.raises(FileError, match="cannot be written: "):
            write_copy(source, tmp_path / "b.laz", fields=fields(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert list(tmp_path.iterdir()) == [source]
