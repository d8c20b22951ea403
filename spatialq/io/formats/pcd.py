"""PCD, the point clouds of PCL: as text, binary, and binary compressed."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spatialq.io.cloud_source import (
    AXES,
    CloudSource,
    Part,
    cloud_schema,
    column_names,
    column_type,
    records,
    text_parts,
)
from spatialq.io.formats import Reader
from spatialq.io.source import ROW_GROUP
from spatialq.io.text_lines import NUMBER, LineError, Lines, count_lines
from spatialq.runtime.arrays import Array, DType

HEADER = 1 << 16
"""Bytes that a header may have."""
TYPES = {
    **{f"F{size}": f"<f{size}" for size in (4, 8)},
    **{f"{kind}{size}": f"<{kind.lower()}{size}" for kind in "IU" for size in (1, 2, 4, 8)},
}
"""NumPy types by TYPE and SIZE."""
KEYS = (
    *("VERSION", "FIELDS", "SIZE", "TYPE", "COUNT"),
    *("WIDTH", "HEIGHT", "VIEWPOINT", "POINTS", "DATA"),
)
DATA = ("ascii", "binary", "binary_compressed")
WHOLE = re.compile(r"[0-9]{1,15}")
AT_ORIGIN = ["0", "0", "0", "1", "0", "0", "0"]
"""The VIEWPOINT of most files: translation and quaternion w, x, y, z."""
MOST_VALUES = 4096
"""Values of a field: the largest descriptors of PCL have 1,980."""
PADDING = "_"
PAGE = 4096
MOST_EXPANDED = 88
"""Bytes that one byte of LZF can become at most: 3 of them copy 264."""
PACKED = {"red": 16, "green": 8, "blue": 0, "alpha": 24}
"""The bit at which a part of a packed colour begins."""


@dataclass(frozen=True)
class Column:
    """One value of a point: a field of COUNT 3 has three of them.

    Attributes
    ----------
    name : str
    field : int
        Number of the field that holds it.
    element : int
        Which of its values it is.
    shift : int, optional
        The bit at which it begins, where it is part of a packed colour.
    """

    name: str
    field: int
    element: int = 0
    shift: int | None = None

    def values(self, stored: Array) -> Array:
        """Give the column of what is stored for it."""
        if self.shift is None:
            return stored
        bits = np.ascontiguousarray(stored).view(np.uint32)
        return (bits >> np.uint32(self.shift) & np.uint32(255)).astype(np.uint8)


class PcdSource(CloudSource):
    """A PCD file, a `spatialq.io.source.Source`."""

    def _open(self) -> None:
        header = self._read_header()
        self._data = header["DATA"][0]
        self.rows = self._count(header)
        self._record, columns = self._fields(header)
        names = column_names(self, [column.name for column in columns])
        self._columns = dict(zip(names, columns, strict=True))
        self.schema = cloud_schema(
            self,
            {
                name: column_type(
                    name, np.uint8 if column.shift is not None else self._stored(column)
                )
                for name, column in self._columns.items()
            },
        )
        pose = header.get("VIEWPOINT", AT_ORIGIN)
        if len(pose) != len(AT_ORIGIN) or not all(map(NUMBER.fullmatch, pose)):
            self.reject(f"its VIEWPOINT must be 7 numbers, got {' '.join(pose)!r}")
        if [float(value) for value in pose] != [float(value) for value in AT_ORIGIN]:
            self.warnings.append(
                f"its VIEWPOINT {' '.join(pose)} is not applied: coordinates are as they are stored"
            )
        self._check_size()

    def _stored(self, column: Column) -> DType:
        """Give the type in which a column is stored."""
        kind: DType = self._record[column.field].base
        return kind

    def _read_header(self) -> dict[str, list[str]]:
        """Give the words behind each key; the points begin behind the line DATA."""
        with self.path.open("rb") as file:
            raw = file.read(HEADER)
        header: dict[str, list[str]] = {}
        self._begin = 0
        for number, line in enumerate(raw.split(b"\n"), 1):
            self._begin = min(self._begin + len(line) + 1, len(raw))
            key, *words = line.decode("latin-1").split() or ["#"]
            if key.startswith("#"):
                continue
            if key not in KEYS or key in header or not words:
                said = line[:80].decode("latin-1").rstrip()
                self.reject(f"line {number} of its header is not understood: {said!r}")
            header[key] = words
            if key == "DATA":
                if words[0] not in DATA:
                    self.reject(f"its DATA must be {', '.join(DATA)}, got {words[0]!r}")
                self._header_lines = number
                return header
        return self.reject("not a PCD file: its header has no line 'DATA'")

    def _count(self, header: Mapping[str, list[str]]) -> int:
        """Give the number of points: POINTS, which is WIDTH * HEIGHT."""
        numbers: dict[str, int] = {}
        for key in ("WIDTH", "HEIGHT", "POINTS"):
            words = header.get(key, ["1"] if key == "HEIGHT" else [])
            if not words and key == "POINTS":  # which the first versions do not have
                numbers[key] = numbers["WIDTH"] * numbers["HEIGHT"]
            elif len(words) == 1 and WHOLE.fullmatch(words[0]):
                numbers[key] = int(words[0])
            else:
                self.reject(f"its {key} must be a whole number, got {' '.join(words)!r}")
        if numbers["POINTS"] != numbers["WIDTH"] * numbers["HEIGHT"]:
            self.reject(
                f"its header promises {numbers['POINTS']} POINTS, but a WIDTH of "
                f"{numbers['WIDTH']} and a HEIGHT of {numbers['HEIGHT']}"
            )
        return numbers["POINTS"]

    def _fields(self, header: Mapping[str, list[str]]) -> tuple[DType, list[Column]]:
        """Give the type of a binary record, and the columns."""
        names = header.get("FIELDS", [])
        lines = [header.get(key, []) for key in ("TYPE", "SIZE")]
        lines.append(header.get("COUNT", ["1"] * len(names)))
        if any(len(line) != len(names) for line in lines):
            n_kinds, n_sizes, n_counts = map(len, lines)
            self.reject(
                f"its header has {len(names)} FIELDS, {n_kinds} TYPEs, {n_sizes} SIZEs and "
                f"{n_counts} COUNTs"
            )
        record, columns = [], []
        for i, (name, kind, size, count) in enumerate(zip(names, *lines, strict=True)):
            if kind + size not in TYPES:
                self.reject(f"its field '{name}' has TYPE {kind} and SIZE {size}, which is no type")
            if not WHOLE.fullmatch(count) or not 0 < int(count) <= MOST_VALUES:
                self.reject(
                    f"its field '{name}' must have a COUNT of 1 to {MOST_VALUES}, got {count}"
                )
            record.append((f"f{i}", TYPES[kind + size], (int(count),)))
            columns += _columns(i, name, int(size), int(count))
        return np.dtype(record), columns

    def _check_size(self) -> None:
        """Compare the size of the file with what the header promises."""
        if self._data == "ascii":
            try:
                there, _ = count_lines(self.path, self._begin)
            except LineError as error:
                self.reject(str(error), error)
            self._compare("points", self.rows, there)
        elif self._data == "binary":
            length = self.rows * self._record.itemsize
            self._compare("bytes of points", length, self.size - self._begin)
        else:
            self._packed, plain = self._compressed_sizes()
            length = self.rows * self._record.itemsize
            if plain != length or plain > self._packed * MOST_EXPANDED:
                self.reject(
                    f"damaged: its points are {length} bytes, but its {self._packed} compressed "
                    f"ones are to become {plain}"
                )
            there = self.size - self._begin - 8
            self._compare("bytes of compressed points", self._packed, there)

    def _compare(self, what: str, promised: int, there: int) -> None:
        if there < promised:
            self.reject(f"cut off: its header promises {promised} {what}, the file holds {there}")
        if there > promised and not self._is_padded(there - promised):
            self.warnings.append(
                f"its header promises {promised} {what}, the file holds {there}: the rest is not "
                "read"
            )

    def _is_padded(self, rest: int) -> bool:
        """Whether the file ends in zeros, as PCL writes it, up to a whole page of memory."""
        if self._data == "ascii" or rest > PAGE:
            return False
        with self.path.open("rb") as file:
            file.seek(-rest, os.SEEK_END)
            return not any(file.read())

    def _compressed_sizes(self) -> tuple[int, int]:
        """Read the bytes that the points are, compressed and not."""
        with self.path.open("rb") as file:
            file.seek(self._begin)
            packed, plain = np.frombuffer(file.read(8).ljust(8, b"\0"), "<u4")
        return int(packed), int(plain)

    def _parts(self, columns: Sequence[str]) -> Iterator[Part]:
        wanted = {name: self._columns[name] for name in columns}
        if self._data == "ascii":
            yield from self._from_text(wanted)
        elif self._data == "binary":
            for part in records(self, self._begin, self._record, self.rows):
                yield Part(
                    {
                        name: column.values(part[f"f{column.field}"][:, column.element])
                        for name, column in wanted.items()
                    }
                )
        else:
            yield from self._decompressed(wanted)

    def _from_text(self, wanted: Mapping[str, Column]) -> Iterator[Part]:
        counts = [self._record[name].shape[0] for name in self._record.names or ()]
        stored = {
            name: (
                sum(counts[: column.field]) + column.element,
                # text may have more digits than the type that its header gives for x, y and z
                pa.from_numpy_dtype(np.dtype("f8") if name in AXES else self._stored(column)),
            )
            for name, column in wanted.items()
        }
        lines = Lines(self.path, self._begin, self._header_lines, sum(counts))
        for part in text_parts(self, lines, stored, self.rows):
            yield Part(
                {
                    name: column.values(part.columns[name].to_numpy())
                    for name, column in wanted.items()
                }
            )

    def _decompressed(self, wanted: Mapping[str, Column]) -> Iterator[Part]:
        """Decompress the one block of a compressed file: its fields, one behind the other."""
        from spatialq.io.lzf import decode

        plain = np.empty(self.rows * self._record.itemsize, np.uint8)
        with self.path.open("rb") as file:
            file.seek(self._begin + 8)
            packed = np.frombuffer(file.read(self._packed), np.uint8)
        if not decode(packed, plain):
            self.reject("its compressed points are damaged")
        stored = {}
        for name, column in wanted.items():
            kind = self._record[column.field]
            begin = self.rows * sum(self._record[i].itemsize for i in range(column.field))
            values = plain[begin : begin + self.rows * kind.itemsize].view(kind.base)
            stored[name] = values.reshape(-1, kind.shape[0])[:, column.element]
        for first in range(0, self.rows, ROW_GROUP):
            rows = slice(first, first + ROW_GROUP)
            yield Part({name: wanted[name].values(array[rows]) for name, array in stored.items()})


def _columns(field: int, name: str, size: int, count: int) -> list[Column]:
    """Give the columns of a field: none for padding, several for a packed colour or a COUNT."""
    if name == PADDING:
        return []
    if name.lower() in ("rgb", "rgba") and (size, count) == (4, 1):
        parts = [part for part in PACKED if part != "alpha" or name.lower() == "rgba"]
        return [Column(part, field, shift=PACKED[part]) for part in parts]
    if count == 1:
        return [Column(name, field)]
    return [Column(f"{name}_{i + 1}", field, i) for i in range(count)]


READER = Reader(
    name="PCD",
    suffixes=(".pcd",),
    kind="points",
    open=PcdSource,
    skips="columns",
    keeps="all fields; packed colours as red, green, blue",
    loses="VIEWPOINT, the grid of organised clouds",
)
