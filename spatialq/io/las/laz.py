"""LASzip: its VLR and chunk table, checked, and the one call that decodes chunks.

lazrs trusts what it is given: a damaged chunk table makes it allocate without bound, panic or
abort the process. So each number is compared with the header and the file size first.
"""

import io
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from spatialq.io.las.header import Header, chunk_table_offset, reject
from spatialq.io.source import Box
from spatialq.runtime.arrays import Bytes
from spatialq.runtime.forks import may_use_threads

VARIABLE_CHUNKS = 0xFFFFFFFF
MAX_CHUNK_ROWS = 1 << 24
"""The largest chunk that is decoded: memory follows the chunk. LASzip writes 50,000."""

ITEM_SIZES = {6: 20, 7: 8, 8: 6, 9: 29, 10: 30, 11: 6, 12: 8, 13: 29}
"""Bytes of the LASzip items: POINT10 ... WAVEPACKET13, POINT14 ... WAVEPACKET14."""
EXTRA_BYTES_ITEMS = (0, 14)
ITEMS = (
    (6,),
    (6, 7),
    (6, 8),
    (6, 7, 8),
    (6, 7, 9),
    (6, 7, 8, 9),
    (10,),
    (10, 11),
    (10, 12),
    (10, 13),
    (10, 12, 13),
)
"""The items that each point format must have, in this order."""
LAYERS = {10: 9, 11: 1, 12: 2, 13: 1}
"""Separately compressed layers of an item of point formats 6 to 10."""


@dataclass(frozen=True)
class Chunk:
    """A part of the point data that can be read alone: bytes of the file, rows of the table."""

    offset: int
    size: int
    first: int
    rows: int
    box: Box | None = None
    """Where its points lie, if that is known."""
    coarser: float | None = None
    """Of a node of an octree, the spacing of points of the node above; infinite for the root."""


@dataclass(frozen=True)
class Laszip:
    """The checked LASzip VLR: how the points are compressed."""

    header: Header
    vlr: bytes
    chunk_size: int
    items: tuple[tuple[int, int], ...]
    """Type and bytes of each item."""

    @property
    def layered(self) -> bool:
        """Whether single fields can be left out of decoding (point formats 6 to 10)."""
        return self.header.point_format >= 6

    @cached_property
    def _layer_count(self) -> int:
        return sum(size if kind == 14 else LAYERS[kind] for kind, size in self.items)

    def decode(
        self,
        raw: bytes | bytearray,
        chunks: Sequence[Chunk],
        selection: int,
        records: Bytes,
    ) -> None:
        """Decode chunks that lie one behind the other in `raw`, on all cores.

        In a fork of a process that did so it is done on one, as lazrs' threads are not there.

        Parameters
        ----------
        raw : bytes or bytearray
            The compressed chunks.
        chunks : sequence of Chunk
            Their sizes and counts, in the same order.
        selection : int
            The sum of `lazrs.SELECTIVE_DECOMPRESS_*` of the layers that are needed; formats
            without layers are decoded whole.
        records : uint8[rows * record_length]
            Filled with the point records. Fields that were not selected hold anything.

        Raises
        ------
        FileError
            If the data are damaged.
        """
        import lazrs

        self._check_layers(raw, chunks)
        table = [(chunk.rows, chunk.size) for chunk in chunks]
        layers = lazrs.DecompressionSelection(selection)
        try:
            if may_use_threads("lazrs"):
                lazrs.decompress_points_with_chunk_table(raw, self.vlr, records, table, layers)
            else:
                file = self._as_file(raw, table)
                lazrs.LasZipDecompressor(file, self.vlr, layers).decompress_many(records)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # a panic in Rust is no Exception
            reject(self.header.path, f"the compressed points are damaged ({error})", error)

    def _as_file(self, raw: bytes | bytearray, table: list[tuple[int, int]]) -> io.BytesIO:
        """Give chunks as a file has them: the place of their table, the chunks, the table."""
        import lazrs

        file = io.BytesIO(struct.pack("<q", 8 + len(raw)) + raw)
        file.seek(0, io.SEEK_END)
        lazrs.write_chunk_table(file, table, lazrs.LazVlr(self.vlr))
        file.seek(0)
        return file

    def _check_layers(self, raw: bytes | bytearray, chunks: Sequence[Chunk]) -> None:
        """Compare the layer sizes inside the chunks with the sizes of the chunks."""
        if not self.layered:
            return
        layout = struct.Struct(f"<{self._layer_count + 1}I")
        begin = 0
        for chunk in chunks:
            first = begin + self.header.record_length
            if first + layout.size > begin + chunk.size:
                self.header.reject("the compressed points are damaged (a chunk is too short)")
            rows, *sizes = layout.unpack_from(raw, first)
            if (
                rows != chunk.rows
                or self.header.record_length + layout.size + sum(sizes) > chunk.size
            ):
                self.header.reject(
                    "the compressed points are damaged (a chunk contradicts the chunk table)"
                )
            begin += chunk.size


def read_laszip(header: Header) -> Laszip:
    """Check the LASzip VLR.

    Raises
    ------
    FileError
        If there is none, or it describes a compression that cannot be decoded safely.
    """
    data = header.find("laszip encoded", 22204)
    if data is None:
        header.reject("compressed, but without the LASzip record that says how")
    if len(data) < 34:
        header.reject(f"the LASzip record has {len(data)} bytes, at least 34 are needed")
    compressor, coder = struct.unpack_from("<HH", data)
    chunk_size, n_items = struct.unpack_from("<I16xH", data, 12)
    if compressor == 1:
        header.reject(
            "compressed by LASzip before 2.0 (pointwise, without chunks), which cannot be read; "
            "compress it again with a current LASzip"
        )
    expected = 2 if header.point_format <= 5 else 3
    if compressor != expected or coder != 0:
        header.reject(
            f"LASzip compressor {compressor} with coder {coder} is unknown for point format "
            f"{header.point_format}; it should be {expected} with 0"
        )
    if len(data) < 34 + 6 * n_items or chunk_size == 0:
        header.reject("the LASzip record is damaged (its item list or chunk size)")
    items = [struct.unpack_from("<3H", data, 34 + 6 * i) for i in range(n_items)]
    _check_items(header, items)
    # what follows the items is padding that lazrs need not see
    return Laszip(header, data[: 34 + 6 * n_items], chunk_size, tuple((k, s) for k, s, _ in items))


def _check_items(header: Header, items: list[tuple[int, ...]]) -> None:
    wanted = ITEMS[header.point_format]
    kinds = tuple(kind for kind, _, _ in items)
    extra = header.record_length - sum(ITEM_SIZES[kind] for kind in wanted)
    if extra:
        wanted = (*wanted, EXTRA_BYTES_ITEMS[header.point_format >= 6])
    sizes = tuple(size for _, size, _ in items)
    if kinds != wanted or sizes != tuple(ITEM_SIZES.get(kind, extra) for kind in wanted):
        header.reject(
            f"the LASzip record describes other items (types {kinds}, bytes {sizes}) than "
            f"point format {header.point_format} with {header.record_length} bytes has"
        )
    newest = max(version for _, _, version in items)
    if newest > 3:
        header.reject(f"LASzip item version {newest} is too new: versions up to 3 can be decoded")


def read_chunks(laszip: Laszip) -> list[Chunk]:
    """Read and check the chunk table.

    Raises
    ------
    FileError
        If the file is cut off, or the table contradicts the header or the file size.
    """
    header = laszip.header
    if header.rows == 0:
        return []
    first = header.data_offset + 8
    with header.path.open("rb") as file:
        table_offset = chunk_table_offset(file, header)
        if table_offset < first or table_offset + 8 > header.file_size:
            header.reject(
                f"cut off or damaged: its chunk table should be at byte {table_offset}, the "
                f"compressed points lie between bytes {first} and {header.file_size}"
            )
        file.seek(table_offset)
        version, n_chunks = struct.unpack("<2I", file.read(8))
        _check_chunk_count(laszip, version, n_chunks)
        file.seek(table_offset)
        # an entry takes at most some 10 bytes: never hand a whole file of EVLRs on
        raw = file.read(8 + 64 + 16 * n_chunks)
    table = _entries(laszip, raw)
    return _checked(laszip, table, first, table_offset)


def _check_chunk_count(laszip: Laszip, version: int, n_chunks: int) -> None:
    header = laszip.header
    if version != 0:
        header.reject(f"the chunk table is damaged: its version is {version}, not 0")
    if laszip.chunk_size == VARIABLE_CHUNKS:
        good = 0 < n_chunks <= header.rows + 1 and n_chunks <= header.file_size
    else:
        good = n_chunks == -(-header.rows // laszip.chunk_size)
    if not good:
        header.reject(f"the chunk table is damaged: {n_chunks} chunks for {header.rows} points")


def _entries(laszip: Laszip, raw: bytes) -> list[tuple[int, int]]:
    import lazrs

    try:
        table = lazrs.read_chunk_table_only(io.BytesIO(raw), lazrs.LazVlr(laszip.vlr))
        return [(int(rows), int(size)) for rows, size in table]
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic in Rust is no Exception
        reject(laszip.header.path, f"the chunk table is damaged ({error})", error)


def _checked(laszip: Laszip, table: list[tuple[int, int]], begin: int, end: int) -> list[Chunk]:
    header = laszip.header
    counts = [rows for rows, _ in table]
    if laszip.chunk_size != VARIABLE_CHUNKS:
        counts = [laszip.chunk_size] * len(table)
        counts[-1] = header.rows - sum(counts[:-1])
    if sum(counts) != header.rows:
        header.reject(f"the chunk table counts {sum(counts)} points, the header {header.rows}")
    if sum(size for _, size in table) != end - begin:
        header.reject(
            f"the chunk table is damaged: the chunks add up to "
            f"{sum(size for _, size in table)} bytes, {end - begin} are there"
        )
    if max(counts) > MAX_CHUNK_ROWS:
        header.reject(
            f"a chunk of {max(counts)} points is too large, at most {MAX_CHUNK_ROWS} can be "
            "read; compress the file again with the usual chunk size of 50000"
        )
    chunks = []
    offset, first = begin, 0
    for rows, (_, size) in zip(counts, table, strict=True):
        if rows:  # some writers end with an empty chunk
            chunks.append(Chunk(offset, size, first, rows))
        offset += size
        first += rows
    return chunks
