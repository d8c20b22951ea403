"""The CUDA decoder of LAZ, on the host, against lazrs: as kernels, and one thread alone."""

import io
import itertools
import subprocess
from pathlib import Path

import numpy as np
import pytest

from spatialq.io.las.on_gpu import ATTRIBUTES, SOURCE
from spatialq.io.las.source import LasSource
from spatialq.runtime.cubins import include_folders

from ..conftest import SHARED, real_file
from ..host.device import COMPILER, HEADER

lazrs = pytest.importorskip("lazrs")
laspy = pytest.importorskip("laspy")

pytestmark = pytest.mark.host
FOLDER = Path(__file__).parents[2] / "benchmarks"
ALONE = FOLDER / "laz_gpu.cu"
LENGTHS = {0: 20, 1: 28, 2: 26, 3: 34, 6: 30, 7: 36, 8: 38, 9: 59, 10: 67}
LAYERS = {6: 9, 7: 10, 8: 11, 9: 10, 10: 12}
PAGES = 3 * 256
GOOD, CHANNELS, MODELS = 0, 3, 4
COLUMNS = sum(
    getattr(lazrs, f"SELECTIVE_DECOMPRESS_{name}")
    for name in ("XY_RETURNS_CHANNEL", "Z", "CLASSIFICATION", "INTENSITY", "RGB")
)
FILES = [
    *(path.relative_to(SHARED).as_posix() for path in sorted(SHARED.glob("data/[ilr]*/*.laz"))),
    "data/bad/laspy_extra.laz", "data/bad/laspy_fullwave.laz", "data/bad/loadersgl_pdrf6-1.4.laz",
    "data/bad/pdal_numerical_imprecision.laz", "data/bad/rlas_extra_byte.laz",
]  # fmt: skip
"""Those of the other folders of data have no LAZ files."""


def arguments_of(point_format, record_length):
    """What the kernels are told of a point format: items and extra bytes, or size and layers."""
    extra = record_length - LENGTHS[point_format]
    if point_format >= 6:
        return record_length, LAYERS[point_format] + extra
    timed, coloured = point_format in (1, 3), point_format in (2, 3)
    return timed | coloured << 1 | extra << 2, extra


def columns_of(points):
    """Give the coordinates and attributes that the kernels decode, of records."""
    names = points.dtype.names
    found = {axis: points[axis] for axis in "XYZ"}
    classes = points["raw_classification"] & 31 if "raw_classification" in names else None
    found["classification"] = points["classification"] if classes is None else classes
    return found | {name: points[name] for name in ATTRIBUTES if name in names}


def random_points(point_format, n, extra, seed):
    """Make records with all bits of all fields in use, and coordinates and times in runs."""
    random = np.random.default_rng(seed)
    dtype = laspy.PointFormat(point_format).dtype()
    raw = random.integers(0, 256, (n, dtype.itemsize + extra), np.uint8)
    points = np.zeros(n, dtype)
    points[:] = raw[:, : dtype.itemsize].copy().view(dtype)[:, 0]
    for name, steps in (("X", 40), ("Y", 3000), ("Z", 2)):
        points[name] = np.cumsum(random.integers(-steps, steps + 1, n))
        jumps = random.random(n) < 0.01
        points[name][jumps] = random.integers(-(2**31), 2**31, jumps.sum())
    if "gps_time" in dtype.names:
        pulses = np.cumsum(random.integers(0, 3, n)) * random.choice([1e-5, 1.0, 1e9], n)
        points["gps_time"] = pulses
    still_ones = ["bit_fields", "classification_flags", "user_data", "intensity", "classification"]
    for name in [*still_ones, "red", "blue"]:
        if name in dtype.names:  # what stays as it is takes other paths than what changes
            still = random.random(n) < 0.7
            points[name][still] = points[name][0]
    raw[:, : dtype.itemsize] = points.view(np.uint8).reshape(n, -1)
    return points, raw


class Compressed:
    """Chunks of random points, which lazrs compressed.

    Attributes
    ----------
    data : uint8
    table : int64[n, 4]
        Offset, size, row of the first point and number of points.
    expected : dict of str to array[rows]
    """

    def __init__(self, point_format, chunk_rows, extra=0, seed=1):
        self.point_format = point_format
        points, raw = random_points(point_format, sum(chunk_rows), extra, seed)
        self.record_length = raw.shape[1]
        self.vlr = lazrs.LazVlr.new_for_compression(
            point_format, extra, use_variable_size_chunks=True
        )
        ends = np.cumsum([0, *chunk_rows])
        file = io.BytesIO()
        compressor = lazrs.LasZipCompressor(file, self.vlr)
        compressor.compress_chunks([raw[a:b].reshape(-1) for a, b in itertools.pairwise(ends)])
        compressor.done()
        file.seek(0)
        sizes = [size for _, size in lazrs.read_chunk_table(file, self.vlr)][: len(chunk_rows)]
        begins = np.cumsum([8, *sizes])[:-1]
        self.data = np.frombuffer(file.getvalue(), np.uint8).copy()
        self.table = np.stack([begins, sizes, ends[:-1], chunk_rows], axis=1).astype(np.int64)
        self.expected = columns_of(points)


def decode(device, way, point_format, record_length, data, table, *, channels=4, pages=PAGES):
    """Decode chunks in one of the ways; give the columns and errors."""
    rows, n, lanes = int(table[:, 3].sum()), len(table), 3
    table = table.copy()
    (data,) = device.upload([np.ascontiguousarray(data)])
    table[:, 0] += device.address(data)
    (table,) = device.upload([table])
    sizes, errors = device.filled(0, 40).view(np.int64), device.filled(0, 4 * n).view(np.int32)
    xyz = {axis: device.filled(0xA5, 4 * rows).view(np.int32) for axis in "XYZ"}
    has_colours = "red" in laspy.PointFormat(point_format).dtype().names
    wanted, unused = 7 if has_colours else 3, device.filled(0, 8)
    attributes = {
        name: device.filled(0xA5, 2 * rows).view(dtype)[:rows]
        for name, (dtype, bit) in ATTRIBUTES.items() if bit & wanted
    }  # fmt: skip
    outputs = [attributes.get(name, unused) for name in ATTRIBUTES]
    notes = device.filled(0xA5, rows)
    layered = point_format >= 6
    first, second = arguments_of(point_format, record_length)
    extra = 0 if layered else second
    device.launch(SOURCE, "laz_sizes", (1,), 1, channels, extra, pages, sizes)
    of_layers, of_points, *more = device.download(sizes).tolist()
    own = n * (of_layers if layered else of_points)
    work = device.filled(0, 2 * (own + n * sum(more))).view(np.uint16)
    of_chunks = [table, n, first, second]
    if way == "alone":
        source, blocks, threads, end, lanes = ALONE, -(-n // 2), [2, 2, 2], "_alone", []
    else:
        source, blocks, threads, end, lanes = SOURCE, -(-n // lanes), [64, 32, 32], "", [lanes]
    if layered:
        device.launch(
            source, f"laz_layers{end}", (blocks,), threads[0], *of_chunks, work, channels, *lanes,
            *xyz.values(), wanted, notes, errors,
        )  # fmt: skip
        rows_of_blocks = 1 if way == "alone" else 3 if has_colours else 2
        device.launch(
            source, f"laz_attributes{end}", (blocks, rows_of_blocks), threads[1], *of_chunks,
            work[own:], channels, *lanes, notes, wanted, *outputs, errors,
        )  # fmt: skip
    else:
        device.launch(
            source, f"laz_points{end}", (blocks,), threads[2], *of_chunks, work, pages, *lanes,
            *xyz.values(), wanted, *outputs, errors,
        )  # fmt: skip
    found = {name: device.download(values) for name, values in (xyz | attributes).items()}
    return found, device.download(errors)


@pytest.fixture
def host(request):
    from ..host.device import HostDevice

    return HostDevice()


def assert_decoded(found, errors, expected):
    assert not errors.any()
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


@pytest.mark.parametrize("extra", [0, 3])
@pytest.mark.parametrize("point_format", [0, 1, 2, 3, 6, 7, 8])
def test_random_points_are_those_that_were_compressed(host, point_format, extra):
    made = Compressed(point_format, [1, 2, 900, 5000], extra, seed=point_format)
    found, errors = decode(host, "alone", point_format, made.record_length, made.data, made.table)
    assert_decoded(found, errors, made.expected)


@pytest.mark.slow
@pytest.mark.parametrize("point_format", [0, 3, 6, 7])
def test_lanes_in_step_find_the_same(host, point_format):
    made = Compressed(point_format, [1, 40, 300, 2, 120, 33], 1, seed=5)
    data, table = made.data, made.table
    found, errors = decode(host, "lockstep", point_format, made.record_length, data, table)
    assert_decoded(found, errors, made.expected)


def test_too_little_memory_is_told(host):
    made = Compressed(6, [500], seed=2)
    _, errors = decode(host, "alone", 6, made.record_length, made.data, made.table, channels=1)
    assert errors.tolist() == [CHANNELS]
    made = Compressed(1, [500], seed=2)
    _, errors = decode(host, "alone", 1, made.record_length, made.data, made.table, pages=8)
    assert errors.tolist() == [MODELS]


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES or [pytest.param("data/lidar", id="none")])
def test_real_files_are_those_of_lazrs(host, name):
    source = LasSource(real_file(name))
    header = source.header
    raw = np.fromfile(source.path, np.uint8)
    table = np.array([(c.offset, c.size, c.first, c.rows) for c in source._chunks], np.int64)
    table = table[np.argsort(table[:, 0])]
    table[:, 2] = np.cumsum([0, *table[:-1, 3]])
    found, errors = decode(host, "alone", header.point_format, header.record_length, raw, table)
    array = laspy.read(source.path).points.array
    assert_decoded(found, errors, columns_of(array))


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory):
    """Build the decoder with sanitizers, as a program."""
    target = tmp_path_factory.mktemp("laz") / "laz_chunks"
    command = [COMPILER, "-std=c++20", "-O1", "-g", "-w", "-fsanitize=address,undefined"]
    command += ["-fno-sanitize-recover=all", "-include", HEADER, "-include", ALONE]
    command += [f"-I{folder}" for folder in include_folders(ALONE)]
    program = Path(__file__).with_name("laz_chunks.cc")
    subprocess.run([*command, program, "-o", target], check=True)
    return target


def by_lazrs(made, chunk, rows):
    """Decode one chunk's columns by lazrs; None if it does not accept it."""
    records = np.zeros(rows * made.record_length, np.uint8)
    selection = lazrs.DecompressionSelection(COLUMNS)
    try:
        lazrs.decompress_points_with_chunk_table(
            chunk.tobytes(), made.vlr.record_data(), records, [(rows, chunk.size)], selection
        )
    except lazrs.LazrsError:
        return None
    dtype = laspy.PointFormat(made.point_format).dtype()
    return columns_of(records.reshape(rows, -1)[:, : dtype.itemsize].copy().view(dtype)[:, 0])


@pytest.mark.slow
@pytest.mark.parametrize("point_format", [1, 3, 6, 7])
def test_damaged_chunks_are_refused_or_read_as_lazrs_reads_them(sanitized, point_format):
    rows, random = 250, np.random.default_rng(point_format)
    made = Compressed(point_format, [rows], 2, seed=9)
    begin, size = made.table[0, :2]
    chunk = made.data[begin : begin + size]
    first, second = arguments_of(point_format, made.record_length)
    layered = point_format >= 6
    from_ = made.record_length + 4 * (second + 1) if layered else made.record_length
    cases = []
    for _ in range(250):
        damaged = chunk.copy()
        for _ in range(random.integers(1, 4)):
            damaged[random.integers(from_, size)] = random.integers(0, 256)
        cases.append(damaged)
    for _ in range(25):  # cut off, and with sizes of layers that cannot be
        cases.append(chunk[: random.integers(1, size)].copy())
        damaged = chunk.copy()
        damaged[random.integers(0, from_)] ^= 1 << random.integers(0, 8)
        cases.append(damaged)
    of_all = [rows, first, second, 7 if "red" in made.expected else 3]
    heads = [np.array([layered, each.size, *of_all], np.int64) for each in cases]
    sent = b"".join(h.tobytes() + c.tobytes() for h, c in zip(heads, cases, strict=True))
    run = subprocess.run([sanitized], input=sent, capture_output=True, timeout=200, check=False)
    assert run.returncode == 0, run.stderr.decode()[:2000]
    answers = np.frombuffer(run.stdout, np.uint8).reshape(len(cases), 8 + 21 * rows)
    assert answers[:250, 0].any()
    for k, answer in enumerate(answers[:250]):
        error = int(answer[:8].copy().view(np.int64)[0])
        expected = by_lazrs(made, cases[k], rows)
        if error == GOOD:
            assert expected is not None
            xyz = answer[8:][: 12 * rows].copy().view(np.int32).reshape(3, rows)
            more = answer[8 + 12 * rows :][: 8 * rows].copy().view(np.uint16).reshape(4, rows)
            found = dict(zip("XYZ", xyz, strict=True))
            found |= dict(zip(("intensity", "red", "green", "blue"), more, strict=True))
            found["classification"] = answer[8 + 20 * rows :]
            for name, values in expected.items():
                np.testing.assert_array_equal(found[name], values, err_msg=name)
        else:
            assert expected is None
