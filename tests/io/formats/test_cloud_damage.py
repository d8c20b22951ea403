"""Damaged clouds: each is refused in one sentence, or all of its points come.

How many these are is counted here once more, from the bytes of the file alone.
"""

import json
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ...conftest import SHARED
from .cloud_files import cloud, e57, lines, mutants, pcd, ply, with_checksums

MUTANTS = 300
READ_ALL = """
import json, resource, sys, warnings
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (50, 50))
from pathlib import Path
from spatialq.errors import FileError
from spatialq.io.formats import find_reader
for path in sys.stdin.read().splitlines():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            source = find_reader(path).open(Path(path))
            n = sum(batch.num_rows for batch in source.batches(source.schema.names))
            result = [source.rows, n, [str(each.message) for each in caught]]
        except FileError as error:
            result = str(error)
        except Exception as error:
            result = {type(error).__name__: str(error)}
    print(json.dumps([path, result]), flush=True)
"""
NUMBER = re.compile(rb"[-+]?(\.?\d|(nan|inf|infinity)$)", re.I)
PCD_COUNTS = (b"WIDTH", b"HEIGHT", b"POINTS")
BLANK = bytes(range(9, 33))


def read_in_a_process(paths: list[Path]) -> dict[str, object]:
    """Read files in a process with 4 GB of address space and a time limit."""
    result = subprocess.run(
        [sys.executable, "-c", READ_ALL],
        input="\n".join(map(str, paths)),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    results = dict(json.loads(line) for line in result.stdout.splitlines())
    assert result.returncode == 0, f"died after {len(results)} files: {result.stderr[-500:]}"
    return results


def ply_points(raw: bytes) -> int:
    return int(re.search(rb"\nelement\s+vertex\s+(\d+)", raw)[1])


def pcd_points(raw: bytes) -> int:
    keys = {key: re.search(rb"(^|\n)%b[ \t]+(\d+)" % key, raw) for key in PCD_COUNTS}
    width, height, points = (found and int(found[2]) for found in keys.values())
    return width * (1 if height is None else height) if points is None else points


def e57_points(raw: bytes) -> int:
    """The records of the point clouds that the tree in XML has."""
    pages = b"".join(raw[i : i + 1020] for i in range(0, len(raw), 1024))
    begin, size = struct.unpack_from("<2Q", raw, 24)
    begin -= begin // 1024 * 4
    tree = pages[begin : begin + size]
    return sum(map(int, re.findall(rb'<points[^>]*recordCount="(\d+)"', tree)))


def text_points(raw: bytes) -> int:
    """The lines from the first one that begins a table of numbers."""
    kept = [line.strip(BLANK) for line in raw.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    kept = [line for line in kept if line]
    while kept and kept[0].startswith((b"#", b"//")):
        del kept[0]
    if kept and kept[0].isdigit():
        del kept[0]
    if kept and not any(map(NUMBER.match, re.split(rb"[\s,;]+", kept[0]))):
        del kept[0]
    return len(kept)


def ptx_points(raw: bytes) -> int:
    kept = [line for line in raw.split(b"\n") if line.strip(BLANK)]
    points = 0
    while kept:
        points += (n := int(kept[0]) * int(kept[1]))
        del kept[: 10 + n]
    return points


def ptx(n: int) -> bytes:
    """Two scans, of n points and of half as many; every fourth line is no point."""
    columns = {
        name: values for name, values in cloud(n).items() if name not in ("curvature", "ring")
    }
    shape = {"intensity": np.linspace(0, 1, n).round(6)}
    columns = {name: columns[name] for name in "xyz"} | shape | columns
    for name in "xyz":
        columns[name][::4] = 0
    pose = "1 2 3\n1 0 0\n0 1 0\n0 0 1\n0 1 0 0\n-1 0 0 0\n0 0 1 0\n1 2 3 1\n"
    body = lines(columns).splitlines(keepends=True)
    return (
        f"2\n{n // 2}\n{pose}{''.join(body)}1\n{n // 2}\n{pose}{''.join(body[: n // 2])}"
    ).encode()


def e57_files(folder: Path) -> list[bytes]:
    points = cloud(60)
    fields = {
        "cartesianX": ("Float", points["x"]),
        "cartesianY": ("Float", points["y"]),
        "cartesianZ": ("ScaledInteger", 0, 0, 1 << 20, 0.001, 0.0, points["z"]),
        "intensity": ("Float", points["curvature"]),
        "colorRed": ("Integer", 0, 0, 255, points["red"]),
        "cartesianInvalidState": ("Integer", 0, 0, 2, points["blue"] % 2),
    }
    scan = {"fields": fields, "pose": ([1, 0, 0, 1], [1, 2, 3])}
    return [e57(folder / "made.e57", scan, scan, crs="EPSG:25832").read_bytes()]


def sources(suffix: str, folder: Path) -> list[bytes]:
    """Small good files of a format: made here, and real ones where they are."""
    columns, few = cloud(60), cloud(7)
    numbers = {name: values for name, values in columns.items() if name != "ring"}
    real = SHARED / "data/formats"
    made = {
        ".ply": lambda: [ply(columns, order) for order in ORDERS] + [ply(few, "<", after=FACES)],
        ".pcd": lambda: [pcd(columns, data) for data in ("ascii", "binary", "binary_compressed")],
        ".e57": lambda: e57_files(folder),
        ".pts": lambda: [b"60\n" + lines({k: columns[k] for k in PTS}).encode()],
        ".ptx": lambda: [ptx(20)],
        ".xyz": lambda: [
            lines(numbers).encode(),
            b"x,y,z,red,green,blue,t\n" + lines(numbers, ",").encode(),
            b"# a comment\n" + lines(numbers, "  ").replace("\n", "\r\n").encode(),
        ],
    }[suffix]()
    found = [path.read_bytes() for path in sorted(real.glob(f"*{suffix}"))] if real.exists() else []
    return made + [raw for raw in found if len(raw) < 12_000]


ORDERS = ("<", ">", "")
PTS = ("x", "y", "z", "ring", "red", "green", "blue")
FACES = "element face 0\nproperty list uchar int vertex_indices\n"
COUNTS = {
    ".ply": ply_points,
    ".pcd": pcd_points,
    ".e57": e57_points,
    ".pts": text_points,
    ".ptx": ptx_points,
    ".xyz": text_points,
}


@pytest.mark.slow
@pytest.mark.parametrize("suffix", COUNTS)
def test_damage_is_refused_or_all_points_come(tmp_path, suffix):
    files = sources(suffix, tmp_path)
    each = -(-MUTANTS // len(files))
    damaged = [raw for seed, source in enumerate(files) for raw in mutants(source, each, seed)]
    if suffix == ".e57":  # nearly all would be refused for their checksums
        damaged = [with_checksums(raw) if i % 4 else raw for i, raw in enumerate(damaged)]
    paths = []
    for i, raw in enumerate(damaged):
        paths.append(tmp_path / f"{i}{suffix}")
        paths[-1].write_bytes(raw)
    results = read_in_a_process(paths)
    assert len(results) == len(paths) >= MUTANTS
    whole = 0
    for path, raw in zip(paths, damaged, strict=True):
        result = results[str(path)]
        if isinstance(result, str):
            assert result.startswith(f"read_points: '{path}': "), result
            assert "\n" not in result
            continue
        assert isinstance(result, list), (path, result)
        promised, came, warned = result
        assert promised == COUNTS[suffix](raw), path
        left_out = [re.search(r"(\d+) of its (\d+) records have no position", w) for w in warned]
        assert came + sum(int(found[1]) for found in left_out if found) == promised, path
        whole += 1
    assert whole > 10  # some damage is only another value
