"""Clouds as COPC: LAZ whose chunks are the nodes of an octree.

Layout: COPC specification 1.0, ASPRS LAS specification 1.4 R15.
"""

import io
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from spatialq.data.octree import Octree
from spatialq.errors import FileError
from spatialq.export.additive_points import AdditivePoints
from spatialq.export.atomic import WRITER
from spatialq.export.las import records_of
from spatialq.export.las_file import (
    COMPRESSED,
    LASZIP,
    WAVEFORMS,
    WKT_BIT,
    Tally,
    as_bytes,
    crs_record,
    las_file,
    laz_compressor,
    record,
)
from spatialq.io.crs import same
from spatialq.io.las.copc import ENTRY, PAGE
from spatialq.io.las.crs import PROJECTION, WKT_RECORD
from spatialq.io.las.header import HEADER_SIZES, INTERNAL_WAVEFORMS, Vlr
from spatialq.io.source import Progress
from spatialq.runtime.arrays import Bytes, Records
from spatialq.runtime.progress import check

if TYPE_CHECKING:
    from spatialq.export.kept import KeptOutput

INFO, HIERARCHY = ("copc", 1), ("copc", 1000)
INFO_SIZE = 160
GROUP = 1 << 20
"""Points that are compressed in one call."""
PAGE_NODES = 1000
"""Nodes of a page of the hierarchy; where there are more below a node, its page has a few levels
and links to pages of their own."""
PAGE_LEVELS = 4
EXTERNAL_WAVEFORMS = 4
TIME_OFFSET = 64
"""Of the first byte of the global encoding, the second since LAS 1.5."""
EXTENDED_HEADER = 60


def write_copc(
    target: Path,
    points: AdditivePoints,
    crs: str | None = None,
    tick: Progress | None = None,
    kept: "KeptOutput | None" = None,
) -> None:
    """Write a cloud.

    Every field of every point is kept, as are the variable length records of the sources, but for
    those about storage. The header is that of the first source, with version 1.4.

    Parameters
    ----------
    target : Path
    points : AdditivePoints
    crs : str, optional
        PROJJSON. Where it is not that of the first source in WKT, it takes the place of its
        records.
    tick : callable, optional
        Called with the target, points so far and points in all.
    kept : KeptOutput, optional
        Where nodes are kept that are written, to go on behind them.

    Raises
    ------
    FileError
        If the file cannot be written, or has no room for GPS times with an offset of LAS 1.5.

    Warns
    -----
    CrsWarning
        If WKT1 cannot describe the CRS.
    """
    import lazrs

    octree, n_extra = points.octree, points.n_extra
    _require_times(target, points)
    public, (records, extended) = _public_header(points), _records(target, points, crs)
    if any(each[2:18].startswith(PROJECTION.encode()) for each in records):
        public[6] |= WKT_BIT
    vlr = lazrs.LazVlr.new_for_compression(
        points.point_format, n_extra, use_variable_size_chunks=True
    )
    records.insert(0, record(INFO, bytes(INFO_SIZE)))  # a placeholder, which must be the first
    records.insert(1, record(LASZIP, bytes(vlr.record_data())))
    offset = len(public) + sum(map(len, records))
    done = _written(offset + 8, kept)
    with las_file(target, None if kept is None else kept.path) as file:
        file.write(public)
        file.writelines(records)
        _write_points(file, vlr, points, done, target, tick, kept)
        tally = done.tally
        end = _write_chunk_table(file, vlr, points, done.sizes, offset)
        hierarchy, root = _hierarchy(octree, done.sizes, offset + 8, end + EXTENDED_HEADER)
        identity = HIERARCHY[0].encode(), HIERARCHY[1]
        file.write(struct.pack("<2x16sHQ32x", *identity, len(hierarchy)) + hierarchy)
        for each in extended:
            file.writelines(each.parts())
        struct.pack_into("<HII", public, 94, len(public), offset, len(records))
        struct.pack_into("<QQI", public, 227, 0, end, 1 + len(extended))
        tally.pack_into(public, points.point_format)
        file.seek(0)
        file.write(public)
        page = end + EXTENDED_HEADER, root
        info = _info(public, octree, page, done.times)
        file.write(record(INFO, info))


def _require_times(target: Path, points: AdditivePoints) -> None:
    """Reject GPS times from which LAS 1.5 subtracts an offset of its own."""
    header = points.source.header
    if header.version[1] > 4 and header.raw[6] & TIME_OFFSET:
        reason = "cannot hold GPS times with an offset of LAS 1.5: COPC is LAS 1.4"
        raise FileError.of(WRITER, target, reason)


def _public_header(points: AdditivePoints) -> bytearray:
    public = bytearray(points.source.header.raw.ljust(HEADER_SIZES[4], b"\0"))
    del public[HEADER_SIZES[4] :]
    public[24:26] = 1, 4
    public[6] &= ~(INTERNAL_WAVEFORMS | EXTERNAL_WAVEFORMS) & 0xFF
    form = points.point_format | COMPRESSED
    struct.pack_into("<BH", public, 104, form, points.records.shape[1])
    return public


def _records(
    target: Path, points: AdditivePoints, crs: str | None
) -> tuple[list[bytes], list[Vlr]]:
    """Give the variable length records of the sources, and the extended ones."""
    source = points.source
    has_wkt = source.header.find(PROJECTION, WKT_RECORD) is not None
    keeps_crs = crs is None or (has_wkt and same(crs, source.crs))
    records, extended = records_of(
        source, source.described, keeps_crs=keeps_crs, without=[WAVEFORMS]
    )
    if not keeps_crs and crs is not None:
        records.insert(0, crs_record(target, crs))
    return records, extended


@dataclass
class _Written:
    """What is in the file of the points of the nodes so far."""

    end: int
    """Bytes of the file."""
    stop: int = 0
    """Nodes."""
    sizes: list[int] = field(default_factory=list)
    """Bytes of the chunks."""
    tally: Tally = field(default_factory=Tally)
    times: tuple[float, float] = (np.inf, -np.inf)
    """Range of GPS times."""

    def add(self, records: Records, point_format: int) -> None:
        """Count points."""
        self.tally.add(records, point_format)
        times, (low, high) = records["gps_time"], self.times
        self.times = min(low, float(times.min())), max(high, float(times.max()))

    def state(self) -> dict[str, Any]:
        """Give it as JSON has it."""
        return {**vars(self), "tally": self.tally.state()}


def _written(begin: int, kept: "KeptOutput | None") -> _Written:
    """Say what is there of the points, which begin at a byte: nothing, or what was kept."""
    state = kept.load() if kept is not None and kept.path.exists() else None
    if state is None:
        return _Written(begin)
    return _Written(**{**state, "tally": Tally.of(state["tally"]), "times": tuple(state["times"])})


def _write_points(
    file: BinaryIO,
    vlr: Any,
    points: AdditivePoints,
    done: _Written,
    target: Path,
    tick: Progress | None,
    kept: "KeptOutput | None",
) -> None:
    """Compress the nodes behind those that are there, a chunk each."""
    ends, n = points.octree.first, len(points.records)
    file.seek(done.end)
    file.truncate()
    for first, stop in points.groups(GROUP, done.stop):
        check()
        records = points.of_nodes(first, stop)
        if records.size:
            done.add(records, points.point_format)
            raw = as_bytes(records)
            places = (ends[first : stop + 1] - ends[first]).tolist()
            chunks = [raw[begin:end].reshape(-1) for begin, end in pairwise(places) if end > begin]
            compressed, sizes = _compressed(chunks, vlr)
            file.write(compressed)
            done.sizes += sizes
            done.end += len(compressed)
        done.stop = stop
        if kept is not None:
            file.flush()
            kept.save(done.state())
        if tick is not None:
            tick(target, n + done.tally.rows, 2 * n)


def _compressed(chunks: Sequence[Bytes], vlr: Any) -> tuple[memoryview, list[int]]:
    """Compress chunks on all cores; give the bytes of all, and how many each has."""
    import lazrs

    out = io.BytesIO()
    compressor = laz_compressor()(out, vlr)
    compressor.compress_chunks(chunks)
    compressor.done()
    raw = out.getbuffer()
    (table,) = struct.unpack_from("<Q", raw)
    sizes = lazrs.read_chunk_table_only(io.BytesIO(raw[table:]), vlr)
    # on one core, lazrs ends with an empty chunk
    return raw[8:table], [int(size) for rows, size in sizes if rows]


def _write_chunk_table(
    file: BinaryIO, vlr: Any, points: AdditivePoints, sizes: Sequence[int], offset: int
) -> int:
    """Write the table behind the chunks, and before them where it is; give the end of the file."""
    import lazrs

    counts = np.diff(points.octree.first)
    table = list(zip(counts[counts > 0].tolist(), sizes, strict=True))
    encoded = io.BytesIO()
    lazrs.write_chunk_table(encoded, table, vlr)
    begin = file.tell()
    file.write(encoded.getbuffer())
    end = file.tell()
    file.seek(offset)
    file.write(struct.pack("<Q", begin))
    file.seek(end)
    return end


def _info(
    public: bytearray, octree: Octree, page: tuple[int, int], times: tuple[float, float]
) -> bytes:
    """Encode the info record; the cube begins at the minimum of the header."""
    step = max(map(abs, struct.unpack_from("<3d", public, 131)))
    low = struct.unpack_from("<6d", public, 179)[1::2]
    half = max(octree.size, step) / 2  # points in one place have a cube, too
    centre = [each + half for each in low]
    packed = struct.pack("<5d2Q2d", *centre, half, octree.spacing, *page, *times)
    return packed.ljust(INFO_SIZE, b"\0")


def _hierarchy(octree: Octree, sizes: list[int], first_chunk: int, begin: int) -> tuple[bytes, int]:
    """Encode the pages of the hierarchy.

    Parameters
    ----------
    octree : Octree
    sizes : list of int
        Bytes of the chunks, of which each node with points has one.
    first_chunk, begin : int
        Where in the file the first chunk begins, and the first page.

    Returns
    -------
    bytes
        The pages, the root's first.
    int
        Bytes of the root's page.
    """
    pages, _ = octree.pages(PAGE_LEVELS, PAGE_NODES)
    offsets = np.cumsum([begin, *(ENTRY.size * len(nodes) for nodes in pages.values())]).tolist()
    places = dict(zip(pages, offsets, strict=False))
    chunks = np.zeros(len(octree.names), np.int64)
    chunks[np.diff(octree.first) > 0] = sizes
    starts = first_chunk + np.cumsum(chunks) - chunks
    encoded = bytearray()
    for top, nodes in pages.items():
        for node in nodes:
            key = octree.key(node)
            if node != top and node in pages:
                size = ENTRY.size * len(pages[node])
                encoded += ENTRY.pack(*key, places[node], size, PAGE)
            elif count := octree.points(node):
                encoded += ENTRY.pack(*key, int(starts[node]), int(chunks[node]), count)
            else:
                encoded += ENTRY.pack(*key, 0, 0, 0)
    return bytes(encoded), ENTRY.size * len(pages[0])
