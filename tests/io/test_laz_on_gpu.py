"""LAZ files decoded by the kernels of the GPU, against what the CPU reads of them."""

import laspy
import numpy as np
import pytest

from spatialq.errors import FileError, FileWarning
from spatialq.io.formats import open_source
from spatialq.io.las import on_gpu
from spatialq.io.storage import as_path

from ..conftest import real_file
from .las_files import write


def opened(*paths):
    return [open_source("owm_ground", as_path(path), ["points"]) for path in paths]


def by_cpu(clouds, attributes=()):
    """Read columns of files by lazrs, one after the other."""
    types = dict.fromkeys("xyz", np.float64)
    types |= {name: on_gpu.ATTRIBUTES[name][0] for name in attributes}
    rows, first = sum(cloud.rows for cloud in clouds), 0
    found = {name: np.empty(rows, dtype) for name, dtype in types.items()}
    for cloud in clouds:
        part = slice(first, first + cloud.rows)
        cloud.read_into({name: values[part] for name, values in found.items()})
        first += cloud.rows
    return found


def assert_same(device, clouds, reasons=()):
    """Compare the coordinates, and all attributes that the files have."""
    there = [each.schema.names for each in clouds]
    has = [name for name in on_gpu.ATTRIBUTES if all(name in names for names in there)]
    for attributes in ([], has):
        columns, others = on_gpu.read_columns(clouds, attributes)
        assert others == list(reasons)
        expected = by_cpu(clouds, attributes)
        assert columns.keys() == expected.keys()
        for name, values in expected.items():
            found = device.download(columns[name])
            assert found.dtype == values.dtype
            np.testing.assert_array_equal(found, values, err_msg=name)


def test_single_attributes(device, tmp_path):
    clouds = opened(write(tmp_path / "a.laz", 7, 300))
    expected = by_cpu(clouds, on_gpu.ATTRIBUTES)
    for attributes in (["classification"], ["intensity", "red", "green", "blue"], ["intensity"]):
        columns, _ = on_gpu.read_columns(clouds, attributes)
        assert list(columns) == [*"xyz", *attributes]
        for name in attributes:
            np.testing.assert_array_equal(device.download(columns[name]), expected[name])


@pytest.mark.parametrize("point_format", sorted(on_gpu.FORMATS))
def test_files_of_all_formats(device, tmp_path, point_format):
    version = "1.2" if point_format <= 3 else "1.4"
    extra = [laspy.ExtraBytesParams("more", "uint16")]
    files = [
        write(tmp_path / f"{k}.laz", point_format, n, version=version, seed=k, extra=extra[:k])
        for k, n in enumerate([700, 60])
    ]
    assert_same(device, opened(*files))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["rgb/ellipsoid.copc.laz", "lidar/isprs_samp41.laz", "bad/laspy_extra.laz"]
)
def test_real_files(device, name):
    assert_same(device, opened(real_file(f"data/{name}")))


def test_what_the_gpu_does_not_decode_is_read_by_the_cpu_and_told(device, tmp_path):
    plain, old = tmp_path / "plain.las", tmp_path / "waves.laz"
    files = [
        write(tmp_path / "a.laz", 6, 50),
        write(plain, 6, 40),
        write(old, 4, 30),
        write(tmp_path / "b.laz", 1, 20),
    ]
    reasons = [
        f"'{plain}' by the CPU: it is no LAZ file that is read whole",
        f"'{old}' by the CPU: its point format is 4",
    ]
    assert_same(device, opened(*files), reasons)


def test_parts_of_a_file_are_read_by_the_cpu(device, tmp_path):
    path = write(tmp_path / "a.laz", 6, 50)
    (cloud,) = opened(path)
    part = cloud.of_rows([(60, 70)])
    assert part.laz is None
    assert on_gpu.why_not(part) == "it is no LAZ file that is read whole"
    assert on_gpu.why_not(cloud) == ""


def test_damaged_points_are_those_that_the_cpu_refuses(device, tmp_path):
    good, bad = write(tmp_path / "a.laz", 6, 300), write(tmp_path / "b.laz", 6, 300)
    (cloud,) = opened(bad)
    _, (chunk,) = cloud.laz
    data = bytearray(bad.read_bytes())
    layers = chunk.offset + cloud.header.record_length + 4
    data[layers : layers + 4] = (20).to_bytes(4, "little")  # bytes of the layer of x and y
    bad.write_bytes(data)
    with pytest.raises(FileError, match=r"b\.laz': the compressed points are damaged"):
        on_gpu.read_columns(opened(good, bad))


def test_points_outside_of_the_box_of_the_header_are_warned_of(device, tmp_path):
    path = write(tmp_path / "a.laz", 6, 50)
    data = bytearray(path.read_bytes())
    data[179:187] = np.float64(500_001.0).tobytes()  # the greatest x
    path.write_bytes(data)
    clouds = opened(path)
    with pytest.warns(FileWarning) as expected:
        by_cpu(clouds)
    with pytest.warns(FileWarning) as found:
        on_gpu.read_columns(clouds)
    assert [str(each.message) for each in found] == [str(each.message) for each in expected]


def test_no_points_are_no_rows(device, tmp_path):
    assert_same(device, opened(write(tmp_path / "a.laz", 6, 0)))
