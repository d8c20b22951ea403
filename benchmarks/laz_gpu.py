"""Chunks of LAZ decoded on the GPU, in two ways, beside lazrs; one JSON file.

python benchmarks/laz_gpu.py --commit HASH [--out FOLDER] [--points N] [--most N] [--files N]

An airborne scan is generated, in scan lines with several returns per pulse, and compressed by
lazrs. Its chunks are copied in the memory of the GPU until there are enough. All points are
compared with what was compressed: x, y and z; in step also with the classification, and with all
attributes that the kernels decode. The ways: each thread has a chunk for itself (`alone`,
laz_gpu.cu), or the lanes of a warp are in step (`lockstep`, spatialq/io/laz.cu), so many of them
with a chunk. A third one, a warp for each chunk with its models in shared memory, was measured
once and dropped: see docs/planner.md. `--files` adds calls of `owm_ground` on so many LAZ files,
decoded by the GPU and by the CPU.
"""

import argparse
import io
import os
import statistics
import tempfile
import time
from functools import cache
from pathlib import Path
from unittest.mock import patch

import cupy as cp
import laspy
import lazrs
import measure
import numpy as np

from spatialq.io.las.on_gpu import ATTRIBUTES, SOURCE
from spatialq.runtime import cuda

ALONE = Path(__file__).with_suffix(".cu")
BATCH = 1_000_000  # points that are generated at once
RECORDS = {0: 20, 1: 28, 2: 26, 3: 34, 6: 30, 7: 36, 8: 38}
LAYERS = {6: 9, 7: 10, 8: 11}
PAGES = 64  # of a chunk of formats 0 to 3: byte values that have a model of their own
SLOW = 3000  # milliseconds of a run that is not repeated
THREADS = 32  # of a block of the kernel of one thread per chunk


def scan(n, seed):
    """Make points in the order of an airborne scanner.

    Parameters
    ----------
    n : int
    seed : int

    Returns
    -------
    dict of str to array
        By LAS dimension; X, Y and Z in millimetres.
    """
    random = np.random.default_rng(seed)
    pulses = n  # at least one return each
    line, place = np.divmod(np.arange(pulses) + seed * BATCH, 700)
    across = (place / 700 - 0.5) * 560 * np.where(line % 2, 1, -1)  # metres, a zigzag
    along = line * 0.8 + place / 700 * 0.8
    forest = np.sin(across / 37) * np.sin(along / 41) > 0.1
    house = (np.sin(across / 11) > 0.8) & (np.sin(along / 13) > 0.7)
    ground = 300 + 9 * np.sin(across / 90) + 6 * np.cos(along / 120) + across / 50
    count = 1 + np.where(forest, random.binomial(3, 0.45, pulses), 0)
    pulse = np.repeat(np.arange(pulses), count)[:n]
    number = np.arange(n) - np.searchsorted(pulse, pulse) + 1
    of = count[pulse]
    last = number == of
    height = np.where(last, 0, (of - number) / of * 18 + random.normal(0, 1.5, n))
    height += np.where(house[pulse], 7, 0) + random.normal(0, 0.02, n)
    z = ground[pulse] + height
    shift = (height - 10) * 0.2
    x = across[pulse] + shift * across[pulse] / 560 + random.normal(0, 0.03, n)
    y = along[pulse] + random.normal(0, 0.03, n)
    classes = np.where(last & ~house[pulse], 2, np.where(house[pulse], 6, 5))
    return {
        "X": np.rint(x * 1000).astype(np.int32),
        "Y": np.rint(y * 1000).astype(np.int32),
        "Z": np.rint(z * 1000).astype(np.int32),
        "intensity": np.clip(random.normal(600, 150, n) / of, 0, 65535).astype(np.uint16),
        "return_number": number.astype(np.uint8),
        "number_of_returns": of.astype(np.uint8),
        "classification": classes.astype(np.uint8),
        "scan_angle": np.rint(across[pulse] / 560 * 36).astype(np.int16),
        "scan_direction_flag": (line % 2)[pulse].astype(np.uint8),
        "gps_time": 2.5e8 + (pulse + seed * BATCH) / 300_000,
        "red": (300 + 20 * classes + random.integers(0, 60, n)).astype(np.uint16) << 6,
        "green": (400 - 10 * classes + random.integers(0, 60, n)).astype(np.uint16) << 6,
        "blue": (350 + random.integers(0, 60, n)).astype(np.uint16) << 6,
        "nir": random.integers(0, 900, n).astype(np.uint16),
    }


@cache
def records(point_format, n, seed):
    """Make the point records of a scan."""
    made = laspy.ScaleAwarePointRecord.zeros(
        n, point_format=laspy.PointFormat(point_format), scales=[0.001] * 3, offsets=[0] * 3
    )
    columns = scan(n, seed)
    names = set(made.point_format.dimension_names)
    for name, values in columns.items():
        if name in names:
            made[name] = values
        elif name == "scan_angle":
            made["scan_angle_rank"] = values
    return made.array


class Chunks:
    """A compressed scan: bytes, their chunks, and the coordinates that must come out.

    Attributes
    ----------
    raw : uint8
        The compressed chunks, each at a multiple of four bytes.
    table : int64[n, 4]
        Offset, size, row of the first point and number of points of each chunk.
    expected : list of int32 arrays
        X, Y and Z.
    """

    def __init__(self, point_format, n, chunk_size):
        self.point_format, self.chunk_size = point_format, chunk_size
        parts = [
            records(point_format, min(BATCH, n - start), start // BATCH)
            for start in range(0, n, BATCH)
        ]
        points = np.concatenate(parts)
        self.expected = {name: np.ascontiguousarray(points[name]) for name in "XYZ"}
        names = points.dtype.names
        self.expected |= {n: np.ascontiguousarray(points[n]) for n in ATTRIBUTES if n in names}
        if "raw_classification" in names:
            self.expected["classification"] = points["raw_classification"] & 31
        self.vlr = lazrs.LazVlr.new_for_compression(point_format, 0, use_variable_size_chunks=True)
        file = io.BytesIO()
        data = points.view(np.uint8).reshape(n, -1)
        chunks = [data[start : start + chunk_size] for start in range(0, n, chunk_size)]
        compressor = lazrs.ParLasZipCompressor(file, self.vlr)
        compressor.compress_chunks([np.ascontiguousarray(each).reshape(-1) for each in chunks])
        compressor.done()
        packed = file.getvalue()
        file.seek(0)
        entries = lazrs.read_chunk_table(file, self.vlr)
        self.packed_table = [
            (len(chunk), size) for chunk, (_, size) in zip(chunks, entries, strict=True)
        ]
        sizes = np.array([size for _, size in self.packed_table])
        begins = 8 + np.concatenate([[0], np.cumsum(sizes)[:-1]])
        places = np.concatenate([[0], np.cumsum(-(-sizes // 4) * 4)])
        self.packed = packed[8 : 8 + int(sizes.sum())]
        self.raw = np.zeros(places[-1], np.uint8)
        for begin, size, place in zip(begins, sizes, places[:-1], strict=True):
            self.raw[place : place + size] = np.frombuffer(packed, np.uint8, size, begin)
        rows = np.array([len(chunk) for chunk in chunks])
        firsts = np.concatenate([[0], np.cumsum(rows)[:-1]])
        self.table = np.stack([places[:-1], sizes, firsts, rows], axis=1).astype(np.int64)
        self.record_length = data.shape[1]

    def lazrs(self, selection, chunks, threads):
        """Decode so many chunks by lazrs; points per second."""
        table = self.packed_table[:chunks]
        n, size = (sum(column) for column in zip(*table, strict=True))
        into = np.empty(n * self.record_length, np.uint8)
        data = self.vlr.record_data()
        selected = lazrs.DecompressionSelection(selection)
        packed = self.packed[:size]
        if threads == 1:
            file = io.BytesIO((8 + size).to_bytes(8, "little") + packed)
            file.seek(0, io.SEEK_END)
            lazrs.write_chunk_table(file, table, self.vlr)
            file.seek(0)
            start = time.perf_counter()
            lazrs.LasZipDecompressor(file, data, selected).decompress_many(into)
        else:
            start = time.perf_counter()
            lazrs.decompress_points_with_chunk_table(packed, data, into, table, selected)
        return n / (time.perf_counter() - start)


class Copies:
    """Copies of compressed chunks on the GPU, and their decoding."""

    def __init__(self, chunks, copies, attributes=(), channels=1):
        self.device = cuda.device()
        self.chunks, self.copies, self.channels = chunks, copies, channels
        self.n_once = len(chunks.expected["X"])
        n_chunks, size = len(chunks.table), len(chunks.raw)
        self.data = cp.tile(cp.asarray(chunks.raw), copies)
        step = np.array([size, 0, self.n_once, 0])
        table = chunks.table[None] + np.arange(copies)[:, None, None] * step
        table[..., 0] += self.device.address(self.data)
        self.table = cp.asarray(np.ascontiguousarray(table.reshape(-1, 4)))
        self.n_chunks = n_chunks * copies
        self.n = self.n_once * copies
        sizes = cp.zeros(5, np.int64)
        self.device.launch(SOURCE, "laz_sizes", (1,), 1, channels, 0, PAGES, sizes)
        of_layers, of_points, *more = self.device.download(sizes).tolist()
        self.wanted = sum({ATTRIBUTES[name][1] for name in attributes})
        self.layered = chunks.point_format >= 6
        self.rows = self.wanted.bit_count() if self.layered else 0
        words = of_points
        if self.layered:
            words = of_layers + sum(m for bit, m in enumerate(more) if self.wanted >> bit & 1)
        self.before = self.n_chunks * of_layers
        self.work = cp.empty(self.n_chunks * words, np.uint16)
        self.found = {name: cp.empty(self.n, np.int32) for name in "XYZ"}
        self.found |= {name: cp.empty(self.n, ATTRIBUTES[name][0]) for name in attributes}
        self.notes = cp.empty(self.n if self.rows else 1, np.uint8)
        self.errors = cp.zeros(self.n_chunks, np.int32)

    def run(self, way, lanes=32):
        """Decode all chunks; `lanes` of a warp have one each in the way `lockstep`."""
        self.errors.fill(0)
        self.work.fill(0)
        form, n = self.chunks.point_format, self.n_chunks
        xyz = [self.found[axis] for axis in "XYZ"]
        outputs = [self.found.get(name, self.errors) for name in ATTRIBUTES]
        alone = way == "alone"
        source, end, per_block = (ALONE, "_alone", THREADS) if alone else (SOURCE, "", lanes)
        blocks, lanes = -(-n // per_block), [] if alone else [lanes]
        if not self.layered:
            items = (form in (1, 3)) | (form in (2, 3)) << 1
            self.device.launch(
                source, f"laz_points{end}", (blocks,), 32, self.table, n, items, 0, self.work,
                PAGES, *lanes, *xyz, self.wanted, *outputs, self.errors,
            )  # fmt: skip
            return
        of_chunks = [self.table, n, self.chunks.record_length, LAYERS[form]]
        self.device.launch(
            source, f"laz_layers{end}", (blocks,), THREADS if alone else 64, *of_chunks, self.work,
            self.channels, *lanes, *xyz, self.wanted, self.notes, self.errors,
        )  # fmt: skip
        if self.rows:
            self.device.launch(
                source, f"laz_attributes{end}", (blocks, 1 if alone else self.rows), 32, *of_chunks,
                self.work[self.before :], self.channels, *lanes, self.notes, self.wanted, *outputs,
                self.errors,
            )  # fmt: skip

    def check(self):
        """Compare all copies of all points; give the number of chunks with errors."""
        wrong = int(cuda.count(self.errors != 0))
        if wrong == 0:
            for name, found in self.found.items():
                once = cp.asarray(self.chunks.expected[name])
                for copy in range(self.copies):
                    part = found[copy * self.n_once : (copy + 1) * self.n_once]
                    assert int(cuda.count(part != once)) == 0, f"other values of {name}"
        return wrong


def figures(chunks, copies, ways, repeat):
    """Points per second of each way, for so many copies of the chunks."""
    rows, there = [], None
    for way, lanes, attributes in ways:
        if there is None or there.found.keys() != {*"XYZ", *attributes}:
            there = None  # its memory is needed
            there = Copies(chunks, copies, attributes)
        for values in there.found.values():
            values.fill(255)
        ms = [measure.between_events(lambda t=there, w=way, k=lanes: t.run(w, k))]
        wrong = there.check()
        again = range(repeat if ms[0] < SLOW else 0)
        ms += [measure.between_events(lambda t=there, w=way, k=lanes: t.run(w, k)) for _ in again]
        median = statistics.median(ms)
        row = {"way": way, "attributes": attributes, "ms": median}
        row["M_points_per_s"] = there.n / median / 1e3
        row["chunks_refused"] = wrong
        if way == "lockstep":
            row["lanes"] = lanes
        rows.append(row)
    return measure.show(
        {
            "point_format": chunks.point_format,
            "chunk_size": chunks.chunk_size,
            "chunks": there.n_chunks,
            "points": there.n,
            "compressed_bytes_per_point": sum(s for _, s in chunks.packed_table) / there.n_once,
            "memory_of_models": there.work.nbytes,
            "ways": rows,
        }
    )


def beside(chunks, repeat):
    """Points per second of lazrs, with one thread and with all."""
    selection = lazrs.SELECTIVE_DECOMPRESS_XY_RETURNS_CHANNEL | lazrs.SELECTIVE_DECOMPRESS_Z
    few = max(1, min(len(chunks.table), 1_000_000 // chunks.chunk_size))
    return measure.show(
        {
            "point_format": chunks.point_format,
            "chunk_size": chunks.chunk_size,
            "lazrs_threads": os.cpu_count(),
            "M_points_per_s_1_thread": max(
                chunks.lazrs(selection, few, 1) for _ in range(repeat)
            ) / 1e6,
            "M_points_per_s": max(
                chunks.lazrs(selection, len(chunks.table), 0) for _ in range(repeat)
            ) / 1e6,
        }
    )  # fmt: skip


def write_files(folder, count, n):
    """Write LAZ files of point format 6, side by side, of n points each."""
    for k in range(count):
        header = laspy.LasHeader(point_format=6, version="1.4")
        header.scales, header.offsets = [0.001] * 3, [600.0 * k, 0, 0]
        cloud = laspy.LasData(header)
        points = np.concatenate(
            [records(6, min(BATCH, n - a), a // BATCH) for a in range(0, n, BATCH)]
        )
        cloud.points = laspy.ScaleAwarePointRecord(
            points, header.point_format, header.scales, header.offsets
        )
        cloud.write(folder / f"{k}.laz", laz_backend=laspy.LazBackend.LazrsParallel)


def from_files(count, n, repeat):
    """Seconds of `owm_ground` on LAZ files on the GPU, by what decodes them."""
    import spatialq
    from spatialq.planner import decoding

    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), count, n)
        points = f"'{folder}/*.laz', device := 'gpu', crs := 'EPSG:25832'"
        query = f"SELECT count(*), sum(point_id), max(z) FROM owm_ground({points})"
        log = 'SELECT reason FROM spatialq_log() ORDER BY "at" DESC LIMIT 1'
        answers, reasons = set(), {}

        def call(seconds):
            per_point = dict.fromkeys((True, False), seconds)
            with patch.object(decoding, "PER_POINT", per_point), spatialq.connect() as con:
                answers.update(con.sql(query).fetchall())
                ((reasons[seconds],),) = con.sql(log).fetchall()

        times = measure.in_turns({"gpu": lambda: call(0.0), "cpu": lambda: call(1e9)}, repeat)
    assert len(answers) == 1, answers
    assert "decoded" in reasons[0.0], reasons
    assert "decoded" not in reasons[1e9], reasons
    return measure.show(
        {
            "files": count,
            "points": count * n,
            "s_decoded_by_gpu": times["gpu"].median,
            "s_decoded_by_cpu": times["cpu"].median,
            "cpu_threads": os.cpu_count(),
        }
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    measure.add_arguments(parser)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--once", type=int, default=4_000_000, help="points that are generated")
    parser.add_argument("--points", type=int, default=200_000_000)
    parser.add_argument("--most", type=int, default=1_000_000_000, help="for one lane per chunk")
    parser.add_argument("--formats", type=int, nargs="+", default=[6, 1])
    parser.add_argument("--chunk-sizes", type=int, nargs="+", default=[50_000, 5_000])
    parser.add_argument("--lanes", type=int, nargs="+", default=[1, 32, 8], help="1: alone")
    parser.add_argument("--files", type=int, default=0)
    arguments = parser.parse_args()
    files = from_files(arguments.files, 3_000_000, arguments.repeat) if arguments.files else None
    decoded, rivals = [], []
    for form in arguments.formats:
        for size in arguments.chunk_sizes:
            start = time.perf_counter()
            chunks = Chunks(form, arguments.once, size)
            print(f"generated in {time.perf_counter() - start:.1f} s", flush=True)
            rivals.append(beside(chunks, arguments.repeat))
            there = [name for name in ATTRIBUTES if name in chunks.expected]
            ways = [
                *(("alone" if each == 1 else "lockstep", each, []) for each in arguments.lanes),
                ("lockstep", 32, ["classification"]), ("lockstep", 32, there),
            ]  # fmt: skip
            copies = max(1, arguments.points // arguments.once)
            decoded.append(figures(chunks, copies, ways, arguments.repeat))
            cuda.device().trim()
            if size == max(arguments.chunk_sizes):
                copies = max(1, arguments.most // arguments.once)
                in_step = [way for way in ways if way[1] > 1]
                decoded.append(figures(chunks, copies, in_step, arguments.repeat))
                cuda.device().trim()
    report = measure.header("laz_gpu", arguments.commit, decoded=decoded, lazrs=rivals, files=files)
    measure.write(arguments.out, report["function"], report)


if __name__ == "__main__":
    main()
