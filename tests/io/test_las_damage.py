"""Damaged files: one sentence, never a crash, a hang or fewer points without a word."""

import json
import re
import struct
import subprocess
import sys
import textwrap
from pathlib import Path

import duckdb
import numpy as np
import pytest

from spatialq.errors import FileError
from spatialq.io.clouds import read_points
from spatialq.io.las.source import LasSource
from spatialq.workflows.info import describe

from ..conftest import real_file
from .las_files import write

REFUSED = {
    "derived_empty_file.las": "the file is empty",
    "derived_point_count_1e9.las": "cut off: the header promises 1000000000 points, the file "
    "holds 1065",
    "derived_point_format_99.las": "point format 99 is unknown; 0 to 10 can be read",
    "derived_scale_zero.las": "the scale of x is 0.0: coordinates cannot be computed",
    "derived_text_named.las": "not a LAS file: it does not begin with 'LASF'",
    "derived_truncated_in_header.las": "cut off inside the header: 180 bytes",
    "derived_truncated_mid_chunk.laz": "cut off or damaged: its chunk table should be at byte",
    "ign_Semis_2022_nok.laz": "the header says that it has 0 bytes",
    "laszip_broken_compressor.laz": "LASzip compressor 16 with coder 0 is unknown",
    "laszip_broken_size.laz": "compressed by LASzip before 2.0",
    "loadersgl_pdrf7-v4-1.4.laz": "LASzip item version 4 is too new",
    "loadersgl_pdrf9-1.5.laz": "LASzip item version 4 is too new",
    "pdal_1.2-no-points.las": "the header promises 1065 points from byte 229 on, but the file "
    "ends at byte 229",
    "pdal_garbage_nVariableLength.las": "cut off: the header promises 719 points, the file "
    "holds 718",
    "pdal_laszip_v1.2r0.laz": "compressed by LASzip before 2.0",
}

READ_ALL = """
import json, resource, sys, warnings
limit = int(sys.argv[1]) << 20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
resource.setrlimit(resource.RLIMIT_CPU, (50, 50))
import pyarrow as pa
from spatialq.errors import FileError
from spatialq.io.las.source import LasSource
from spatialq.workflows.info import describe
warnings.simplefilter("ignore")
for path in sys.stdin.read().splitlines():
    try:
        source = LasSource(path)
        n = sum(batch.num_rows for batch in source.batches(source.schema.names))
        result = "read" if n == source.rows else f"{n} of {source.rows} points"
    except FileError as error:
        result = "refused"
    except Exception as error:
        result = f"{type(error).__name__}: {error}"
    print(json.dumps([path, result]), flush=True)
"""


def read_in_a_process(paths: list[Path]) -> dict[str, str]:
    """Read files in a process with 4 GB of address space and a time limit."""
    result = subprocess.run(
        [sys.executable, "-c", READ_ALL, "4096"],
        input="\n".join(map(str, paths)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    results = dict(json.loads(line) for line in result.stdout.splitlines())
    assert result.returncode == 0, f"died after {len(results)} files: {result.stderr[-500:]}"
    return results


@pytest.mark.parametrize("name", REFUSED)
def test_a_damaged_file_is_refused_in_one_sentence(con, name):
    path = real_file(f"data/bad/{name}")
    with pytest.raises(FileError) as caught:
        read_points(con, path)
    assert str(caught.value).startswith(f"read_points: '{path}': {REFUSED[name]}")
    assert "\n" not in str(caught.value)
    with pytest.raises(duckdb.Error) as in_sql:
        con.sql(f"FROM read_las('{path}')")
    assert str(caught.value).replace("read_points", "read_las", 1) in str(in_sql.value)


def patched(path: Path, *patches: tuple[int, bytes]) -> Path:
    raw = bytearray(path.read_bytes())
    for offset, value in patches:
        raw[offset : offset + len(value)] = value
    path.write_bytes(raw)
    return path


def u32(value: int) -> bytes:
    return struct.pack("<I", value)


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ((25, b"\x09"), "LAS version 1.9 is unknown"),
        ((94, b"\x64\x00"), "the header says that it has 100 bytes"),
        ((96, u32(10)), "the points begin at byte 10, inside the header"),
        ((105, b"\x05\x00"), "the header gives a point 5 bytes; point format 1 needs 28"),
        ((131, np.float64("nan").tobytes()), "the scale of x is nan"),
        ((163, np.float64("inf").tobytes()), "the offset of y is inf"),
        ((96, u32(1 << 31)), "from byte 2147483648 on, but the file ends"),
    ],
)
def test_a_damaged_header_is_refused(tmp_path, patch, message):
    path = patched(write(tmp_path / "cloud.las", 1, 10), patch)
    with pytest.raises(FileError, match=message):
        LasSource(path)


def test_a_file_cut_inside_its_points_is_refused(tmp_path):
    path = write(tmp_path / "cloud.las", 1, 10)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(FileError, match="cut off: the header promises 10 points, the file holds 9"):
        LasSource(path)


def _sparse(path, size, point_format, *, hole_from=0):
    """Write a file whose points, from one on, are a hole; skip where a hole takes room."""
    write(path, point_format, 1000)
    raw = bytearray(path.read_bytes())
    (offset,), (length,) = struct.unpack_from("<I", raw, 96), struct.unpack_from("<H", raw, 105)
    rows = (size - offset) // length
    struct.pack_into("<I", raw, 107, rows if rows < 2**32 and point_format < 6 else 0)
    struct.pack_into("<Q", raw, 247, rows)
    struct.pack_into("<QI", raw, 235, 0, 0)  # no records behind the points
    path.write_bytes(raw[: offset + hole_from * length])
    with path.open("r+b") as file:
        file.truncate(offset + rows * length)
    if path.stat().st_blocks * 512 > 1 << 20:
        pytest.skip("the file system has no sparse files")
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("point_format", range(11))
def test_points_that_were_never_written_are_refused_at_once(tmp_path, point_format):
    path = tmp_path / "big.las"
    rows = _sparse(path, 60_000_000_000, point_format)
    assert rows > 800_000_000
    script = f"""
        import spatialq
        con = spatialq.connect()
        for reader in ("read_las", "read_points"):
            try:
                con.sql(f"SELECT count(*) FROM {{reader}}('{path}')").fetchall()
            except Exception as error:
                print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    found = re.findall(r"its bytes \d+ to (\d+), where points should be, were never", done.stdout)
    assert found == [str(path.stat().st_size)] * 2
    with pytest.raises(FileError, match=r"its bytes .* copy or download of it was not"):
        describe(path)


def test_a_short_hole_among_points_is_no_reason(tmp_path):
    path = tmp_path / "short.las"
    rows = _sparse(path, 1 << 20, 3, hole_from=100)
    assert LasSource(path).rows == rows
    _sparse(path, 3 << 20, 3, hole_from=100)
    with pytest.raises(FileError, match="were never written"):
        LasSource(path)


@pytest.mark.parametrize("point_format", [3, 7])
def test_a_hole_behind_the_points_of_a_laz_is_no_reason(tmp_path, point_format):
    path = write(tmp_path / "cloud.laz", point_format, 1000)
    whole = LasSource(path).header.rows
    raw = path.read_bytes()
    data, table = laz_parts(path)
    with path.open("r+b") as file:
        file.truncate(len(raw) + (3 << 20))
    if path.stat().st_blocks * 512 > 1 << 20:
        pytest.skip("the file system has no sparse files")
    assert sum(batch.num_rows for batch in LasSource(path).batches(["x"])) == whole
    with path.open("r+b") as file:  # the chunk table is behind a hole among the points
        file.seek(data)
        file.write(struct.pack("<q", table + (3 << 20)))
        file.truncate(table)
        file.seek(table + (3 << 20))
        file.write(raw[table:])
    with pytest.raises(FileError, match="where points should be, were never written"):
        LasSource(path)


def test_absurd_record_counts_are_warnings(tmp_path):
    path = patched(write(tmp_path / "cloud.las", 6, 10), (100, u32(3_000_000_000)))
    source = LasSource(path)
    assert "promises 3000000000 variable length records; only 0 fit" in source.warnings[0]
    assert sum(batch.num_rows for batch in source.batches(["x"])) == 10
    size = path.stat().st_size
    path = patched(path, (100, u32(0)), (235, struct.pack("<QI", size - 60, 3_000_000_000)))
    source = LasSource(path)
    assert "promises 3000000000 extended records" in source.warnings[0]
    assert sum(batch.num_rows for batch in source.batches(["x"])) == 10


def test_counts_of_14_that_disagree(tmp_path):
    path = write(tmp_path / "cloud.las", 1, 10)
    patched(path, (107, u32(10)), (247, struct.pack("<Q", 0)))
    source = LasSource(path)
    assert source.rows == 10
    assert "64-bit point count is 0" in source.warnings[0]
    source = LasSource(patched(path, (107, u32(7)), (247, struct.pack("<Q", 10))))
    assert source.rows == 10
    assert "counts 10 points in 64 bits but 7 in 32 bits" in source.warnings[0]


def laz_parts(path: Path) -> tuple[int, int]:
    """Give the byte where the points begin and that of the chunk table."""
    raw = path.read_bytes()
    begin = struct.unpack_from("<I", raw, 96)[0]
    return begin, struct.unpack_from("<q", raw, begin)[0]


@pytest.mark.parametrize("point_format", [1, 6])
def test_a_damaged_chunk_table_is_refused(tmp_path, point_format):
    path = write(tmp_path / "cloud.laz", point_format, 120_000)
    good = path.read_bytes()
    begin, table = laz_parts(path)
    for patch, message in (
        ((begin, struct.pack("<q", 1 << 60)), "its chunk table should be at byte"),
        ((begin, struct.pack("<q", 0)), "its chunk table should be at byte 0"),
        ((table, u32(7)), "its version is 7"),
        ((table + 4, u32(0xFFFFFFFF)), "4294967295 chunks for 120000 points"),
        ((table + 4, u32(2)), "2 chunks for 120000 points"),
        ((table + 8, b"\xff\xff\xff\xff\xff\xff"), "the chunk table is damaged"),
    ):
        path.write_bytes(good)
        with pytest.raises(FileError, match=message):
            LasSource(patched(path, patch))


def test_a_chunk_table_at_the_end_of_the_file_is_found(tmp_path):
    """A writer that cannot seek back puts -1 first and the offset last."""
    path = write(tmp_path / "cloud.laz", 1, 1000)
    begin, table = laz_parts(path)
    whole = list(LasSource(path).batches(["x"]))
    patched(path, (begin, struct.pack("<q", -1)))
    path.write_bytes(path.read_bytes() + struct.pack("<q", table))
    assert list(LasSource(path).batches(["x"])) == whole


def test_damaged_points_are_an_error_that_the_next_query_survives(con, tmp_path):
    path = write(tmp_path / "cloud.laz", 7, 1000)
    begin, _ = laz_parts(path)
    patched(path, (begin + 8 + 36, u32(5)))  # behind the first point: the chunk's own count
    read_points(con, path)
    sentence = f"read_las: '{path}': the compressed points are damaged"
    for table in ("cloud", f"read_las('{path}')"):
        with pytest.raises(duckdb.Error, match="the compressed points are damaged") as caught:
            con.sql(f"SELECT max(x) FROM {table}").fetchall()
        assert sentence in str(caught.value)
        with pytest.raises(duckdb.Error):
            con.execute(f"CREATE TABLE copy AS FROM {table}")
    assert con.sql("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'copy'").fetchall() == [
        (0,)
    ]
    read_points(con, write(tmp_path / "good.laz", 7, 10))
    assert len(con.sql("FROM good").fetchall()) == 10


def test_a_panic_of_the_decoder_is_an_error_and_ctrl_c_is_not(tmp_path, monkeypatch):
    import lazrs

    class Panic(BaseException):
        """As `pyo3_runtime.PanicException`: no Exception."""

        def __str__(self) -> str:
            return "capacity overflow"

    def raise_panic(*_):
        raise Panic

    def raise_interrupt(*_):
        raise KeyboardInterrupt

    source = LasSource(write(tmp_path / "cloud.laz", 1, 10))
    monkeypatch.setattr(lazrs, "decompress_points_with_chunk_table", raise_panic)
    with pytest.raises(FileError, match=r"the compressed points are damaged \(capacity overflow\)"):
        list(source.batches(["x"]))
    monkeypatch.setattr(lazrs, "decompress_points_with_chunk_table", raise_interrupt)
    with pytest.raises(KeyboardInterrupt):
        list(source.batches(["x"]))


def test_a_file_that_shrinks_while_it_is_read_is_an_error(tmp_path):
    path = write(tmp_path / "cloud.las", 1, 1000)
    source = LasSource(path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(FileError, match="became shorter while it was read"):
        list(source.batches(["x"]))
    path.unlink()
    with pytest.raises(FileError, match="cannot be opened: No such file"):
        list(source.batches(["x"]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_mutated_files_never_kill_the_process(tmp_path, seed):
    random = np.random.default_rng(seed)
    paths = []
    for point_format, suffix in ((1, "laz"), (7, "laz"), (3, "las")):
        source = write(tmp_path / f"source.{suffix}", point_format, 2000, seed=seed)
        raw = source.read_bytes()
        begin = struct.unpack_from("<I", raw, 96)[0]
        zones = [(0, 375), (375, begin), (begin, begin + 200)]
        if suffix == "laz":
            zones += [(laz_parts(source)[1], len(raw))] * 2
        for i in range(60):
            low, high = zones[i % len(zones)]
            mutant = bytearray(raw)
            for _ in range(random.integers(1, 5)):
                at = random.integers(low, max(high, low + 1))
                mutant[at] = random.choice([0, 1, 0x7F, 0x80, 0xFF, random.integers(256)])
            if i % 7 == 0:
                del mutant[random.integers(1, len(mutant)) :]
            path = tmp_path / f"{point_format}_{i}.{suffix}"
            path.write_bytes(mutant)
            paths.append(path)
    results = read_in_a_process(paths)
    assert len(results) == len(paths)
    assert set(results.values()) <= {"read", "refused"}
