"""The copy of a point cloud with other classes: all else byte for byte."""

import resource
import struct
import subprocess
import sys

import laspy
import numpy as np
import pytest

from spatialq.errors import FileError
from spatialq.export.las import write_copy
from spatialq.io.las.source import LasSource

from ..conftest import real_file
from ..io.las_files import write, write_copc
from ..io.test_las_damage import REFUSED

EXTRA = [
    laspy.ExtraBytesParams("height", "int32", offsets=np.array([0.0]), scales=np.array([0.01])),
    laspy.ExtraBytesParams("triple", "3f4"),
]
REAL = [
    "lidar/4_6_crop.las",
    "lidar/870000_6618000.subset.postValidation.laz",
    "lidar/Megaplot_small.laz",
    "lidar/autzen_trim.laz",
    "lidar/file_with_both_wkt_and_geotiff_vlrs.las",
    "lidar/interesting.las",
    "lidar/isprs_samp11.laz",
    "lidar/lone-star.copc.laz",
    "lidar/test_data_77050_627755_LA93_IGN69.laz",
    "bad/laspy_1_4_w_evlr.las",
    "bad/laspy_extra.laz",
    "bad/laspy_fullwave.laz",
    "bad/laspy_unregistered_extra_bytes.las",
    "bad/loadersgl_pdrf4-1.3.las",
    "bad/loadersgl_pdrf4-1.3.laz",
    "bad/pdal_1.0_0.las",
    "bad/pdal_extrabytes.las",
    "bad/pdal_laszip_2bytespadding.laz",
    "bad/pdal_lots_of_vlr.las",
    "bad/pdal_no-points.las",
    "bad/rlas_extra_byte.laz",
]
LEFT_OUT = {("laszip encoded", 22204), ("copc", 1), ("copc", 1000)}


def some_classes(path):
    """Classes that differ from point to point, and fit every format."""
    return (np.arange(LasSource(path).rows) * 7 % 32).astype(np.uint8)


def records(path):
    """Point records as laspy reads them: uint8[n, record length]."""
    array = laspy.read(path).points.array
    return array.view(np.uint8).reshape(array.size, array.itemsize)


def class_mask(path):
    """Bits of a record that belong to the class."""
    point_format = LasSource(path).header.point_format
    mask = np.zeros(LasSource(path).header.record_length, np.uint8)
    mask[15 if point_format <= 5 else 16] = 31 if point_format <= 5 else 255
    return mask


def described(path):
    """What is to stay of header and records besides the points."""
    raw = path.read_bytes()
    vlrs = [
        (vlr.user_id, vlr.record_id, vlr.extended, raw[vlr.begin : vlr.begin + vlr.size])
        for vlr in LasSource(path).header.vlrs
        if (vlr.user_id, vlr.record_id) not in LEFT_OUT
    ]
    return raw[4:24], raw[26:94], raw[131:179], vlrs


def assert_copied(source, target, classes, keep=slice(None)):
    mask = class_mask(source)
    before, after = records(source)[keep], records(target)
    np.testing.assert_array_equal(after & ~mask, before & ~mask)
    np.testing.assert_array_equal((after & mask).max(axis=1, initial=0), classes[keep])
    assert described(target) == described(source)
    copy = LasSource(target)
    assert (copy.crs, copy.header.version) == (LasSource(source).crs, (1, 4))
    check_counts(target)


def check_counts(path):
    """Compare counts and extent of the header with the points, by laspy."""
    las = laspy.read(path)
    if len(las.points):
        low, high = las.xyz.min(axis=0), las.xyz.max(axis=0)
        np.testing.assert_array_equal([las.header.mins, las.header.maxs], [low, high])
    by_return = np.bincount(las.return_number, minlength=16)[1:]
    n = 5 if las.header.point_format.id <= 5 else 15
    np.testing.assert_array_equal(las.header.number_of_points_by_return[:n], by_return[:n])
    legacy = struct.unpack_from("<I", path.read_bytes(), 107)[0]
    assert legacy == (len(las.points) if las.header.point_format.id <= 5 else 0)


@pytest.mark.slow
@pytest.mark.parametrize("extra", [[], EXTRA], ids=["plain", "extra bytes"])
@pytest.mark.parametrize("ending", ["las", "laz"])
@pytest.mark.parametrize("point_format", range(11))
def test_every_point_format(tmp_path, point_format, ending, extra):
    source, target = tmp_path / "a.las", tmp_path / f"b.{ending}"
    write(source, point_format, 3000, extra=extra, crs="EPSG:25832")
    classes = some_classes(source)
    if ending == "laz" and point_format in (9, 10):
        with pytest.raises(FileError, match=r"cannot be compressed without loss; write a \.las"):
            write_copy(source, target, classes=classes)
        assert not target.exists()
        return
    assert write_copy(source, target, classes=classes) == 3000
    assert_copied(source, target, classes)


@pytest.mark.parametrize(
    ("version", "point_format"), [("1.1", 1), ("1.2", 3), ("1.3", 4), ("1.4", 6)]
)
def test_older_versions_become_1_4(tmp_path, version, point_format):
    source, target = tmp_path / "a.laz", tmp_path / "b.las"
    write(source, point_format, 500, version=version, crs="EPSG:25832")
    write_copy(source, target, classes=some_classes(source))
    assert_copied(source, target, some_classes(source))


def test_later_versions_stay(tmp_path):
    source, target = tmp_path / "a.las", tmp_path / "b.laz"
    write(source, 6, 500)
    old = source.read_bytes()
    raw = bytearray(old[:375] + bytes(range(18)) + old[375:])
    raw[25] = 5
    struct.pack_into("<H", raw, 94, 393)
    struct.pack_into("<I", raw, 96, struct.unpack_from("<I", old, 96)[0] + 18)
    source.write_bytes(raw)
    write_copy(source, target, classes=some_classes(source))
    written = target.read_bytes()
    assert written[24:26] == bytes([1, 5])
    assert written[375:393] == bytes(range(18))
    assert described(target) == described(source)


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_files(tmp_path, name):
    source = real_file(f"data/{name}")
    point_format = LasSource(source).header.point_format
    target = tmp_path / ("b.las" if point_format in (9, 10) else "b.laz")
    keep = np.arange(LasSource(source).rows) % 3 == 0
    write_copy(source, target, classes=some_classes(source))
    assert_copied(source, target, some_classes(source))
    write_copy(source, target, classes=some_classes(source), keep=keep)
    assert_copied(source, target, some_classes(source), keep)


def test_waveforms_of_1_3_are_kept(tmp_path):
    """Their place is in the header of 1.3; in 1.4 they are an extended record like others."""
    source, target = tmp_path / "a.las", tmp_path / "b.laz"
    write(source, 4, 10, version="1.3")
    raw = bytearray(source.read_bytes())
    raw[6] |= 2
    struct.pack_into("<Q", raw, 227, len(raw))
    record = struct.pack("<2x16sHQ32s", b"LASF_Spec", 65535, 1000, b"waves") + bytes(range(200)) * 5
    source.write_bytes(raw + record)
    write_copy(source, target, classes=some_classes(source))
    written = target.read_bytes()
    begin, first, n = struct.unpack_from("<QQI", written, 227)
    assert (begin, n) == (first, 1)
    assert written[begin:] == record


def test_the_octree_is_left_out(tmp_path):
    grids = [np.full((100, 3), 10 * i, np.int32) for i in range(1, 4)]
    keys = [(0, 0, 0, 0), (1, 0, 0, 0), (1, 1, 0, 0)]
    source = write_copc(tmp_path / "a.copc.laz", list(zip(keys, grids, strict=True)))
    target = tmp_path / "b.laz"
    write_copy(source, target, classes=some_classes(source))
    assert_copied(source, target, some_classes(source))
    assert not LasSource(target).header.find("copc", 1)


def test_no_point_is_kept(tmp_path):
    source = write(tmp_path / "a.las", 7, 10)
    for target in (tmp_path / "b.las", tmp_path / "b.laz"):
        assert (
            write_copy(source, target, classes=some_classes(source), keep=np.zeros(10, bool)) == 0
        )
        assert LasSource(target).rows == 0


def test_a_class_that_does_not_fit(tmp_path):
    source = write(tmp_path / "a.las", 3, 10)
    classes = np.full(10, 64, np.uint8)
    with pytest.raises(ValueError, match="class 64 does not fit point format 3 of"):
        write_copy(source, tmp_path / "b.las", classes=classes)
    keep = np.arange(10) < 0
    assert write_copy(source, tmp_path / "b.las", classes=classes, keep=keep) == 0
    with pytest.raises(ValueError, match=r"a value for each of the 10 points, got \(9,\) and None"):
        write_copy(source, tmp_path / "b.las", classes=classes[:9])


def test_a_count_of_records_that_lies(tmp_path):
    """laspy believes it and reads for ever."""
    source, target = write(tmp_path / "a.las", 3, 10, crs="EPSG:25832"), tmp_path / "b.las"
    raw = bytearray(source.read_bytes())
    struct.pack_into("<I", raw, 100, 2**32 - 1)
    source.write_bytes(raw)
    write_copy(source, target, classes=some_classes(source))
    assert [vlr[:2] for vlr in described(target)[3]] == [vlr[:2] for vlr in described(source)[3]]
    assert len(laspy.read(target).points) == 10


def test_damaged_points_leave_nothing(tmp_path):
    source, target = write(tmp_path / "a.laz", 6, 200_000), tmp_path / "b.laz"
    ((*_, last),) = LasSource(source).spans()[-1:]
    with source.open("r+b") as file:
        file.seek(last.offset + 30)  # behind the first point: the sizes of the layers
        file.write(b"\xff" * 40)
    with pytest.raises(FileError, match="read_las"):
        write_copy(source, target, classes=np.zeros(200_000, np.uint8))
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_whole_is_refused(tmp_path, name):
    source = real_file(f"data/bad/{name}")
    with pytest.raises(FileError, match=name):
        write_copy(source, tmp_path / "b.las", classes=np.zeros(1, np.uint8))
    assert not list(tmp_path.iterdir())


def test_a_full_disk(tmp_path):
    source = write(tmp_path / "a.las", 3, 100_000)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    for ending in ("las", "laz"):
        target = tmp_path / f"b.{ending}"
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limit[1]))
        try:
            with pytest.raises(FileError, match="cannot be written: "):
                write_copy(source, target, classes=np.zeros(100_000, np.uint8))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        assert list(tmp_path.iterdir()) == [source]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_memory_does_not_grow_with_the_file(tmp_path):
    """10 million points are 340 MB of records."""
    source = write(tmp_path / "a.las", 3, 2_500_000)
    raw = source.read_bytes()
    begin = struct.unpack_from("<I", raw, 96)[0]
    header = bytearray(raw[:begin])
    struct.pack_into("<I", header, 107, 10_000_000)
    struct.pack_into("<Q", header, 247, 10_000_000)
    with source.open("wb") as file:
        file.write(header)
        for _ in range(4):
            file.write(raw[begin:])
    code = (
        "import sys; from pathlib import Path; import numpy as np; "
        "from spatialq.export.las import write_copy; "
        "from spatialq.io.las.source import open_las; "
        "open_las(sys.argv[1]); "
        # ru_maxrss would be that of the tests' process, which this one was for a moment
        "status = Path('/proc/self/status'); "
        "peak = lambda: int(status.read_text().partition('VmHWM:')[2].split()[0]); "
        "before = peak(); "
        "write_copy(Path(sys.argv[1]), Path(sys.argv[2]), classes=np.zeros(10_000_000, 'u1')); "
        "print((peak() - before) >> 10)"
    )
    command = [sys.executable, "-c", code, str(source), str(tmp_path / "b.las")]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(result.stdout) < 250
